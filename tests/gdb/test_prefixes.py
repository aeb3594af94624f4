"""Calls and jumps that prefixes without a meaning make longer: the program computes what it
computes, and its slow function is found (``fixtures/hazards/prefixes.c``)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.debugger import IN_LLDB_AT_NIGHT, REPORT, debug
from tests.kills import programs as hazards

START = "darc start handle --peak last --start-ops 1000"


@IN_LLDB_AT_NIGHT
def test_every_call_is_timed_and_leads_where_it_did(tmp_path: Path) -> None:
    """But the one whose prefix says that it may lead anywhere (``notrack``)."""
    with hazards.running("prefixes", tmp_path) as program:
        options = ["-p", str(program.pid)]
        done = debug(tmp_path, None, (), [START, "continue", REPORT, "darc stop"], options=options)
        hazards.wait_until_let_go(program.pid)
        program.check()
        program.finish()
    assert done.paths == [("handle", "work", "burn")], done.gdb
    assert done.report is not None
    timed = Counter(child["function"] for child in done.report["ftree"]["children"])
    assert timed == {"called": 7, "work": 1, "finish": 1}
