"""A program whose file has a name that no locale has characters for: gdb cannot tell it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import EVERYWHERE, REPORT, debug, server

pytestmark = EVERYWHERE


@pytest.mark.parametrize(
    "command", ["darc start handle --peak >400us", "darc profile handle burn --time 2s"]
)
def test_analysis_ends_as_elsewhere(command: str, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    program = folder / os.fsdecode(b"server\xfe")
    shutil.copy(build("server"), program)
    with server(program) as running:
        options = ["-p", str(running.pid)]
        commands = [command, "continue", REPORT, "darc stop"]
        done = debug(tmp_path, None, (), commands, options=options)
        assert running.finish() == 0
    assert "every probe is out" in done.gdb, done.gdb
    assert "codec" not in done.gdb, done.gdb
    assert done.status == 0, done.gdb
    assert done.report is not None, done.gdb
