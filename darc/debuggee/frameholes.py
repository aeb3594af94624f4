"""What on the threads' stacks is only left over: words in frames, by which no call comes back.

A frame has holes, and in them stands what calls before have left, so a thread that waits for its
next work keeps return addresses of calls that ended long ago. Where the frame is small, and frame
information tells where its own return address is, no other word of it is one: to be interrupted in
a pad takes far more stack, also where an array in a frame is some fiber's stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from darc.code.frame_rule import WORD_SIZE
from darc.code.processor import cfa_of
from darc.code.program import Program
from darc.code.unwind import frames
from darc.debuggee.procfs import MemoryFile
from darc.model.errors import TargetError
from darc.pads.returns import ReturnLandings, own_back
from darc.target.target import Region

LARGEST = 512
"""Bytes of a frame that cannot have in it what is on a stack where a signal's handler has
interrupted a pad: the agent's frames and what the kernel saves."""


class FrameHoles:
    """Of the threads of a ``program`` that stand still, whose stacks lead to these ``landings``."""

    def __init__(
        self, program: Program, memory: MemoryFile, landings: Iterable[ReturnLandings]
    ) -> None:
        self._program = program
        self._memory = memory
        self._landings = list(landings)

    def look(self, mapped: Sequence[Region]) -> None:
        """What is mapped now: a file may stand where another one's frames are known."""
        self._program.update(mapped)

    def of(self, pc: int, stack: int, frame: int) -> list[range]:
        """Where on the stack of a thread that stands at ``pc`` nothing leads anywhere, as far as
        its frames can be told. ``stack`` and ``frame`` are its stack and its frame pointer."""
        found = list[range]()
        for one in frames(self._program, pc, stack=stack, frame=frame, word=self._word):
            if one.slot - stack in range(LARGEST):
                found.append(range(stack, one.slot))
            stack = cfa_of(one.slot)
        return found

    def _word(self, address: int) -> int | None:
        try:
            word = int.from_bytes(self._memory.read(address, WORD_SIZE), "little")
        except TargetError:
            return None
        return own_back(self._landings, word) or word
