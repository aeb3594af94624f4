"""Stops of the user's that gdb goes on from by itself: hit counts, conditions, commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ticking
from tests.debugger import EXIT, REPORT, debug, undisturbed

COUNTED = """
python
from darc.pads.implant import Implant
make_way, made = Implant.make_way, []
def counted(self):
    made.append(1)
    return make_way(self)
Implant.make_way = counted
end
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ticking.build(tmp_path_factory.mktemp("ticking"))


def test_hits_that_gdb_counts_are_no_news(program: Path, tmp_path: Path) -> None:
    """gdb tells of a breakpoint's change at each hit. No probe has to make way for that: looking
    for those that must takes many times as long as the hit."""
    (tmp_path / "counted.gdb").write_text(COUNTED)
    commands = [f"source {tmp_path / 'counted.gdb'}", "break tick", "ignore 1 1000000"]
    commands += [ticking.START, "run", "python print('made way', len(made))", "info breakpoints"]
    done = debug(tmp_path, program, (ticking.OPERATIONS,), [*commands, REPORT, "continue", EXIT])
    assert done.paths == [ticking.PATH]
    assert "breakpoint already hit" in done.gdb
    assert "made way 0\n" in done.gdb
    assert done.output == undisturbed(program, (ticking.OPERATIONS,))[1]
