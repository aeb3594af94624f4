"""Whoever ends an event does not wait for the kernel."""

from __future__ import annotations

import os
import threading

import pytest

from darc.debuggee.eventends import EventEnds


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


def test_there_is_nothing_to_wait_for() -> None:
    EventEnds().wait()
