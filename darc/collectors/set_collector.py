"""Collecting the latencies of many functions at once, each for itself (OSprof 3.1).

Every function of the set has an entry pad of its own, which counts its calls in bins of powers of
two (``darc/agent/members.c``). There are no call sites, no votes and no kept ops: what an
:class:`~darc.analyses.analysis.Analysis` may order of other collectors, it may not of this one.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from darc.agent.layout import Room
from darc.code.architecture import FunctionCode
from darc.code.stacks import under_way
from darc.collectors.collector import CollectorBrief, Way
from darc.collectors.losses import LOSSES, Unmeasured
from darc.collectors.manyduties import MemberProbes, TimesSets
from darc.collectors.memberpads import LONGEST_STOP, MemberPads
from darc.collectors.pad_collector import NO_PADS, PadCollector
from darc.collectors.setcount import SetCounting
from darc.debuggee.debuggee import Debuggee
from darc.model.errors import DarcError, UnsupportedError
from darc.model.ftree import Function
from darc.model.leftout import LeftOut
from darc.pads.displacing import why_in_place
from darc.pads.foothold import Foothold
from darc.pads.installer import PadInstaller

MOST_FUNCTIONS = 2000
"""Of one set."""

_STACKS_SECONDS = 0.02
"""In which stacks are looked at."""

_LOSSES = {
    Unmeasured.BLOCKS: "{calls} not timed: there were too many threads and functions together",
    Unmeasured.MOVED: "{calls} not measured: {frames} moved to another thread or stack",
    Unmeasured.TAILS: "{tail_calls} not measured: there were too many in one frame",
}


class SetCollector(PadCollector, TimesSets):
    """Entry pads at the functions of a set, in a process."""

    is_of_one = False
    _loss_texts = LOSSES | _LOSSES
    # Calls that are under way at a stop are dropped, and counted where they return.
    _measures_over_stops = False

    counting: SetCounting
    pads: MemberPads
    """Those of the functions, since :meth:`install` as well."""

    @classmethod
    def of(
        cls,
        functions: Sequence[Function],
        *,
        left_out: Sequence[tuple[Function, LeftOut]],
        runs: bool,
        progress: Callable[[str], None],
    ) -> Way:
        """How one for these ``functions`` is made; see there."""
        make = functools.partial(
            cls, functions=functions, left_out=left_out, runs=runs, progress=progress
        )
        return Way(cls, make)

    @staticmethod
    def problem(debuggee: Debuggee) -> str | None:
        pads = debuggee.pads
        if pads is None:
            return NO_PADS
        return pads.no_sets if pads.room_for_set(1) is None else None

    def __init__(
        self,
        brief: CollectorBrief,
        functions: Sequence[Function],
        *,
        left_out: Sequence[tuple[Function, LeftOut]] = (),
        runs: bool = False,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """``functions`` are at most :data:`MOST_FUNCTIONS`, those that matter most first; others
        were ``left_out`` before, each for a reason. Of a program that ``runs`` already, and may
        have work to do, the pads of many are made while it does: see :meth:`put_in`. ``progress``
        is told what is done before."""
        super().__init__(brief)
        self._functions = tuple(functions)
        self.left_out = left_out
        self._runs = runs
        self._progress = progress
        self._is_in = False

    def _take(self, foothold: Foothold, installer: PadInstaller) -> None:
        super()._take(foothold, installer)
        self.pads = self.ahead = MemberPads(
            self._program,
            self._debuggee,
            foothold=foothold,
            installer=installer,
            ahead=self._its.looks,
            functions=self._functions,
            tell=self._progress,
            is_called_off=self._target.screen.calls_off(),
        )
        self.counting = SetCounting(self.tables, self._debuggee, self.pads, self._losses)

    @property
    def probes(self) -> MemberProbes:
        return self.pads

    def _room(self) -> Room:
        room = self._backend.room_for_set(self._room_of())
        assert room is not None, "whoever chose the functions has asked"
        return self._backend.room_for_both(room, super()._room())

    def _room_of(self) -> int:
        """For how many functions there is to be room."""
        return len(self._functions)

    # ------------------------------------------------------------- begin and end

    def _candidates(self) -> Sequence[Function]:
        """Functions of which one must be of those that can be timed: else nothing is."""
        return self._functions

    def _check(self) -> list[str]:
        why: UnsupportedError | None = None
        for function in self._candidates():
            try:
                return self._debuggee.check(self._program, function, self._spec)
            except UnsupportedError as error:
                why = error  # of the program, or of this function alone
        assert why is not None
        raise why

    def _prepare(self, code: FunctionCode) -> None:
        del code
        own = 2 if self._debuggee.tells_interrupts else 1
        assert own * len(self._functions) <= self.tables.members.most
        self.pads.begin(runs=self._runs)
        self._check_any()
        self.pads.make_ready()

    # ------------------------------------------------------------- while it runs

    @property
    def is_in(self) -> bool:
        """Whether the functions are timed. Any thread."""
        return self._is_in

    def put_in(self) -> None:
        """At a stop: all are timed from now on whose pads are made; the others are left out. Raises
        :class:`~darc.model.errors.UnsupportedError`: none can be."""
        self.pads.leave_rest_out()
        self._put_in()

    def _check_any(self) -> None:
        if not self.installer.members:
            reasons = sorted({why.text for why in self.pads.left_out.values()})
            raise UnsupportedError(f"none of these functions can be timed: {'; '.join(reasons)}")

    def _enable(self) -> None:
        assert self.foothold is not None
        self.tables.begin_set()
        self.foothold.calibrate_members()
        self.tables.members.forget()
        if self._debuggee.tells_interrupts:
            self.counting.tell_interrupts_apart()
        if self.pads.is_prepared:
            self._put_in()
        else:
            self.tables.enabled = True  # so that the agent rings

    def _put_in(self) -> None:
        self._enable_members()
        self._check_any()
        self._is_in = True  # of all: another thread may ask while they go in

    def _enable_members(self) -> None:
        """Those whose pads are made are timed, or left out."""
        for number, why in self.installer.enable_members().items():
            self.pads.leave_out(number, why)

    # ---------------------------------------------------------- the user's stops

    @property
    def looks_while_it_runs(self) -> bool:
        """Whether what was counted can be read while the program runs."""
        return self._debuggee.is_readable_while_it_runs

    @property
    def noun(self) -> str:
        return self._debuggee.nature.noun

    def _see_losses(self) -> None:
        """No record is used for another slot where a thread may stand in a pad that nobody sees: a
        kernel's task that was preempted there may have nothing else that knows where it came
        from."""
        if self._debuggee.sees_all_threads:
            super()._see_losses()
        else:
            self._losses.count(self.tables)

    def make_way(self) -> str | None:
        before = self.installer.members
        why = self.installer.make_way()
        for number in before - self.installer.members:
            self.pads.leave_out(number, "a breakpoint stands in its first bytes")
        if why is None and not self.installer.members:
            why = "breakpoints stand in the first bytes of all its functions"
        return why

    def _leave_faults(self) -> str | None:
        """Functions whose first instructions may fault get another pad behind these, where there
        can be one and the stop is not long for it; the others are timed no more."""
        before = self.installer.members
        why = self.installer.leave_faults()
        left = why_in_place(self._program.patchable)
        end = time.monotonic() + LONGEST_STOP
        for number in sorted(before - self.installer.members):
            is_late = time.monotonic() >= end
            problem = left if is_late else self.pads.make(number)
            self.pads.leave_out(number, problem)
        if self._is_in:
            self._enable_members()
        return why or self._why_none_is_left(before)

    def _why_none_is_left(self, before: AbstractSet[int]) -> str | None:
        """Functions had been timed, or were to be, with the numbers ``before``: where none is any
        more, why."""
        if not before or self.installer.members or not self.pads.is_all_made:
            return None
        return why_in_place(self._program.patchable)

    def _forget_open(self) -> None:
        self.tables.members.forget_open()

    def give_up(self, functions: AbstractSet[Function]) -> None:
        """These are timed no more; what was counted of them stays."""
        for number in sorted(self.installer.members):
            if self.pads.functions[number] in functions:
                self.installer.give_up_member(number)

    @property
    def busy_seconds(self) -> float:
        """For how long the program's threads had something to do so far, those that live, whether
        they had a processor or not. Any thread."""
        ran = map(self._debuggee.ran, self._backend.living())
        return sum(sum(one) for one in ran if one is not None) / 1e9

    @property
    def tick(self) -> float | None:
        return self._debuggee.tick

    def under_way(self) -> list[int]:
        """At a stop, which is to be short: as :func:`darc.code.stacks.under_way`."""
        return under_way(self._program, self._target, _STACKS_SECONDS)

    @property
    def timed(self) -> int:
        """How many functions are timed now. Any thread."""
        return len(self.installer.members)

    @property
    def cut_short(self) -> int:
        try:
            dropped = sum(counts.dropped for counts in self.tables.members.counts().values())
            return max(0, dropped - self._losses.count_of(Unmeasured.UNSETTLED_CALLS))
        except DarcError:
            return 0
