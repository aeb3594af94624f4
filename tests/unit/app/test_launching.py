"""Both launchers with debuggers that say nothing: they are not waited for for ever."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SILENT = "#!/bin/sh\n/bin/sleep 1000 & echo $! > {folder}/begun; wait\n"
IN_SHORT = """
import sys
from darc.app import launching
launching.SILENT_SECONDS, launching.LIMIT_SECONDS = 0.01, {limit}
from darc_{name} import launcher
launcher.main()
"""


@pytest.fixture(params=["gdb", "lldb"])
def name(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    debugger = tmp_path / request.param
    (tmp_path / "sh").symlink_to("/bin/sh")
    os.mkfifo(tmp_path / "begun")
    debugger.write_text(SILENT.format(folder=tmp_path))
    debugger.chmod(0o755)
    return str(request.param)


def begin(name: str, folder: Path, limit: float) -> tuple[subprocess.Popen[str], int]:
    """The launcher, and the process that its debugger waits for."""
    launcher = subprocess.Popen(
        [sys.executable, "-c", IN_SHORT.format(name=name, limit=limit)],
        cwd=ROOT,
        env={**os.environ, "PATH": str(folder), "DARC_LLDB": "lldb"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return launcher, os.pidfd_open(int((folder / "begun").read_text()))


def test_a_debugger_that_says_nothing(name: str, tmp_path: Path) -> None:
    """A line that it is waited for, then one with the command to try; nothing of it stays."""
    launcher, waited_for = begin(name, tmp_path, 1)
    os.close(waited_for)
    output, errors = launcher.communicate(timeout=60)
    waits, silent = errors.splitlines()
    path = tmp_path / name
    assert waits.startswith(f"darc-{name}: waits for {path} to tell its version of Python")
    asked = f"darc-{name}: {path} was asked for its version of Python and says nothing; see"
    assert silent.startswith(asked)
    assert f"{path} -" in silent[len(asked) :]
    assert (launcher.returncode, output) == (1, "")


def test_ctrl_c_at_a_debugger_that_says_nothing(name: str, tmp_path: Path) -> None:
    launcher, waited_for = begin(name, tmp_path, 1000)
    assert launcher.stderr is not None
    assert "waits for" in launcher.stderr.readline()
    launcher.send_signal(signal.SIGINT)
    output, errors = launcher.communicate(timeout=60)
    assert (launcher.returncode, output, errors) == (130, "", "")
    ended, _, _ = select.select([waited_for], [], [], 60)
    os.close(waited_for)
    assert ended, "what it began is still there"


IMPORTING = """
import sys

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "darc.app.launching":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from darc_{name}.launcher import main
main()
"""


def test_ctrl_c_as_it_begins(name: str) -> None:
    command = [sys.executable, "-c", IMPORTING.format(name=name)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
