"""The steps of ``darc why``: profiles of many functions until one stands out, and the search for
what makes it slow. The choice is :mod:`darc.search.suspects`'."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

from darc.analyses.analysis import AnalysisBrief, Step
from darc.analyses.functionset import FunctionProfiles
from darc.analyses.rootcauses import RootCauses
from darc.model.ftree import Function
from darc.model.status import Status
from darc.search.descent import end_where_it_is, ended_paths
from darc.search.halves import agree
from darc.search.suspects import (
    LEAST_TO_JUDGE,
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

DONE_BY_LOOPS = frozenset(
    "send sendto sendmsg sendmmsg write writev pwrite pwrite64 pwritev pwritev64 fsync fdatasync "
    "pread pread64 preadv preadv64 open open64 openat openat64 close unlink rename ftruncate "
    "ftruncate64".split()
)
"""Functions of the C library that are timed as well where a loop calls them that never returns:
they do something, and wait for nothing that comes next."""


class SuspectProfiles(FunctionProfiles):
    """For as long as it takes until both halves of the time choose the same function, and for
    ``limit`` seconds of it at most."""

    _all_share = math.inf  # which of them is slow is yet to be seen

    def __init__(
        self,
        brief: AnalysisBrief,
        *,
        limit: float,
    ) -> None:
        every = max(_LEAST_INTERVAL, limit / _INTERVALS)
        self._first_seen: tuple[float, float] | None = None
        """For how long its threads had something to do, and the program ran, in seconds, when it
        was first seen to run with its functions timed."""
        super().__init__(brief, seconds=limit, every=every)
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
        busy, seconds = self._since_first()
        known = before if busy <= 0 or not seconds else busy / seconds  # none of it at its end
        self._known = dataclasses.replace(self._known, busy=known)

    def look(self) -> float:
        wait = super().look()
        if self._first_seen is None and self._clock.goes:
            self._first_seen = self._set.busy_seconds, self._clock.ran
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

    def _since_first(self) -> tuple[float, float]:
        """For how long its threads had something to do, and the program ran, since."""
        if self._first_seen is None:
            return 0.0, 0.0
        busy, ran = self._first_seen
        return self._set.busy_seconds - busy, self._clock.ran - ran

    def _works_elsewhere(self, most: int) -> bool:
        """Whether the program has work, and not even at the limit any of these functions will have
        been called often enough, of which none was more often than ``most`` times."""
        seconds, (busy, ran) = self._clock.seconds, self._since_first()
        is_at_work = ran > 0 and busy >= (_AT_WORK if most else _AT_WORK_ELSEWHERE) * ran
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
