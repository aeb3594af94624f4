"""The control groups of a process, as far as they can be seen from here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from darc.debuggee import procfs
from darc.target import living


def groups_of(pid: int, kind: str) -> Iterator[Path]:
    """The folders of those that limit the process in its ``kind`` (``cpu``, ``memory``), inner
    before outer. A container shows its own at the root."""
    try:
        text = living.look(pid, lambda its: (its / "cgroup").read_text(errors="replace"))
    except OSError:
        return
    for line in text.splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds and kind not in kinds.split(","):
            continue
        for mount, root in procfs.cgroup_mounts(kinds and kind):
            inner = path.removeprefix(root.rstrip("/")) if path.startswith(root) else path
            yield from _up_to(mount, mount / inner.lstrip("/"))


def _up_to(mount: Path, folder: Path) -> Iterator[Path]:
    if ".." in folder.parts or not folder.is_dir():
        folder = mount
    while folder != mount:
        yield folder
        folder = folder.parent
    yield mount
