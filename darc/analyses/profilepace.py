"""How many calls of f0, or for how long, are seen before its peaks are looked at."""

from __future__ import annotations

import math

from darc.analyses.peakprofile import LONG_SECONDS, PeakProfile
from darc.model.parameters import AUTO_START_OPS, MOST_CALLS, Parameters

_FEW_THREADS = 16
_HERD_SECONDS = 0.25
_CALLS_OF_EACH = 8
"""Where a program has more threads than a few, its first calls behind a stop are no profile: so
many of each thread are, or what comes in that time, if nobody says how many to see."""

_MOST_TIMES = 8
"""Times as many calls are seen at most, where no time can end that."""

_PERCENTILE_SECONDS = 5.0
"""For how long at most calls are looked at for a peak by a percentile, if nobody says how many to
see, and a hundred have come."""


class ProfilePace:
    """What is waited for next. Whoever is told that more is to come has the collector wait for
    :attr:`calls`, up to :attr:`seconds`."""

    def __init__(self, parameters: Parameters, *, threads: int, may_run_longer: bool) -> None:
        """``threads`` is how many the program has. ``may_run_longer``: the program can be stopped
        by the time, whether calls come or not."""
        self.calls = parameters.profile_calls
        self.seconds = parameters.start_time
        """For which the program is to run at most; ``None``: as long as that takes. Any thread."""
        is_asked = parameters.start_ops is not None or parameters.start_time is not None
        self._is_for_percentile = not is_asked and self.calls > AUTO_START_OPS
        if self._is_for_percentile:
            self.seconds = _PERCENTILE_SECONDS
        self._herd = 0 if is_asked or threads <= _FEW_THREADS else threads
        """Threads that may all have come at once when the program last went on."""
        self._looks_longer = not is_asked
        self._may_run_longer = may_run_longer

    def lets_the_herd_pass(self, seen: int, seconds: float) -> bool:
        """Whether more is to come, as the calls that were ``seen`` in so few seconds are those for
        which the time had come while the program stood still, all at once: they wait for each other
        as they do at no other time."""
        if not self._herd or seconds >= _HERD_SECONDS:
            return False
        lasts = seen * _HERD_SECONDS / max(seconds, 1e-3)
        self.calls = max(self.calls, min(_CALLS_OF_EACH * self._herd, math.ceil(lasts)))
        self._herd = 0
        return True

    def looks_longer(self, profile: PeakProfile, spec: str | None) -> bool:
        """Whether more is to come, once: a hundred calls may come in a few milliseconds, and slow
        ones now and then. ``spec`` is the peak that is asked for, if one is."""
        looks = self._looks_longer and profile.may_lack_slow_calls(spec)
        self._looks_longer = False
        if looks and self._may_run_longer:
            self.seconds, self.calls = LONG_SECONDS, MOST_CALLS
        elif looks:
            self.calls = min(profile.calls_in_long(), _MOST_TIMES * self.calls)
        return looks

    def is_too_soon(self, seen: int) -> bool:
        """Whether the time is up that a percentile is given, and too few calls were ``seen``."""
        return self._is_for_percentile and seen < AUTO_START_OPS

    def doubles(self, seconds: float) -> None:
        """The peak was not there after so many seconds: it is looked for at each doubling of the
        calls, or of the time."""
        if self.seconds is not None:
            self.seconds = 2 * max(self.seconds, seconds)
        self.calls = min(2 * self.calls, MOST_CALLS)
