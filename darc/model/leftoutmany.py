"""The functions that a set is without: of a large program a million, of which each is made only
when it is asked for."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from darc.model.ftree import Function
from darc.model.leftout import LeftOut


class LeftOutMany(Sequence[tuple[Function, LeftOut]]):
    """Functions, each with why it is not timed: many in a row for the same reason."""

    def __init__(self, *runs: tuple[Sequence[Function], LeftOut]) -> None:
        self._runs = tuple(run for run in runs if run[0])

    @classmethod
    def of(cls, functions: Iterable[tuple[Function, LeftOut]]) -> LeftOutMany:
        """These, in their order."""
        if isinstance(functions, LeftOutMany):
            return functions
        runs = itertools.groupby(functions, lambda one: one[1])
        return cls(*(([function for function, _ in some], why) for why, some in runs))

    def __add__(self, others: Iterable[tuple[Function, LeftOut]]) -> LeftOutMany:
        return LeftOutMany(*self._runs, *LeftOutMany.of(others)._runs)

    @property
    def reasons(self) -> Counter[LeftOut]:
        """How many there are for each reason."""
        found: Counter[LeftOut] = Counter()
        for functions, reason in self._runs:
            found[reason] += len(functions)
        return found

    def __len__(self) -> int:
        return sum(len(functions) for functions, _ in self._runs)

    def __iter__(self) -> Iterator[tuple[Function, LeftOut]]:
        return ((function, why) for functions, why in self._runs for function in functions)

    @overload
    def __getitem__(self, number: int) -> tuple[Function, LeftOut]: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[tuple[Function, LeftOut], ...]: ...
    def __getitem__(
        self, number: int | slice
    ) -> tuple[Function, LeftOut] | tuple[tuple[Function, LeftOut], ...]:
        if isinstance(number, slice):
            return tuple(self)[number]
        at = range(len(self))[number]
        for functions, why in self._runs:
            if at < len(functions):
                return functions[at], why
            at -= len(functions)
        raise AssertionError(at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, LeftOutMany)) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))
