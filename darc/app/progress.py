"""What takes long at the prompt tells how far it is."""

from __future__ import annotations

import time

from darc.target.screen import Screen
from darc.views.words import shorten

_SILENT_SECONDS = 1.0
"""What is over by then needs no word."""

_BETWEEN = 0.1
"""Seconds between two lines at the least."""


class Progress:
    """Called with what is done now, as often as one likes, it shows that in the live line."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._next = time.monotonic() + _SILENT_SECONDS

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _BETWEEN
            self._screen.live(shorten(f"darc: {text}", max(self._screen.width - 1, 8)))

    def end(self) -> None:
        """Takes the line away."""
        self._screen.live(None)
