"""The steps of ``darc why``: profiles of many functions until one stands out, and the search for
what makes it slow. The choice is :mod:`darc.search.suspects`'."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence

from darc.analyses.analysis import Step, Subject
from darc.analyses.functionset import FunctionProfiles
from darc.analyses.rootcauses import RootCauses
from darc.collectors.manyduties import that_times_sets
from darc.collectors.walk_collector import EVENT_WAITS, plain_name
from darc.model.ftree import Cause, Fnode, Function, RootCausePath
from darc.model.leftout import LeftOut
from darc.model.ops import KeptOps, Op, OpClass
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.search.descent import end_where_it_is, ended_paths
from darc.search.suspects import (
    LEAST_TO_JUDGE,
    SLEEPS,
    agree,
    choice,
    is_disturbed,
    may_follow,
    usual,
)

FIRST_SECONDS = 3.0
"""After which it is first asked whether a function stands out; then after twice as long, and so
on."""

_AT_WORK = 0.5
"""A program has work where its threads were busy for so much of the time;"""

_AT_WORK_ELSEWHERE = 0.01
"""and for so little where not one of these functions was called."""

_STACKS_EVERY = 0.2
"""Seconds between two looks at the stacks of such a program,"""

_MOST_LOOKS = 20
"""of which there are so many."""

_LONG = 12.0
"""Seconds after which it is searched also where the halves of the time disagree: that is told."""

_INTERVALS = 100
"""In which calls are counted at most,"""

_LEAST_INTERVAL = 0.25
"""of so many seconds each at least."""

_WAITS = EVENT_WAITS | frozenset("poll ppoll select pselect accept accept4".split())
"""What a thread calls that waits for whatever comes next."""


_HANDED = frozenset(
    "pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait sem_wait sem_timedwait "
    "sem_clockwait recv recvfrom recvmsg recvmmsg mq_receive mq_timedreceive msgrcv "
    "sigwait sigwaitinfo sigtimedwait".split()
)
"""What a thread calls that waits until another one hands it something: a result that it needs, or
the next piece of work."""

_ALWAYS = 0.5
"""Of the fast calls wait as well where a function is one that waits for whatever comes next,"""

_ALL_OF_IT = 0.8
"""and so much of their time is sleep where a function does nothing else."""


class SuspectProfiles(FunctionProfiles):
    """For as long as it takes until both halves of the time choose the same function, and for
    ``limit`` seconds of it at most."""

    _all_share = math.inf  # which of them is slow is yet to be seen

    def __init__(
        self,
        subject: Subject,
        *,
        limit: float,
        left_out: Sequence[tuple[Function, LeftOut]] = (),
    ) -> None:
        every = max(_LEAST_INTERVAL, limit / _INTERVALS)
        timed = that_times_sets(subject.collector)
        assert timed is not None
        self._busy = timed.busy_seconds
        super().__init__(subject, seconds=limit, every=every, left_out=left_out)
        self._limit = limit
        self._next_asked = min(FIRST_SECONDS, limit)
        """When it is asked next whether that is enough."""
        self._places: Counter[int] = Counter()
        """In how many looks at the stacks a call was under way there."""
        self._looks = 0
        self._wants_look = False
        self._is_decided = False
        """Whether what is known is enough: the next stop is the last."""
        self.elsewhere: tuple[int, ...] | None = None
        """Where the program works instead, the most frequent first: it has ended as it does none of
        its work in these functions."""

    @property
    def timed_from(self) -> float | None:
        """When the program first went on with the functions timed, on the monotonic clock."""
        return self._clock.begun

    @property
    def seconds_left(self) -> float | None:
        return 0.0 if self._wants_look or self._is_decided else super().seconds_left

    def decide(self) -> Step:
        self._look_at_stacks()
        if self._is_decided:
            self._wanted = min(self._wanted, self._clock.seconds)
        return super().decide()

    def _collect_last(self) -> None:
        if not self._is_decided:
            super()._collect_last()

    def _collect(self) -> None:
        before = self._known.busy
        super()._collect()
        seconds, busy = self._clock.ran, self._set.busy_seconds - self._busy
        known = before if busy <= 0 or not seconds else busy / seconds  # none of it at its end
        self._known = dataclasses.replace(self._known, busy=known)

    def look(self) -> float:
        wait = super().look()
        seconds = self._clock.seconds
        if not self._set.is_in or not self._clock.goes or self._is_decided:
            return wait
        if seconds >= (self._looks + 1) * _STACKS_EVERY and self._looks < _MOST_LOOKS:
            self._wants_look = self._works_elsewhere(max(self.calls.values(), default=0))
        if seconds >= self._next_asked:
            self._consider()
        return min(wait, _STACKS_EVERY)

    def _consider(self) -> None:
        """Whether that was it, while the program runs: it takes a while."""
        self.collect()
        if self._works_elsewhere(max((row.profile.count for row in self._known.rows), default=0)):
            self.elsewhere = tuple(at for at, _ in self._places.most_common())
        elif not self._stands_out():
            self._next_asked *= 2
            return
        self._is_decided = True

    @property
    def urgent(self) -> int | None:
        return 0 if self._wants_look or self._is_decided else super().urgent

    def _look_at_stacks(self) -> None:
        if self._wants_look:
            self._wants_look = False
            self._looks += 1
            self._places.update(self._set.under_way())

    def _works_elsewhere(self, most: int) -> bool:
        """Whether the program has work, and not even at the limit any of these functions will have
        been called often enough, of which none was more often than ``most`` times."""
        seconds, ran = self._clock.seconds, self._clock.ran
        busy = self._set.busy_seconds - self._busy
        is_at_work = busy >= (_AT_WORK if most else _AT_WORK_ELSEWHERE) * ran
        return most * self._limit < LEAST_TO_JUDGE * seconds and is_at_work

    def _stands_out(self) -> bool:
        out = usual(self._known)

        def is_out(function: Function) -> bool:
            return function.address in out

        found = choice(self._known, is_out)
        if found is None or is_disturbed(self._known, found):
            return False
        if self._clock.seconds >= _LONG:
            return True
        return agree(self._known, is_out) and not may_follow(self._known, found)


class SuspectCauses(RootCauses):
    """The search for what makes a suspect slow. Ctrl-C ends it. Where there was no time for all of
    it, its answer is how far it came."""

    def finish_early(self, why: str) -> None:
        super().finish_early(why)
        self._end_where_it_is()

    def close(self, status: Status, alive: bool) -> None:
        super().close(status, alive)
        self._end_where_it_is()

    def _end_where_it_is(self) -> None:
        if not ended_paths(self.root):
            end_where_it_is(self.root)

    @property
    def ends_at_interrupt(self) -> bool:
        return True


def is_preempted(paths: Sequence[RootCausePath]) -> bool:
    """Whether another thread or program had the processor."""
    return any(path.ending.cause is Cause.PREEMPTION for path in paths)


def lacks_processor(shown: Snapshot) -> bool:
    """Whether its slow calls' threads were awake, and had no processor, for most of the time: what
    they were woken for had come by then."""
    waits = shown.waits
    return waits is not None and 2 * waits.without_processor > waits.cycles


def idle_in(shown: Snapshot) -> str | None:
    """Where all of its paths end in a wait for whatever comes next that fast calls end in as well,
    or in a sleep that they consist of as well, the function that waits. A function that waits in
    its slow calls alone is none that waits for work, whatever it waits in. Where fast calls were
    not seen nobody can tell: then it is."""
    waits = _waits_in(shown.paths, _WAITS)
    if waits and not _is_seldom(waits, shown.ops):
        return waits[0].function.name
    sleeps = _waits_in(shown.paths, SLEEPS)
    if sleeps and _is_all(sleeps, shown.ops):
        return sleeps[0].function.name
    return None


def seldom_waits_in(shown: Snapshot) -> str | None:
    """Where all of its paths end in a wait for whatever comes next that few fast calls come to, the
    function that waits: it may be for work, or for an answer that the call needs."""
    waits = _waits_in(shown.paths, _WAITS)
    return waits[0].function.name if waits and _is_seldom(waits, shown.ops) else None


def handed_in(paths: Sequence[RootCausePath]) -> str | None:
    """Where all of these paths end in a wait until another thread or program hands something over,
    the function that waits. Whether that is work, nobody can tell."""
    waits = _waits_in(paths, _HANDED)
    return waits[0].function.name if waits else None


def _waits_in(paths: Sequence[RootCausePath], names: frozenset[str]) -> list[Fnode]:
    """The first node with one of these names on each path, where all that may have have one."""
    waits: list[Fnode] = []
    for path in paths:
        if path.ending.cause not in (Cause.BLOCKED, Cause.FUNCTION):
            continue
        found = [node for node in path.nodes if plain_name(node.function.symbol) in names]
        if not found:
            return []
        waits += found[:1]
    return waits


def _is_seldom(waits: Sequence[Fnode], kept: KeptOps | None) -> bool:
    """Whether few fast calls come to any of these waits, as far as they were seen: there may be one
    that they never come to on the way."""
    if kept is None:
        return False
    slow, fast = kept.sample(OpClass.IN_PEAK), kept.sample(OpClass.FASTEST)
    if not slow or not fast:
        return False
    for wait in waits:
        timed = [node for node in _way(wait) if any(_calls(op, node) for op in slow)]
        if not timed:
            return False
        if min(sum(_calls(op, node) for op in fast) for node in timed) >= _ALWAYS * len(fast):
            return False
    return True


def _is_all(sleeps: Sequence[Fnode], kept: KeptOps | None) -> bool:
    """Whether fast calls consist of these sleeps, or of others, as the slow ones do. Of a sleep
    that no kept op had timed, what comes to it tells."""
    if kept is None:
        return False
    slow, fast = kept.sample(OpClass.IN_PEAK), kept.sample(OpClass.FASTEST)
    timed = {one.node for op in (*slow, *fast) for one in op.sums}
    lowest = {next((node for node in _way(sleep) if node in timed), sleep) for sleep in sleeps}
    lowest |= {node for node in timed if plain_name(node.function.symbol) in SLEEPS}
    outermost = [node for node in lowest if lowest.isdisjoint(_way(node)[1:])]
    slept = sum(op.time_of(outermost) for op in fast)
    return slept >= _ALL_OF_IT * sum(op.latency for op in fast) > 0


def _way(node: Fnode) -> list[Fnode]:
    """From a node up to the one that f0 calls."""
    found: list[Fnode] = []
    above: Fnode | None = node
    while above is not None and above.parent is not None:
        found.append(above)
        above = above.parent
    return found


def _calls(op: Op, node: Fnode) -> bool:
    return any(one.node is node and one.calls for one in op.sums)
