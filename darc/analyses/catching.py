"""A breakpoint on latency: the program stops inside a call of f0 that has been under way for long.

f0 is probed as in any analysis. While the program runs, calls that are under way are looked at
when one may have become late: the probe's record tells since when each is. Then a signal stops the
program in that call's own thread, and the call is looked at again, as it may have ended meanwhile.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from darc.analyses.analysis import Analysis, AnalysisBrief, Step
from darc.analyses.callclock import CallClock, CallTime, spent
from darc.analyses.waitnames import ProgramNames
from darc.collectors.duties import Running
from darc.model.catching import Catching, CaughtCall
from darc.model.errors import UsageError
from darc.model.ops import Event
from darc.model.part import parts_of
from darc.model.profile import LONGEST, Profile, format_cycles
from darc.model.snapshot import Snapshot
from darc.model.status import Status

LEAST_SECONDS = 1e-3
"""The shortest time for which a call can be told to be late."""

_LOOK_SECONDS = 0.5e-3
"""Between two looks at the least."""

_PENDING_SECONDS = 5e-3
"""And while the debugger is asked to stop the program."""

_OFTEN_SECONDS, _SELDOM_SECONDS = 2e-3, 25e-3
"""And half of what is late, but between these, at most: where the debugger may have held the
program between two looks, none of that time counts."""

_DEEP_SECONDS = 0.05
"""For so long a thread that no signal stops is waited for, before its call is only described."""

_MOST_DEEP = 8
_MOST_FUNCTIONS = 6
"""Of such calls, and of the kernel's functions in each, that are told."""

_ASIDE_SECONDS = 1e-3
"""For how long a call that stands in a probe is let go on at first; each time for twice as long."""

_SPANS = 64
"""As a part of the time: calls so short are of no matter."""


@dataclass(frozen=True)
class _Caught:
    """The call that the program stands in."""

    call: Running
    waits_for: Event | None
    """What its thread began to wait for last, if that is seen."""
    spent: CallTime


@dataclass(frozen=True)
class _Aside:
    """A call whose thread stood in a probe."""

    until: float
    """It is let go on until it has been under way for so long, in seconds,"""
    seconds: float
    """which was so much longer than it had been."""


