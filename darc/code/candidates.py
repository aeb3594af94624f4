"""Functions by the million, each made when it is asked for.

A pattern may mean all functions of a program, of which a few thousand are timed: of the others
nothing is needed but their addresses, as arrays.
"""

from __future__ import annotations

import bisect
import itertools
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from darc.model.ftree import Function


@dataclass(frozen=True)
class FilePart:
    """Functions of one file, at ``addresses``, which ascend; one of them is made by its number."""

    module: str
    addresses: Sequence[int]
    make: Callable[[int], Function]


class Candidates(Sequence[Function]):
    """The functions of some parts, one after the other."""

    def __init__(self, parts: Iterable[FilePart] = ()) -> None:
        self.parts = tuple(part for part in parts if part.addresses)
        counts = (len(part.addresses) for part in self.parts)
        self._ends = list(itertools.accumulate(counts))
        self.addresses = array("Q")
        for part in self.parts:
            self.addresses.extend(part.addresses)

    @classmethod
    def of(cls, functions: Iterable[Function]) -> Candidates:
        """These, by address, each once: the first one of an address."""
        known: dict[int, Function] = {}
        for function in functions:
            known.setdefault(function.address, function)
        ordered = [known[address] for address in sorted(known)]
        return cls(
            FilePart(module, [function.address for function in here], here.__getitem__)
            for module, some in itertools.groupby(ordered, lambda function: function.module)
            for here in (list(some),)
        )

    @classmethod
    def joined(cls, some: Sequence[Candidates]) -> Candidates:
        """All of them, by address, each once: where two are at an address the one that comes
        first."""
        if len(some) == 1:
            return some[0]
        parts = sorted((part for one in some for part in one.parts), key=_first)
        if all(a.addresses[-1] < b.addresses[0] for a, b in itertools.pairwise(parts)):
            return cls(parts)
        return cls.of(itertools.chain.from_iterable(some))

    def __len__(self) -> int:
        return len(self.addresses)

    @overload
    def __getitem__(self, number: int) -> Function: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Function]: ...
    def __getitem__(self, number: int | slice) -> Function | Sequence[Function]:
        numbers = range(len(self))[number]
        if isinstance(numbers, range):
            return Picked(self, numbers)
        at = bisect.bisect_right(self._ends, numbers)
        part = self.parts[at]
        return part.make(numbers - self._ends[at] + len(part.addresses))

    def __iter__(self) -> Iterator[Function]:
        for part in self.parts:
            yield from map(part.make, range(len(part.addresses)))

    def number_of(self, address: int) -> int | None:
        """The number of the one there, where these ascend."""
        at = bisect.bisect_left(self.addresses, address)
        return at if at < len(self) and self.addresses[at] == address else None


@dataclass(frozen=True)
class Picked(Sequence[Function]):
    """Those of ``functions`` with these ``numbers``, in their order."""

    functions: Sequence[Function]
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, number: int) -> Function: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Function]: ...
    def __getitem__(self, number: int | slice) -> Function | Sequence[Function]:
        if isinstance(number, slice):
            return Picked(self.functions, self.numbers[number])
        return self.functions[self.numbers[number]]


def _first(part: FilePart) -> int:
    return part.addresses[0]
