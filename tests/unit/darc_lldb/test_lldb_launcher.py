"""darc-lldb with lldbs that are shell scripts: which one is taken, and what is said without one."""

from __future__ import annotations

import errno
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from darc_lldb import launcher

ROOT = Path(launcher.__file__).resolve().parent.parent
PROBE = 'if [ "$1" = -x ]; then {answer}; exit; fi\n'
FIT, NO_PYTHON = "echo darc 3 11", "echo error: no script interpreter >&2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sh").symlink_to("/bin/sh")
    return tmp_path


def write_lldb(folder: Path, name: str, answer: str, then: str = 'echo "$0"') -> Path:
    lldb = folder / name
    lldb.parent.mkdir(exist_ok=True)
    lldb.write_text("#!/bin/sh\n" + PROBE.format(answer=answer) + then + "\n")
    lldb.chmod(0o755)
    return lldb


def darc_lldb(folder: Path, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k != launcher.LLDB}
    return subprocess.run(
        [sys.executable, "-m", "darc_lldb.launcher", *args],
        cwd=ROOT,
        env={**inherited, "PATH": str(folder), **more},
        capture_output=True,
        text=True,
        check=False,
    )


def test_arguments_are_passed_on(folder: Path) -> None:
    write_lldb(folder, "lldb", FIT, 'for a in "$@"; do echo "<$a>"; done')
    done = darc_lldb(folder, "-b", "-o", "run", "--", "prog", "a  b", "")
    first = ["<-O>", f'<command script import "{launcher.LOAD}">']
    rest = ["<-b>", "<-o>", "<run>", "<-->", "<prog>", "<a  b>", "<>"]
    assert done.stdout.splitlines() == first + rest
    assert done.stderr == ""


@pytest.mark.parametrize("status", [0, 1, 42])
def test_exit_status_is_kept(folder: Path, status: int) -> None:
    write_lldb(folder, "lldb", FIT, f"exit {status}")
    assert darc_lldb(folder).returncode == status


def test_the_one_without_a_number_comes_first(folder: Path) -> None:
    plain = write_lldb(folder, "lldb", FIT)
    write_lldb(folder, "lldb-19", FIT)
    assert darc_lldb(folder).stdout == f"{plain}\n"


def test_an_lldb_that_is_not_fit_is_passed_over(folder: Path) -> None:
    """The newest of the others is taken."""
    write_lldb(folder, "lldb", NO_PYTHON)
    write_lldb(folder, "lldb-9", FIT)
    newest = write_lldb(folder, "lldb-22", FIT)
    assert darc_lldb(folder).stdout == f"{newest}\n"


def test_folders_that_nobody_may_look_into_are_passed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root may have them in its PATH, which others inherit."""
    write_lldb(folder, "lldb-19", FIT)
    look = Path.iterdir

    def refused(path: Path) -> Iterator[Path]:
        if path == Path("/closed"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return look(path)

    monkeypatch.setattr(Path, "iterdir", refused)
    monkeypatch.setenv("PATH", f"/closed:{folder / 'nowhere'}:{folder}")
    monkeypatch.delenv(launcher.LLDB, raising=False)
    assert launcher.find_lldbs() == [str(folder / "lldb-19")]


def test_the_one_that_is_asked_for_is_taken(folder: Path) -> None:
    write_lldb(folder, "lldb", FIT)
    other = write_lldb(folder, "elsewhere/lldb", FIT)
    for named in (str(other), "elsewhere"):
        done = darc_lldb(folder, **{launcher.LLDB: named})
        if named == str(other):
            assert done.stdout == f"{other}\n"
        else:
            assert done.returncode == 1
            assert done.stderr == "darc-lldb: there is no elsewhere (from DARC_LLDB)\n"


def test_the_one_that_is_asked_for_is_not_replaced(folder: Path) -> None:
    write_lldb(folder, "lldb", FIT)
    asked = write_lldb(folder, "lldb-19", NO_PYTHON)
    done = darc_lldb(folder, **{launcher.LLDB: "lldb-19"})
    assert (done.returncode, done.stdout) == (1, "")
    line = f"{asked} has no Python; install one that has (apt install lldb)"
    assert done.stderr == f"darc-lldb: {line}\n"


def test_where_its_python_module_is_not_found_by_itself(folder: Path) -> None:
    """As in Debian 12: the launcher looks beside lldb, and load.py takes it back afterwards."""
    module = folder / "lib/python3.11/dist-packages/lldb/__init__.py"
    module.parent.mkdir(parents=True)
    module.touch()
    answer = f'case "$PYTHONPATH" in {module.parent.parent}*) {FIT};; esac'
    show = f'echo "$PYTHONPATH"; echo "${launcher.RESTORE}"'
    (folder / "bin").mkdir()
    write_lldb(folder, "bin/lldb", answer, show)
    path, restore = darc_lldb(folder / "bin", PYTHONPATH="own").stdout.splitlines()
    assert path == f"{module.parent.parent}{os.pathsep}own"
    assert json.loads(restore) == {"PYTHONPATH": "own"}


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (NO_PYTHON, "has no Python; install one that has (apt install lldb)"),
        ("echo darc 3 9", "has Python 3.9; darc needs 3.11 or newer"),
    ],
)
def test_unfit_lldb_is_refused_in_one_line(folder: Path, answer: str, line: str) -> None:
    lldb = write_lldb(folder, "lldb", answer, "echo started")
    done = darc_lldb(folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"darc-lldb: {lldb} {line}\n"


def test_missing_lldb_is_one_line(folder: Path) -> None:
    done = darc_lldb(folder)
    assert done.returncode == 1
    assert done.stderr == "darc-lldb: lldb is not installed: apt install lldb\n"


def test_loading_into_an_lldb_whose_own_module_is_not_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As that of Debian 12, which does not find the rest of it."""
    monkeypatch.setitem(sys.modules, "lldb", ModuleType("lldb"))
    load = runpy.run_path(str(ROOT / "darc_lldb" / "load.py"))
    load["__lldb_init_module"](None, {})
    assert capsys.readouterr().out == (
        "darc: this lldb's own Python module is not whole; 'darc-lldb' finds what it lacks\n"
    )
