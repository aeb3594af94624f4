"""Profiles for a time instead of a number of calls, and what is told of rare calls."""

from __future__ import annotations

import re
from pathlib import Path

from fixtures.build import build
from tests import debugger

SLOW = ("handle", "flush", "write_out", "usleep", "nanosleep", "clock_nanosleep")
DARC_STATUS = "darc status"


@debugger.IN_BOTH
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


@debugger.IN_BOTH
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


@debugger.IN_BOTH
def test_a_time_in_which_nothing_was_called_is_doubled(tmp_path: Path) -> None:
    done = debugger.debug(
        tmp_path,
        build("mixture"),
        ("2000000",),
        ["darc start handle --start-time 1us", "run", "darc histogram", "kill"],
    )
    assert re.search(r"handle: \d+ calls?", done.gdb), done.gdb
