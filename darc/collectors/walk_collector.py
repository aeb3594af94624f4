"""Timing the calls below one function at a time, in windows (CrossWalk 3.1).

As a set's (:mod:`darc.collectors.set_collector`), but for the choice of what counts: the members of
a level are the callees of one function, and only its calls of them count (``is_asked_for`` in
``darc/agent/members.c``). The function is a member of its own level, too: it may be called less
than in the level before; and what it jumps to at its end comes back to its caller, so what is
jumped to in a frame of its is its callee. The members of each level take the place of those of the
one before.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from darc.code.architecture import FunctionCode
from darc.code.program import Program
from darc.collectors.collector import CollectorBrief, Way
from darc.collectors.manyduties import Walks
from darc.collectors.set_collector import SetCollector
from darc.collectors.walkcount import OpenMembers, Windows
from darc.collectors.walkstacks import Stacks
from darc.debuggee import clock
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.quota import Quota
from darc.model.ftree import Function
from darc.model.leftout import LeftOut, LeftOutFor
from darc.model.libraries import is_c_library
from darc.model.waitcalls import EVENT_WAITS
from darc.pads.foothold import Foothold
from darc.pads.installer import PadInstaller

MOST_WALKED = 1000
"""Functions that are timed in one walk, over all its levels."""

_PER_LEVEL = 200

_PART_OF_TIME = 0.25
"""Of the time that all may take (``--time``, ``max-time``): what the pads of a level take at most.
On a busy machine they take as long as the windows."""

_TOO_MANY = LeftOut("there are too many functions on the way", LeftOutFor.NUMBER)


class WalkCollector(SetCollector, Walks):
    """See the module."""

    # Callers and callees would not count alike, and shares of time are asked for here.
    _leaves_herds_out = False

    windows: Windows

    @classmethod
    def below(cls, *, goes_below: bool) -> Way:
        """How one is made; see there for ``goes_below``."""
        return Way(cls, functools.partial(cls, goes_below=goes_below))

    @staticmethod
    def problem(debuggee: Debuggee) -> str | None:
        why = SetCollector.problem(debuggee)
        if why is None and not debuggee.is_readable_while_it_runs:
            why = f"'darc walk' {debuggee.nature.why_unread}"
        return why

    def __init__(self, brief: CollectorBrief, goes_below: bool) -> None:
        """``goes_below`` says that the walk begins with a function whose own calls are timed as
        well."""
        super().__init__(brief, (), progress=brief.progress)
        self._goes_below = goes_below
        self.doing = "looks at the threads' stacks"
        """How far the walk is, for whoever waits."""
        self._free = self._idle = 0

    def _take(self, foothold: Foothold, installer: PadInstaller) -> None:
        super()._take(foothold, installer)
        calls = OpenMembers(self.tables, self.pads)
        self.windows = Windows(self.tables, self.pads, calls)
        self.stacks = Stacks(
            target=self._target,
            program=self._program,
            foothold=foothold,
            calls=calls,
            tell=self._tell,
        )

    def _tell(self) -> None:
        self._progress(f"{self._spec}: {self.doing}")

    # ------------------------------------------------------------- begin and end

    def _room_of(self) -> int:
        return MOST_WALKED

    def _candidates(self) -> Sequence[Function]:
        waits = [] if self._goes_below else _exported(self._program)
        return (*waits, self._root.function)  # where a walk of all threads begins nothing is timed

    def _prepare(self, code: FunctionCode) -> None:
        del code
        idle = _exported(self._program)
        self.pads.add(idle, self._tell)
        self._idle = self._free = len(idle)
        if self._goes_below:
            self.pads.add([self._root.function], self._tell)
            self._free += 1

    def _check_any(self) -> None:
        """A level may have no callee that can be timed."""

    def _why_none_is_left(self, before: AbstractSet[int]) -> str | None:
        return None

    def _enable(self) -> None:
        super()._enable()
        self.windows.wait_below(self._idle)
        self.tables.members.walk_from((), self._free, self._idle)

    # -------------------------------------------------------------------- levels

    def begin_level(
        self, parts: Sequence[tuple[int, int]], callees: Sequence[Function], own: Function | None
    ) -> None:
        """The calls of ``callees`` count that come from code in these ``parts``, or that ``own``
        jumps to where it has tail calls, all of ``own``, and no others. The program stands
        still."""
        stays = self._member(own)
        for number in sorted(self.installer.members):
            if number >= self._free and number != stays:
                self.installer.give_up_member(number)
        if own is not None and stays is None:
            self.pads.add([own], self._tell)
            stays = self._member(own)
        always = {function.address for function in self.pads.functions[: self._free]}
        callees = [function for function in callees if function.address not in always]
        room = min(self.tables.members.most, MOST_WALKED) - len(self.pads.functions)
        chosen = callees[: min(_PER_LEVEL, room)]
        for function in callees[len(chosen) :]:
            self.pads.left_out[function] = _TOO_MANY
        self.pads.add(chosen, self._tell, self._latest())
        stretches = [range(*part) for part in parts]
        self.tables.members.walk_from(stretches, self._free, self._idle, stays)
        self._enable_members()

    def _latest(self) -> float:
        """When the pads of a level are to be made that is begun now, on the monotonic clock."""
        limit = self._parameters.max_time
        return math.inf if limit is None else time.monotonic() + limit * _PART_OF_TIME

    def _member(self, function: Function | None) -> int | None:
        """The number under which it is timed."""
        if function is None:
            return None
        numbers = self.installer.members
        return next(
            (n for n in numbers if self.pads.functions[n].address == function.address), None
        )

    def is_member(self, function: Function) -> bool:
        """Whether its calls are timed now."""
        return self._member(function) is not None

    @property
    def cut_short(self) -> int:
        """Calls at the edges of windows count up to there."""
        return 0

    # ---------------------------------------------------------------------- time

    def ran(self, thread: int) -> tuple[int, int] | None:
        """See :meth:`darc.debuggee.debuggee.Debuggee.ran`."""
        return self._debuggee.ran(thread)

    @functools.cached_property
    def _quota(self) -> Quota | None:
        return self._debuggee.quota()

    @property
    def quota_used_up(self) -> int:
        """For how long a CPU quota has kept the program's threads waiting so far, all together and
        at most, in ns."""
        return 0 if self._quota is None else self._quota.used_up_ns

    @property
    def is_stopped(self) -> bool:
        """Whether the debugger has stopped the program. Any thread."""
        return self._debuggee.is_stopped()

    @property
    def now(self) -> int:
        """The time-stamp counter."""
        return clock.tsc_now()


def _exported(program: Program) -> list[Function]:
    found: dict[int, Function] = {}
    for module in program.modules:
        if not is_c_library(module.name):
            continue
        for symbol in module.image.symbols:
            if symbol.name.split("@", 1)[0] in EVENT_WAITS:
                address = symbol.address + module.bias
                found[address] = program.names.function_at(address, symbol.name.split("@", 1)[0])
    return [found[address] for address in sorted(found)]
