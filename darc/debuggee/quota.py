"""How long a CPU quota has kept the threads of a process waiting, by what control groups tell."""

from __future__ import annotations

from pathlib import Path

from darc.debuggee import procfs
from darc.debuggee.cgroups import Controller, groups_of


class Quota:
    """That of the process ``pid``, of the group that it is in now and of those above."""

    def __init__(self, pid: int) -> None:
        self._files = _files_of(pid)

    @property
    def used_up_ns(self) -> int:
        """For how long its group's threads have been kept waiting so far, all together. The kernel
        adds a wait when it is over. Any thread."""
        return sum(_throttled_ns(file) or 0 for file in self._files)


def _files_of(pid: int) -> tuple[Path, ...]:
    """Where the kernel tells how long the process was kept waiting by a quota: a file for its group
    and for each above it that is seen from here."""
    found = dict.fromkeys(folder / "cpu.stat" for folder in groups_of(pid, Controller.CPU))
    return tuple(file for file in found if _throttled_ns(file) is not None)


def _throttled_ns(file: Path) -> int | None:
    """For how long its threads have been kept waiting so far, all together."""
    told = procfs.fields(file, " ")
    if "throttled_usec" in told:
        return int(told["throttled_usec"]) * 1000
    return int(told["throttled_time"]) if "throttled_time" in told else None
