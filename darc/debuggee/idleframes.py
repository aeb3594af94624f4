"""Frames that the kernel has made for handlers of signals which have come back long ago.

Nobody overwrites them: on the part of a stack that is free again, on the alternate stack of a
thread that runs on its own one, on the stack of a thread that has ended, which the C library keeps.
What such a handler has interrupted in a pad leads nowhere from there. But the handler may have
changed to another fiber as well, and the frame is resumed one day, wherever that stack is.

Whoever resumes it needs a stack pointer that is at the frame or below it on that stack: in a
thread's register, or in a word of memory, plain or as the C library hides those that ``setjmp``
saves; or, where that word is below the frame itself, another word that leads there. Where the
program has no word outside that leads in between, nothing comes back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from darc.code.processor import GENERAL, GUARD, SIGNAL_FRAME, SIGNAL_RETURN, THREAD_POINTER
from darc.debuggee.procfs import MemoryFile
from darc.debuggee.wordscan import WordScan, is_saved_counter
from darc.model.errors import TargetError
from darc.target.target import Region, Target

_MOST_THREADS = 256
"""Of more the registers are not read: for each that takes the debugger a while."""

_MOST_FRAMES = 64
"""On one stack."""

_FARTHEST_VECTORS = 1 << 10
_STACK = struct.Struct("<QixxxxQ")
_DISABLED = 2

_WORD = 8


@dataclass(frozen=True)
class _Idle:
    """The part of a stack from its end up to a frame's program counter."""

    low: int
    counter: int

    def leads_here(self, word: int) -> bool:
        """Whether ``word`` may be a stack pointer there. That of a stack which is used up to its
        last byte is none: it is where programs know their stacks by."""
        return self.low < word < self.counter + _WORD

    def holds(self, place: int) -> bool:
        """Whether it is there."""
        return self.low <= place < self.counter + _WORD


def _frame(memory: MemoryFile, place: int, low: int) -> _Idle | None:
    """What ends at ``place``, if a program counter is there that the kernel has saved for a
    signal's handler; ``low`` is where the mapping begins."""
    first = SIGNAL_FRAME.back
    try:
        if not is_saved_counter(memory, place):
            return None
        raw = memory.read(place + first, SIGNAL_FRAME.vector_state - first + _WORD)
        back, vectors = (int.from_bytes(raw[at : at + 8], "little") for at in (0, len(raw) - 8))
        if vectors - place not in range(_FARTHEST_VECTORS):
            return None
        if memory.read(back, len(SIGNAL_RETURN)) != SIGNAL_RETURN:
            return None
    except TargetError:
        return None
    start, flags, size = _STACK.unpack_from(raw, SIGNAL_FRAME.alternate - first)
    is_on_it = not flags & _DISABLED and start <= place + first < start + size
    return _Idle(max(low, start) if is_on_it else low, place)


def _by_stack(
    memory: MemoryFile, mapped: Iterable[Region], leading: Iterable[int]
) -> dict[int, list[_Idle]]:
    """The frames among what is ``leading`` somewhere, by where their stacks end, the highest
    first."""
    starts, found = list(mapped), dict[int, list[_Idle]]()
    for place in sorted(leading, reverse=True):
        low = next((one.start for one in starts if one.start <= place < one.end), None)
        one = None if low is None else _frame(memory, place, low)
        if one is not None and len(known := found.setdefault(one.low, [])) < _MOST_FRAMES:
            known.append(one)
    return found


def _registers(target: Target) -> tuple[set[int], set[int]]:
    """All that the threads have in theirs, and what their library hides stack pointers with."""
    words, bases = set[int](), set[int]()
    for thread in target.threads.ids():
        words.update(target.threads.read_register(thread, name) for name in GENERAL)
        bases.add(target.threads.read_register(thread, THREAD_POINTER))
    return words, bases


def _guards(memory: MemoryFile, bases: Iterable[int]) -> set[int]:
    found = set[int]()
    for base in bases:
        try:
            found.add(int.from_bytes(memory.read(base + GUARD, 8), "little"))
        except TargetError:
            continue  # there is no thread's memory yet
    return found


def forget_idle(
    target: Target,
    memory: MemoryFile,
    *,
    mapped: Sequence[Region],
    parts: Iterable[range],
    leading: dict[int, int],
) -> None:
    """Of the places that are ``leading`` to pads those go that are on a stack which nothing leads
    to any more, up to a signal's frame. ``parts`` are all that the program may keep words in. Where
    other processes share its memory, whose registers are not told, all stay.

    Raises:
        TargetError: these cannot be read.
    """
    stacks = _by_stack(memory, mapped, leading)
    if not stacks or len(target.threads.ids()) > _MOST_THREADS:
        return
    if target.companions.program_counters():
        return
    words, bases = _registers(target)
    scan = WordScan([range(low, idle[0].counter + _WORD) for low, idle in stacks.items()])
    seen = [(0, word) for word in words]
    guards = _guards(memory, bases)
    for part in parts:
        seen += scan.pointers(memory, part, guards)
    for idle in stacks.values():
        _forget_on(idle, seen, leading)


def _forget_on(
    idle: Sequence[_Idle], seen: Sequence[tuple[int, int]], leading: dict[int, int]
) -> None:
    """What is on one stack; ``seen`` are words that may lead there, by where they are."""
    near = [(place, word) for place, word in seen if idle[0].leads_here(word)]
    for one in idle:
        if not any(one.leads_here(word) and not one.holds(place) for place, word in near):
            for place in filter(one.holds, list(leading)):
                del leading[place]
            return
