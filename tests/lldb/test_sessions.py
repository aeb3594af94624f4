"""Sessions in lldb: runs one after the other, ends of the program, and a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import REPORT, undisturbed
from tests.lldb.runner import debug, mark

PATH = ("handle", "flush", "write_out", "usleep", "nanosleep", "clock_nanosleep")
START = "darc start handle --peak >1ms --start-ops 1000"


@pytest.fixture(scope="module")
def program() -> Path:
    return build("mixture")


def test_runs_one_after_the_other(program: Path, tmp_path: Path) -> None:
    again = ["process kill", START, "run", REPORT]
    done = debug(tmp_path, program, ("20000",), [START, "run", *again, "continue"])
    assert done.paths == [PATH], done.gdb
    assert done.output.endswith(undisturbed(program, ("20000",))[1])


def test_a_second_analysis_of_the_same_process(program: Path, tmp_path: Path) -> None:
    commands = [START, "run", START, "continue", REPORT, "continue"]
    done = debug(tmp_path, program, ("20000",), commands)
    assert done.paths == [PATH], done.gdb
    assert done.output == undisturbed(program, ("20000",))[1]


def test_the_program_ends_first(program: Path, tmp_path: Path) -> None:
    start = "darc start handle --peak >1ms --start-ops 100000"
    done = debug(tmp_path, program, ("2000",), [start, "run", REPORT])
    assert done.report is not None, done.gdb
    assert done.report["status"] == "program ended"
    assert done.report["profile"]["count"] == 2000
    assert done.output == undisturbed(program, ("2000",))[1]


def test_the_program_is_killed(program: Path, tmp_path: Path) -> None:
    commands = ["darc start handle", "run", "process kill", REPORT, mark("status"), "darc status"]
    done = debug(tmp_path, program, ("20000",), commands)
    assert done.report is not None, done.gdb
    assert done.report["profile"]["count"] >= 100
    assert "internal error" not in done.gdb


def test_a_function_that_never_comes(program: Path, tmp_path: Path) -> None:
    done = debug(tmp_path, program, ("2000",), ["darc start hanlde", "run", REPORT])
    assert "darc: no function is called hanlde (near names: handle)" in done.gdb
    assert done.status == 1
    assert done.report is None


def test_require_fails_the_batch_run(program: Path, tmp_path: Path) -> None:
    commands = ["darc start handle", "run", "darc report --require root-cause", "script print(1)"]
    done = debug(tmp_path, program, ("20000",), commands)
    assert done.status == 1
    assert "error: darc: " in done.gdb


def test_stops_cost_no_more_than_promised(program: Path, tmp_path: Path) -> None:
    """As many stops as levels that were decided, and short ones."""
    done = debug(tmp_path, program, ("200000",), [START, "run", REPORT])
    assert done.report is not None, done.gdb
    assert done.report["program"]["stops"] <= 12
    told = json.dumps(done.report["program"]["stopped_seconds"])
    assert done.report["program"]["stopped_seconds"] / done.report["program"]["stops"] < 1, told