class Catcher(Analysis):
    """Stops the program inside calls of f0 that have been under way for ``seconds``."""

    def __init__(
        self, brief: AnalysisBrief, *, seconds: float, known: Snapshot | None = None
    ) -> None:
        """``known`` is what an analysis of f0 has found before."""
        super().__init__(brief)
        self.known = known
        collector = brief.collector
        ops, open_calls = collector.ops, collector.open_calls
        if ops is None or open_calls is None or open_calls.running() is None:
            raise UsageError(
                "'darc catch' needs probes that can be read while the program runs: neither "
                "breakpoints nor a kernel behind a gdb server can be"
            )
        self._open = open_calls
        self._switches = brief.switches
        self._switches.begin()
        self._clock = CallClock(open_calls, brief.switches, collector.counting.hz, seconds)
        self.seconds = seconds
        self._told: set[Hashable] = set()
        self._deep: dict[Hashable, float] = {}
        """For how long calls had been under way when their threads were seen first in a wait that
        no signal ends."""
        self._described: list[str] = []
        """What is to be told of those that stayed there."""
        self._suspect: Running | None = None
        self._stands = True
        """Whether the program stands still."""
        self._aside: dict[Hashable, _Aside] = {}
        self._stands_in: _Caught | None = None
        self._place: CaughtCall | None = None
        """What is shown of that."""
        self._caught = 0
        self.missed = 0
        """Calls that were late when they were looked at, and had ended when the program stood."""
        cycles = int(seconds * collector.counting.hz)
        collector.counting.search(cycles, LONGEST)
        ops.keep_ops(max(cycles // _SPANS, 1), (0, 0))
        ops.watch_waits()
        collector.counting.await_user()
        self._status = Status.SEARCHING

    # -------------------------------------------------------------------- time

    def look(self) -> float:
        if self._stands:
            return _LOOK_SECONDS  # whoever is asked for now would come when it goes on
        suspect = self._suspect
        if suspect is not None and self._open.deep_wait(suspect) is None:
            return _PENDING_SECONDS  # the debugger is to have Python for itself
        late: list[Running] = []
        often = min(max(self.seconds / 2, _OFTEN_SECONDS), _SELDOM_SECONDS)
        wait = min(self.seconds, often)
        calls = self._open.running() or ()
        self._clock.count(calls)
        self._forget_aside({call.key for call in calls})
        for call in calls:
            if call.key in self._told:
                continue
            left = self._left(call)
            if left <= 0:
                late.append(call)
            else:
                wait = min(wait, left)
        late.sort(key=lambda call: -call.seconds)
        for call in late[:_MOST_DEEP]:
            if (where := self._open.deep_wait(call)) is not None:
                self._meet_deep(call, where)
                continue
            self._clock.correct(call)
            if self._left(call) > 0:
                continue
            if self._suspect is None:
                self._suspect = call
            break
        return _LOOK_SECONDS if late else max(wait, _LOOK_SECONDS)

    def _left(self, call: Running) -> float:
        """In how many seconds it is late."""
        aside = self._aside.get(call.key)
        return (self.seconds if aside is None else aside.until) - self._clock.own(call)

    def _forget_aside(self, under_way: AbstractSet[Hashable]) -> None:
        for key in self._aside.keys() - under_way:
            del self._aside[key]
            self.missed += 1

    def _meet_deep(self, call: Running, where: Sequence[str]) -> None:
        """A stop would last until the thread comes back, with all others stopped."""
        since = self._deep.setdefault(call.key, call.seconds)
        if call.seconds - since < _DEEP_SECONDS:
            return
        self._told.add(call.key)
        if self._suspect is not None and self._suspect.key == call.key:
            self._suspect = None  # a signal that is on its way stops nothing then
        if len(self._deep) > _MOST_DEEP:
            return
        took = format_cycles(round(self._clock.own(call) * 1e9), 10**9)
        kernel = f" ({' ← '.join(where[:_MOST_FUNCTIONS])})" if where else ""
        self._described.append(
            f"{self.root.function.name} was under way for {took} in thread {call.thread}, which no "
            f"signal stops where it waits in the kernel{kernel}: it was let go on"
        )

    @property
    def found(self) -> tuple[Running, float] | None:
        """The call that the program is to stop in, and for how long it had been under way, in
        seconds, when it was found to be late."""
        return None if self._suspect is None else (self._suspect, self._clock.own(self._suspect))

    @property
    def urgent(self) -> int | None:
        suspect = self._suspect
        return None if suspect is None else suspect.thread

    @property
    def seconds_left(self) -> float | None:
        return None if self._suspect is None else 0.0

    # ----------------------------------------------------------------- decisions

    @property
    def needed(self) -> int:
        return 0

    def decide(self) -> Step:
        suspect, self._suspect = self._suspect, None
        self._collector.counting.await_user()  # it may have been asked to hurry
        if suspect is None:
            return Step.GO_ON
        running = self._open.running() or ()
        now = next((call for call in running if call.key == suspect.key), None)
        if now is None:
            self.missed += 1
            return Step.GO_ON
        if self._open.is_in_probe(now):
            # It has not begun, or is over but for that; what is to be seen there is darc's alone.
            before, own = self._aside.get(now.key), max(self._clock.own(now), self.seconds)
            seconds = _ASIDE_SECONDS if before is None else 2 * before.seconds
            self._aside[now.key] = _Aside(own + seconds, seconds)
            return Step.GO_ON
        took = self._spent(suspect, now)
        if took.own < self.seconds:
            self._clock.was_at_most(now, took.own)
            self._aside[now.key] = _Aside(self.seconds, _ASIDE_SECONDS)
            return Step.GO_ON
        self._aside.pop(now.key, None)
        self._told = {call.key for call in running} & self._told
        self._told.add(now.key)
        self._stands_in = _Caught(now, self._open.waits_for(now), took)
        self._caught += 1
        return Step.SHOW

    def show(self) -> None:
        caught = self._stands_in
        if caught is None:
            return
        stood, wait = self._open.standing(caught.call, caught.waits_for), None
        if stood.wait is not None:
            names = ProgramNames(self._program, {}, stacks=self._switches.stack_pointers())
            name = names.object(stood.wait.kind, stood.wait.address)
            wait = replace(stood.wait, name=name)
        self._place = CaughtCall(
            caught.spent.seconds,
            stood.where,
            off=caught.spent.off,
            by_quota=caught.spent.by_quota,
            wait=wait,
            show=stood.show,
            described=tuple(self._described),
        )
        self._described.clear()

    def _spent(self, late: Running, now: Running) -> CallTime:
        """Up to when its thread was stopped, which was before ``now`` is; where nothing tells when
        that was, up to when it was found ``late``, without all time that may be the debugger's."""
        known = spent(self._switches, late, now.seconds, self._collector.counting.hz)
        own = self._clock.own(late)
        return CallTime(own, own) if known is None else known

    def collect(self) -> None:
        pass

    def stands(self) -> None:
        self._clock.stands()
        self._stands = True

    def goes_on(self) -> None:
        self._suspect = None  # of a look that the stop came in the middle of
        self._clock.stands()  # the debugger has still to let it go on
        self._stands = False
        self._stands_in = self._place = None

    # -------------------------------------------------------------------- views

    @property
    def part(self) -> Catching:
        """What is known of the calls that were late."""
        return Catching(self.seconds, self._caught, self.missed, self._place)

    def snapshot(self, alive: bool) -> Snapshot:
        del alive
        return replace(
            self._head(),
            profile=Profile.empty(self.parameters.resolution, self._collector.counting.hz),
            parts=parts_of(self.part),
        )

    def live_snapshot(self, alive: bool, readable: bool) -> Snapshot:
        del readable
        return replace(self.snapshot(alive), profile=None, collected=0)
