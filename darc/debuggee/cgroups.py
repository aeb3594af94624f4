"""The control groups of a process, as far as they can be seen from here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from darc.debuggee import procfs
from darc.target import living


class Controller(Enum):
    """What control groups limit, as the kernel calls it."""

    CPU = "cpu"
    MEMORY = "memory"
    FREEZER = "freezer"


_CONTROLLERS = {one.value: one for one in Controller}


def groups_of(pid: int, controller: Controller) -> Iterator[Path]:
    """The folders of those that limit the process in what the ``controller`` is of, inner before
    outer. A container shows its own at the root."""
    try:
        text = living.look(pid, lambda its: (its / "cgroup").read_text(errors="replace"))
    except OSError:
        return
    for line in text.splitlines():
        _, kinds, path = line.split(":", 2)
        told = map(_CONTROLLERS.get, kinds.split(","))
        if kinds and controller not in told:
            continue
        for mount, root in procfs.cgroup_mounts(kinds and controller.value):
            inner = path.removeprefix(root.rstrip("/")) if path.startswith(root) else path
            yield from _up_to(mount, mount / inner.lstrip("/"))


def is_frozen(pid: int) -> bool:
    """Whether a control group keeps the process from running, or is about to: nothing can be called
    in it (Linux, ``admin-guide/cgroup-v1/freezer-subsystem.rst``; ``cgroup.events`` of
    ``admin-guide/cgroup-v2.rst``)."""
    return any(map(_is_frozen, groups_of(pid, Controller.FREEZER)))


def _is_frozen(folder: Path) -> bool:
    for name, words in (
        ("freezer.state", ("FROZEN", "FREEZING")),
        ("cgroup.events", ("frozen 1",)),
    ):
        with contextlib.suppress(OSError):
            if any(line in words for line in (folder / name).read_text().splitlines()):
                return True
    return False


def _up_to(mount: Path, folder: Path) -> Iterator[Path]:
    if ".." in folder.parts or not folder.is_dir():
        folder = mount
    while folder != mount:
        yield folder
        folder = folder.parent
    yield mount
