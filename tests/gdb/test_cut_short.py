"""Calls that the user's own stops come in the middle of, and that go on step by step from there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.build import build
from tests import debugger

TOLD = r"(\d+) calls were not measured: the program stopped for you in the middle"


@pytest.mark.parametrize("probes", ["pad", "breakpoint"])
def test_calls_that_stops_have_cut_short_are_told(probes: str, tmp_path: Path) -> None:
    """Every slow call is stopped in: none is in the peak, and it is said why."""
    commands = [
        f"darc start handle --peak '>1ms' --start-ops 100 --probes {probes}",
        "break write_out",
        "run",
        *["next", "continue"] * 5,
        "next",
        "darc report",
        "kill",
    ]
    done = debugger.debug(tmp_path, build("mixture"), ("2000000",), commands)
    found = re.search(TOLD, " ".join(done.gdb.split()))
    assert found is not None, done.gdb
    assert int(found[1]) == 6


@debugger.IN_BOTH
def test_a_search_that_stops_starve_says_so(tmp_path: Path) -> None:
    commands = [
        "darc start handle --start-ops 200",
        "run",
        "darc peak '>3ms'",
        "break write_out",
        *["continue", "next"] * 8,
        "darc report",
        "kill",
    ]
    done = debugger.debug(tmp_path, build("mixture"), ("2000000",), commands)
    text = " ".join(done.gdb.split())
    found = re.search(f"{TOLD}, more than the [0-7] in the peak that were: with fewer stops", text)
    assert found is not None, done.gdb
    assert int(found[1]) == 8


def test_no_word_of_it_where_no_call_is_stopped_in(tmp_path: Path) -> None:
    commands = ["darc start handle --peak '>1ms'", "run", "darc report", "kill"]
    done = debugger.debug(tmp_path, build("mixture"), ("2000000",), commands)
    assert "root cause of" in done.gdb
    assert "in the middle" not in done.gdb
