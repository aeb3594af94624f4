"""Stops of the user's that lldb goes on from by itself: conditions, commands, callbacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ticking
from tests.debugger import REPORT, undisturbed
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
