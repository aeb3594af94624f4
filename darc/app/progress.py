"""What takes long at the prompt, or at stops of an analysis, tells how far it is."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator

from darc.model.errors import TimeUpError
from darc.target.ownthread import begin_thread
from darc.target.screen import Screen
from darc.views.render import duration
from darc.views.words import shorten

_SILENT_SECONDS = 1.0
"""What is over by then needs no word."""

_BETWEEN = 0.1
"""Seconds between two changes of the live line at the least."""

_LONGEST_BETWEEN = 5.0
"""Seconds between two lines that stay, which come ever more seldom."""

_WIDEST = 200
"""Columns of a line that stays, which may name a function of a million letters."""


class Progress:
    """Called with what is done now, as often as one likes, it shows that in the live line; where
    output takes none, as in batch, in lines of their own."""

    def __init__(
        self, screen: Screen, begun: float | None = None, limit: float | None = None
    ) -> None:
        """What it tells of may take ``limit`` seconds (``None``: as long as it takes) from when it
        was ``begun`` on, on the monotonic clock; ``None``: now."""
        self._screen = screen
        self._begun = time.monotonic() if begun is None else begun
        self._limit = math.inf if limit is None else limit
        self._waiting: int | None = None
        """The thread that a command is carried out in, while it is."""
        self._between = _SILENT_SECONDS
        self._next = time.monotonic() + _SILENT_SECONDS
        self._text = ""
        self._width = 0
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        """Raises what :meth:`over` says."""
        now, self._text = time.monotonic(), text
        if self._waiting == threading.get_ident():
            self._break_off(now)
        if now < self._next:
            return
        if self._screen.has_live_line:
            self._next = now + _BETWEEN
            self._screen.progress(self._fitting(text))
        elif self._takes_turn(now):
            self._screen.emit(f"darc: {text}")

    def _takes_turn(self, now: float) -> bool:
        """Whether the next line that stays is due, for the thread that asks."""
        with self._lock:
            if now < self._next:
                return False
            self._between = min(2 * self._between, _LONGEST_BETWEEN)
            self._next = now + self._between
            return True

    @contextlib.contextmanager
    def over(self, text: str) -> Iterator[None]:
        """While a command is carried out that does ``text`` at first: the live line tells the
        seconds where this is not called for that long, and is gone in the end. In batch lines do
        that stay, as seldom as others. The debugger's own thread.

        Raises, where this is called meanwhile:
            KeyboardInterrupt: the debugger is to end.
            TimeUpError: it has taken as long as it may.
        """
        self._text, begun, ended = text, time.monotonic(), threading.Event()
        self._waiting = threading.get_ident()
        self._fitting(text)
        if self._screen.begins_progress():
            begin_thread(lambda: self._tick(begun, ended), "darc progress")
        elif self._screen.is_script:
            begin_thread(lambda: self._tick_in_lines(begun, ended), "darc progress")
        try:
            yield
        finally:
            self._waiting = None
            with self._lock:
                ended.set()
            self._screen.progress(None)

    def _break_off(self, now: float) -> None:
        if self._screen.is_to_end():
            raise KeyboardInterrupt
        if now - self._begun > self._limit:
            raise TimeUpError(
                f"time is up (max-time {duration(self._limit)}) while darc {self._text}: "
                "nothing was begun"
            )

    def _tick(self, begun: float, ended: threading.Event) -> None:
        while not ended.wait(_SILENT_SECONDS):
            now = time.monotonic()
            with self._lock:
                if not ended.is_set() and now > self._next:
                    line = f"darc: {self._text} · {now - begun:.0f}s"
                    self._screen.progress(shorten(line, self._width))

    def _tick_in_lines(self, begun: float, ended: threading.Event) -> None:
        while not ended.wait(_SILENT_SECONDS):
            now = time.monotonic()
            if self._takes_turn(now):
                line = shorten(f"darc: {self._text}", _WIDEST)
                self._screen.leave_at_command(f"{line} · {now - begun:.0f}s")

    def _fitting(self, text: str) -> str:
        self._width = max(self._screen.width - 1, 8)
        return shorten(f"darc: {text}", self._width)
