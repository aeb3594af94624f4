"""What darc shows in gdb, and how: with gdb's settings, on gdb's terminal."""

from __future__ import annotations

import functools
import os
import re
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import gdb

from darc.app.liveline import LineScreen, is_terminal
from darc.debuggee import procfs
from darc.target.ownthread import Turn, any_thread, own_thread
from darc.views import glyphs
from darc.views.words import message
from darc_gdb import ctrlc
from darc_gdb.printed import has_windows

_BETWEEN_LOOKS = 0.1
"""Seconds from one look for a Ctrl-C at a question to the next."""


@own_thread
class GdbScreen(LineScreen):
    """gdb's output, and the line below it."""

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self.turn = turn
        self._charset = str(gdb.host_charset())
        self.is_driven = has_front_end()
        """Whether gdb was started for a program that speaks with it."""
        self._has_line = True
        """Whether the line below gdb's output is darc's to write on while the program runs,"""
        self._is_below = False
        """and while a command is carried out."""
        self._leaves: Callable[[], bool] = lambda: False
        """What tells whether gdb is to leave. Any thread."""

    def end_by(self, leaves: Callable[[], bool]) -> None:
        """``leaves`` tells from now on whether gdb is to leave. Any thread."""
        self._leaves = leaves

    def calls_off(self) -> Callable[[], bool]:
        before = _is_programs()
        return lambda: (
            signal.SIGINT in signal.sigpending()
            or self.is_to_end()
            or (not before and _is_programs())
        )

    @any_thread
    def is_to_end(self) -> bool:
        return self._leaves()

    def went_on(self) -> None:
        """The program goes on."""
        self._has_line = not has_front_end() and not has_windows()

    def stands(self) -> None:
        """It stands still, and gdb writes."""
        self._has_line = False

    def clear(self) -> None:
        """gdb is about to write of a stop, or its prompt, from the first column on."""
        self.stands()
        self._line.hide()

    def accepts_pending(self, question: str) -> bool:
        setting = gdb.parameter("breakpoint pending")
        if setting is not None:
            return bool(setting)
        if not gdb.parameter("confirm") or not _can_ask():
            return True
        with self._line.held(), ctrlc.waits():
            print(f"{message(f'darc: {question}')} (y or [n]) ", end="", flush=True)
            while not select.select([sys.stdin], [], [], _BETWEEN_LOOKS)[0]:
                if signal.SIGINT in signal.sigpending():
                    signal.sigtimedwait({signal.SIGINT}, 0)
                    raise KeyboardInterrupt  # gdb says 'Quit'
        return sys.stdin.readline().strip().lower().startswith("y")

    @property
    def colour(self) -> bool:
        wanted = bool(gdb.parameter("style enabled")) and glyphs.takes_colour(os.environ)
        return wanted and is_terminal() and not self.is_driven

    @property
    def width(self) -> int:
        return int(gdb.parameter("width") or 0)

    @property
    def is_script(self) -> bool:
        return is_batch()

    @property
    def most_completions(self) -> int | None:
        most = gdb.parameter("max-completions")
        return most if isinstance(most, int) and most >= 0 else None

    def _is_free_while_it_runs(self) -> bool:
        return self._has_line

    def _is_free_at_commands(self) -> bool:
        return self._is_below

    def _encoding(self) -> str:
        return self._charset

    def begins_progress(self) -> bool:
        self._is_below = is_terminal() and not has_front_end() and not has_windows()
        return self._is_below

    def emit(self, text: str) -> None:
        with self._line.held():
            gdb.write(self.fitting(text) + "\n")
            gdb.flush()

    def fitting(self, text: str) -> str:
        """``text`` as gdb can show it, which has a setting for that."""
        self._charset = str(gdb.host_charset())
        return glyphs.fitting(text, self._charset)


def _can_ask() -> bool:
    """Whether somebody is there to answer: gdb, too, answers by itself in batch."""
    return sys.stdin.isatty() and not has_front_end() and not is_batch()


@functools.cache
def _options() -> list[str]:
    """The words that gdb was started with, without the program's."""
    words = Path("/proc/self/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    ends = [words.index(word) for word in ("-args", "--args") if word in words]
    return words[: min(ends, default=len(words))]


@functools.cache
def is_batch() -> bool:
    """Whether gdb was started to carry out commands and end."""
    return any(re.fullmatch("--?batch(-s[a-z]*)?", word) for word in _options())


@functools.cache
def has_front_end() -> bool:
    """Whether gdb was started for a program that speaks with it (-i=mi, --interpreter mi2, …)."""
    words = _options()
    pairs = zip(words, [*words[1:], ""], strict=True)
    names = [
        b if a.lstrip("-") in ("i", "interpreter") else a.partition("=")[2]
        for a, b in pairs
        if re.match("--?i(nterpreter)?(=|$)", a)
    ]
    return any(not name.startswith(("console", "tui")) for name in names)


def _is_programs() -> bool:
    """Whether a Ctrl-C waits for the program: the terminal is that one's while it runs, and at the
    stops that nobody is told of."""
    pid = gdb.selected_inferior().pid
    return pid > 0 and procfs.is_pending_for_all(pid, signal.SIGINT)
