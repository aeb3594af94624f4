"""darc-gdb with a gdb that is a shell script: what it is given, and what is said without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from darc.app import launching
from darc_gdb import launcher

ROOT = Path(launcher.__file__).resolve().parent.parent
PROBE = 'if [ "$1" = -nx ]; then {answer}; exit; fi\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sh").symlink_to("/bin/sh")
    return tmp_path


def write_gdb(folder: Path, answer: str, then: str = "exit 0") -> None:
    gdb = folder / "gdb"
    gdb.write_text("#!/bin/sh\n" + PROBE.format(answer=answer) + then + "\n")
    gdb.chmod(0o755)


def darc_gdb(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "darc_gdb.launcher", *args],
        cwd=ROOT,
        env={**os.environ, "PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_arguments_are_passed_on(folder: Path) -> None:
    write_gdb(folder, "echo darc 3 11", 'for a in "$@"; do echo "<$a>"; done')
    done = darc_gdb(folder, "-q", "-ex", "print 1", "--args", "prog", "a  b", "")
    first = ["<-iex>", f"<source {launcher.LOAD}>"]
    rest = ["<-q>", "<-ex>", "<print 1>", "<--args>", "<prog>", "<a  b>", "<>"]
    assert done.stdout.splitlines() == first + rest
    assert done.stderr == ""


def test_packages_are_named_for_load(folder: Path) -> None:
    write_gdb(folder, "echo darc 3 12", f'echo "${launcher.PYTHONPATH}"')
    folders = darc_gdb(folder).stdout.strip().split(os.pathsep)
    assert folders == launching.package_folders()
    assert any((Path(p) / "rich").is_dir() for p in folders)


@pytest.mark.parametrize("status", [0, 1, 42])
def test_exit_status_is_kept(folder: Path, status: int) -> None:
    write_gdb(folder, "echo warning; echo darc 3 11", f"exit {status}")
    assert darc_gdb(folder).returncode == status


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("echo no such command >&2", "has no Python; install a gdb that has (apt install gdb)"),
        ("echo darc 3 9", "has Python 3.9; darc needs 3.11 or newer"),
    ],
)
def test_unfit_gdb_is_refused_in_one_line(folder: Path, answer: str, line: str) -> None:
    write_gdb(folder, answer, "echo started")
    done = darc_gdb(folder)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"darc-gdb: {folder / 'gdb'} {line}\n"


def test_a_gdb_that_ends_by_a_signal_is_told(folder: Path) -> None:
    """As it does by SIGABRT where it can open no more files: its Python is not to blame."""
    write_gdb(folder, "kill -ABRT $$", "echo started")
    done = darc_gdb(folder)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "was ended by SIGABRT as it was asked" in line


def test_missing_gdb_is_one_line(folder: Path) -> None:
    done = darc_gdb(folder)
    assert done.returncode == 1
    assert done.stderr == "darc-gdb: gdb is not installed: apt install gdb\n"
