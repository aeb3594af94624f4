"""Every fixture, end to end in lldb: the same cases, with the same answers, as in gdb."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import REPORT
from tests.gdb.test_fixtures import (
    CASES,
    Case,
    check_numbers,
    check_paths,
    check_program,
    check_sites,
)
from tests.lldb import runner


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fixture(case: Case, tmp_path: Path) -> None:
    start = f"darc start '{case.f0}' --peak '{case.chosen_peak}'"
    program = build(case.name, opt=case.opt)
    done = runner.debug(tmp_path, program, case.args, [start, "run", REPORT, "continue"])
    assert done.report is not None, done.gdb
    check_program(case, done)
    check_paths(case, done)
    check_numbers(done.report)
    check_sites(case, done.report)
