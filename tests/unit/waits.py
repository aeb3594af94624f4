"""Ops that wait for locks."""

from __future__ import annotations

from darc.model.ops import Event, ObjectKind, Stack

LOCK, OTHER, MINE, A, B = 0x1000, 0x2000, 1, 2, 3


NOWHERE = Stack(0, 0, ())


def wait(time: int, owner: int = 0, kind: ObjectKind = ObjectKind.LOCK) -> Event:
    return Event(
        time=time, object=LOCK, kind=kind, is_release=False, thread=owner, node=None, stack=NOWHERE
    )
