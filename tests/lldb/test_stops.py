"""What the user sees in lldb at stops of their own: the program as if no pad were there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import REPORT, undisturbed
from tests.lldb.runner import EXIT, TOOLS, debug, mark


@pytest.fixture(scope="module")
def program() -> Path:
    return build("mixture")


def frames(text: str) -> list[str]:
    """The functions of a backtrace, innermost first, without addresses and arguments."""
    return re.findall(r"frame #\d+: 0x\w+ (\S+?)(?:\(|\s|$)", text)


@pytest.mark.parametrize("place", ["write_out", "usleep", "clock_nanosleep"])
def test_backtrace_inside_timed_calls(place: str, program: Path, tmp_path: Path) -> None:
    """The functions are those that lldb shows alone."""
    once = "breakpoint set -o true -n"
    stop = [f"{once} write_out", "continue"]
    if place != "write_out":
        stop += [f"{once} {place}", "continue"]
    look = [mark("bt"), "bt", mark("tree")]
    begin = ["darc start handle --start-ops 1900", "run", "darc peak >1ms"]
    probed = debug(tmp_path, program, ("20000",), [*begin, *stop, *look, "darc tree"])
    assert "usleep" in probed.section("tree"), "no probe stood that deep"
    plain = debug(tmp_path, program, ("20000",), [f"{once} main", "run", *stop, *look], plain=True)
    found = frames(probed.section("bt"))
    assert found == frames(plain.section("bt"))
    assert len(found) >= 4


def test_stepping_at_timed_calls(program: Path, tmp_path: Path) -> None:
    """Over, out of and into timed calls: the user lands where lldb alone lands."""
    once = "breakpoint set -o true -n"
    steps = ["next", "next", "finish", "bt", "step", "bt"]
    look = [f"{once} flush", mark("steps"), "continue", *steps, mark("end")]
    begin = ["darc start handle --start-ops 1900", "run", "darc peak >1ms"]
    probed = debug(tmp_path, program, ("20000",), [*begin, *look])
    plain = debug(tmp_path, program, ("20000",), [f"{once} main", "run", *look], plain=True)
    assert frames(probed.section("steps")) == frames(plain.section("steps"))


@pytest.mark.parametrize("function", ["handle", "flush", "write_out"])
def test_breakpoints_of_the_user(function: str, program: Path, tmp_path: Path) -> None:
    """Set while probes are in the program, also where a probe stands: they stop, and the program
    computes what it always does."""
    commands = [
        *("darc start handle --start-ops 1900", "run", "darc peak >1ms"),
        *(f"breakpoint set -n {function}", "continue", mark("bt"), "bt 1", mark("end")),
        *("continue", "breakpoint disable", "continue", REPORT, "continue"),
    ]
    done = debug(tmp_path, program, ("20000",), commands)
    assert f"mixture`{function}" in done.section("bt")
    assert done.report is not None, done.gdb
    assert done.output == undisturbed(program, ("20000",))[1]


def test_the_user_breaks_in_a_thread(tmp_path: Path) -> None:
    """No frame of any thread is in the agent or a pad, or without a name."""
    commands = ["darc start handle --peak >700us --start-ops 300"]
    for i in range(4):
        stop = ["breakpoint set -o true -n store", "continue" if i else "run"]
        commands += [*stop, mark(f"bt{i}"), "thread backtrace all", mark("x")]
    done = debug(tmp_path, build("threads"), ("32000",), commands)
    for i in range(4):
        text = done.section(f"bt{i}")
        assert "store" in text
        for line in text.splitlines():
            assert not re.search(r"frame #\d+: 0x\w+\s*$", line), text


def test_calls_that_all_end_by_an_exception(tmp_path: Path) -> None:
    """The thread that has told the debugger stands in the program's own code, at each stop, and
    goes on from there as it would."""
    program, arguments = build("throwing"), ("30000", "1", "all")
    choose = ["darc start handle --start-ops 1000", "run", mark("bt"), "bt", mark("on")]
    commands = [*choose, "darc peak >300us", "continue", mark("found"), "bt", mark("end"), REPORT]
    done = debug(tmp_path, program, arguments, [*commands, "continue", EXIT])
    for stop in ("bt", "found"):
        names = frames(done.section(stop))
        assert names, done.gdb
        assert not any("darc_" in name or "agent" in name for name in names), done.gdb
    assert ("handle", "parse", "burn") in done.paths, done.gdb
    assert (done.program_status, done.output) == undisturbed(program, arguments)


def test_a_debugger_that_takes_its_time(program: Path, tmp_path: Path) -> None:
    """As on a busy machine: nothing of darc's signals is left when the search has ended."""
    commands = [TOOLS, "slow-decisions", "darc start handle --peak >1ms", "run", REPORT]
    done = debug(tmp_path, program, ("20000",), [*commands, "continue", EXIT])
    assert done.report is not None, done.gdb
    assert done.report["status"] == "root cause found"
    assert "SIGURG" not in done.gdb
    assert (done.program_status, done.output) == undisturbed(program, ("20000",))


CALLBACK = """
import threading
def look(frame, location, extra, internal):
    threading.Event().wait(0.5)
    location.GetBreakpoint().SetEnabled(False)
    return False
"""


def test_a_callback_that_takes_its_time(program: Path, tmp_path: Path) -> None:
    """The program stands still for it, but not for the user: the probes stay in."""
    (tmp_path / "callback.py").write_text(CALLBACK)
    commands = [
        f"command script import {tmp_path / 'callback.py'}",
        *("breakpoint set -n write_out", "breakpoint command add -F callback.look"),
        *("darc start handle --peak >1ms --start-ops 1000", "run", REPORT, "continue", EXIT),
    ]
    done = debug(tmp_path, program, ("20000",), commands)
    assert done.report is not None, done.gdb
    assert done.report["status"] == "root cause found"
    assert (done.program_status, done.output) == undisturbed(program, ("20000",))
