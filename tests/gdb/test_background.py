"""gdb is to let a program go that runs in the background (``continue &``)."""

from __future__ import annotations

from pathlib import Path

from tests.debugger import debug, mark
from tests.kills import programs as hazards

START = "darc start handle --peak last --start-time 60s"


def test_gdb_is_to_leave_a_program_that_runs(tmp_path: Path) -> None:
    """Probes come out of one that stands still alone: so gdb does not let it go, and where it has
    to, that is told. They sleep, and whoever comes next takes them out."""
    with hazards.running("locks", tmp_path) as program:
        commands = [START, "continue &", "detach", mark("quit"), "quit", mark("end")]
        left = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
        hazards.wait_until_let_go(program.pid)
        refused = "probes come out only while it stands still: type 'interrupt' first"
        assert refused in left.gdb.partition("quit")[0], left.gdb
        assert f"{refused}, or 'quit' again" in left.section("quit"), left.gdb
        assert "the probes in it sleep" in left.section("end"), left.gdb
        program.check()
        assert program.altered()
        done = debug(tmp_path, None, (), ["darc stop"], options=["-p", str(program.pid)])
        hazards.wait_until_let_go(program.pid)
        assert "taken out" in done.gdb
        program.check()
        assert not program.altered()
        program.finish()
