"""Programs whose own handlers know instructions that fault by their addresses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import (
    EXIT,
    IN_BOTH,
    IN_LLDB_AT_NIGHT,
    REPORT,
    Done,
    attempt,
    debug,
    undisturbed,
)

pytestmark = IN_LLDB_AT_NIGHT

PATH = ("handle", "step", "work", "burn")
START = "darc start handle --peak >150us"
QUIET = "handle SIGSEGV SIGFPE nostop noprint pass"
LEFT = "the program's own handler of faults may know an instruction there by its address"


def run(folder: Path, args: tuple[str, ...], *commands: str, begin: str = "work") -> Done:
    """Its output and status are those of a run by itself: every fault was known."""
    program = build("fixups")
    begun = [f"tbreak {begin}", "run", QUIET]
    done = debug(folder, program, args, [*begun, *commands, "continue", EXIT])
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb
    assert "internal error" not in done.gdb
    return done


def left_alone(done: Done) -> list[str]:
    assert done.report is not None, done.gdb
    sites = done.report["program"]["sites"]
    return [s["function"] for s in sites if s["why"] == LEFT]


@IN_BOTH
def test_instructions_that_fault_stay_in_their_places(tmp_path: Path) -> None:
    """f0 and a call go through relays; a call that may fault itself is left alone. (A fault takes
    long under a debugger: that is another cause.)"""
    done = run(tmp_path, ("2000",), START, "continue", REPORT, "darc status")
    assert PATH in done.paths, done.gdb
    assert left_alone(done) == ["step"]
    assert "the program handles SIGFPE, SIGSEGV by a handler in fixups, which" in done.gdb
    assert "_exit: " not in done.gdb, "a guard was not possible"


def test_function_that_begins_with_one(tmp_path: Path) -> None:
    """It is timed from its second instruction on."""
    start = START.replace("handle", "first_handle")
    done = run(tmp_path, ("2000", "first"), start, "continue", REPORT)
    assert ("first_handle", *PATH[1:]) in done.paths, done.gdb


def test_function_that_begins_with_a_comparison(tmp_path: Path) -> None:
    """No pad keeps its flags."""
    start = attempt("darc start flags_handle")
    done = run(tmp_path, ("2000", "flags"), start)
    assert f"darc: cannot time flags_handle: {LEFT}; '--probes breakpoint' can" in done.gdb


@pytest.mark.parametrize("how", ["report", "ends"])
def test_handler_that_tells_of_a_crash(how: str, tmp_path: Path) -> None:
    """It is good for one fault alone, so it goes on behind none, or never looks where that was:
    nothing is left alone for it."""
    done = run(tmp_path, ("2000", how), START, "continue", REPORT, "darc status")
    assert PATH in done.paths, done.gdb
    assert left_alone(done) == []
    assert "the program handles" not in done.gdb


def test_handler_that_jumps_out(tmp_path: Path) -> None:
    """It does not look where that was, either: calls may be displaced that fault, and are left."""
    done = run(tmp_path, ("4000", "leaves"), START, "continue", REPORT, "darc status")
    assert PATH in done.paths, done.gdb
    assert left_alone(done) == []


@pytest.mark.parametrize(
    ("how", "ops"), [("late", "100000000"), ("late", "300"), ("raw", "100000000")]
)
def test_handler_that_is_installed_later(how: str, ops: str, tmp_path: Path) -> None:
    """While calls are profiled, or in the middle of the search."""
    start = f"{START} --start-ops {ops} --decision-ops 1000000"
    done = run(tmp_path, ("4000", how), start, "continue", REPORT, "darc status", begin="main")
    assert "the program has other handlers of faults from now on, which" in done.gdb


def test_attached(tmp_path: Path) -> None:
    program = build("fixups")
    made = subprocess.Popen([program, "1000000000"], stdout=subprocess.DEVNULL)
    try:
        commands = [f"attach {made.pid}", QUIET, START, "continue", REPORT, "detach"]
        done = debug(tmp_path, program, (), commands)
        assert PATH in done.paths, done.gdb
        assert left_alone(done) == ["step"]
        assert made.poll() is None
    finally:
        made.kill()
        made.wait()


@pytest.mark.parametrize("how", ["late", "raw", ""])
def test_handler_that_is_installed_while_many_functions_are_timed(how: str, tmp_path: Path) -> None:
    """What may fault at a function's begin is in its place from then on: the function is timed
    behind that, or no more; the others go on, and every call of theirs counts."""
    profile = "darc profile handle step last work burn --time 10min"
    done = run(tmp_path, ("4000", how), profile, "continue", REPORT, begin="main")
    assert "the program has other handlers of faults from now on, which" in done.gdb
    assert done.report is not None, done.gdb
    own = done.report["set"]
    left = {one["function"]: one["why"] for one in own["left_out"]}
    assert left in [dict.fromkeys(names, LEFT) for names in ((), ("last",), ("handle", "last"))]
    calls = {row["function"]: row["calls"] for row in own["functions"]}
    assert calls["work"] == calls["burn"] == (3975 if how else 3949)  # others fault before
    if "handle" not in left:
        assert calls["handle"] == 4000


def test_handler_that_is_installed_while_one_function_is_timed_that_may_fault(
    tmp_path: Path,
) -> None:
    profile = "darc profile flags_handle --time 10min"
    args = ("4000", "flags", "late")
    done = run(tmp_path, args, profile, "continue", attempt(REPORT), begin="main")
    assert f"flags_handle is not timed any more: {LEFT}" in done.gdb
    assert "2000 calls of 1 function" in done.gdb


def test_function_that_goes_on_elsewhere_before_its_code_ends(tmp_path: Path) -> None:
    """Nothing that darc sees leads to what stands behind a jump: the handler does."""
    done = run(tmp_path, ("4000",), "darc profile last --time 10min", "continue", REPORT)
    assert done.report is not None, done.gdb


def test_handler_that_is_installed_while_darc_walks(tmp_path: Path) -> None:
    walk = "darc walk --window 200ms"
    done = run(tmp_path, ("100000", "late"), walk, "continue", begin="main")
    assert "the program has other handlers of faults from now on, which" in done.gdb
