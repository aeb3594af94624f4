"""Programs with code whose runtime finds its frames by return addresses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import EXIT, IN_BOTH, IN_LLDB_AT_NIGHT, REPORT, debug, undisturbed

pytestmark = IN_LLDB_AT_NIGHT

FOREIGN = "calls were not timed: they came from code that was generated"


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_callers_that_are_known_by_their_return_addresses(static: bool, tmp_path: Path) -> None:
    """Those of ordinary code are timed; to the collector the others are as ever."""
    program = build("generated", static=static)
    start = "darc start handle --peak >150us"
    commands = [start, "run", REPORT, "darc report", "continue", EXIT]
    done = debug(tmp_path, program, ("6000",), commands)
    assert (done.program_status, done.output) == undisturbed(program, ("6000",)), done.gdb
    assert ("handle", "step", "burn") in done.paths, done.gdb
    noted = re.search(rf"note: (\d+) {FOREIGN}", done.gdb)
    assert noted is not None, done.gdb
    assert int(noted[1]) > 100, done.gdb


@IN_BOTH
def test_call_from_generated_code_of_a_file(tmp_path: Path) -> None:
    """f0 is such code itself: what it calls is left alone."""
    program = build("generated")
    start = "darc start through_blob --peak >150us"
    done = debug(tmp_path, program, ("6000",), [start, "run", REPORT, "continue", EXIT])
    assert (done.program_status, done.output) == undisturbed(program, ("6000",)), done.gdb
    assert done.report is not None
    whys = [site["why"] for site in done.report["program"]["sites"]]
    assert whys == ["its code is generated: the runtime may look for its return addresses"]
