"""A fixed sample of the matrix; ``make matrix`` is all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.build import analysed
from tests.debugger import LLDB
from tests.matrix.cells import AXES, CELLS, Cell, can_be, plan
from tests.matrix.trial import attempt

SAMPLE = [
    ("cancel", Cell("gcc", "-O2", "pie", "full", "stripped")),
    ("cold", Cell("gcc", "-Os", "static", "none", "symtab")),
    ("coroutine", Cell("clang", "-O1", "no-pie", "full", "debug")),
    ("cppclass", Cell("gcc", "-O3", "static-pie", "full", "stripped")),
    ("deep", Cell("clang", "-O2", "static", "none", "stripped")),
    ("exceptions", Cell("clang", "-O3", "pie", "none", "stripped")),
    ("farlib", Cell("gcc", "-O0", "no-pie", "none", "stripped")),
    ("firstcall", Cell("clang", "-Os", "pie", "full", "symtab")),
    ("indirect", Cell("clang", "-O0", "static-pie", "none", "symtab")),
    ("labels", Cell("gcc", "-O1", "pie", "full", "stripped")),
    ("longjmp", Cell("gcc", "-Os", "no-pie", "full", "stripped")),
    ("mixture", Cell("clang", "-O3", "static", "full", "debug")),
    ("plt", Cell("clang", "-O2", "pie", "none", "symtab")),
    ("recursion", Cell("gcc", "-O1", "static-pie", "none", "debug")),
    ("redzone", Cell("clang", "-O0", "no-pie", "full", "stripped")),
    ("signals", Cell("gcc", "-O3", "no-pie", "none", "symtab")),
    ("tail", Cell("clang", "-Os", "static-pie", "full", "stripped")),
    ("threads", Cell("gcc", "-O0", "static", "full", "symtab")),
    ("twopaths", Cell("clang", "-O1", "pie", "none", "stripped")),
    ("yielding", Cell("gcc", "-O3", "static", "none", "debug")),
]


@pytest.mark.parametrize(("name", "cell"), SAMPLE, ids=str)
def test_sample(name: str, cell: Cell, tmp_path: Path) -> None:
    outcome = attempt(name, cell, tmp_path)
    assert outcome.is_fine, outcome.words


@pytest.mark.debuggers(LLDB)
@pytest.mark.parametrize(("name", "cell"), SAMPLE[::3], ids=str)
def test_sample_in_lldb(name: str, cell: Cell, tmp_path: Path) -> None:
    outcome = attempt(name, cell, tmp_path)
    assert outcome.is_fine, outcome.words


def test_each_value_is_in_the_sample() -> None:
    for values in zip(*(cell.values for _, cell in SAMPLE), strict=True):
        assert any(set(values) == set(axis) for axis in AXES.values())


def test_every_cell_and_every_pair_of_values_is_tried() -> None:
    """Of the whole matrix, whatever fixtures there are."""
    planned = plan()
    assert set(planned.cells) == set(CELLS)
    assert all(len(fixtures) == len(set(fixtures)) >= 3 for fixtures in planned.cells.values())
    for name in analysed():
        tried = [cell.values for fixture, cell in planned.trials if fixture == name]
        for cell in CELLS:
            if can_be(name, cell):
                for i, first in enumerate(cell.values):
                    for j, second in enumerate(cell.values):
                        assert any(t[i] == first and t[j] == second for t in tried)
