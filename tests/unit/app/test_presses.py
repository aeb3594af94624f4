"""Ctrl-C that comes while darc is at work, in a process that has a handler for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from darc.app.presses import counted


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """What the handler of this process has heard."""
    found: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: found.append(number))
    yield found
    signal.signal(signal.SIGINT, before)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_it_is_counted_and_heard_as_ever(heard: list[int]) -> None:
    press()
    with counted() as presses:
        assert presses() == 0
        press()
        press()
        assert presses() == 2
    press()
    with counted() as again:
        assert again() == 0
        press()
        assert again() == 1
    assert heard == [signal.SIGINT] * 5


def test_a_handler_that_comes_meanwhile_stays(heard: list[int]) -> None:
    others: list[int] = []
    with counted() as presses:
        signal.signal(signal.SIGINT, lambda number, _frame: others.append(number))
        press()
        assert presses() == 0
    press()
    assert (heard, others) == ([], [signal.SIGINT] * 2)


@pytest.mark.parametrize("default", [signal.SIG_IGN, signal.SIG_DFL])
def test_where_nobody_hears_it_nothing_changes(default: signal.Handlers, heard: list[int]) -> None:
    signal.signal(signal.SIGINT, default)
    with counted() as presses:
        assert signal.getsignal(signal.SIGINT) is default
        if default is signal.SIG_IGN:
            press()
        assert presses() == 0
    assert not heard
