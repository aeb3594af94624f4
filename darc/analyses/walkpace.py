"""How often a walk may stop the program, by what its stops take."""

from __future__ import annotations

import time
from collections.abc import Callable

_RUNS = 9
"""Times what a stop has taken: so long, at least, the program runs from then on, and stands for a
tenth of the time at most."""

_RUNS_BEHIND_SHORT, _LONG_ENOUGH = 49, 0.4
"""The same where stops are short, up to so many seconds: it stands for a fiftieth (CrossWalk's own
cost is below 2 %)."""

_BETWEEN_LOOKS = 0.03
"""Seconds between two looks at least."""

_LOOKS = 12
"""Moments at which stacks are looked at where a function has indirect calls: one of a callee with a
quarter of the time is missed by all of them once in thirty such functions."""

_LEAST_LOOKS, _LEAST_OF_MANY = 4, 2
"""The same where stops take long, for few threads and for many, as each look sees all of them."""

_MANY = 16


class Pace:
    """When the next stop may come; ``clock`` tells seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stood = self._since = clock()
        self._stands = True
        self._is_own = False
        self._took = 0.0

    def stands(self) -> None:
        """The program has stopped."""
        if not self._stands:
            self._stood, self._stands, self._is_own = self._clock(), True, False

    def decides(self) -> None:
        """For the walk: what it stands for the user, or for the probes that come before a walk, may
        be minutes, and says nothing of those stops that are to come."""
        self._is_own = self._stands

    def goes_on(self) -> None:
        """It is about to go on."""
        if self._stands:
            self._since, self._stands = self._clock(), False
            if self._is_own:
                self._took = self._since - self._stood

    @property
    def runs_at_least(self) -> float:
        """Seconds for which it runs now before the next stop. Any thread."""
        often = min(_RUNS_BEHIND_SHORT * self._took, _LONG_ENOUGH)
        return max(_RUNS * self._took, often, _BETWEEN_LOOKS)

    @property
    def may_look(self) -> bool:
        """Whether it has run for so long. Any thread."""
        return not self._stands and self._clock() - self._since >= self.runs_at_least

    def looks(self, seconds: float, threads: int) -> int:
        """How often the stacks of so many ``threads`` are looked at for one function: in
        ``seconds``, if that is often enough."""
        least = _LEAST_OF_MANY if threads >= _MANY else _LEAST_LOOKS
        return max(min(int(seconds / self.runs_at_least), _LOOKS), least)
