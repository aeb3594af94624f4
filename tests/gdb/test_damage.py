"""Programs that write over darc's tables in their own memory, or that go away at a stop."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from darc.agent import compiled
from darc.agent.fieldnames import ControlField
from fixtures.build import build
from tests.debugger import EXIT, IN_LLDB_AT_NIGHT, Done, attempt, debug, mark, server, undisturbed

WORDS = {
    "a beat that cannot be counted on": ("last_beat", (1 << 64) - 1),
    "an epoch that cannot be counted on": ("epoch", (1 << 64) - 1),
    "no version": ("version", 0),
    "a bell that nobody rings": ("bell", 77),
    "another resolution": ("resolution", 7),
    "threads without end": ("older_count", 1 << 63),
    "records without end": ("record_count", (1 << 64) - 1),
}
OPERATIONS = 80_000


def scribbled(folder: Path, *what: str, options: str = "--peak last") -> Done:
    """An analysis of the program while it writes over the tables."""
    program = build("scribble")
    arguments = (str(OPERATIONS), "1500", *what)
    commands = [
        f"darc start handle --start-ops 1000 --decision-ops 1000000 {options}", "run",
        mark("status"), attempt("darc status"), mark("save"), attempt("darc save s.json"),
        mark("report"), attempt("darc report"), mark("on"), attempt("continue"), EXIT,
    ]  # fmt: skip
    done = debug(folder, program, arguments, commands)
    assert "Traceback" not in done.gdb, done.gdb
    assert "internal error" not in done.gdb, done.gdb
    assert "Exception" not in done.gdb, done.gdb
    return done


@IN_LLDB_AT_NIGHT
@pytest.mark.parametrize(("field", "value"), WORDS.values(), ids=WORDS)
def test_tables_that_are_written_over(field: str, value: int, tmp_path: Path) -> None:
    """It is told in one line, the probes come out, what is known stays, the program goes on."""
    offset, _ = compiled.load().fields[ControlField[field.upper()]]
    if field == "resolution":
        value |= 1 << 32  # the mode stands behind it
    if field == "version":
        offset, value = offset // 8 * 8, 0
    done = scribbled(tmp_path, "write", str(offset), str(value))
    if "count" not in field:  # counts that are too large are taken for what fits
        assert "tables in the program are damaged" in done.section("report"), done.gdb
    assert re.search(r"1\d\d\d calls", done.section("report")), done.gdb
    assert (tmp_path / "s.json").exists()
    clean = undisturbed(build("scribble"), (str(OPERATIONS), str(OPERATIONS), "write"))
    assert (done.program_status, done.output) == clean


def test_tables_that_are_unmapped(tmp_path: Path) -> None:
    """The program dies of it, as it would of any pointer that leads nowhere; the analysis does
    not."""
    done = scribbled(tmp_path, "unmap")
    assert "handle" in done.section("report")
    assert (tmp_path / "s.json").exists()


def test_a_program_that_is_killed_at_a_stop(tmp_path: Path) -> None:
    """By somebody else, while the debugger shows it stopped."""
    with server(build("server")) as running:
        done = debug(
            tmp_path, None, (),
            ["darc start handle --start-ops 200", "continue",
             f"python import os; os.kill({running.pid}, 9)",
             mark("status"), attempt("darc status"), mark("peak"), attempt("darc peak last"),
             mark("on"), attempt("continue"), mark("stop"), attempt("darc stop"), mark("save"),
             attempt("darc save s.json"), mark("end")],
            options=["-p", str(running.pid)],
        )  # fmt: skip
    assert "Traceback" not in done.gdb, done.gdb
    assert "internal error" not in done.gdb, done.gdb
    assert "calls seen" in done.section("status"), done.gdb
    assert (tmp_path / "s.json").exists(), done.gdb
