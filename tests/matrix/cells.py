"""The matrix: every way to build a program, and which fixtures stand for it in each cell.

A cell is one compiler × optimisation × linking × control-flow protection × symbols. Not every
fixture is in every cell, which would take hours. They are chosen so that

- each fixture meets each *pair* of values of any two axes (as far as it can be built so), as most
  mistakes need no more than two circumstances to show, and
- each cell is met by at least :data:`AT_LEAST` fixtures.

The choice is the same at every run.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fixtures.build import Strip, analysed, build, find

AXES: dict[str, tuple[str, ...]] = {
    "cc": ("gcc", "clang"),
    "opt": ("-O0", "-O1", "-O2", "-O3", "-Os"),
    "link": ("pie", "no-pie", "static", "static-pie"),
    "protection": ("none", "full"),
    "symbols": ("debug", "symtab", "stripped"),
}
"""``symtab``: no debugging information; ``stripped``: no symbols but those of dynamic linking."""

AT_LEAST = 3

_STRIP: dict[str, Strip] = {"debug": None, "symtab": "debug", "stripped": "all"}


@dataclass(frozen=True)
class Cell:
    """One way to build a program: a value on each of :data:`AXES`."""

    cc: str
    opt: str
    link: str
    protection: str
    symbols: str

    def __str__(self) -> str:
        cet = "cet" if self.protection == "full" else "nocet"
        return f"{self.cc}{self.opt}-{self.link}-{cet}-{self.symbols}"

    @property
    def values(self) -> tuple[str, ...]:
        """Its value on each axis."""
        return (self.cc, self.opt, self.link, self.protection, self.symbols)

    @property
    def is_static(self) -> bool:
        """Whether libc is part of the program."""
        return self.link.startswith("static")

    def program(self, name: str) -> Path:
        """The fixture of that name, built so."""
        return self._build(name, _STRIP[self.symbols])

    def twin(self, name: str) -> Path:
        """The same program with its symbols and debugging information."""
        return self._build(name, None)

    def _build(self, name: str, strip: Strip) -> Path:
        return build(
            name,
            cc=self.cc,
            opt=self.opt,
            pie=self.link.endswith("pie") and self.link != "no-pie",
            static=self.is_static,
            strip=strip,
            extra=(f"-fcf-protection={self.protection}",),
        )


CELLS = tuple(Cell(*values) for values in itertools.product(*AXES.values()))


@dataclass(frozen=True)
class Plan:
    """Which fixtures are tried in which cells."""

    trials: tuple[tuple[str, Cell], ...]

    @cached_property
    def cells(self) -> dict[Cell, tuple[str, ...]]:
        """The fixtures of each cell."""
        found: dict[Cell, list[str]] = {cell: [] for cell in CELLS}
        for name, cell in self.trials:
            found[cell].append(name)
        return {cell: tuple(fixtures) for cell, fixtures in found.items()}


def can_be(name: str, cell: Cell) -> bool:
    """Whether the fixture can be built so: those with a library need a dynamic linker."""
    return not (cell.is_static and find(name).library)


def plan(fixtures: Sequence[str] | None = None, at_least: int = AT_LEAST) -> Plan:
    """The whole matrix, of the fixtures that every suite looks for the path in, or of those."""
    chosen = analysed() if fixtures is None else fixtures
    load = dict.fromkeys(CELLS, 0)
    trials = []
    for name in chosen:
        for cell in _covering(name, load):
            load[cell] += 1
            trials.append((name, cell))
    for cell in CELLS:
        trials += [(name, cell) for name in _more(cell, chosen, trials, at_least - load[cell])]
    return Plan(tuple(trials))


def _covering(name: str, load: dict[Cell, int]) -> Iterator[Cell]:
    """Cells that hold every pair of values, greedily few, and those that have the least so far."""
    possible = [cell for cell in CELLS if can_be(name, cell)]
    missing = {pair for cell in possible for pair in _pairs(cell)}
    while missing:
        cell = min(
            possible,
            key=lambda c: (-len(missing & _pairs(c)), load[c], _shuffled(name, c)),
        )
        missing -= _pairs(cell)
        yield cell


def _pairs(cell: Cell) -> set[tuple[tuple[int, str], ...]]:
    return set(itertools.combinations(enumerate(cell.values), 2))


def _more(
    cell: Cell, chosen: Sequence[str], trials: list[tuple[str, Cell]], count: int
) -> list[str]:
    """So many fixtures more for a cell that has too few."""
    there = {name for name, other in trials if other == cell}
    free = [name for name in chosen if name not in there and can_be(name, cell)]
    return sorted(free, key=lambda name: _shuffled(name, cell))[: max(0, count)]


def _shuffled(name: str, cell: Cell) -> int:
    """An order of its own for each fixture, the same at every run."""
    return zlib.crc32(f"{name} {cell}".encode())
