"""How many calls lead to a function, by the code alone: which functions to take of too many.

``libcallscan.so`` is made by :mod:`darc.agent.build` when the package is built.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from darc.code.modules import Module
from darc.code.patterns import Chosen
from darc.code.program import Program
from darc.model.ftree import Function


def too_many(most: int) -> str:
    """Why functions are left out, where ``most`` can be taken."""
    return f"fewer calls lead to them than to the {most:,} that can be timed at once"


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(Path(__file__).with_name("libcallscan.so")))
    library.callscan.restype = None
    library.callscan.argtypes = (
        *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64),
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p),
    )
    return library


class CallCounts:
    """How many direct calls lead to each of ``wanted``, in code that is given bit by bit."""

    def __init__(self, wanted: Iterable[int]) -> None:
        ascending = sorted(set(wanted))
        self._wanted = (ctypes.c_uint64 * len(ascending))(*ascending)
        self._calls = (ctypes.c_uint64 * len(ascending))()

    def add(self, code: bytes, address: int) -> None:
        """Counts those in the bytes of ``code``, which is at ``address``."""
        count = len(self._wanted)
        _library().callscan(code, len(code), address, self._wanted, count, self._calls)

    def found(self) -> dict[int, int]:
        """The calls by where they lead."""
        return dict(zip(self._wanted, self._calls, strict=True))


def most_called(
    program: Program, chosen: Chosen, most: int, progress: Callable[[str], None] = lambda _: None
) -> Chosen:
    """``chosen`` with the functions' names. Of more than ``most`` those with the most calls that
    lead to them, these first; the others are left out, and it is said why."""

    def named(function: Function) -> Function:
        return program.function_at(function.address)

    late = tuple((named(function), why) for function, why in chosen.left_out)
    if len(chosen.functions) <= most:
        return Chosen(tuple(map(named, chosen.functions)), late)
    counted = CallCounts(function.address for function in chosen.functions)
    modules = _modules(program, chosen.functions)
    for number, module in enumerate(modules, 1):
        progress(f"counts the calls in file {number} of {len(modules)}")
        for segment in module.image.segments:
            if segment.executable:
                code = module.image.loaded(segment.address, segment.size) or b""
                counted.add(code, segment.address + module.bias)
    counts = counted.found()
    ranked = sorted(chosen.functions, key=lambda f: (-counts[f.address], f.address))
    why = too_many(most)
    rest = tuple((function, why) for function in ranked[most:])
    return Chosen(tuple(map(named, ranked[:most])), late + rest)


def _modules(program: Program, functions: Iterable[Function]) -> Sequence[Module]:
    found = (program.module_at(function.address) for function in functions)
    return list({module.start: module for module in found if module is not None}.values())
