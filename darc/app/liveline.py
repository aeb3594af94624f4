"""The line below a debugger's output that shows how far an analysis is."""

from __future__ import annotations

import contextlib
import os
import threading
from abc import abstractmethod
from collections.abc import Iterator

from darc.target.ownthread import any_thread
from darc.target.screen import Screen
from darc.views import glyphs


class LiveLine:
    """One line, on the terminal that standard error is. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal may come amid, and tell something
        self._is_shown = False
        self._is_held = False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """It is away, and stays away meanwhile, as somebody is asked something there."""
        self.hide()
        self._hold(True)
        try:
            yield
        finally:
            self._hold(False)

    def _hold(self, is_held: bool) -> None:
        with self._lock:
            self._is_held = is_held

    def show(self, text: str, encoding: str) -> None:
        """In place of what stands there."""
        with self._lock:
            if self._is_held:
                return
            self._is_shown = True
            line = glyphs.fitting(text, encoding)[: len(text)]
            _write(glyphs.encoded(line, encoding))

    def leave(self, text: str, encoding: str) -> None:
        """A line that stays; behind it stands nothing."""
        with self._lock:
            end = b"\r\n" if os.isatty(2) else b"\n"
            line = glyphs.encoded(glyphs.fitting(text, encoding), encoding) + end
            if self._is_shown:
                _write(line)
            else:
                os.write(2, line)
            self._is_shown = False

    def hide(self) -> None:
        """Takes it away, if it is there."""
        with self._lock:
            if self._is_shown:
                self._is_shown = False
                _write(b"")

    def make_way(self, prompt: str, encoding: str) -> None:
        """For the debugger's ``prompt``, which it stands in place of, if it is there."""
        with self._lock:
            if self._is_shown:
                self._is_shown = False
                _write(glyphs.encoded(glyphs.fitting(prompt, encoding), encoding))

    def is_behind(self) -> None:
        """The debugger has written behind it: it is not to be taken away."""
        with self._lock:
            self._is_shown = False


class LineScreen(Screen):
    """A debugger's output with that line below it. When the line is darc's to write on, each
    debugger says."""

    def __init__(self) -> None:
        self._line = LiveLine()

    @abstractmethod
    def _is_free_while_it_runs(self) -> bool:
        """While the program runs. Any thread."""

    @abstractmethod
    def _is_free_at_commands(self) -> bool:
        """While a command is carried out. Any thread."""

    @abstractmethod
    def _encoding(self) -> str:
        """Of the terminal. Any thread."""

    @property
    @any_thread
    def wraps(self) -> bool:
        return is_terminal()

    @property
    @any_thread
    def has_live_line(self) -> bool:
        return is_terminal()

    @any_thread
    def live(self, text: str | None) -> None:
        if text is None:
            self._line.hide()
        elif is_terminal() and self._is_free_while_it_runs():
            self._line.show(text, self._encoding())

    @any_thread
    def progress(self, text: str | None) -> None:
        if text is None:
            self._line.hide()
        elif self._is_free_at_commands():
            self._line.show(text, self._encoding())

    @any_thread
    def leave(self, text: str) -> None:
        if self._is_free_while_it_runs():
            self._line.leave(text, self._encoding())

    @any_thread
    def leave_at_command(self, text: str) -> None:
        self._line.leave(text, self._encoding())


def is_terminal() -> bool:
    """Whether output takes a line that changes."""
    return os.isatty(1) and os.isatty(2) and glyphs.takes_escapes(os.environ)


def _write(line: bytes) -> None:
    os.write(2, b"\r\x1b[K" + line)
