"""``--probes breakpoint`` in lldb: what the tests of the same name in ``tests/gdb`` try first."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import REPORT, undisturbed
from tests.gdb.cases import NOMAP, check_numbers
from tests.lldb import runner


@pytest.mark.parametrize(
    ("mode", "probes"), [((), "breakpoint"), (("limit",), "auto"), (("sandbox",), "auto")]
)
def test_path(mode: tuple[str, ...], probes: str, tmp_path: Path) -> None:
    """Also where darc takes breakpoints by itself. Nothing is left of them."""
    program, args = build("nomap"), ("1600", *mode)
    start = f"darc start handle --peak >12ms --decision-ops 8 --probes {probes}"
    commands = [start, "run", REPORT, "darc status", "breakpoint list", "continue"]
    done = runner.debug(tmp_path, program, args, commands)
    assert done.report is not None, done.gdb
    assert done.report["probes"] == "breakpoint"
    assert done.paths == [NOMAP], done.gdb
    check_numbers(done.report)
    assert "nomap`handle" not in done.gdb.partition("breakpoint list")[2]
    assert ("no pads, but breakpoints" in done.gdb) == bool(mode)
    assert (done.program_status, done.output) == undisturbed(program, args)


def test_program_that_ends(tmp_path: Path) -> None:
    """In the middle of the search: what was counted is known."""
    program, args = build("nomap"), ("200",)
    start = "darc start handle --peak >12ms --decision-ops 1000 --probes breakpoint"
    done = runner.debug(tmp_path, program, args, [start, "run", REPORT])
    assert done.report is not None, done.gdb
    assert done.report["status"] == "program ended"
    assert 100 < done.report["profile"]["count"] <= 200  # it grows while the search runs
    assert done.output == undisturbed(program, args)[1]
