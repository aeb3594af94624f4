"""A fixed sample of the matrix; ``make matrix`` is all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.build import analysed
from tests.debugger import LLDB
from tests.matrix.cells import AXES, CELLS, Cell, can_be, plan
from tests.matrix.trial import attempt

SAMPLE = [
    ("cancel", Cell(cc="gcc", opt="-O2", link="pie", protection="full", symbols="stripped")),
    ("cold", Cell(cc="gcc", opt="-Os", link="static", protection="none", symbols="symtab")),
    ("coroutine", Cell(cc="clang", opt="-O1", link="no-pie", protection="full", symbols="debug")),
    (
        "cppclass",
        Cell(cc="gcc", opt="-O3", link="static-pie", protection="full", symbols="stripped"),
    ),
    ("deep", Cell(cc="clang", opt="-O2", link="static", protection="none", symbols="stripped")),
    ("exceptions", Cell(cc="clang", opt="-O3", link="pie", protection="none", symbols="stripped")),
    ("farlib", Cell(cc="gcc", opt="-O0", link="no-pie", protection="none", symbols="stripped")),
    ("firstcall", Cell(cc="clang", opt="-Os", link="pie", protection="full", symbols="symtab")),
    (
        "indirect",
        Cell(cc="clang", opt="-O0", link="static-pie", protection="none", symbols="symtab"),
    ),
    ("labels", Cell(cc="gcc", opt="-O1", link="pie", protection="full", symbols="stripped")),
    ("longjmp", Cell(cc="gcc", opt="-Os", link="no-pie", protection="full", symbols="stripped")),
    ("mixture", Cell(cc="clang", opt="-O3", link="static", protection="full", symbols="debug")),
    ("plt", Cell(cc="clang", opt="-O2", link="pie", protection="none", symbols="symtab")),
    ("recursion", Cell(cc="gcc", opt="-O1", link="static-pie", protection="none", symbols="debug")),
    ("redzone", Cell(cc="clang", opt="-O0", link="no-pie", protection="full", symbols="stripped")),
    ("signals", Cell(cc="gcc", opt="-O3", link="no-pie", protection="none", symbols="symtab")),
    ("tail", Cell(cc="clang", opt="-Os", link="static-pie", protection="full", symbols="stripped")),
    ("threads", Cell(cc="gcc", opt="-O0", link="static", protection="full", symbols="symtab")),
    ("twopaths", Cell(cc="clang", opt="-O1", link="pie", protection="none", symbols="stripped")),
    ("yielding", Cell(cc="gcc", opt="-O3", link="static", protection="none", symbols="debug")),
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
