"""The disks of a machine: an ext4 and an ext2 file system with the same content.

``tree`` holds folders with enough names that listing one takes several blocks; ``data`` is a file
of 32 MiB without holes, to be read at random. Made once, as any user; a machine writes into a copy
that nobody keeps.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from kgdb.vm import cache
from kgdb.vm.errors import VmError

FOLDERS = 1000
"""Folders in ``tree``, below 20 that hold 50 each."""

NAMES = 120
"""Files in each of them, all empty; at 64 bytes an entry that is two blocks of 4 KiB."""

DATA_BYTES = 32 << 20

_VERSION = 1
"""Goes up whenever the content changes."""

_SIZE = {"ext4": "192M", "ext2": "192M"}


def images() -> tuple[Path, Path]:
    """The images with ext4 and with ext2, made now where the cache has none."""
    folder = cache.once(f"disks-{_VERSION}", _make)
    return folder / "ext4.img", folder / "ext2.img"


def _make(folder: Path) -> None:
    mke2fs = shutil.which("mke2fs") or shutil.which("mke2fs", path="/usr/sbin:/sbin")
    if mke2fs is None:
        raise VmError("mke2fs is needed to make disks: apt-get install e2fsprogs")
    cache.say("making the disks")
    with tempfile.TemporaryDirectory(dir=folder) as content:
        _fill(Path(content))
        for kind, size in _SIZE.items():
            command = [mke2fs, "-q", "-F", "-t", kind, "-b", "4096", "-N", str(_inodes())]
            command += ["-d", content, str(folder / f"{kind}.img"), size]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise VmError(
                    f"mke2fs failed: {(done.stderr.strip() or 'no word').splitlines()[-1]}"
                )


def _inodes() -> int:
    # The files of a folder are links to few inodes, so that the images stay small.
    return 8192


def _fill(content: Path) -> None:
    origin = content / "origin"
    origin.touch()
    for number in range(FOLDERS):
        folder = content / "tree" / f"{number // 50:02}" / f"{number % 50:02}"
        folder.mkdir(parents=True)
        first = folder / f"{0:04}-a-name-that-is-neither-short-nor-long-as-names-go"
        first.touch()
        for name in range(1, NAMES):
            (folder / f"{name:04}-a-name-that-is-neither-short-nor-long-as-names-go").hardlink_to(
                first
            )
    block = bytes(range(1, 252)) * 4096
    (content / "data").write_bytes((block * (DATA_BYTES // len(block) + 1))[:DATA_BYTES])
