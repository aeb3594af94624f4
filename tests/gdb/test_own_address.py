"""A function whose first instructions take their own address gets that, wherever they are run
(``fixtures/hazards/ownaddress.c``): a handler that installs itself anew is in the program when
darc is not any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.debugger import IN_LLDB_AT_NIGHT, REPORT, debug
from tests.kills import programs as hazards

OWN = ("self_first", "self_next", "self_later", "rearm")


@IN_LLDB_AT_NIGHT
@pytest.mark.parametrize(
    "command", ["darc profile ownaddress!*", "darc start rearm", "darc start self_next"]
)
def test_a_function_that_takes_its_own_address(command: str, tmp_path: Path) -> None:
    commands = [f"{command} --time 1s" if "profile" in command else f"{command} --max-time 2s"]
    with hazards.running("ownaddress", tmp_path) as program:
        options = ["-p", str(program.pid)]
        done = debug(tmp_path, None, (), [*commands, "continue", REPORT], options=options)
        hazards.wait_until_let_go(program.pid)
        program.check()
        program.finish()
    assert done.report is not None, done.gdb
    if done.report["set"] is not None:
        rows = done.report["set"]["functions"]
        assert set(OWN) <= {row["function"] for row in rows if row["calls"]}, done.gdb
