"""Where threads stand, with the calls of which the agent has the return addresses."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from darc.code.processor import (
    FRAME_POINTER,
    PROGRAM_COUNTER,
    STACK_POINTER,
    THREAD_POINTER,
    cfa_of,
)
from darc.code.program import Program
from darc.code.unwind import Frame, frames
from darc.collectors.manyduties import SeesStacks, ThreadStack
from darc.collectors.walkcount import OpenMembers
from darc.model.errors import DarcError
from darc.pads.foothold import Foothold
from darc.target.memory import Read
from darc.target.target import Target

_PIECE = 1 << 16
"""Bytes of a stack that are read at a time,"""

_PIECES = 256
"""and how many pieces at most: frames with large arrays are further apart than one."""

_PAD_BYTES = 1 << 12
"""Of a stack that a pad and the agent have below who called."""


class Stacks(SeesStacks):
    """The stacks of one program's threads; ``tell`` is called before each that is read."""

    def __init__(
        self,
        target: Target,
        program: Program,
        foothold: Foothold,
        *,
        calls: OpenMembers,
        tell: Callable[[], None],
    ) -> None:
        self._target = target
        self._program = program
        self._foothold = foothold
        self._calls = calls
        self._tell = tell

    def all(self, among: AbstractSet[int] | None = None) -> dict[int, ThreadStack]:
        records = self._calls.all()
        backs = {record.slot: record.back for record in records}
        had = {record.slot: self._calls.had(record) for record in records}
        found = {}
        for thread in self._target.threads.ids():
            if among is not None and thread not in among:
                continue
            self._tell()
            try:
                stack = self._stack(thread, backs)
                found[thread] = ThreadStack(stack.key, tuple(self._with_gone(stack.frames, had)))
            except DarcError:
                continue  # it has just ended
        return found

    def _with_gone(
        self, found: Sequence[Frame], had: Mapping[int, Sequence[int]]
    ) -> Iterator[Frame]:
        """The frames, with the functions before each that have handed it on."""
        for frame in found:
            now = self._program.names.function_at(frame.at).address
            for address in had.get(frame.slot, ()):
                if self._program.names.function_at(address).address == now:
                    break
                yield Frame(address, frame.slot)
            yield frame

    def _stack(self, thread: int, backs: Mapping[int, int]) -> ThreadStack:
        target, foothold, tables = self._target, self._foothold, self._foothold.tables
        names = (PROGRAM_COUNTER, STACK_POINTER, FRAME_POINTER, THREAD_POINTER)
        pc, stack, frame, key = (target.threads.read_register(thread, name) for name in names)
        slots: dict[int, int] = dict(backs)
        if tables.bell and tables.bell_slot:
            slots[tables.bell_slot] = tables.bell_return
        words = StackWords(target.memory.read, stack)

        def word(at: int) -> int | None:
            return slots[at] if at in slots else words.at(at)

        if foothold.holds(pc):
            found = self._out_of_pad(stack, frame, slots, word)
        else:
            found = frames(self._program, pc, stack=stack, frame=frame, word=word)
        return ThreadStack(key, tuple(reversed(found)))

    def _out_of_pad(
        self,
        stack: int,
        frame: int,
        slots: Mapping[int, int],
        word: Callable[[int], int | None],
    ) -> list[Frame]:
        """The stack of a thread that stands in a pad, or in the agent, from who has called that on.
        Where a call is not timed, as those of functions that others than who is looked into call as
        well, no record tells of it: then it is what a call may come back to whose stack leads to
        the first call that one tells of; where none does, the innermost of those whose stacks lead
        furthest out: what a stack has beside its return addresses leads nowhere."""
        near = range(stack, stack + _PIECE)  # further up other threads may have theirs
        known = min((slot for slot in slots if slot in near and word(slot) is not None), default=0)
        end = stack + _PAD_BYTES
        furthest: list[Frame] = []
        for slot in range(stack, min(end, known) if known else end, 8):
            back = word(slot)
            if back is None:
                break
            if not self._may_be_back(back):
                continue
            found = frames(self._program, back, stack=cfa_of(slot), frame=frame, word=word)
            is_whole = known == 0 and len(found) > 1 and not found[-1].slot
            if is_whole or any(one.slot == known for one in found):
                return found
            if len(found) > 1 and _outermost(found) > _outermost(furthest):
                furthest = found
        if not known:
            return furthest
        return frames(self._program, slots[known], stack=cfa_of(known), frame=frame, word=word)

    def _may_be_back(self, address: int) -> bool:
        program = self._program
        if self._foothold.holds(address) or not program.is_code(address):
            return False
        return program.live.is_returned_to(address)


def _outermost(found: Sequence[Frame]) -> int:
    """Where the outermost of its return addresses is."""
    return max((frame.slot for frame in found), default=0)


class StackWords:
    """The words of a stack from its top on, read as far as they are asked for."""

    def __init__(self, read: Read, top: int) -> None:
        self._read = read
        self._top = top
        self._pieces: dict[int, bytes] = {}

    def at(self, address: int) -> int | None:
        """The word there, if it can be read and is not too far away."""
        number, begin = divmod(address - self._top, _PIECE)
        if not 0 <= number < _PIECES:
            return None
        if number not in self._pieces:
            self._pieces[number] = self._piece(self._top + number * _PIECE)
        raw = self._pieces[number][begin : begin + 8]
        return int.from_bytes(raw, "little") if len(raw) == 8 else None

    def _piece(self, start: int) -> bytes:
        """As much as there is: the stack of a program's first thread ends where nothing follows."""
        found, size = b"", _PIECE
        while size >= 8 and len(found) < _PIECE:
            with contextlib.suppress(DarcError):
                found += self._read(start + len(found), size)
            size //= 2
        return found
