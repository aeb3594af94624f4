"""What a program is called that was run by another name than that of its file."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.debuggee import procfs


@contextlib.contextmanager
def running(words: list[str], folder: Path, executable: str | None = None) -> Iterator[int]:
    process = subprocess.Popen(
        words, cwd=folder, executable=executable, stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.read(1)
        yield process.pid
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With ``cat`` as ``checker``, and two links to that, as redis has."""
    cat = shutil.which("cat")
    assert cat is not None
    shutil.copy(cat, tmp_path / "checker")
    (tmp_path / "server").symlink_to("checker")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sentinel").symlink_to("../checker")
    (tmp_path / "file").write_text("x" * 100)
    return tmp_path


@pytest.mark.parametrize(
    ("run", "name"),
    [("./server", "server"), ("bin/sentinel", "sentinel"), ("{}/server", "server")],
)
def test_by_a_link_it_has_the_links_name(run: str, name: str, folder: Path) -> None:
    with running([run.format(folder), "file", "-"], folder) as pid:
        assert procfs.run_as(pid) == {str(folder / "checker"): name}


def test_by_its_own_name_there_is_no_other(folder: Path) -> None:
    with running(["./checker", "file", "-"], folder) as pid:
        assert procfs.run_as(pid) == {}


def test_a_link_that_leads_elsewhere_by_now_is_no_name(folder: Path) -> None:
    with running(["./server", "file", "-"], folder) as pid:
        (folder / "server").unlink()
        (folder / "server").symlink_to(os.devnull)
        assert procfs.run_as(pid) == {}


def test_what_it_calls_itself_is_not_asked(folder: Path) -> None:
    with running(["another: 6379", "file", "-"], folder, executable="./server") as pid:
        assert procfs.run_as(pid) == {str(folder / "checker"): "server"}


def test_who_is_gone_has_no_name() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert procfs.run_as(process.pid) == {}
