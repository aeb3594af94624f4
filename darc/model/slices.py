"""A profile in turns of time: how much the numbers of calls vary from one to the next."""

from __future__ import annotations

from collections.abc import Mapping

SLICES = 20
"""That a run is divided into at most."""

LEAST_SLICES = 10
"""Fewer tell nothing: how much their numbers vary would itself be chance."""

_FIRST_SECONDS = 0.001
"""Between two looks at first: a hundred calls may take no longer than some milliseconds."""


class TimeSlices:
    """Looks at a profile that grows, at equal distances of time that double as it goes on. Written
    to by one thread, and read by another."""

    def __init__(self, first: float = _FIRST_SECONDS) -> None:
        """``first`` is the distance at first, in seconds."""
        self._seconds = first
        self._looks: list[tuple[float, Mapping[int, int]]] = [(0.0, {})]

    @property
    def next_look(self) -> float:
        """When to look again, in seconds of the run."""
        return self._looks[-1][0] + self._seconds

    def look(self, seconds: float, bins: Mapping[int, int]) -> None:
        """All calls up to now, by bin."""
        last = self._looks[-1][1]
        looks = [*self._looks, (seconds, last if last == bins else dict(bins))]
        if len(looks) > 2 * SLICES:
            looks = looks[::2]
            self._seconds *= 2
        self._looks = looks

    def take(
        self, bins: Mapping[int, int], least: int = LEAST_SLICES
    ) -> tuple[Mapping[int, int], ...]:
        """The calls of each slice that has some, up to ``bins``, which are all; none where there
        are not ``least`` of these."""
        looks = [bins for _, bins in self._looks]
        looks = [*looks[:-1], bins] if len(looks) > 2 else [*looks, bins]
        count = min(SLICES, len(looks) - 1)
        ends = [looks[len(looks) * number // count] for number in range(1, count)]
        found = [less(b, a) for a, b in zip([looks[0], *ends], [*ends, looks[-1]], strict=True)]
        found = [one for one in found if one]
        return tuple(found) if len(found) >= least else ()


def less(bins: Mapping[int, int], before: Mapping[int, int]) -> dict[int, int]:
    """The calls by bin that have come since ``before``."""
    return {b: n - before.get(b, 0) for b, n in sorted(bins.items()) if n > before.get(b, 0)}
