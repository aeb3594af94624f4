"""Calls that have room for a short jump alone, which goes through other code of the program's."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import (
    EXIT,
    IN_LLDB_AT_NIGHT,
    REPORT,
    attempt,
    debug,
    gdb_alone,
    mark,
    undisturbed,
)

pytestmark = IN_LLDB_AT_NIGHT

START = "darc start handle --peak >150us"
THREADS = ("40000", "2")
STOPS = 25


def test_call_that_is_jumped_to(tmp_path: Path) -> None:
    """Other threads run the code that it is led through, all the time."""
    program = build("shortjump")
    done = debug(tmp_path, program, THREADS, [START, "run", REPORT, "continue", EXIT])
    assert done.paths == [("handle", "step", "work", "burn")], done.gdb
    assert (done.program_status, done.output) == undisturbed(program, THREADS), done.gdb


@pytest.mark.parametrize("function", ["serve", "handle"])
def test_restartable_sequences(function: str, tmp_path: Path) -> None:
    """None is altered: a call behind one is timed otherwise, a function that begins with one is
    refused."""
    program, args = build("sequence"), ("20000",)
    commands = ["darc start serve --peak last", "run", REPORT]
    if function == "handle":
        commands = ["break work", "run", "delete", attempt("darc start handle")]
    done = debug(tmp_path, program, args, [*commands, "continue", EXIT])
    if function == "serve":
        assert done.paths == [("serve", "work", "burn")], done.gdb
    else:
        assert "cannot time handle: it begins with a restartable sequence (rseq)" in done.gdb
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb


@gdb_alone("lldb has other words for the backtraces of all threads")
def test_threads_in_the_code_that_it_is_led_through(tmp_path: Path) -> None:
    """At every stop they stand in it, and their callers are known."""
    program = build("shortjump")
    commands = [
        "darc start handle --start-ops 300 --decision-ops 1000000",
        "run",
        "darc peak >100us",
    ]
    for i in range(STOPS):
        commands += ["tbreak burn", "continue", mark(f"bt{i}"), "thread apply all bt", mark("x")]
    done = debug(tmp_path, program, THREADS, [*commands, "delete", "continue", EXIT])
    for i in range(STOPS):
        text = done.section(f"bt{i}")
        assert text.count("step") >= 3, text
        assert text.count(" in loop ") + text.count("`loop") == 2, text
        assert "??" not in text, text
        assert "darc_" not in text, text
    assert (done.program_status, done.output) == undisturbed(program, THREADS), done.gdb
