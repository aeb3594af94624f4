"""Darc's foothold: memory for the agent and the pads, taken once and kept.

A foothold changes nothing that the program executes. It outlives the analyses that use it, as a
thread may still be on its way through a pad of an earlier one. Where the memory comes from differs:
see :class:`darc.debuggee.process_foothold.ProcessFoothold` for a process.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Self

from darc.agent import compiled
from darc.agent.compiled import AgentSymbol
from darc.agent.damage import DamagedError
from darc.agent.layout import Room
from darc.agent.memory import AgentMemory
from darc.code.program import Program
from darc.model.errors import PadsImpossibleError, TargetError, UnsupportedError
from darc.pads import processor as pads
from darc.pads.areas import Area, Areas, PlacedPads
from darc.pads.calibration import Calibration
from darc.pads.placing import Placing
from darc.pads.returns import Replaced, ReturnLandings, own_back
from darc.target.memory import Read, Write
from darc.target.target import Target

MARK = b"darc pad"
MARK_SIZE = 64
"""Every area begins with the mark and the address of the control structure: whoever comes after a
debugger that was killed finds both."""


class ThreadKey(IntEnum):
    """How the agent tells threads apart."""

    NONE = 0
    """Not at all: there is one."""
    STORAGE = 1
    """By their thread-local storage."""
    STACK = 2
    """By their kernel stacks."""


class Foothold(ABC):
    """Create it, then :meth:`install`; :meth:`reopen` for another analysis in the same debuggee;
    :meth:`close` when that is gone."""

    def __init__(self, target: Target, program: Program, identity: int) -> None:
        """``identity`` is that of the :class:`~darc.debuggee.debuggee.Debuggee` that it is in."""
        self._target = target
        self._program = program
        self.identity = identity
        self._blob = compiled.load()
        self._areas = Areas()
        self._pads = PlacedPads()
        self._agent_base = 0
        self.damaged = False
        """Whether the program has written over its tables: nothing is to be built on them."""
        self.tables: AgentMemory
        self.placing: Placing
        """Of pads, once the agent is there."""

    # --------------------------------------------------------- where memory comes from

    @abstractmethod
    def _take_tables(self) -> AgentMemory:
        """Memory for what the agent and the debugger share, all zero."""

    @abstractmethod
    def _take_areas(self) -> None:
        """Sees to it that there is an area in reach of each module."""

    @abstractmethod
    def _thread_key(self) -> tuple[ThreadKey, int]:
        """How the agent is to tell threads apart, and where, seen from its thread pointer, each has
        the id of its own, by which it is told from an earlier one; 0: not known."""

    @property
    def _may_read_pointer(self) -> bool:
        """Whether threads may read their thread pointers by an instruction of their own."""
        return False

    @abstractmethod
    def call(self, address: int, arguments: Sequence[int]) -> int:
        """Calls a function there."""

    @abstractmethod
    def is_there(self) -> bool:
        """Whether it has not gone with what it stood in."""

    @property
    def memory_beside(self) -> tuple[Read, Write] | None:
        """What reads and writes the memory that it stands in while that runs, and no other's, as
        after an exec; ``None``: nothing can."""
        return None

    def lost(self) -> str | None:
        """At a stop: why what it stood in is not there any more, where nothing else tells."""
        return None

    def give_back(self) -> bool:
        """Nothing of an analysis is there any more, and all threads stand still: gives its memory
        back, where nothing can need it. ``False``: not now."""
        return False

    @property
    def size(self) -> int:
        """Bytes that are mapped for it in the program, used or not; 0 where that is no matter."""
        return 0

    def earlier(self, after: Self | None = None, *, patient: bool = False) -> int:
        """No analysis is under way, and all threads stand still: how many footholds before this one
        are there still, as a thread may come back to them. What nothing needs is given back, but
        for what ``after``, the one before it in the same debuggee, has just looked for at its
        :meth:`give_back`, since which the program has not run; ``patient``: however long it takes
        to know that."""
        del after, patient
        return 0

    @abstractmethod
    def close(self) -> None:
        """What it stood in is gone, or it is not used any more."""

    # ------------------------------------------------------------------ the agent

    def install(self, resolution: int) -> None:
        """Takes memory, writes the agent and measures what a pad costs here. May call functions.

        Raises:
            TargetError: there is no memory.
            UnsupportedError: there is no room near its code.
        """
        if not self._program.modules:
            raise UnsupportedError("the program has no mapped file with code")
        self.tables = self._take_tables()
        self._take_areas()
        if not self._areas:
            raise PadsImpossibleError("found no room for pads near the program's code")
        first = self._areas.first
        self._use_agent(first.base + first.used)
        self._target.memory.write(self._agent_base, self._blob.code)
        first.fill(len(self._blob.code))
        self.tables.write_control(
            resolution,
            *self._thread_key(),
            may_read_pointer=self._may_read_pointer,
            enter=self.symbol(AgentSymbol.FROM_PAD_ENTER),
            leave=self.symbol(AgentSymbol.FROM_PAD_LEAVE),
        )
        self._begin_landings()
        try:
            Calibration(self, self._blob, first).measure()
        except pads.OutOfReachError as error:
            raise PadsImpossibleError(str(error)) from None
        first.floor = first.used

    def _begin_landings(self) -> None:
        """They lead to the agent from now on."""
        for landings in self.landings:
            landings.begin(self.tables.control, self.placing.stubs.landed)
        self.tables.set_landings([landings.base for landings in self.landings])

    def _use_agent(self, base: int) -> None:
        """The agent's code is, or will be, at ``base``."""
        self._agent_base = base
        self.placing = self._new_placing(
            pads.Stubs(
                *(
                    self.symbol(AgentSymbol[f"STUB_{one.name.upper()}"])
                    for one in fields(pads.Stubs)
                )
            )
        )

    def _new_placing(self, stubs: pads.Stubs) -> Placing:
        """Areas, tables and the agent are there, which pads ask by its ``stubs``."""
        return Placing(
            self._target.memory, self._areas, self._pads, tables=self.tables, stubs=stubs
        )

    def reopen(self, program: Program, resolution: int) -> None:
        """Prepares for another analysis. May call functions in the program."""
        self._program = program
        self._take_areas()
        self.tables.reset(resolution)
        self.tables.sites.pass_by_entries()
        self._begin_landings()
        self.placing.begin()

    @property
    def landings(self) -> list[ReturnLandings]:
        """Those that calls come back to: see :mod:`darc.pads.returns`."""
        return self._areas.landings

    def own_back(self, word: int) -> int | None:
        """The program's own return address where ``word`` is one that leads to a landing."""
        return own_back(self.landings, word)

    def more_landings(self, area: Area, low: int, high: int, pools: int) -> list[ReturnLandings]:
        """At least one and at most ``pools`` pools of landings in reach of ``area`` and the module
        in [low, high), for more callers than one has room for. May make calls in the program; none
        where calls come back to pads."""
        del low, high, pools
        return [] if area.landings is None else [area.landings]

    def more_for_sites(self, area: Area, address: int) -> bool:
        """No call site in reach of ``area`` finds a landing any more, such as the one at
        ``address``: whether there are more of them now. All threads stand still; makes calls in
        the program."""
        del area, address
        return False

    def restore_copies(self) -> list[Replaced]:
        """Return addresses that lead to landings become the program's own wherever they stand in
        its memory: guards are taken out, or about to be. Nothing is waiting to be written. What
        was replaced."""
        return []

    def interrupted(self) -> Mapping[int, int]:
        """Program counters that were saved for handlers of signals, which have not come back yet:
        by where in memory they are, and of what looks like some. None where there are no such
        handlers."""
        return {}

    def retire(self) -> None:
        """The analysis is over, patches are taken out and stacks restored, all threads stand still:
        from now on landings just return by themselves (copies of stacks may have their addresses
        for the process's life), until :meth:`install` or :meth:`reopen` of the next analysis, of
        this debugger or another one, takes them up again.

        Whether agent, tables and pads may be unmapped, or used otherwise, is told by
        :meth:`references` alone: a thread that is in the handler of a signal comes back to where
        that has interrupted it. What must stay then is :meth:`ReturnLandings.kept`.
        """
        for landings in self.landings:
            landings.retire()

    def is_inside(self, pc: int) -> bool:
        """Whether a thread at ``pc`` needs the agent or a pad to go on."""
        of_landings = [one for one in self.landings if one.base <= pc < one.base + one.extent]
        if of_landings:
            return of_landings[0].is_calling(pc)
        return self.holds(pc)

    def is_usable(self, room: Room | None = None) -> bool:
        """Whether it is still there and has room for another analysis, which needs ``room``."""
        if self.damaged or not self.is_there():
            return False
        if room is not None and not self.tables.room.holds(room):
            return False
        return self.placing.has_room or (self._reuse() and self.placing.has_room)

    def _reuse(self) -> bool:
        """Makes room of the pads of earlier analyses but for those to which a thread may come back:
        they stay as they are, each with its row in the table of sites. ``False``: it is not known
        which these are."""
        found = self.references()
        if found is None:
            return False
        self.placing.keep(self._pads.reached(found))
        return True

    def references(self) -> frozenset[int] | None:
        """No analysis is under way, and all threads stand still: the addresses in the agent and in
        pads to which a thread may come back. ``None``: nobody knows."""
        return None

    def free_stuck(self) -> list[str]:
        """At the begin of an analysis: threads that are seen no more, as they seem to stand inside
        the agent, are seen again. What the user should know of it. (In a process the agent and the
        monitor see to that while it runs: :meth:`~darc.agent.openops.OpenOps.watch_stale`.)"""
        return []

    def add_contexts(self, threads: int) -> str | None:
        """In the middle of an analysis, all threads stand still: makes room for so many threads. A
        string says why there can be none. May make calls in the program."""
        del threads
        return "there is no more memory"

    def add_records(self, threads: int) -> str | None:
        """The same for records of their calls, at least twice as many as now: no call is open, and
        no thread is in the agent or a pad but the one that rang."""
        del threads
        return "there is no more memory"

    def symbol(self, name: AgentSymbol) -> int:
        """Address of one of the agent's functions."""
        return self._agent_base + self._blob.symbols[name]

    def is_damaged(self) -> bool:
        """Whether it is there, but its tables are not what they must be. Any thread."""
        try:
            self.tables.check()
        except DamagedError:
            self.damaged = True
        except TargetError:
            # Unmapped alone, or with all that was there (an exec)?
            with contextlib.suppress(TargetError):
                self.damaged = self.tables.raw(self._areas.first.base, len(MARK)) == MARK
        return self.damaged

    def holds(self, address: int) -> bool:
        """Whether ``address`` is in the agent, a pad or a landing."""
        return self._areas.holds(address)

    @property
    def agent_base(self) -> int:
        """Where the agent's code begins."""
        return self._agent_base

    def area_for(self, low: int, high: int) -> Area | None:
        """An area from which the module around [low, high) is in reach, if there is one."""
        module = self._program.module_at(low)
        if module is not None:
            low, high = min(low, module.start), max(high, module.end)
        return self._areas.reaching(low, high)

    def calibrate_members(self) -> None:
        """Measures what the pad of a set's function costs, once; nothing is timed yet. The agent
        counts members now, and what it counts here is to be forgotten. Calls functions.

        Raises:
            TargetError: there is no room for one more pad.
        """
        if not self.tables.member_cost:
            Calibration(self, self._blob, self._areas.first).measure_member()
