"""Profiles for a time instead of a number of calls, and what is told of rare calls."""

from __future__ import annotations

import re
from pathlib import Path

from fixtures.build import build
from tests import debugger
from tests.gdb.programs import compiled
from tests.permission import needs_permission

SLOW = ("handle", "flush", "write_out", "usleep", "nanosleep", "clock_nanosleep")
DARC_STATUS = "darc status"


@debugger.IN_LLDB_AT_NIGHT
def test_a_profile_takes_the_time_that_it_is_given(tmp_path: Path) -> None:
    """Not 100 calls: the slow ones, 1 of 64, would hardly be among them."""
    done = debugger.debug(
        tmp_path,
        build("mixture"),
        ("2000000",),
        [
            "darc start handle --start-time 700ms",
            DARC_STATUS,
            "run",
            "darc histogram",
            "darc peak '>1ms'",
            "continue",
            debugger.REPORT,
            "kill",
        ],
    )
    assert "the profile takes 0.7s" in done.gdb
    assert "choose a peak" in done.gdb
    calls = re.search(r"handle: (\d+) calls", done.gdb)
    assert calls is not None
    assert int(calls[1]) > 100
    assert done.paths == [SLOW], done.gdb


@debugger.IN_LLDB_AT_NIGHT
def test_a_number_of_calls_ends_a_profile_that_would_take_longer(tmp_path: Path) -> None:
    done = debugger.debug(
        tmp_path,
        build("mixture"),
        ("2000000",),
        [
            "darc start handle --start-time 1h --start-ops 150",
            DARC_STATUS,
            "run",
            "darc histogram",
            "kill",
        ],
    )
    assert "the profile takes 150 calls or 3600s" in done.gdb
    assert re.search(r"handle: 1[5-9]\d calls|handle: 2[01]\d calls", done.gdb), done.gdb


@debugger.IN_LLDB_AT_NIGHT
def test_a_time_in_which_nothing_was_called_is_doubled(tmp_path: Path) -> None:
    done = debugger.debug(
        tmp_path,
        build("mixture"),
        ("2000000",),
        ["darc start handle --start-time 1us", "run", "darc histogram", "kill"],
    )
    assert re.search(r"handle: \d+ calls?", done.gdb), done.gdb


RARE = """
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sum;
NOINLINE void deeper(void) { usleep(8000); sum++; }
NOINLINE void deep(void) { deeper(); sum++; }
NOINLINE void handle(unsigned op) { if (op % 200 == 0) deep(); sum++; }
int main(void) { for (unsigned op = 1; op < 1000000; op++) { handle(op); usleep(700); } }
"""
"""Of its calls seven in a second are slow: too few for a closing round."""


@needs_permission
@debugger.IN_LLDB_AT_NIGHT
def test_calls_that_were_not_timed_any_more_put_no_path_in_doubt(tmp_path: Path) -> None:
    """The ops that are kept are those of the deepest level."""
    start = "darc start handle --peak >4ms --start-ops 600 --decision-ops 10 --lookahead 1"
    program = compiled(tmp_path, RARE)
    done = debugger.debug(tmp_path, program, (), [start, "run", debugger.REPORT, "kill"])
    (path,) = done.paths
    assert path[:3] == ("handle", "deep", "deeper"), done.gdb
    assert "is no root cause" not in done.gdb, done.gdb


@debugger.IN_LLDB_AT_NIGHT
def test_a_hundred_calls_that_are_all_alike_are_not_all_that_is_looked_at(tmp_path: Path) -> None:
    """They come in a tenth of a second, and a slow one five times in a second."""
    start = "darc start handle --peak last --decision-ops 5"
    program = build("periodic")
    done = debugger.debug(tmp_path, program, ("100",), [start, "run", "kill"])
    # A busy machine has made some of the first hundred slow: a peak of theirs, or a tail.
    assert "these are all its calls" not in done.gdb, done.gdb


@debugger.IN_BOTH
def test_the_profile_grows_while_the_search_runs(tmp_path: Path) -> None:
    done = debugger.debug(
        tmp_path,
        build("mixture"),
        ("2000000",),
        ["darc start handle --start-ops 500 --peak '>1ms'", "run", debugger.REPORT, "kill"],
    )
    assert done.paths == [SLOW], done.gdb
    assert done.report is not None
    profile = done.report["profile"]
    assert profile["count"] == sum(profile["bins"].values())
    # 20 slow calls, 1 of 64, were waited for; all of them are in it.
    assert profile["count"] > 1000
    assert sum(peak["count"] for peak in done.report["peaks"]) > 1000
