"""How many calls lead to a function, by the code alone: which functions to take of too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from darc.code.modules import Module
from darc.code.patterns import Chosen
from darc.code.program import Program
from darc.model.ftree import Function

_CALL = b"\xe8"
_LENGTH = 5
"""Bytes of a direct call: the opcode, and how far it is from behind it."""


def calls_in(code: bytes, address: int) -> Iterator[int]:
    """Where the bytes of ``code``, which is at ``address``, may call directly: what looks like a
    call in the middle of another instruction leads nowhere in particular."""
    at = code.find(_CALL)
    while 0 <= at <= len(code) - _LENGTH:
        behind = at + _LENGTH
        far = int.from_bytes(code[at + 1 : behind], "little", signed=True)
        yield address + behind + far
        at = code.find(_CALL, at + 1)


def most_called(program: Program, chosen: Chosen, most: int) -> Chosen:
    """Of more than ``most`` functions those with the most calls that lead to them; the others are
    left out, and it is said why."""
    if len(chosen.functions) <= most:
        return chosen
    counts: Counter[int] = Counter()
    for module in _modules(program, chosen.functions):
        for segment in module.image.segments:
            if segment.executable:
                code = module.image.loaded(segment.address, segment.size) or b""
                counts.update(calls_in(code, segment.address + module.bias))
    ranked = sorted(chosen.functions, key=lambda f: (-counts[f.address], f.address))
    kept = sorted(ranked[:most], key=lambda f: f.address)
    why = f"fewer calls lead to them than to the {most:,} that can be timed at once"
    return Chosen(tuple(kept), chosen.left_out + tuple((f, why) for f in ranked[most:]))


def _modules(program: Program, functions: Iterable[Function]) -> Iterable[Module]:
    found = (program.module_at(function.address) for function in functions)
    return {module.start: module for module in found if module is not None}.values()
