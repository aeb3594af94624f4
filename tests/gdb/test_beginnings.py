"""An analysis that is begun before the program is."""

from __future__ import annotations

from pathlib import Path

from fixtures.build import build, find
from tests.debugger import EXIT, REPORT, debug, undisturbed


def test_program_at_its_first_instruction(tmp_path: Path) -> None:
    """Nothing tells its threads apart yet: darc waits for f0."""
    program, args = build("threads"), ("32000",)
    start = "darc start handle --peak >700us"
    done = debug(tmp_path, program, args, ["starti", start, "continue", REPORT, "continue", EXIT])
    assert "has not begun yet: waits for handle" in done.gdb
    assert set(done.paths) == set(find("threads").paths), done.gdb
    assert (done.program_status, done.output) == undisturbed(program, args)
