"""``--probes breakpoint``, end to end: the paths that pads find, of operations that are slow."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from fixtures.build import build, find
from tests.debugger import (
    EXIT,
    LLDB,
    REPORT,
    ROOT,
    Done,
    debug,
    mark,
    server,
    terminal,
    undisturbed,
)
from tests.gdb.cases import NOMAP, Case, check_numbers

START = "darc start '{}' --peak >8ms --decision-ops 8 --probes breakpoint"
SLOWER = (("300000", "12000000"), ("600000", "24000000"))
"""What is slow in a fixture takes some 20 ms then, which no noise of breakpoints reaches."""

CASES = [
    Case("cold"),
    Case("exceptions", mode=("inside",)),
    Case("recursion"),
    Case("tail"),
]
MORE = [
    pytest.param(case, marks=pytest.mark.long)
    for case in (
        Case("cppclass"),
        Case("coroutine"),
        Case("exceptions", mode=("self",)),
        Case("longjmp"),
    )
]


def slower(name: str, folder: Path) -> Path:
    """A fixture whose slow operations are slower."""
    fixture = find(name)
    text = fixture.source.read_text()
    for old, new in SLOWER:
        text = text.replace(old, new)
    source, program = folder / fixture.source.name, folder / name
    source.write_text(text)
    compiler = "g++" if source.suffix == ".cpp" else "gcc"
    flags: list[str | Path] = ["-O2", "-g", "-I", ROOT / "fixtures", *fixture.flags]
    command = [compiler, *flags, "-o", program, source, *fixture.libs]
    subprocess.run(command, check=True)
    return program


def check(done: Done, program: Path, args: tuple[str, ...], *paths: tuple[str, ...]) -> None:
    """It found the paths, and the program has not noticed."""
    assert done.report is not None, done.gdb
    assert done.report["probes"] == "breakpoint"
    assert done.report["status"] == "root cause found", done.gdb
    assert set(done.paths) == set(paths), done.gdb
    check_numbers(done.report)
    assert (done.program_status, done.output) == undisturbed(program, args)
    assert "Traceback" not in done.gdb
    assert "internal error" not in done.gdb


@pytest.mark.parametrize("case", [*CASES, *MORE], ids=str)
def test_fixture(case: Case, tmp_path: Path) -> None:
    program = slower(case.name, tmp_path)
    commands = [START.format(case.f0), "run", REPORT, "continue", EXIT]
    check(debug(tmp_path, program, case.args, commands), program, case.args, *case.expected)


@pytest.mark.debuggers(LLDB)
@pytest.mark.parametrize("name", ["cold", pytest.param("tail", marks=pytest.mark.long)])
def test_fixture_in_lldb(name: str, tmp_path: Path) -> None:
    """Some of them, as each hit takes lldb long."""
    test_fixture(Case(name), tmp_path)


def test_sleeping(tmp_path: Path) -> None:
    """Through libraries, down to the system call; nothing of it is in the user's list."""
    program, args = build("mixture"), ("20000",)
    done = debug(
        tmp_path,
        program,
        args,
        [
            "darc start handle --peak >2ms --decision-ops 10 --probes breakpoint",
            "run",
            "info breakpoints",
            REPORT,
            "darc status",
            "continue",
            EXIT,
        ],
    )
    check(done, program, args, *find("mixture").paths)
    assert "No breakpoints, watchpoints" in done.gdb or "No breakpoints or" in done.gdb
    assert "cannot be told apart" in done.gdb
    assert done.report is not None
    assert all(site["state"] == "instrumented" for site in done.report["program"]["sites"])


@pytest.mark.parametrize("mode", ["limit", "sandbox"])
def test_program_that_takes_no_pads(mode: str, tmp_path: Path) -> None:
    """By itself darc takes breakpoints, and says so."""
    program, args = build("nomap"), ("1600", mode)
    start = "darc start handle --peak >8ms --decision-ops 8"
    done = debug(tmp_path, program, args, [start, "run", REPORT, "darc status", "continue", EXIT])
    check(done, program, args, NOMAP)
    assert (
        len(re.findall(r"no pads, but breakpoints: (pads would take|the program is in)", done.gdb))
        == 2
    )


