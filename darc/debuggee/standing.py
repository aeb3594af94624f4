"""Where a thread stands, what it waits for, by that and by its registers, and who has that.

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
from darc.code.program import Program
from darc.code.unwind import frames
from darc.debuggee.duties import TellsOfThreads
from darc.model.errors import DarcError
from darc.model.ops import NOWHERE, Event, ObjectKind
from darc.model.standing import HolderTold, LockHolder, OpenWait, ThreadStanding
from darc.target.memory import word_at
from darc.target.target import Target

_REGISTERS = PROGRAM_COUNTER, STACK_POINTER, FRAME_POINTER
_WAITS = (
    (re.compile(r"_*pthread_mutex_(cond_|timed|clock)?lock"), ObjectKind.LOCK),
    (re.compile(r"_*(new_)?sem_(timed|clock)?wait"), ObjectKind.SEMAPHORE),
)
"""Functions of glibc that wait in the kernel on the first word of their object."""

_OWNER = {ObjectKind.LOCK: 8, ObjectKind.RWLOCK: 24}
"""Where glibc's pthread_mutex_t has the id of the thread that holds it, and pthread_rwlock_t of the
one that may write: part of its ABI."""


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


class Stands:
    """Where threads of a ``debuggee`` stand, in ``target``'s ``program``, which stands still as if
    no probe were there."""

    def __init__(self, target: Target, debuggee: TellsOfThreads, program: Program) -> None:
        self._target = target
        self._debuggee = debuggee
        self._program = program

    def whereabouts(self, own: int, where: Standing) -> ThreadStanding:
        """What is told of the thread with the id ``own``, which stands there."""
        return ThreadStanding(own, self._debuggee.thread_name(own), where.names, where.is_whole)

    def show(self, own: int) -> str | None:
        """What to type to see a thread that the debugger does not show by itself. Where it blocks
        the signal, another one was stopped by that. ``None`` also where it is gone meanwhile."""
        thread = self._debuggee.thread_called(own)
        try:
            return None if thread is None else self._target.threads.show(thread)
        except DarcError:
            return None

    def standing(self, own: int, last: str | None) -> Standing:
        """Where the thread with the id ``own`` is, up to the function called ``last``."""
        thread, names = self._debuggee.thread_called(own), self._program.names
        if thread is None:
            return Standing(())
        try:
            found = self._unnamed(thread)
        except DarcError:
            return Standing(())
        told: list[str] = []
        for number, address in enumerate(found.addresses):
            told.append(names.function_at(address - bool(number)).name)
            if told[-1] == last:
                break
        is_whole = last is None or (bool(told) and told[-1] == last)
        addresses = found.addresses[: len(told)]
        return replace(found, names=tuple(told), addresses=addresses, is_whole=is_whole)

    def _unnamed(self, thread: int) -> Standing:
        """Where a thread is, with all its callers, and without their names."""
        threads, memory = self._target.threads, self._target.memory
        pc, stack, frame = (threads.read_register(thread, name) for name in _REGISTERS)
        word = functools.partial(word_at, memory)
        found = frames(self._program, pc, stack=stack, frame=frame, word=word)
        addresses = (pc, *(one.at + 1 for one in found[1:]))  # of calls, where they return to
        size = len(SYSTEM_CALL)
        code = memory.read(pc - size, 2 * size)
        # Behind the instruction, or at it, where that is to be begun anew. It leaves its first
        # argument as it is: of futex(2), the address of the word.
        is_in_kernel = SYSTEM_CALL in (code[:size], code[size:])
        futex = threads.read_register(thread, SYSTEM_CALL_ARGUMENTS[0]) if is_in_kernel else 0
        return Standing((), addresses, stack, futex)

    def wait(self, own: int, event: Event | None, where: Standing) -> OpenWait | None:
        """What the thread with the id ``own`` waits for, which stands there; ``event`` is the begin
        of its last wait."""
        event = self._current(event, where)
        if event is None:
            return None
        owner = self._owner(event)
        if not where.futex and owner == own:
            return None
        holder = self._holder(event, owner) if event.kind in _OWNER else None
        return OpenWait(event.kind, event.object, holder)

    def _current(self, event: Event | None, where: Standing) -> Event | None:
        """The begin of what the thread waits for at this moment."""
        kind = _kind(where.names)
        if event is not None:
            now = word_at(self._target.memory, event.stack.pointer)
            if now is not None and self._program.module_at(now) is None:  # a pad of darc's own
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
            stack=NOWHERE,
        )

    def _owner(self, event: Event) -> int:
        """The id of the thread that has a lock now, by the lock's own words; 0: it names none."""
        at = _OWNER.get(event.kind)
        return 0 if at is None else word_at(self._target.memory, event.object + at, 4) or 0

    def _holder(self, event: Event, owner: int) -> LockHolder:
        """Who has a lock now."""
        if owner and self._debuggee.thread_called(owner) is not None:
            where = self.whereabouts(owner, self.standing(owner, None))
            return LockHolder(owner, HolderTold.NOW, where=where)
        memory = self._target.memory
        is_free = event.kind is ObjectKind.LOCK and word_at(memory, event.object, 4) == 0
        told = HolderTold.NOW if owner else HolderTold.AS_IT_BEGAN
        owner = owner or event.thread
        is_outside = bool(owner) and self._debuggee.thread_called(owner) is None
        return LockHolder(owner, told, is_outside=is_outside, is_free=is_free)


def is_over(event: Event, where: Standing, now: int | None) -> bool:
    """Whether the function has returned in which the wait began; ``now`` is what the word says in
    which its return address was, ``None``: it cannot be read."""
    slot, back = event.stack.pointer, event.stack.words[:1]
    if where.pointer > slot or (now,) != back:
        return True
    return where.is_whole and now not in where.addresses


def _kind(names: Iterable[str]) -> ObjectKind | None:
    """What the innermost function that waits by itself waits for."""
    for name in names:
        for pattern, kind in _WAITS:
            if pattern.match(name):
                return kind
    return None
