"""A search that is ended from outside: what was found by then is corrected as at its own end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import debugger
from tests.gdb.programs import compiled
from tests.permission import needs_permission

SOURCE = """
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sum;
static unsigned slow;
NOINLINE void wait_here(void)
{
    struct timespec t = {0, 4000000};
    long result = 35; /* nanosleep */

    __asm__ volatile("syscall" : "+a"(result) : "D"(&t), "S"(0) : "rcx", "r11", "memory");
}
NOINLINE void deeper(void) { usleep(4000); sum++; }
NOINLINE void deep(void) { deeper(); sum++; }
NOINLINE void handle(unsigned op)
{
    if (op % 5 == 0 && slow < 45) {
        slow++;
        wait_here();
        deep();
    }
    sum++;
}
NOINLINE void over(void) { sum++; }
int main(int argc, char **argv)
{
    unsigned ops = argc > 1 ? atoi(argv[1]) : 0;

    for (unsigned op = 0; op < ops; op++) {
        handle(op);
        if (slow == 45 && op % 5)
            over();
        usleep(100);
    }
}
"""
"""Of the 45 slow calls ten are the profile's, and twenty decide that both callees are root causes:
one is at its end, and for the other one too few calls are left."""

START = "darc start handle --peak >3ms --start-ops 50 --decision-ops 20 --lookahead 1"

ENDS = {
    "time": ("1000000000", [f"{START} --max-time 8s", "run"]),
    "stop": ("1000000000", [START, "break over", "run", "darc stop"]),
    "end": ("300", [START, "run"]),
}
"""What the program is told, and what is typed."""


@needs_permission
@debugger.IN_LLDB_AT_NIGHT
@pytest.mark.parametrize("end", ENDS)
def test_what_was_found_by_then_is_corrected(end: str, tmp_path: Path) -> None:
    ops, commands = ENDS[end]
    program = compiled(tmp_path, SOURCE)
    done = debugger.debug(tmp_path, program, (ops,), [*commands, debugger.REPORT, "kill"])
    assert done.paths == [("handle", "wait_here")], done.gdb
    assert done.root_causes[0]["cause"] == "blocked", done.gdb
    assert done.root_causes[0]["share"] is not None, done.gdb


@needs_permission
@debugger.IN_LLDB_AT_NIGHT
def test_what_too_few_calls_tell_of_is_not_said_to_have_computed(tmp_path: Path) -> None:
    """The program ends when one of two paths has ended, by five calls: it waited there."""
    program = compiled(tmp_path, SOURCE)
    start = "darc start handle --peak >3ms --start-ops 50 --decision-ops 5 --lookahead 1"
    commands = [start, "run", "darc waits", debugger.REPORT]
    done = debugger.debug(tmp_path, program, ("79",), commands)
    assert ("handle", "wait_here") in done.paths, done.gdb
    told = "whether it ran or waited is not known: the program ended before"
    assert told in done.gdb, done.gdb
    assert "itself" not in done.gdb, done.gdb
    assert "C library" not in done.gdb, done.gdb
