"""Calls that take no pad: breakpoints time them where that does no harm, and darc says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fixtures.build import build
from tests.debugger import EXIT, IN_BOTH, IN_LLDB_AT_NIGHT, REPORT, Done, debug, undisturbed

pytestmark = IN_LLDB_AT_NIGHT

NO_PAD = "a jump leads between the bytes that a patch needs"
PATH = ("handle", "step", "work", "burn")
CUT_OFF = ("handle", "step")


def start(peak: str = ">8ms", start_ops: int = 60, more: str = "") -> str:
    return f"darc start handle --peak '{peak}' --start-ops {start_ops} --decision-ops 6 {more}"


def run(folder: Path, *args: str, begin: str | None = None) -> Done:
    """To the end of the search, and of the program."""
    program = build("cramped")
    commands = [begin or start(), "run", REPORT, "darc status", "continue", EXIT]
    done = debug(folder, program, args, commands)
    assert done.report is not None, done.gdb
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb
    return done


def sites(done: Done) -> list[tuple[str, str, str]]:
    assert done.report is not None
    found = done.report["program"]["sites"]
    return [(s["function"], s["state"], s["why"]) for s in found if s["state"] != "instrumented"]


@IN_BOTH
def test_breakpoints_take_over(tmp_path: Path) -> None:
    """Where the path would have ended, and below. Nothing of them is left."""
    done = run(tmp_path, "800")
    assert done.paths == [PATH], done.gdb
    assert done.report is not None
    assert done.report["status"] == "root cause found"
    assert done.report["probes"] == "pad"
    assert sites(done) == [("step", "fell back", NO_PAD)]
    assert "breakpoints time 1 of the calls of step" in done.gdb


def test_pads_alone(tmp_path: Path) -> None:
    """Asked for, they stay alone: the path ends above the call, and says of it."""
    done = run(tmp_path, "800", begin=start(more="--probes pad"))
    assert done.paths == [CUT_OFF], done.gdb
    assert sites(done) == [("step", "not possible", NO_PAD)]
    assert "'--probes breakpoint' can time them" in done.gdb


def test_short_calls(tmp_path: Path) -> None:
    """A hit would be longer."""
    done = run(tmp_path, "4000", "100", begin=start(">100us", 1000))
    assert done.paths == [CUT_OFF], done.gdb
    assert "darc did not by itself: it takes less than 2 ms" in done.gdb


def test_frequent_operations(tmp_path: Path) -> None:
    """The program would hardly get on."""
    done = run(tmp_path, "60000", "4", "0", "1000", begin=start(">3ms", 6000))
    assert done.paths == [CUT_OFF], done.gdb
    assert "darc did not by itself: handle is called " in done.gdb


def test_call_that_is_hit_too_often(tmp_path: Path) -> None:
    """From outside of f0: it is left alone, and the first answer stands."""
    done = run(tmp_path, "800", "1", "500")
    assert done.paths == [CUT_OFF], done.gdb
    (site,) = sites(done)
    assert site[1:] == ("not possible", f"{NO_PAD}; it is called too often for a breakpoint")


def test_program_that_ends_meanwhile(tmp_path: Path) -> None:
    """What was known before is not lost."""
    done = run(tmp_path, "150")
    assert done.paths == [CUT_OFF], done.gdb
    assert done.report is not None
    assert done.report["status"] == "root cause found"
    assert "calls of it that take no pad were still being timed" in done.gdb


def test_attached_program(tmp_path: Path) -> None:
    """It would not outlive the debugger with breakpoints in it."""
    program = build("cramped")
    running = subprocess.Popen([program, "1000000"], stdout=subprocess.DEVNULL)
    try:
        commands = [f"attach {running.pid}", start(), "continue", REPORT, "darc status", "detach"]
        done = debug(tmp_path, program, (), commands)
        assert done.paths == [CUT_OFF], done.gdb
        assert "darc did not by itself: the program was attached to: if" in done.gdb
        assert running.poll() is None
    finally:
        running.kill()
        running.wait()


CLEANING = """
#include <stdexcept>
#include <stdio.h>
#include <stdlib.h>

struct Guard {
    int &held;
    explicit Guard(int &held) : held(held) { held++; }
    ~Guard() { held--; }
};

static volatile unsigned spun;

__attribute__((noinline)) void check(unsigned op)
{
    if (op == ~0u)
        throw std::runtime_error("never");
}

extern "C" __attribute__((noinline)) void handle(unsigned op)
{
    static int held;
    Guard guard(held);
    check(op);
    for (unsigned i = 0; i < (op % 16 ? 100 : 3000000); i++)
        spun = spun + i;
}

int main(int argc, char **argv)
{
    for (unsigned op = 0; op < 400; op++)
        handle(op);
    puts("done");
    return 0;
}
"""


def test_calls_that_have_not_run_take_no_time(tmp_path: Path) -> None:
    """What unwinds the stack takes no pad; but it ends its caller, and was made in no call of that
    which has returned."""
    source, program = tmp_path / "cleaning.cpp", tmp_path / "cleaning"
    source.write_text(CLEANING)
    subprocess.run(["g++", "-O1", "-g", str(source), "-o", str(program)], check=True, timeout=60)
    commands = ["darc start handle --peak last --start-ops 100 --decision-ops 6", "run", REPORT]
    done = debug(tmp_path, program, (), [*commands, "darc status", "darc tree"])
    assert done.paths == [("handle",)], done.gdb
    assert ("handle", "not possible", "it walks the stack") in sites(done)
    assert "may be theirs" not in done.gdb


def test_a_chain_of_tail_calls_that_is_too_long_is_told(tmp_path: Path) -> None:
    begin = "darc start whole --peak last --start-ops 1000 --probes pad"
    done = debug(tmp_path, build("filters"), ("40000", "whole"), [begin, "run", REPORT])
    assert "filter_12 itself (1 of its calls could not be timed" in done.gdb
    assert "more than 12 tail calls lead on in one frame" in done.gdb
