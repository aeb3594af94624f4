"""The line below a debugger's output: when darc writes on it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from darc.app import liveline
from darc.app.liveline import LineScreen


class _Screen(LineScreen):
    """Its line is darc's when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.runs_freely = self.is_free_at_commands = True

    def _is_free_while_it_runs(self) -> bool:
        return self.runs_freely

    def _is_free_at_commands(self) -> bool:
        return self.is_free_at_commands

    def _encoding(self) -> str:
        return "utf-8"

    def accepts_pending(self, question: str) -> bool:
        return True

    @property
    def colour(self) -> bool:
        return False

    @property
    def width(self) -> int:
        return 80

    def emit(self, text: str) -> None:
        pass


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What comes to a terminal."""
    found: list[bytes] = []
    monkeypatch.setattr(liveline, "is_terminal", lambda: True)
    monkeypatch.setattr(os, "write", lambda _file, data: found.append(data))
    return found


def test_a_line_is_written_over_and_taken_away_once(written: list[bytes]) -> None:
    screen = _Screen()
    for text in ("one", "two", None, None):
        screen.live(text)
    assert written == [b"\r\x1b[Kone", b"\r\x1b[Ktwo", b"\r\x1b[K"]


@pytest.mark.parametrize("show", [LineScreen.live, LineScreen.leave], ids=["live", "leave"])
def test_a_line_that_is_not_darcs_while_the_program_runs(
    show: Callable[[LineScreen, str], None], written: list[bytes]
) -> None:
    screen = _Screen()
    screen.runs_freely = False
    show(screen, "one")
    assert not written
    screen.progress("two")
    assert written == [b"\r\x1b[Ktwo"]


def test_a_line_that_is_not_darcs_at_commands(written: list[bytes]) -> None:
    screen = _Screen()
    screen.is_free_at_commands = False
    screen.progress("one")
    assert not written
    screen.live("two")
    screen.progress(None)
    assert written == [b"\r\x1b[Ktwo", b"\r\x1b[K"]


def test_no_line_where_output_is_no_terminal(
    written: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveline, "is_terminal", lambda: False)
    screen = _Screen()
    assert not screen.has_live_line
    screen.live("one")
    assert not written
