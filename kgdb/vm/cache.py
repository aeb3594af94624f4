"""What takes long to make is made once: kernels, disks, programs.

Everything lies below ``$XDG_CACHE_HOME/darc`` (``~/.cache/darc``) and may be deleted at any time.
A thing appears under its name only when it is complete, also after a crash or a full disk.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from darc.views.words import message
from kgdb.vm.errors import VmError


def root() -> Path:
    """The cache's folder, made when it is not there."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = (Path(base) if base.startswith("/") else Path.home() / ".cache") / "darc"
    with _in_words(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder ``name`` of the cache; ``make`` fills it (an empty one) where there is none.

    Of several processes that want it, one makes it while the others wait.
    """
    folder = root() / name
    if folder.exists():
        return folder
    with _in_words(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_name(f".{folder.name}.lock").open("w") as lock:
            _acquire(lock.fileno(), folder.name)
            if folder.exists():
                return folder
            _sweep(folder)
            work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
            try:
                made = work / "made"
                made.mkdir()
                make(made)
                made.rename(folder)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    return folder


def say(text: str) -> None:
    """Tells on standard error what takes a while."""
    print(message(f"darc-vm: {text}"), file=sys.stderr, flush=True)


def _acquire(lock: int, name: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"another darc-vm makes {name}; waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)


def _sweep(folder: Path) -> None:
    """Removes what makers of ``folder`` that were killed have left; its lock is held."""
    for left in folder.parent.glob(f".{folder.name}.*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _in_words(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise VmError(
                f"no space left in {folder.parent}: make room, or set XDG_CACHE_HOME"
            ) from None
        raise VmError(f"cannot write {folder}: {error.strerror or error}") from None
