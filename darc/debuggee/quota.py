"""How long a CPU quota has kept the threads of a process waiting, by what control groups tell."""

from __future__ import annotations

from pathlib import Path

from darc.debuggee import procfs
from darc.target import living


class Quota:
    """That of the process ``pid``, of the group that it is in now and of those above."""

    def __init__(self, pid: int) -> None:
        self._files = _cpu_group(pid)

    @property
    def used_up_ns(self) -> int:
        """For how long its group's threads have been kept waiting so far, all together. The kernel
        adds a wait when it is over. Any thread."""
        return sum(_throttled_ns(file) or 0 for file in self._files)


def _cpu_group(pid: int) -> tuple[Path, ...]:
    """Where the kernel tells how long the process was kept waiting by a quota: a file for its group
    and for each above it that is seen from here."""
    try:
        text = living.look(pid, lambda its: (its / "cgroup").read_text(errors="replace"))
    except OSError:
        return ()
    found = []
    for line in text.splitlines():
        _, kinds, name = line.split(":", 2)
        kind = "cpu" if "cpu" in kinds.split(",") else ""
        if kinds and not kind:
            continue
        for mount, root in procfs.cgroup_mounts(kind):
            below = Path(name.removeprefix(root) if root != "/" else name)
            group = mount / str(below).lstrip("/")
            found += [folder / "cpu.stat" for folder in (group, *group.parents)]
    return tuple(file for file in dict.fromkeys(found) if _throttled_ns(file) is not None)


def _throttled_ns(file: Path) -> int | None:
    """For how long its threads have been kept waiting so far, all together."""
    told = procfs.fields(file, " ")
    if "throttled_usec" in told:
        return int(told["throttled_usec"]) * 1000
    return int(told["throttled_time"]) if "throttled_time" in told else None
