"""Where direct jumps lead: out of functions, and into pieces of code."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from darc.code.architecture import MAX_FUNCTION, Surroundings
from darc.code.modules import Module
from darc.code.processor import (
    LONGEST_INSTRUCTION,
    LONGEST_JUMP,
    decode,
    instructions,
    jump_target,
)
from darc.code.scans import scans
from darc.model.errors import TargetError

_NEIGHBOURHOOD = 8192
"""Bytes around a piece of code in which other entries to it are looked for."""

_ROOM = 256
"""Jumps to one piece of code that are looked at."""

_GUESSED = 256
"""Bytes before an address of which no table tells, in which the code around it is looked for."""


class Jumps:
    """The direct jumps of a program, read from its code once, until that is to be forgotten."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._far: dict[int, frozenset[int]] = {}

    def forget_code(self) -> None:
        """The program's bytes have changed."""
        self._far.clear()

    def out_of(self, entry: int) -> frozenset[int]:
        """Code outside the function part at ``entry`` that its direct jumps lead to, as its bytes
        tell from the first one on: cheaper than to read the whole function, as it is asked of
        thousands."""
        found = self._far.get(entry)
        if found is None:
            found = self._far[entry] = frozenset(self._read_far(entry))
        return found

    def _read_far(self, entry: int) -> Iterator[int]:
        extent = self._around.outlines.extent(entry)
        if extent is None or extent[1] - extent[0] > MAX_FUNCTION:
            return  # as where no table tells of its end: that of the program's code is none
        start, end = extent
        try:
            code = self._around.read(start, end - start)
        except TargetError:
            return
        for instruction in instructions(code, start):
            target = jump_target(instruction)
            if target is not None and not start <= target < end and self._around.is_code(target):
                yield target

    def lead_between(self, start: int, end: int, module: Module) -> bool:
        """Whether some function of ``module`` nearby jumps between ``start`` and ``end``, both
        excluded.

        Compilers do not make such jumps, but hand-written assembly has several entries to one
        piece of code (memcpy's and memmove's, in the C library).
        """
        low = max(start - _NEIGHBOURHOOD, module.start)
        high = min(end + _NEIGHBOURHOOD + LONGEST_JUMP, module.end)
        try:
            places = jumps_between(self._around.read(low, high - low), low, start, end)
            return places is None or any(map(self._is_instruction, places))
        except TargetError:
            return True  # who knows

    def _is_instruction(self, address: int) -> bool:
        """Whether an instruction begins at ``address``, seen from its function's start."""
        extent = self._around.outlines.extent(address)
        if extent is None:
            return False
        start = extent[0]
        if address - start > MAX_FUNCTION:
            return True  # who knows
        if start == address and not self._around.outlines.is_function_start(address):
            start = self._begin_before(address)  # the extent is a guess
        code = decode(self._around.read(start, address - start + LONGEST_INSTRUCTION), start)
        return any(instruction.ip == address for instruction in code)

    def _begin_before(self, address: int) -> int:
        """Where the code around ``address`` can be decoded from, of which no table tells (as of
        what linkers add to each program): behind what is known before it. Where nothing is, so far
        before it that decoding has met with the instructions by then."""
        for at in range(address - 1, address - _GUESSED, -1):
            if self._around.outlines.is_function_start(at):
                return at
            extent = self._around.outlines.extent(at)
            if extent is not None and extent[1] <= address:
                return extent[1]
        return address - _GUESSED


def jumps_between(code: bytes, address: int, start: int, end: int) -> list[int] | None:
    """Where anything in ``code``, which is at ``address``, could be a jump to somewhere between
    ``start`` and ``end``, both excluded; ``None``: in more places than anybody looks at."""
    places = (ctypes.c_uint32 * _ROOM)()
    found = scans().jumpscan(code, len(code), address, start, end, places, _ROOM)
    return None if found > _ROOM else [address + place for place in places[:found]]