def test_pads_where_none_are_possible(tmp_path: Path) -> None:
    """Asked for explicitly, they are refused, and the program goes on."""
    args = ("100", "limit")
    start = "darc start handle --probes pad"
    done = debug(tmp_path, build("nomap"), args, [start, "run", EXIT])
    assert "darc: pads would take" in done.gdb
    assert (done.program_status, done.output) == undisturbed(build("nomap"), args)


def test_program_that_ends(tmp_path: Path) -> None:
    """In the middle of the search: what was counted is known. And again, as nothing is left."""
    program, args = build("nomap"), ("200",)
    start = "darc start handle --peak >8ms --decision-ops 1000 --probes breakpoint"
    commands = [start, "run", mark("first"), "darc status", start, "run", EXIT, REPORT]
    done = debug(tmp_path, program, args, commands)
    assert done.report is not None, done.gdb
    assert "program ended" in done.section("first")
    assert done.report["status"] == "program ended"
    assert 100 < done.report["profile"]["count"] <= 200  # it grows while the search runs
    assert done.report["program"]["in_peak_calls"] > 0
    assert (done.program_status, done.output) == undisturbed(program, args)


@pytest.mark.parametrize("late", [False, True])
def test_attached(late: bool, tmp_path: Path) -> None:
    """Also by a gdb that has learned of darc only then, and in which other threads run while it
    looks at a hit. After the detach the program goes on alone."""
    with server(slower("server", tmp_path)) as running:
        attach, load = f"attach {running.pid}", f"source {ROOT / 'darc_gdb' / 'load.py'}"
        commands = [
            *([attach, load] if late else [load, attach]),
            START.format("handle"),
            "continue",
            REPORT,
            "detach",
        ]
        done = debug(tmp_path, None, (), commands, gdb=("gdb",))
        assert done.report is not None, done.gdb
        assert done.report["probes"] == "breakpoint"
        assert done.paths == [("handle", "lookup", "burn")], done.gdb
        assert running.finish() == 0


def test_prompt_in_the_middle(tmp_path: Path) -> None:
    """Ctrl-C, steps and a detach: nothing of darc shows, and the program ends as it should."""
    with terminal(tmp_path, str(build("nomap"))) as gdb:
        gdb.command("set args 1600 > program.out")
        gdb.command("darc start handle --decision-ops 100000 --peak >8ms --probes breakpoint")
        gdb.type("run\n")
        gdb.wait_for(r"stops the program")
        gdb.wait_for(r"in progress|bins")
        gdb.type("\x03")
        gdb.prompt()
        assert "No breakpoints" in gdb.command("info breakpoints")
        code = gdb.command("x/16xb handle")
        for _ in range(5):
            gdb.command("stepi")
        assert "handle" in gdb.command("darc status")
        gdb.command("tbreak work")
        assert "Temporary breakpoint" in gdb.command("continue")
        assert gdb.command("x/16xb handle") == code
        gdb.command("finish")
        gdb.command("darc stop")
        gdb.type("continue\n")
        gdb.wait_for("exited normally")
        gdb.prompt()
        assert gdb.quit() == 0
    assert (tmp_path / "program.out").read_bytes() == undisturbed(build("nomap"), ("1600",))[1]


def test_kill(tmp_path: Path) -> None:
    """A program that is killed, and another analysis."""
    program, args = build("nomap"), ("1600",)
    start = "darc start handle --peak >8ms --decision-ops 8 --probes breakpoint"
    commands = [start, "tbreak work", "run", "kill", start, "run", REPORT, "continue", EXIT]
    check(debug(tmp_path, program, args, commands), program, args, NOMAP)
