"""Whoever ends an event does not wait for the kernel."""

from __future__ import annotations

import os
import threading

import pytest

from darc.debuggee import eventends, firstevents
from darc.debuggee.eventends import EventEnds
from darc.debuggee.firstevents import FirstEvents


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_all_are_closed_in_the_end() -> None:
    ends, fds = EventEnds(), [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
    for fd in fds:
        ends.add(fd)
    ends.wait()
    assert not any(map(is_open, fds))


def test_nobody_waits_while_the_kernel_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what is added meanwhile is closed."""
    ends, may_go_on, begun = EventEnds(), threading.Event(), threading.Event()
    closed: list[int] = []

    def close(fd: int) -> None:
        begun.set()
        may_go_on.wait()
        closed.append(fd)

    monkeypatch.setattr(os, "close", close)
    ends.add(1001)
    begun.wait()
    ends.add(1002)
    assert not closed
    may_go_on.set()
    ends.wait()
    assert closed == [1001, 1002]


def test_where_no_thread_may_be_made_they_are_closed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As at a limit of processes: nobody waits for one that never began."""

    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(firstevents, "begin_thread", refused)
    first = FirstEvents()
    first.wait()
    first.close()
    monkeypatch.setattr(eventends, "begin_thread", refused)
    ends, fd = EventEnds(), os.open("/dev/null", os.O_RDONLY)
    ends.add(fd)
    assert not is_open(fd)
    ends.wait()


def test_what_cannot_be_closed_holds_up_nothing() -> None:
    ends, fd = EventEnds(), os.open("/dev/null", os.O_RDONLY)
    for one in (1 << 20, fd):
        ends.add(one)
    ends.wait()
    assert not is_open(fd)
