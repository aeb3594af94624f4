"""How long a program has run under analysis."""

from __future__ import annotations

import time
from collections.abc import Callable


class RunClock:
    """Goes while the program does, but for ``unsettled`` seconds in all, which grow meanwhile: in
    these nothing counts. It stands when it is made. Any thread may ask."""

    def __init__(self, unsettled: Callable[[], float] = lambda: 0.0) -> None:
        self._unsettled = unsettled
        self._before = self._ran_before = 0.0
        self._since: tuple[float, float] | None = None
        """When it began to go, and how many seconds were unsettled by then."""
        self._begun: float | None = None

    def goes_on(self) -> None:
        """The program is about to go on. May be said again while it does."""
        if self._since is None:
            now = time.monotonic()
            self._since = now, self._unsettled()
            if self._begun is None:
                self._begun = now

    def stands(self) -> None:
        """The program has stopped."""
        self._before, self._ran_before, self._since = self.seconds, self.ran, None

    @property
    def goes(self) -> bool:
        """Whether the program does."""
        return self._since is not None

    @property
    def seconds(self) -> float:
        """For how long it has, in all."""
        since = self._since
        if since is None:
            return self._before
        return self._before + max(
            0.0, time.monotonic() - since[0] - max(0.0, self._unsettled() - since[1])
        )

    @property
    def ran(self) -> float:
        """The same with the seconds in which nothing counts."""
        since = self._since
        return self._ran_before + (0.0 if since is None else time.monotonic() - since[0])

    @property
    def begun(self) -> float | None:
        """When it first went on, on the monotonic clock; ``None``: it has not yet."""
        return self._begun
