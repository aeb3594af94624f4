"""Several targets in one lldb: what is analysed is of the one in which it was begun."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import undisturbed
from tests.lldb.runner import EXIT, Done, debug, mark

OPS = "20000"
FOUND = r"root cause of peak \d: handle → flush → write_out → usleep"
ANOTHER = "target create /bin/true"
BACK = "target select 0"
WAY_HOME = "darc: handle is analysed in another target: 'target select 0' first"


@pytest.fixture(scope="module")
def program() -> Path:
    return build("mixture")


def chosen_in(folder: Path, program: Path, commands: list[str]) -> Done:
    """Where a peak of handle is to be chosen."""
    begin = ["darc start handle --start-ops 2000", "run", *commands]
    return debug(folder, program, (OPS,), begin)


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param([ANOTHER], id="made"),
        pytest.param([ANOTHER, "run"], id="run"),
        pytest.param([ANOTHER, "process launch -s", "process kill"], id="killed"),
        pytest.param([ANOTHER, "process launch -s", "process detach"], id="detached"),
        pytest.param([ANOTHER, "target delete"], id="deleted"),
        pytest.param([ANOTHER, BACK, "target delete 1"], id="deleted-by-number"),
    ],
)
def test_another_target_changes_nothing(
    meanwhile: list[str], program: Path, tmp_path: Path
) -> None:
    look = [mark("status"), "darc status", "darc peak last", BACK, "continue", mark("end")]
    done = chosen_in(tmp_path, program, [*meanwhile, *look, "continue", EXIT])
    assert "handle: peak not chosen" in done.section("status")
    assert re.search(FOUND, done.section("status")), done.gdb
    assert (done.program_status, done.output) == undisturbed(program, (OPS,))


def test_the_way_back_is_told(program: Path, tmp_path: Path) -> None:
    refused = ["darc peak last", mark("away"), "attempt continue", "attempt darc start flush"]
    done = chosen_in(tmp_path, program, [ANOTHER, *refused, mark("back"), BACK, "continue"])
    assert WAY_HOME in done.section("away")
    told = "handle is being analysed in the program that was selected before: 'darc stop' before"
    assert told in done.section("away")
    assert re.search(FOUND, done.section("back"))


@pytest.mark.parametrize("command", ["target delete 0", "target delete --all"])
def test_the_end_of_the_analysed_target(command: str, program: Path, tmp_path: Path) -> None:
    done = chosen_in(tmp_path, program, [ANOTHER, command, "darc status"])
    assert "darc: handle: stopped" in done.gdb
    assert "has lost process" not in done.gdb


def test_what_waits_stays_in_its_target(program: Path, tmp_path: Path) -> None:
    begin = ["darc start handle --start-ops 2000 --peak last", ANOTHER, "run"]
    done = debug(tmp_path, program, (OPS,), [*begin, BACK, mark("home"), "run"])
    assert "darc: waits for handle in another target: 'target select 0' first" in done.gdb
    assert re.search(FOUND, done.section("home"))


def test_a_second_program(program: Path, tmp_path: Path) -> None:
    """What was found in the first one ends, and no breakpoint of darc's stays there; each of the
    user's does, whatever number it has."""
    start = "darc start handle --start-ops 2000 --peak last"
    second = [f"target create {program}", f"settings set target.run-args {OPS}"]
    second += ["breakpoint set -n main", mark("second"), start, "run", "continue", "darc stop"]
    end = [mark("left"), "breakpoint list", BACK, mark("home"), "breakpoint list", "continue"]
    done = debug(tmp_path, program, (OPS,), [start, "run", *second, *end, EXIT])
    assert re.search(FOUND, done.section("second"))
    assert "1: name = 'main'" in done.section("left")
    assert "No breakpoints currently set." in done.section("home")
    assert (done.program_status, done.output) == undisturbed(program, (OPS,))


def test_a_core_file_is_no_program_that_runs(program: Path, tmp_path: Path) -> None:
    core = tmp_path / "core"
    kept = ["-ex", "break flush", "-ex", "run", "-ex", f"gcore {core}", "-ex", "kill"]
    subprocess.run(["gdb", "-q", "-nx", "-batch", *kept, "--args", program, OPS], check=True)
    asked = ["darc start handle", "darc why", "darc profile mixture!*", "darc walk"]
    loaded = f"target create --core {core} {program}"
    commands = [*(f"attempt {one}" for one in asked), mark("left"), "breakpoint list"]
    done = debug(tmp_path, None, (), [loaded, *commands])
    told = "darc: lldb has a core file: darc needs a program that runs\n"
    assert done.gdb.count(told) == len(asked)
    assert "warning" not in done.gdb
    assert "No breakpoints currently set." in done.section("left")
