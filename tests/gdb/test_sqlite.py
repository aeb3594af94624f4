"""A real program under a real gdb: which calls make some of SQLite's steps slow."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.sqlite.build import BUILT, SourceUnavailableError, build
from tests import debugger

pytestmark = debugger.IN_LLDB_AT_NIGHT


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return build()
    except SourceUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def folder(program: Path) -> Iterator[Path]:
    """Beside the program, as temporary folders are often in memory, where nothing is waited for."""
    with tempfile.TemporaryDirectory(dir=BUILT) as name:
        yield Path(name)


@debugger.NEWEST_AT_NIGHT
@pytest.mark.parametrize(
    ("journal", "functions"),
    [("delete", {"syncJournal"}), ("wal", {"pagerWalFrames", "sqlite3WalFrames"})],
)
def test_slow_steps_are_commits_that_sync(
    program: Path, folder: Path, journal: str, functions: set[str]
) -> None:
    # On a busy machine the last peak may hold few of the commits: there are more than enough.
    done = debugger.debug(
        folder,
        program,
        ("10000000", str(folder), journal),
        ["darc start sqlite3_step --peak last --start-ops 8000", "run", debugger.REPORT, "kill"],
    )
    assert done.report is not None, done.gdb
    assert done.report["status"] == "root cause found", done.gdb
    assert done.paths, done.gdb
    for path in done.paths:
        assert path[:3] == ("sqlite3_step", "sqlite3Step", "sqlite3VdbeExec")
        assert {"sqlite3VdbeHalt", "vdbeCommit", "sqlite3PagerCommitPhaseOne"} <= set(path)
        assert functions <= set(path)
        assert path[-3:-1] == ("unixSync", "full_fsync")
        assert path[-1] in ("fsync", "fdatasync")
    # A disk is waited for; where there is none, in memory, the call runs.
    assert {path["cause"] for path in done.root_causes} <= {"function", "blocked"}


@pytest.mark.long  # one more of SQLite is built for it
def test_more_callees_ahead_than_the_agent_can_hold(folder: Path) -> None:
    """As it is shipped: one function has hundreds of them, many behind pointers. What is looked
    ahead at waits for its turn."""
    try:
        optimised = build("-O2")
    except SourceUnavailableError as error:
        pytest.skip(str(error))
    start = "darc start sqlite3_step --peak last --start-ops 8000"
    commands = [start, "run", debugger.REPORT, "kill"]
    done = debugger.debug(folder, optimised, ("10000000", str(folder)), commands)
    assert done.report is not None, done.gdb
    assert done.report["status"] == "root cause found", done.gdb
    for path in done.paths:
        assert {"sqlite3VdbeHalt", "sqlite3PagerCommitPhaseOne"} <= set(path), done.gdb


def test_the_database_does_not_notice(program: Path, folder: Path) -> None:
    args = ("20000", str(folder))
    done = debugger.debug(
        folder,
        program,
        args,
        [
            "darc start sqlite3_step --peak last --start-ops 2000 --on-finish continue",
            "run",
            debugger.EXIT,
        ],
    )
    assert (done.program_status, done.output) == debugger.undisturbed(program, args), done.gdb
