"""Programs that a sanitizer looks after, which keeps a shadow of memory and of threads' calls, and
takes the place of functions of the C library."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import EXIT, IN_LLDB_AT_NIGHT, REPORT, debug, undisturbed

pytestmark = IN_LLDB_AT_NIGHT

ARGS = {"mixture": ("20000",), "threads": ()}
START = {
    "mixture": "darc start handle --peak >1ms --start-ops 1000",
    "threads": "darc start handle --peak >700us --start-ops 300",
}


@pytest.mark.parametrize("program", ARGS)
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_analysed_unharmed(
    kind: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sanitizer has nothing to say, and the program computes what it always does."""
    source = tmp_path / "nothing.c"
    source.write_text("int main(void) { return 0; }\n")
    tried = subprocess.run(
        ["gcc", f"-fsanitize={kind}", source, "-o", tmp_path / "nothing"],
        capture_output=True,
        check=False,
    )
    if tried.returncode or subprocess.run([tmp_path / "nothing"], check=False).returncode:
        pytest.skip(f"no program with -fsanitize={kind} here")
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")  # that traces the program itself
    built = build(program, extra=(f"-fsanitize={kind}",))
    args = ARGS[program]
    commands = [START[program], "run", REPORT, "continue", EXIT]
    done = debug(tmp_path, built, args, commands)
    assert done.report is not None, done.gdb
    assert done.report["status"] == "root cause found", done.gdb
    assert (done.program_status, done.output) == undisturbed(built, args), done.gdb
    assert b"Sanitizer" not in done.errors
