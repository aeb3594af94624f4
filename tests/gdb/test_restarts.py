"""A timer's handler that sets a thread back to the beginning of a sequence that it has interrupted
(``fixtures/hazards/restarts.c``): the sequence is not executed elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.debugger import IN_LLDB_AT_NIGHT, REPORT, Done, attempt, debug
from tests.kills import programs as hazards

pytestmark = IN_LLDB_AT_NIGHT

LEFT = "the program's own handler of a signal may set a thread back that it finds there"
QUIET = "handle SIGALRM nostop noprint pass"


def analyse(folder: Path, *commands: str) -> Done:
    """Nothing of what the sequences count is lost."""
    with hazards.running("restarts", folder) as program:
        options = ["-p", str(program.pid)]
        done = debug(folder, None, (), [QUIET, *commands], options=options)
        hazards.wait_until_let_go(program.pid)
        program.check()
        program.finish()
    return done


def timed(done: Done) -> dict[str, str | None]:
    """The functions of a profile, by name: why each is left out, if it is."""
    assert done.report is not None, done.gdb
    own = done.report["set"]
    left = {row["function"]: row["why"] for row in own["left_out"]}
    return {row["function"]: None for row in own["functions"]} | left


PROFILE = "darc profile handle relative plain rest --time 3s"


def test_sequences_stay_where_they_are(tmp_path: Path) -> None:
    done = analyse(tmp_path, PROFILE, "continue", REPORT, "darc stop")
    assert timed(done) == {"handle": LEFT, "relative": None, "plain": None, "rest": None}
    assert "the program handles SIGALRM by a handler in restarts, which may set" in done.gdb


def test_f0_is_refused(tmp_path: Path) -> None:
    done = analyse(tmp_path, attempt("darc start handle --max-time 2s"))
    assert f"cannot time handle: {LEFT}" in done.gdb


@pytest.mark.parametrize("command", ["profile", "start"])
def test_handler_that_comes_late(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked at before the program has it."""
    monkeypatch.setenv("RESTARTS", "late")
    begin = PROFILE if command == "profile" else "darc start handle --max-time 10s"
    done = analyse(tmp_path, begin, "continue", REPORT, "darc stop")
    assert "the program has other handlers of signals from now on, which may set" in done.gdb
    if command == "profile":
        assert timed(done) == {"handle": LEFT, "relative": None, "plain": None, "rest": None}
    else:
        assert f"handle is not timed any more: {LEFT}" in done.gdb


def test_handler_that_only_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of profilers do: nothing is left alone."""
    monkeypatch.setenv("RESTARTS", "reads")
    done = analyse(tmp_path, PROFILE, "continue", REPORT, "darc stop")
    assert set(timed(done).values()) == {None}
    assert "set a thread back" not in done.gdb


def test_walk(tmp_path: Path) -> None:
    analyse(tmp_path, "darc walk --time 5s", "continue", "darc stop")
