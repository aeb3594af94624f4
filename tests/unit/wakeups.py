"""Ops of a kernel's task: who woke it, and who ran."""

from __future__ import annotations

from darc.model.ops import By, Event, ObjectKind, Stack

MS = 1000


NOWHERE = Stack(0, 0, ())


def woken(time: int, by: By = By.TASK, thread: int = 7, name: str = "waker") -> Event:
    return Event(
        time=time,
        object=0,
        kind=ObjectKind.WAKE_UP,
        is_release=True,
        thread=thread,
        node=None,
        stack=NOWHERE,
        name=name,
        by=by,
    )


def ran(time: int) -> Event:
    return Event(
        time=time,
        object=0,
        kind=ObjectKind.PROCESSOR,
        is_release=True,
        thread=9,
        node=None,
        stack=NOWHERE,
        name="spin",
    )
