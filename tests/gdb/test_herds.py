"""What becomes due while the program stands still is done by all threads at once when it goes on:
that is nothing that the program does by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.build import build_herd
from tests import debugger

LONG_STOPS = (
    "import time, darc.session.session as found; decide = found.Session.decide; "
    "found.Session.decide = lambda session: (time.sleep(0.25), decide(session))[1]"
)
"""As in very large programs, and in such with hundreds of threads: what is due meanwhile is the
whole backlog of more than one period of each thread's timer."""

SLOW = ("handle", "look_up", "usleep", "nanosleep", "clock_nanosleep")


def python(code: str) -> str:
    """The command that runs this in the debugger."""
    return f"{'python' if debugger.current() == debugger.GDB else 'script'} {code}"


@debugger.IN_LLDB_AT_NIGHT
@pytest.mark.parametrize("peak", ["'>2ms'", "last"])
def test_what_stops_have_caused_has_no_vote(peak: str, tmp_path: Path) -> None:
    """A hundred threads want one lock when the program goes on, and at no other time."""
    done = debugger.debug(
        tmp_path,
        build_herd(),
        ("100", "2000"),
        [
            python(LONG_STOPS),
            f"darc start handle --start-ops 2000 --peak {peak}",
            "run",
            debugger.REPORT,
            "kill",
        ],
    )
    assert done.paths == [SLOW], done.gdb
    assert done.report is not None
    assert any("calls were not counted" in note for note in done.report["notes"]), done.report


@debugger.IN_LLDB_AT_NIGHT
def test_what_stops_have_caused_is_in_no_profile(tmp_path: Path) -> None:
    """Of many functions neither: the lock's waits are no tail of the program's. The time that is
    asked for is the time in which calls count."""
    done = debugger.debug(
        tmp_path,
        build_herd(),
        ("100", "2000"),
        [
            "break look_up",
            "run",
            "delete",
            python("import time; time.sleep(0.5)"),
            "darc profile enter_ledger look_up --time 1s",
            "continue",
            debugger.REPORT,
            "kill",
        ],
    )
    assert done.report is not None, done.gdb
    ledger, other = sorted(done.report["set"]["functions"], key=lambda row: row["function"])
    assert (ledger["function"], other["function"]) == ("enter_ledger", "look_up")
    assert ledger["calls"] > 50, done.gdb  # few on a busy machine
    assert ledger["dropped"] > 200, done.gdb  # at most one of each thread spans the stop
