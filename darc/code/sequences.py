"""Restartable sequences (``rseq(2)``): code that the kernel knows by its address."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence

from darc.code.modules import Module
from darc.target.target import Target

_ROW = struct.Struct("<IIQQQ")
"""``struct rseq_cs``: version, flags, start, length, and where it is led when it is interrupted."""


class Sequences:
    """The restartable sequences of loaded files."""

    def __init__(self, target: Target, modules: Sequence[Module]) -> None:
        self._target = target
        self._modules = modules

    def lie_between(self, start: int, end: int) -> bool:
        """Whether code of one lies between the two, or begins there where one goes on that was
        interrupted: the kernel tells by its address whether a thread is in the middle of one, so no
        instruction may be executed elsewhere."""
        return any(
            (one.start < end and start < one.stop) or start < aborted < end
            for one, aborted in self._all
        )

    @functools.cached_property
    def _all(self) -> list[tuple[range, int]]:
        """What the files tell of (``__rseq_cs``), and where each is led when it is interrupted.
        What is in memory counts, which is relocated."""
        return [one for module in self._modules for one in self._of(module)]

    def _of(self, module: Module) -> Iterator[tuple[range, int]]:
        places = module.image.section_range("__rseq_cs")
        if places is None or places.stop + module.bias > module.end:
            return  # none, or the file is damaged
        size = len(places) // _ROW.size * _ROW.size
        rows = self._target.memory.read(places.start + module.bias, size)
        for _, _, start, length, aborted in _ROW.iter_unpack(rows):
            yield range(start, start + length), aborted
