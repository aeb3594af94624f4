"""What a thread that stands still waits for, by where it stands and by its registers.

What was written down at the begin of a wait may be over, or missing: where too many waited at one
time, and in a call that a stop has fallen into.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from darc.code.processor import (
    FRAME_POINTER,
    PROGRAM_COUNTER,
    STACK_POINTER,
    SYSTEM_CALL,
    SYSTEM_CALL_ARGUMENTS,
)
from darc.code.unwind import frames
from darc.model.errors import DarcError
from darc.model.ops import Event, ObjectKind, Stack
from darc.session.session import Session
from darc.target.memory import word_at
from darc.target.target import Target

_REGISTERS = PROGRAM_COUNTER, STACK_POINTER, FRAME_POINTER
_WAITS = (
    (re.compile(r"_*pthread_mutex_(cond_|timed|clock)?lock"), ObjectKind.LOCK),
    (re.compile(r"_*(new_)?sem_(timed|clock)?wait"), ObjectKind.SEMAPHORE),
)
"""Functions of glibc that wait in the kernel on the first word of their object."""


@dataclass(frozen=True)
class Standing:
    """Where a thread is."""

    names: tuple[str, ...]
    """The functions, innermost first, up to the one that was asked for."""
    addresses: tuple[int, ...] = ()
    pointer: int = 0
    futex: int = 0
    """What it gave to the system call that it is in, first; 0: it is in none."""
    is_whole: bool = False
    """Whether ``names`` end in the one that was asked for, if one was."""


def standing(target: Target, session: Session, own: int, last: str | None) -> Standing:
    """Where the thread with the id ``own`` is, up to the function called ``last``."""
    thread, program = session.debuggee.thread_called(own), session.program
    if thread is None:
        return Standing(())
    try:
        pc, stack, frame = (target.threads.read_register(thread, name) for name in _REGISTERS)
        word = functools.partial(word_at, target.memory)
        found = frames(program, pc, stack=stack, frame=frame, word=word)
        addresses = (pc, *(one.at + 1 for one in found[1:]))  # of calls, where they return to
        size = len(SYSTEM_CALL)
        code = target.memory.read(pc - size, 2 * size)
        # Behind the instruction, or at it, where that is to be begun anew. It leaves its first
        # argument as it is: of futex(2), the address of the word.
        is_in_kernel = SYSTEM_CALL in (code[:size], code[size:])
        futex = (
            target.threads.read_register(thread, SYSTEM_CALL_ARGUMENTS[0]) if is_in_kernel else 0
        )
    except DarcError:
        return Standing(())
    names: list[str] = []
    for number, address in enumerate(addresses):
        names.append(program.names.function_at(address - bool(number)).name)
        if names[-1] == last:
            break
    is_whole = last is None or (bool(names) and names[-1] == last)
    return Standing(
        names=tuple(names),
        addresses=addresses[: len(names)],
        pointer=stack,
        futex=futex,
        is_whole=is_whole,
    )


def is_over(event: Event, where: Standing, now: int | None) -> bool:
    """Whether the function has returned in which the wait began; ``now`` is what the word says in
    which its return address was, ``None``: it cannot be read."""
    slot, back = event.stack.pointer, event.stack.words[:1]
    if where.pointer > slot or (now,) != back:
        return True
    return where.is_whole and now not in where.addresses


def current_wait(
    target: Target, session: Session, event: Event | None, where: Standing
) -> Event | None:
    """What the thread waits for at this moment; ``event`` is the begin of its last wait."""
    kind = _kind(where.names)
    if event is not None:
        now = word_at(target.memory, event.stack.pointer)
        if now is not None and session.program.module_at(now) is None:  # a pad of darc's own
            now = event.stack.words[0]
        event = None if is_over(event, where, now) else event
    if kind is None or not where.futex:
        return event
    if event is not None and event.object == where.futex:
        return replace(event, kind=kind)
    return Event(
        time=0,
        object=where.futex,
        kind=kind,
        is_release=False,
        thread=0,
        node=None,
        stack=Stack(0, 0, ()),
    )


def _kind(names: Iterable[str]) -> ObjectKind | None:
    """What the innermost function that waits by itself waits for."""
    for name in names:
        for pattern, kind in _WAITS:
            if pattern.match(name):
                return kind
    return None
