"""Where direct jumps lead: out of functions, and into pieces of code."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator

from darc.code.architecture import Surroundings
from darc.code.modules import Module
from darc.code.processor import decode, jump_target
from darc.model.errors import TargetError

_NEIGHBOURHOOD = 8192
"""Bytes around a piece of code in which other entries to it are looked for."""

_JUMP = re.compile(
    rb"(?=\xe9(?P<near>.{4})|\x0f[\x80-\x8f](?P<conditional>.{4})|[\xeb\x70-\x7f\xe0-\xe3](?P<short>.))",
    re.DOTALL,
)
_LONGEST_JUMP = 6

_CHUNK = 4096
"""Bytes of code whose jumps are read at a time."""

_GUESSED = 256
"""Bytes before an address of which no table tells, in which the code around it is looked for."""

_JUMP_LENGTHS = {"near": 5, "conditional": 6, "short": 2}


class Jumps:
    """The direct jumps of a program, read from its code once, until that is to be forgotten."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._far: dict[int, frozenset[int]] = {}
        self._possible: dict[int, list[tuple[int, int]]] = {}

    def forget_code(self) -> None:
        """The program's bytes have changed."""
        self._far.clear()
        self._possible.clear()

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
        if extent is None:
            return
        start, end = extent
        try:
            code = self._around.read(start, end - start)
        except TargetError:
            return
        for instruction in decode(code, start):
            target = jump_target(instruction)
            if target is not None and not start <= target < end and self._around.is_code(target):
                yield target

    def lead_between(self, start: int, end: int, module: Module) -> bool:
        """Whether some function of ``module`` nearby jumps between ``start`` and ``end``, both
        excluded.

        Compilers do not make such jumps, but hand-written assembly has several entries to one
        piece of code (memcpy's and memmove's, in the C library).
        """
        low = max(start - _NEIGHBOURHOOD, module.start) // _CHUNK * _CHUNK
        high = min(end + _NEIGHBOURHOOD, module.end)
        try:
            for chunk in range(low, high, _CHUNK):
                found = self._jumps_of(chunk, module)
                first = bisect.bisect_left(found, (start + 1, 0))
                last = bisect.bisect_left(found, (end, 0))
                if any(self._is_instruction(place) for _, place in found[first:last]):
                    return True
        except TargetError:
            return True  # who knows
        return False

    def _jumps_of(self, chunk: int, module: Module) -> list[tuple[int, int]]:
        """Targets and places of all that could be a jump in a piece of the module's code."""
        found = self._possible.get(chunk)
        if found is None:
            start, end = max(chunk, module.start), min(chunk + _CHUNK + _LONGEST_JUMP, module.end)
            seen = _jumps_in(self._around.read(start, end - start), start)
            found = sorted((target, at) for at, target in seen if at < chunk + _CHUNK)
            self._possible[chunk] = found
        return found

    def _is_instruction(self, address: int) -> bool:
        """Whether an instruction begins at ``address``, seen from its function's start."""
        extent = self._around.outlines.extent(address)
        if extent is None:
            return False
        start = extent[0]
        if start == address and not self._around.outlines.is_function_start(address):
            start = self._begin_before(address)  # the extent is a guess
        code = decode(self._around.read(start, address - start + 16), start)
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


def _jumps_in(code: bytes, address: int) -> Iterator[tuple[int, int]]:
    """Everything in ``code`` that could be a jump: its place and target."""
    for match in _JUMP.finditer(code):
        kind = match.lastgroup
        assert kind is not None
        place = address + match.start()
        distance = int.from_bytes(match.group(kind), "little", signed=True)
        yield place, place + _JUMP_LENGTHS[kind] + distance
