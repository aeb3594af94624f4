"""What darc has put into the program, and how every bit of it is taken out again.

The installer owns each patched place with the bytes that stood there; a
:class:`~darc.pads.padmaker.PadMaker` makes what is put in. :meth:`PadInstaller.remove`
restores the code byte for byte and puts the program's own return addresses back on its stacks; the
pads stay in their :class:`~darc.pads.foothold.Foothold`, as a thread may still be on its way
through one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from darc.agent import compiled
from darc.code.architecture import FunctionCode, Site
from darc.code.landmarks import landmarks_of
from darc.code.notrace import why_notrace
from darc.code.program import Program
from darc.model.errors import TargetError, UnsupportedError
from darc.model.ftree import CallKind, Function
from darc.model.refusal import Refusal
from darc.pads import processor as pads
from darc.pads import returns
from darc.pads.displacing import USERS, Displacing
from darc.pads.foothold import Foothold
from darc.pads.guardpads import GuardPads, LandmarksOf
from darc.pads.padmaker import PadMaker
from darc.pads.patching import Patch, Patcher
from darc.pads.restoring import restore_stacks
from darc.pads.returns import Replaced, ReturnLandings
from darc.target.target import Target

_MOST_AHEAD = 256
"""Pads that are made before anybody knows whether they are needed: areas and tables have room for
some hundreds more than an analysis times at once."""


class PadInstaller:
    """The patches of one analysis in one program."""

    def __init__(
        self,
        target: Target,
        program: Program,
        foothold: Foothold,
        landmarks: LandmarksOf = landmarks_of,
    ) -> None:
        """``landmarks`` tells where guards are to stand (see :mod:`darc.code.landmarks`)."""
        self._target = target
        self._program = program
        self._foothold = foothold
        self._blob = compiled.load()
        self._sites: dict[int, Patch] = {}
        self._sure: set[int] = set()
        """Sites for which what has been made can be used, as nothing has changed since."""
        self._ahead: set[int] = set()
        """The sites of those that were made while the program ran, and lead nowhere yet."""
        self._f0: Patch | None = None
        self._members: dict[int, Patch] = {}
        """Those of a set, by their numbers."""
        self._may_be_copied = any(one.all_own() for one in foothold.landings)
        """Whether return addresses that lead to landings may stand anywhere in memory: the program
        has run with landings since that was looked through."""
        self._displacing = Displacing(target, program)
        self._maker = PadMaker(program, foothold, self._displacing, self._all)
        self.tables = foothold.tables
        self.patcher = Patcher(target, program, foothold.tables, foothold.interrupted)
        self.guards = GuardPads(
            program,
            self.patcher,
            landmarks,
            make=lambda at, kind: self._maker.entry(
                program.function(at), self._blob.constants.named(kind.value), 0
            ),
            is_f0=lambda at: self._f0 is not None and self._f0.address == at,
        )

    def _all(self) -> list[Patch]:
        """Every patch there is, but for relays."""
        f0 = [] if self._f0 is None else [self._f0]
        return [*f0, *self.guards.patches, *self._members.values(), *self._sites.values()]

    @property
    def f0_back(self) -> int:
        """Where f0 returns to when its pad called it; its landings are all in that sector."""
        assert self._f0 is not None
        return self._f0.pad_back

    @property
    def max_targets(self) -> int:
        """How many targets an indirect site can learn."""
        return self._blob.constants.MAX_TARGETS

    @property
    def late_targets(self) -> int:
        """How many of these, the last ones, are for targets that were long in an op of the peak."""
        return self.max_targets // self._blob.constants.LATE_TARGETS

    @property
    def max_tails(self) -> int:
        """How many tail calls, one behind the other in one frame, can be timed."""
        return self._blob.constants.MAX_TAILS

    @property
    def max_nodes(self) -> int:
        """How many fnodes the agent can hold at one time."""
        return self.tables.layout.room.nodes

    # --------------------------------------------------------------------- f0

    def prepare_f0(self, code: FunctionCode) -> str | None:
        """Makes f0's entry pad; a string says why none can stand there."""
        made = self._maker.entry(code, self._blob.constants.F0, 1)
        if isinstance(made, Refusal):
            return made.why
        self._f0 = made
        return None

    # -------------------------------------------------------------------- sets

    def prepare_member(
        self, number: int, code: FunctionCode, landings: ReturnLandings | None
    ) -> str | None:
        """Makes the entry pad of function ``number`` of a set, whose calls come back through these
        ``landings``; a string says why none can stand there."""
        kind = self._blob.constants.MEMBER
        try:
            made = self._maker.entry(code, kind, 1, landings=landings, number=number)
        except TargetError as error:
            return str(error)
        if isinstance(made, Refusal):
            return made.why
        self._members[number] = made
        return None

    def enable_members(self) -> dict[int, str]:
        """Starts to watch them; which ones cannot be, and why."""
        problems = {}
        with contextlib.suppress(TargetError):  # told of each of them
            self.patcher.note(self._members.values())
        with self.patcher.together():  # what signals' handlers come back to is looked for once
            for number, patch in list(self._members.items()):
                try:
                    # Since its pad was made.
                    if self._displacing.user_stands_in(patch.address, patch.end):
                        raise TargetError(USERS)
                    self.patcher.activate(patch)
                except TargetError as error:
                    problems[number] = str(error)
                    del self._members[number]
        self.tables.enabled = True
        return problems

    def give_up_member(self, number: int) -> None:
        """It is timed no more. Nothing is told of one that was not."""
        patch = self._members.pop(number, None)
        if patch is not None:
            self.deactivate(patch)
            self.patcher.lead_back(patch)

    @property
    def members(self) -> frozenset[int]:
        """The numbers of those that are timed."""
        return frozenset(self._members)

    def enable(self) -> None:
        """Starts to watch f0."""
        assert self._f0 is not None
        self.patcher.activate(self._f0)
        self.tables.enabled = True

    def own_words(self, stack: Sequence[int]) -> tuple[int, ...]:
        """Words of a stack with the program's own return addresses in place of darc's."""
        landings = self._foothold.landings
        if not landings:
            return tuple(stack)
        low = min(one.base for one in landings)
        high = max(one.base for one in landings) + returns.SIZE
        return tuple(
            self._foothold.own_back(word) or word if low <= word < high else word for word in stack
        )

    # --------------------------------------------------------------- call sites

    def problem(self, site: Site) -> str | None:
        """Why ``site`` cannot be given a pad, as far as its code tells."""
        site = self._displacing.in_place(site)
        if self._displacing.user_stands_in(site.patch, max(site.back, site.patch + site.length)):
            return "a breakpoint stands in its bytes"
        if self.guards.cover(range(site.patch, site.back)):
            return "it stands in its function's first bytes, where darc has another probe"
        if not self._overlaps_f0(site):
            known = self._sites.get(site.address)
            may_relay = site.is_short and self._maker.relay(site.address, known) is not None
            problem = None if may_relay else site.problem
            return problem or self._program.patchable.site_problem(site)
        return None if site.address in self._f0_cells() else "it stands in f0's first bytes"

    def why_notrace(self, program: Program, callee: Function) -> str | None:
        """Why no call of ``callee`` goes through a pad."""
        return why_notrace(program, callee)

    def prepare_site(self, site: Site, parent: int) -> Patch | Refusal:
        """At a stop: a pad for ``site``, whose caller's frame was entered through the pad that
        returns to ``parent``."""
        return self._prepare_site(site, parent, is_ahead=False)

    def _prepare_site(self, site: Site, parent: int, *, is_ahead: bool) -> Patch | Refusal:
        known, sector = self._sites.get(site.address), parent // pads.SECTOR * pads.SECTOR
        if known is not None and sector in known.sectors and site.address in self._sure:
            return known
        site = self._displacing.in_place(site)
        problem = self.problem(site)
        if problem is not None:
            return Refusal(problem)
        if site.kind is CallKind.INTERRUPT:
            return self._prepare_interrupt(site)
        cell = None
        if self._overlaps_f0(site):
            cell = self._f0_cells()[site.address]
            site = replace(
                site, patch=site.address, displaced=(), problem=None, is_short=False, nop=0
            )
        if (
            known is not None
            and sector in known.sectors
            and not self._displacing.displaces_faults(known, is_guard=True)
        ):
            return known
        sectors = tuple(sorted({sector, *(known.sectors if known is not None else ())}))
        made = self._maker.site(site, sectors=sectors, known=known, cell=cell, is_ahead=is_ahead)
        if isinstance(made, Refusal):
            return made
        if known is not None:
            self._replace(known, made)
        if made.cell is not None:
            made.cell_value = int.from_bytes(self._target.memory.read(made.cell, 8), "little")
        self._sites[site.address] = made
        self._sure.add(site.address)
        return made

    def _replace(self, known: Patch, made: Patch) -> None:
        """Calls through the old pad go on; what it has learned stays."""
        self.deactivate(known)
        self.tables.sites.set(known.index, route_count=0)
        self.tables.sites.teach(made.index, self.tables.sites.learned(known.index))

    def forget_ahead(self) -> None:
        """What was possible before may not be any more: breakpoints, files or handlers of faults
        may be others."""
        self._sure.clear()

    def prepare_ahead(self, site: Site, parent: int) -> int | None:
        """While the program runs: makes the pad that :meth:`prepare_site` is about to be asked for,
        where the site has none yet. Nothing leads to it. Returns where its call returns to; 0: its
        frame has no return address of its own, ``None``: there is no pad."""
        known = self._sites.get(site.address)
        if known is None and (site.kind is CallKind.INTERRUPT or not self._may_prepare_ahead()):
            return None
        made = self._prepare_site(site, parent, is_ahead=True) if known is None else known
        if isinstance(made, Refusal):
            return None
        if known is None:
            self._ahead.add(site.address)
            self.patcher.note([made])  # so that this need not be done at the stop
        return made.pad_back

    def _may_prepare_ahead(self) -> bool:
        """Whether there is room for pads that nobody may need."""
        self._ahead = {address for address in self._ahead if not self._sites[address].was_active}
        return len(self._ahead) < _MOST_AHEAD

    def _prepare_interrupt(self, site: Site) -> Patch | Refusal:
        """A pad at the entry of a handler."""
        known = self._sites.get(site.address)
        if known is not None:
            return known
        kind = self._blob.constants.INTERRUPT
        made = self._maker.entry(self._program.function(site.address), kind, 1)
        if isinstance(made, Patch):
            made.site = site
            self._sites[site.address] = made
            if not site.is_own_callee:
                self.tables.sites.set(made.index, indirect=self.max_targets)
        return made

    def _f0_cells(self) -> dict[int, int]:
        """Calls and jumps among f0's displaced instructions: where the constants are, by the
        instruction's address."""
        assert self._f0 is not None
        found = {int(i.ip): f"leave {n}" for n, i in enumerate(self._f0.displaced)}
        cells = self._f0.cells
        return {at: cells[name] for at, name in found.items() if name in cells}

    def _overlaps_f0(self, site: Site) -> bool:
        f0 = self._f0
        if f0 is None or not f0.displaced:
            return False
        return (site.address < f0.end and site.back > f0.address) or (
            f0.address <= site.patch < f0.address + len(f0.original)
        )

    def activate(self, patch: Patch) -> None:
        """Lets the site lead to its pad. Raises TargetError when it cannot."""
        self.patcher.activate(patch)

    def deactivate(self, patch: Patch) -> None:
        """Restores the site's own bytes."""
        self.patcher.deactivate(patch)

    def make_way(self) -> str | None:
        """Takes back patches in whose bytes the user has set a breakpoint; a string says why f0
        cannot be timed any more."""
        return self._take_back(self._displacing.is_in_the_users_way)

    def leave_faults(self) -> str | None:
        """Takes back patches that displace what is to be executed in its place from now on (see
        :meth:`~darc.code.patchable.Patchable.may_fault`); as :meth:`make_way`."""
        entries = {id(patch) for patch in (self._f0, *self._members.values())}  # may be thousands
        return self._take_back(
            lambda p: self._displacing.displaces_faults(p, is_guard=id(p) not in entries)
        )

    def _take_back(self, is_wanted: Callable[[Patch], bool]) -> str | None:
        for patch in self._sites.values():
            if is_wanted(patch):
                self.deactivate(patch)
                self.patcher.lead_back(patch)
        self.guards.take_back(is_wanted)
        for number, patch in list(self._members.items()):
            if is_wanted(patch):
                self.give_up_member(number)
        try:
            self.guards.put()  # in another way, where there is one
        except UnsupportedError as error:
            return str(error)
        f0 = self._f0
        if f0 is None or not is_wanted(f0):
            return None
        self._deactivate_f0()
        self.patcher.lead_back(f0)
        why = self.prepare_f0(self._program.function(f0.address))
        if why is None:
            assert self._f0 is not None
            self.activate(self._f0)
        return why

    def _deactivate_f0(self) -> None:
        for patch in self._sites.values():
            if patch.cell is not None:
                self.deactivate(patch)
        if self._f0 is not None:
            self.deactivate(self._f0)

    # ------------------------------------------------------- stops and removal

    def pause(self) -> list[Replaced]:
        """At a stop for the user: code and stacks are the program's own. What led to landings."""
        with self.patcher.together():  # stacks are the program's own before unwinders find them
            self.patcher.pause()
            words = self.show_own_stack()
        return words + self._restore_copies()

    def _restore_copies(self) -> list[Replaced]:
        if not self._may_be_copied:
            return []
        with self._target.companions:
            found = self._foothold.restore_copies()
        self._may_be_copied = False
        return found

    def resume(self) -> list[str]:
        """The program goes on: patches are put back. Tells which ones could not be."""
        self._may_be_copied = True
        self.patcher.resume()
        return self.patcher.take_problems()

    def show_own_stack(self) -> list[Replaced]:
        """Puts the program's return addresses back on its stacks: whoever looks sees no pad. The
        calls that were open are measured no more."""
        if self._foothold.landings:
            return restore_stacks(self._target, self.tables, self._foothold.own_back)
        return restore_stacks(self._target, self.tables, None, self.tables.records.open_calls())

    def remove(self) -> None:
        """Takes everything back: f0 first, then the call sites, the stacks, and what threads on
        their way into a call would come back to; the unwinders' guards last, as the debugger may
        be killed in between: an exception is to find a guard, or nothing that needs one."""
        with self.patcher.together():
            # Whatever has become of the tables: the patches are known without them.
            with contextlib.suppress(TargetError):
                self.tables.enabled = False
            self._deactivate_f0()
            for patch in (*self._members.values(), *self._sites.values()):
                self.deactivate(patch)
            with contextlib.suppress(TargetError):
                self.show_own_stack()
            self._target.memory.flush()
            try:
                self._restore_copies()
                self._foothold.retire()
                self._target.memory.flush()
            finally:
                for patch in self.guards.patches:
                    self.deactivate(patch)
