"""Fibers that a timer takes the processor from, and which rest wherever that was: also in a pad, or
in the agent (``fixtures/hazards/fibers.h``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.debugger import IN_BOTH, IN_LLDB_AT_NIGHT, debug
from tests.kills import programs as hazards

AGAIN = 3
"""Analyses, at the end of which some fiber rests in what they leave, as a rule."""

QUIET = "handle SIGALRM nostop noprint pass"


@IN_BOTH
@pytest.mark.parametrize("name", ["sharedfibers", "framefibers"])
@pytest.mark.parametrize(
    "what",
    ["profile handle lookup --time 1s", "start handle --peak last --start-ops 300 --max-time 4s"],
    ids=["profile", "start"],
)
def test_what_a_fiber_rests_in_stays(name: str, what: str, tmp_path: Path) -> None:
    analyse_unharmed(name, what, tmp_path)


@IN_BOTH
def test_what_a_fiber_rests_in_stays_where_another_frame_has_its_stack(tmp_path: Path) -> None:
    """The thread sleeps below that frame, whose words are not left over."""
    analyse_unharmed("homefibers", "profile handle lookup --time 1s", tmp_path)


def analyse_unharmed(name: str, what: str, folder: Path) -> None:
    """A program is attached to, and analysed again and again: it is right, and all is out."""
    with hazards.running(name, folder) as program:
        commands = [QUIET, *[f"darc {what}", "continue", "darc stop"] * AGAIN]
        done = debug(folder, None, (), commands, options=["-p", str(program.pid)])
        hazards.wait_until_let_go(program.pid)
        assert "every probe is out" in done.gdb
        program.check()
        assert not program.altered()
        program.finish()


@IN_LLDB_AT_NIGHT
@pytest.mark.parametrize(
    "what",
    [
        "profile handle lookup --time 2s",
        "start handle --peak last --start-ops 999999 --max-time 2s",
    ],
    ids=["profile", "start"],
)
def test_a_handler_comes_back_among_f0s_first_instructions(what: str, tmp_path: Path) -> None:
    """It had come before these were written over, and takes its time; as a fiber does that rests
    there."""
    with hazards.running("lingers", tmp_path) as program:
        commands = [QUIET, *[f"darc {what}", "continue", "darc stop"] * 2 * AGAIN]
        done = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
        hazards.wait_until_let_go(program.pid)
        assert "every probe is out" in done.gdb
        program.check()
        assert not program.altered()
        program.finish()


@IN_LLDB_AT_NIGHT
@pytest.mark.parametrize(
    "what",
    ["profile handle lookup --time 2s", "start handle --peak last --start-ops 9999 --max-time 3s"],
    ids=["profile", "start"],
)
def test_a_fiber_throws_on_another_thread_than_it_has_begun_on(what: str, tmp_path: Path) -> None:
    """What one unwinder has hidden from itself, the other thread leaves alone."""
    with hazards.running("movingthrows", tmp_path) as program:
        commands = [f"darc {what}", "continue", "darc stop"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
        hazards.wait_until_let_go(program.pid)
        assert "every probe is out" in done.gdb
        program.check()
        assert not program.altered()
        program.finish()
