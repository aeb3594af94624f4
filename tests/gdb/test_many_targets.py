"""Paths over more indirect calls than there is room for, if each may have every target it could."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.build import build_stages
from tests.debugger import IN_LLDB_AT_NIGHT, REPORT, debug, server

STAGES = 22
"""How many virtual calls there are, each from a place of its own."""


@IN_LLDB_AT_NIGHT
@pytest.mark.parametrize("lookahead", ["1", "auto"])
def test_many_virtual_calls_one_below_the_other(tmp_path: Path, lookahead: str) -> None:
    """In a program of many threads, where each has room for few callees: a path goes on to its end,
    and there one function makes more calls through pointers than there is room for."""
    start = f"darc start serve --peak last --lookahead {lookahead}"
    with server(build_stages(), "1000000", "40") as running:
        attached = ["-p", str(running.pid)]
        done = debug(tmp_path, None, (), [start, "continue", REPORT, "detach"], options=attached)
    (path,) = done.root_causes
    stages = [f"StageOf<{n}>::handle" for n in range(STAGES)]
    assert path["functions"][: STAGES + 4] == ["serve", *stages, "steps_of", "fetch", "usleep"]
    assert "no room" not in done.gdb
