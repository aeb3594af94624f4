"""What is made once: complete or not there at all, whoever makes it and whatever happens."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kgdb.vm import cache
from kgdb.vm.errors import VmError

ROOT = Path(__file__).resolve().parents[2]
MAKER = """
import sys, time
from pathlib import Path
from kgdb.vm import cache

def make(folder):
    (folder / "part").write_text("half")
    print("begun", flush=True)
    sys.stdin.readline()
    (folder / "rest").touch()

print(cache.once("thing", make))
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "darc"


def never(folder: Path) -> None:
    raise AssertionError("made again")


def maker() -> subprocess.Popen[str]:
    """A process that has begun to make ``thing``."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def test_made_once(own_cache: Path) -> None:
    folder = cache.once("a/thing", lambda new: (new / "file").touch())
    assert folder == own_cache / "a" / "thing"
    assert (folder / "file").exists()
    assert cache.once("a/thing", never) == folder


def test_a_maker_that_fails_leaves_nothing(own_cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "file").touch()
        raise VmError("no")

    with pytest.raises(VmError, match="no"):
        cache.once("thing", fail)
    assert not list(own_cache.glob("[!.]*"))
    assert not [path for path in own_cache.glob(".*") if path.is_dir()]


def test_what_a_killed_maker_left_is_swept(own_cache: Path) -> None:
    process = maker()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert [path for path in own_cache.glob(".thing.*") if path.is_dir()]
    assert cache.once("thing", lambda new: (new / "rest").touch()) == own_cache / "thing"
    assert not (own_cache / "thing" / "part").exists()
    assert not [path for path in own_cache.glob(".thing.*") if path.is_dir()]


def test_one_makes_it_while_the_others_wait(own_cache: Path) -> None:
    first = maker()
    second = subprocess.Popen(
        [sys.executable, "-c", MAKER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert second.stderr is not None
    assert second.stderr.readline() == "darc-vm: another darc-vm makes thing; waiting for it\n"
    out, _ = first.communicate("\n")
    assert out == f"{own_cache / 'thing'}\n"
    out, _ = second.communicate()
    assert out == f"{own_cache / 'thing'}\n"


def test_a_full_disk_is_told(own_cache: Path) -> None:
    def fill(folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(VmError, match=r"no space left in .*: make room, or set XDG_CACHE_HOME"):
        cache.once("thing", fill)


def test_a_place_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nothing")
    with pytest.raises(VmError, match=r"cannot write /proc/nothing/darc: "):
        cache.root()
