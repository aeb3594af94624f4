"""For how long the probes of a set are made before its functions are timed."""

from __future__ import annotations

import time

from darc.collectors.manyduties import TimesSets

_MAKING_SECONDS = 10.0
"""For how long probes are made while the program runs; functions without one are left out
then,"""

_MAKING_FEW_SECONDS = 30.0
"""or after so long where fewer are made by then"""

_ENOUGH_MADE = 0.25
"""than this part of them: in very large programs, and on busy machines."""

_BETWEEN_STOPS = 0.5
"""Seconds between two stops at which probes are made."""


class SetMaking:
    """They are made while the program runs, and at a stop what can be made there alone, until all
    are or time is over; then they are put in."""

    def __init__(self, timed: TimesSets) -> None:
        self._set = timed
        self._begun: float | None = None
        """When the program first went on, on the monotonic clock."""
        self._made_at = -_BETWEEN_STOPS
        """When probes were made at a stop."""

    def goes_on(self) -> None:
        """The program is about to go on."""
        if self._begun is None:
            self._begun = time.monotonic()

    @property
    def wants_stop(self) -> bool:
        """Whether the probes are made, and wait for a stop; or time is up for making them. Any
        thread."""
        if self._set.is_in or self._begun is None:
            return False
        is_due = self._set.probes.is_prepared and time.monotonic() - self._made_at >= _BETWEEN_STOPS
        return is_due or self._is_time_over

    @property
    def _is_time_over(self) -> bool:
        if self._begun is None:
            return False
        few = self._set.timed < _ENOUGH_MADE * len(self._set.probes.functions)
        most = _MAKING_FEW_SECONDS if few else _MAKING_SECONDS
        return time.monotonic() - self._begun > most

    def at_stop(self) -> None:
        """Where a stop was wanted, which is short: what is not made by now is made at others, or
        never."""
        if not self.wants_stop:
            return
        if self._set.probes.make_at_stop() or self._is_time_over:
            self._set.put_in()
        else:
            self._made_at = time.monotonic()

    @property
    def how_far(self) -> tuple[int, int] | None:
        """How many are made, and of how many, as long as nothing is timed. Any thread."""
        return None if self._set.is_in else self._set.probes.making
