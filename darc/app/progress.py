"""What takes long at the prompt, or at stops of an analysis, tells how far it is."""

from __future__ import annotations

import time

from darc.target.screen import Screen
from darc.views.words import shorten

_SILENT_SECONDS = 1.0
"""What is over by then needs no word."""

_BETWEEN = 0.1
"""Seconds between two changes of the live line at the least."""

_LONGEST_BETWEEN = 5.0
"""Seconds between two lines that stay, which come ever more seldom."""


class Progress:
    """Called with what is done now, as often as one likes, it shows that in the live line; where
    output takes none, as in batch, in lines of their own."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._between = _SILENT_SECONDS
        self._next = time.monotonic() + _SILENT_SECONDS

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        if self._screen.has_live_line:
            self._next = now + _BETWEEN
            self._screen.progress(shorten(f"darc: {text}", max(self._screen.width - 1, 8)))
        else:
            self._between = min(2 * self._between, _LONGEST_BETWEEN)
            self._next = now + self._between
            self._screen.emit(f"darc: {text}")

    def end(self) -> None:
        """Takes the line away."""
        self._screen.progress(None)
