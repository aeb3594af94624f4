"""When a helper prepares for the next decision, while the program runs."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator

from darc.model.errors import DarcError

_SLICE_SECONDS = 0.005
"""For how long to work at a time."""

_AGAIN_SECONDS = 0.01
"""After which to ask at the earliest who would win by now."""

_GONE_SECONDS = 0.002
"""By then the debugger has let the program go on."""


class Helping:
    """Turns of work beside the program, up to its next stop; :meth:`work` is called on the
    helper's own thread, all else on the debugger's."""

    def __init__(self) -> None:
        self._ran_since = time.monotonic()
        self._at: float | None = None
        """When to go on; ``None``: nobody can, or it is under way."""

    def goes_on(self, *, is_readable: bool) -> None:
        """The program is let go on. Where its memory ``is_readable`` while it runs, there is work
        to be done from now on."""
        self._ran_since = time.monotonic()
        self._at = self._ran_since + _GONE_SECONDS if is_readable else None

    def stands(self) -> None:
        """Nobody helps any more."""
        self._at = None

    @contextlib.contextmanager
    def interrupted(self) -> Iterator[None]:
        """Nobody helps for a moment, as the debugger has stopped the program for itself: where it
        ran, it is let go on and nobody tells."""
        ran = self._at is not None
        self.stands()
        try:
            yield
        finally:
            if ran:
                self.goes_on(is_readable=True)

    def work(self, step: Callable[[float], bool]) -> float:
        """Has ``step`` work for so many seconds, if it is time for that: it tells whether there is
        more to be done at once. Returns in how many seconds to call again."""
        at, now = self._at, time.monotonic()
        if at is None or now < at:
            return math.inf if at is None else at - now
        try:
            goes_on = step(_SLICE_SECONDS)
        except DarcError:
            goes_on = False  # whatever it is, it will be met at the stop
        now = time.monotonic()
        pause = 0.0 if goes_on else max(_AGAIN_SECONDS, (now - self._ran_since) / 4)
        if self._at is not None:
            self._at = now + pause
        return pause
