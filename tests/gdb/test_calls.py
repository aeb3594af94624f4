"""What darc has a program do for it, in programs whose signals come all the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.build import build
from tests.code import altered_code
from tests.debugger import REPORT, Done, debug, let_go, server

MODES = ("plain", "stack", "jump", "suspend", "ppoll", "epoll", "sleep", "futex", "pause")
ANALYSE = [
    "darc start handle --peak >400us --start-ops 200 --decision-ops 2 --lookahead 1",
    "continue",
]


@pytest.mark.parametrize("mode", [*MODES, "threads"])
def test_signals_that_come_all_the_time(mode: str, tmp_path: Path) -> None:
    """No handler runs while a thread makes a call for darc, and none is lost by it."""
    with server(build("alarms"), mode) as running:
        options = ["-p", str(running.pid), "-ex", "handle SIGALRM nostop noprint"]
        done: Done = debug(tmp_path, None, (), [*ANALYSE, REPORT], options=options)
        assert ("handle", "lookup", "burn") in done.paths, done.gdb
        let_go(running.pid)
        running.operations()
        _, _, altered = altered_code(running.pid)
        assert [place for place in altered if not place.startswith("ld-linux")] == []
        assert running.finish() == 0
