"""Writes cpio archives of the kind that the kernel unpacks at boot ("newc").

No tool and no right is needed for it, and archives may stand one behind the other. Source: the
kernel's ``Documentation/driver-api/early-userspace/buffer-format.rst``.
"""

from __future__ import annotations

import itertools
import stat
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A file of the archive: ``mode`` with its type; ``device`` is major and minor of a node."""

    path: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def folder(path: str) -> Entry:
    """A folder anyone may read."""
    return Entry(path, stat.S_IFDIR | 0o755)


def program(path: str, content: bytes) -> Entry:
    """A file anyone may run."""
    return Entry(path, stat.S_IFREG | 0o755, content)


def text(path: str, content: str) -> Entry:
    """A file anyone may read."""
    return Entry(path, stat.S_IFREG | 0o644, content.encode())


def link(path: str, to: str) -> Entry:
    """A symbolic link."""
    return Entry(path, stat.S_IFLNK | 0o777, to.encode())


def node(path: str, major: int, minor: int) -> Entry:
    """A character device."""
    return Entry(path, stat.S_IFCHR | 0o600, device=(major, minor))


def archive(*entries: Entry) -> bytes:
    """The archive with these entries; a folder has to stand before what is in it."""
    parts = [_entry(number, entry) for number, entry in zip(itertools.count(1), entries)]
    return b"".join([*parts, _entry(0, Entry("TRAILER!!!", 0))])


def _entry(number: int, entry: Entry) -> bytes:
    name = entry.path.encode() + b"\0"
    fields = [number, entry.mode, 0, 0, 1, 0, len(entry.content), 0, 0, *entry.device, len(name), 0]
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
