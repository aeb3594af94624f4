"""Relays: where a short jump leads that has a long way to go.

The shortest calls have no room for more than a short jump, which reaches no pad. What it needs
within its reach is room for a long jump: padding between functions, or instructions of the
program's own that are run elsewhere meanwhile (the *eviction* of e9patch: Duck, Gao, Roychoudhury,
"Binary Rewriting without Control Flow Recovery", PLDI 2020, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic

from darc.code.architecture import FunctionCode, Instruction, Own_co
from darc.code.processor import (
    PATCH_LENGTH,
    SHORT_JUMP,
    SHORT_REACH,
    decode,
    is_mute,
    is_padding,
)
from darc.code.program import Program

_ENTRY = 48
"""Bytes at a function's entry that are left alone: a pad of its own may be wanted there."""

_MOST_PADDING = 16
"""Bytes between functions that are looked at in one place."""

_LONGEST_RUN = 32
"""Bytes before the reach of a short jump in which instructions of a relay may begin."""


@dataclass(frozen=True)
class Relay(Generic[Own_co]):
    """Room at ``address`` that a long jump may be written to.

    ``displaced`` are the instructions of the program's own that stood there, from ``start`` to
    ``end``: a jump at ``start`` leads to wherever they are run instead.
    """

    address: int
    start: int
    end: int
    displaced: tuple[Own_co, ...] = ()


def relays(program: Program, address: int) -> Iterator[Relay]:
    """Where a short jump at ``address`` may lead, best places first."""
    if not program.patchable.may_displace:
        return
    end = address + SHORT_JUMP
    low, high = end + SHORT_REACH[0], end + SHORT_REACH[-1]
    for place in _caves(program, low, high):
        yield Relay(place, place, place + PATCH_LENGTH)
    for function in _functions(program, address, low, high):
        yield from _runs(program, function, low, high)


def _caves(program: Program, low: int, high: int) -> Iterator[int]:
    """Where :data:`~darc.code.processor.PATCH_LENGTH` bytes of padding between functions begin,
    from ``low`` to ``high``."""
    module = program.module_at(low)
    place = low
    while module is not None and place <= high:
        extent = module.image.frames.extent(place - module.bias)
        if extent is not None:
            place = extent[1] + module.bias
            continue
        if module.image.symbols.at(place - module.bias) is not None or not program.is_code(place):
            place += 1
            continue
        length = _padding(program, place)
        yield from range(place, min(place + length - PATCH_LENGTH, high) + 1, PATCH_LENGTH)
        place += max(length, 1)


def _padding(program: Program, place: int) -> int:
    """How many bytes of padding instructions stand at ``place``."""
    length = 0
    module = program.module_at(place)
    assert module is not None
    for instruction in decode(program.read(place, _MOST_PADDING), place):
        at = int(instruction.ip)
        if not is_padding(instruction):
            break
        if module.image.frames.extent(at - module.bias) is not None:
            break
        length += instruction.len
    return length


def _functions(program: Program, address: int, low: int, high: int) -> Iterator[FunctionCode]:
    """Functions there whose jumps are all known, that around ``address`` first."""
    seen: set[int] = set()
    for place in (address, *range(low, high, 8)):
        extent = program.outlines.extent(place) if program.is_code(place) else None
        if extent is None or extent[0] in seen or not program.outlines.is_function_start(extent[0]):
            continue
        seen.add(extent[0])
        function = program.function(extent[0])
        if function.complete:
            yield function


def _runs(program: Program, function: FunctionCode, low: int, high: int) -> Iterator[Relay]:
    """Instructions that are executed one after the other and stand in nobody's way."""
    first, last = low - _LONGEST_RUN, high + PATCH_LENGTH
    taken = [(function.entry, function.entry + _ENTRY)]
    taken += [(min(site.patch, site.address), site.back) for site in function.sites]
    taken = [(start, end) for start, end in taken if start < last and end > first]
    run: list[Instruction] = []
    for at in range(first, last + 1):
        instruction = function.instructions.get(at)
        if instruction is None:
            continue
        end = at + instruction.len
        if at in function.targets or (run and run[-1].next_ip != at):
            run = []
        if any(at < after and end > before for before, after in taken) or not _is_mute(
            instruction, program
        ):
            run = []
            continue
        run.append(instruction)
        while len(run) > 1 and end - run[1].ip >= 2 * PATCH_LENGTH:
            run = run[1:]
        start = int(run[0].ip)
        if end - start >= 2 * PATCH_LENGTH and low <= start + PATCH_LENGTH <= high:
            inside = any(at in function.targets for at in range(start + 1, end))
            if not inside and not program.is_jumped_into(start, end):
                yield Relay(start + PATCH_LENGTH, start, end, tuple(run))
                run = []


def _is_mute(instruction: Instruction, program: Program) -> bool:
    """Whether nobody can tell where it is run, handlers of signals neither: one that sets threads
    back may do so from any instruction between two that access memory."""
    patchable = program.patchable
    return is_mute(instruction) and not (patchable.restarts or patchable.may_fault(instruction))
