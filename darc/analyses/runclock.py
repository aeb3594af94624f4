"""How long a program has run under analysis."""

from __future__ import annotations

import collections
import time


class RunClock:
    """Goes while the program does. It stands when it is made. Any thread may ask."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since: float | None = None
        self._begun: float | None = None

    def goes_on(self) -> None:
        """The program is about to go on. May be said again while it does."""
        if self._since is None:
            self._since = time.monotonic()
            if self._begun is None:
                self._begun = self._since

    def stops(self) -> None:
        """The program has stopped."""
        self._before, self._since = self.seconds, None

    @property
    def goes(self) -> bool:
        """Whether the program does."""
        return self._since is not None

    @property
    def seconds(self) -> float:
        """For how long it has, in all."""
        since = self._since
        return self._before + (0.0 if since is None else time.monotonic() - since)

    @property
    def begun(self) -> float | None:
        """When it first went on, on the monotonic clock; ``None``: it has not yet."""
        return self._begun


_STOPS = 256
"""That are remembered: what is before them is of no matter to a call that may be late."""


class StopTimes:
    """When a program stood still, of late. Any thread may ask."""

    def __init__(self) -> None:
        self._stops: collections.deque[tuple[float, float]] = collections.deque(maxlen=_STOPS)
        """From when on, and until when, on the monotonic clock."""
        self._since: float | None = None

    def stops(self) -> None:
        """The program has stopped. May be said again while it stands."""
        if self._since is None:
            self._since = time.monotonic()

    def goes_on(self) -> None:
        """It is about to go on."""
        since, self._since = self._since, None
        if since is not None:
            self._stops.append((since, time.monotonic()))

    def within(self, seconds: float) -> float:
        """For how long it stood in these last ``seconds``, in seconds."""
        now, since = time.monotonic(), self._since
        stood = [*self._stops, *([] if since is None else [(since, now)])]
        return sum(max(0.0, end - max(begin, now - seconds)) for begin, end in stood)
