"""Stops of the user's that lldb goes on from by itself: conditions, commands, callbacks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import ticking
from tests.debugger import NEWEST, REPORT, undisturbed
from tests.lldb.runner import EXIT, debug

NEVER = """
def never(frame, location, extra, internal):
    return False
"""

KINDS = {
    "condition": ("-c 'op == 1000000'", []),
    "auto-continue": ("-G true", ["breakpoint command add -o 'frame variable op'"]),
    "commands": ("", ["breakpoint command add -o 'continue'"]),
    "callback": ("", ["breakpoint command add -F never.never"]),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ticking.build(tmp_path_factory.mktemp("ticking"))


@pytest.mark.parametrize("kind", KINDS)
def test_operations_that_stops_come_in_are_measured(
    kind: str, program: Path, tmp_path: Path
) -> None:
    """Every long operation is stopped in, five times: the search has its votes all the same."""
    (tmp_path / "never.py").write_text(NEVER)
    options, commands = KINDS[kind]
    begin = [f"command script import {tmp_path / 'never.py'}"]
    begin += [f"breakpoint set -n tick {options}", *commands, ticking.START, "run"]
    end = [REPORT, "breakpoint disable 1", "continue", EXIT]
    done = debug(tmp_path, program, (ticking.OPERATIONS,), [*begin, *end])
    assert ticking.PATH in done.paths, done.gdb  # beside tick, whose hits take their time
    assert (done.program_status, done.output) == undisturbed(program, (ticking.OPERATIONS,))


def test_operations_that_are_gone_on_from_by_hand(program: Path, tmp_path: Path) -> None:
    """The same where the program stops for the user, who does no more than let it go on."""
    begin = ["breakpoint set -n tick", ticking.START, "run", *["continue"] * 100]
    end = [REPORT, "breakpoint disable 1", "continue", "continue", EXIT]
    done = debug(tmp_path, program, (ticking.OPERATIONS,), [*begin, *end])
    assert ticking.PATH in done.paths, done.gdb
    assert (done.program_status, done.output) == undisturbed(program, (ticking.OPERATIONS,))


WATCHED = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

volatile long written;
static uint64_t checksum;

NOINLINE void compute(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        checksum = checksum * 2862933555777941757u + 3037000493u;
}

NOINLINE void write_often(unsigned op)
{
    for (int i = 0; i < 20; i++)
        written = op + i;
}

NOINLINE void serve(unsigned op)
{
    if (op % 4 == 0)
        write_often(op);
    compute(50000);
}

int main(int argc, char **argv)
{
    unsigned ops = strtoul(argv[1], NULL, 0);

    for (unsigned op = 0; op < ops; op++)
        serve(op);
    printf("%u operations, checksum %llx\\n", ops, (unsigned long long)checksum);
    return 0;
}
"""
"""Some operations write a variable again and again, and wait for nothing."""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watched")
    (folder / "watched.c").write_text(WATCHED)
    subprocess.run(["gcc", "-O2", "-g", "-o", "watched", "watched.c"], cwd=folder, check=True)
    return folder / "watched"


TO_THE_WATCHED = [
    "breakpoint set -n main",
    "run",
    "breakpoint delete 1",
    "watchpoint set variable written",
]


def test_a_watchpoint_that_lldb_goes_on_from_is_no_wait(watched: Path, tmp_path: Path) -> None:
    """Its condition never holds: lldb's server sleeps at each stop while lldb looks at that."""
    begin = [*TO_THE_WATCHED, "watchpoint modify -c '0 == 1' 1"]
    start = "darc start serve --peak last --start-ops 60 --decision-ops 10"
    done = debug(tmp_path, watched, ("600",), [*begin, start, "continue", REPORT, "kill"])
    assert "cause: the debugger's stops in serve, nothing of the program's" in done.gdb, done.gdb
    assert "cause: blocked in" not in done.gdb, done.gdb


@pytest.mark.debuggers(NEWEST)
def test_a_watchpoint_with_commands_that_continue_is_no_ctrl_c(
    watched: Path, tmp_path: Path
) -> None:
    """As lldb goes on from one, it knows of no thread any more why it stopped; where that was
    taken for the user's Ctrl-C, darc took its probes out while the program ran."""
    begin = [*TO_THE_WATCHED, "watchpoint command add -o continue 1"]
    start = "darc start serve --peak last --start-ops 100 --decision-ops 30"
    done = debug(tmp_path, watched, ("2000",), [*begin, start, "continue", REPORT, "kill"])
    assert "cause: the debugger's stops in serve, nothing of the program's" in done.gdb, done.gdb
    for told in ("no program that is stopped", "cannot write memory", "has changed since"):
        assert told not in done.gdb, done.gdb[-4000:]
