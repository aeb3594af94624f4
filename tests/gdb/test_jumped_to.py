"""What looks like a function, and is jumped to: on top of the stack is anything but a caller's
address there. The program computes what it computes (``fixtures/hazards/jumpedto.c``)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from darc.code.labels import LABEL
from tests.debugger import IN_LLDB_AT_NIGHT, REPORT, Done, debug
from tests.kills import programs as hazards

JUMPS = "code jumped there"
CALLED = {"called_near", "called_far", "called_first", "bare_function"}
THIN = {"thin_near", "thin_far", "thin_first"}


def attached(folder: Path, *commands: str, strip: bool = False) -> Done:
    """The program runs on unhurt under these commands, behind an attach."""
    with hazards.running("jumpedto", folder, strip="all" if strip else None) as program:
        done = debug(folder, None, (), commands, options=["-p", str(program.pid)])
        hazards.wait_until_let_go(program.pid)
        program.check()
        program.finish()
    assert "Traceback" not in done.gdb
    return done


def left_out(done: Done) -> dict[str, str]:
    """Why functions of a set were not timed, by name."""
    assert done.report is not None, done.gdb
    return {row["function"]: row["why"] for row in done.report["set"]["left_out"]}


def timed(done: Done) -> set[str]:
    """Those of which calls were measured."""
    assert done.report is not None, done.gdb
    return {row["function"] for row in done.report["set"]["functions"] if row["calls"]}


@IN_LLDB_AT_NIGHT
def test_labels_and_data_are_left_out_of_a_set(tmp_path: Path) -> None:
    """Also what has a function's type, or its frame information, and is jumped to. Those that are
    called are timed, whatever stands now where the call was: darc's own jumps, too."""
    done = attached(tmp_path, "darc profile * --time 1s", "continue", REPORT, "darc stop")
    why = left_out(done)
    labels = {name for name in why if why[name] == LABEL}
    data = {"bare_consts", "typed_consts", "framed_consts"}
    assert labels == data | {"bare_inc", "bare_end", "inside"}
    jumped = {name for name in why if JUMPS in why[name]}
    assert {"typed_inc", "framed_inc"} <= jumped
    assert CALLED | THIN | {"bare_run", "typed_run", "framed_run"} <= timed(done)
    assert re.search(rf"note: \d+ calls were not timed: {JUMPS}", done.gdb)


@pytest.mark.parametrize("strip", [False, True], ids=["symbols", "stripped"])
def test_the_slow_function_of_such_a_program_is_found(strip: bool, tmp_path: Path) -> None:
    done = attached(tmp_path, "darc why --time 10s", "continue", REPORT, "darc stop", strip=strip)
    assert done.report is not None, done.gdb
    assert "why: found" in done.gdb
    if not strip:
        assert done.paths, done.gdb
        assert done.paths[0][-1] in ("handle", "burn")


def test_a_label_in_a_function_is_refused(tmp_path: Path) -> None:
    done = attached(tmp_path, "darc start inside")
    assert f"cannot time inside: {LABEL}" in done.gdb


@IN_LLDB_AT_NIGHT
@pytest.mark.parametrize("name", ["bare_inc", "typed_inc"])
@pytest.mark.parametrize("probes", ["pad", "breakpoint"])
def test_nothing_is_timed_where_code_jumps(probes: str, name: str, tmp_path: Path) -> None:
    """Not by a breakpoint either, which would stand in what the stack tells of there."""
    start = f"darc start {name} --probes {probes} --max-time 2s --start-time 2s"
    done = attached(tmp_path, start, "continue", REPORT, "darc report", "darc stop")
    assert re.search(rf"\d+ calls were not timed: {JUMPS}", done.gdb), done.gdb
