"""How long a program has run under analysis."""

from __future__ import annotations

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
