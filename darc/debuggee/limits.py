"""What limits a process's memory, and whether darc's share leaves it enough.

Memory that darc maps counts against the program's own limits: a program whose next malloc fails
since darc was there has been harmed. So darc asks for several times what it takes, and is content
with breakpoints, or refuses, where that is not free.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from darc.debuggee import procfs
from darc.debuggee.cgroups import Controller, groups_of

HEADROOM = 4
"""So many times what darc takes must be free: three quarters of it stay the program's."""

MAPPINGS = 16
"""How many mappings darc makes at most, as the kernel counts them: parts with other flags are
mappings of their own."""

_WHAT_TO_DO = "raise it, or take fewer '--max-probes'"


@dataclass(frozen=True)
class Need:
    """What an analysis takes, in bytes."""

    mapped: int
    written: int
    """How much of the mapped memory is the program's to write; counts as its data."""
    touched: int
    """How much of it is likely to be used in the end."""


def problem(pid: int, need: Need) -> str | None:
    """Why darc may not map so much in the process; ``None`` where nothing speaks against it."""
    for name, free, wanted in _limits(pid, need):
        if free < HEADROOM * wanted:
            return (
                f"pads would take {_kib(wanted)} of the {_kib(max(free, 0))} that {name} leaves "
                f"the program, which needs them itself: {_WHAT_TO_DO}"
            )
    limit = _number(Path("/proc/sys/vm/max_map_count"))
    if limit is not None and procfs.mapping_count(pid) + HEADROOM * MAPPINGS > limit:
        return (
            "the program has nearly as many mappings as the system allows: raise the sysctl "
            "vm.max_map_count"
        )
    return None


def refused(error: int) -> str:
    """What the kernel means by refusing to map memory with this error number."""
    if error == errno.EAGAIN:
        return (
            "the program locks its memory (mlockall) and is at its limit of locked memory: raise "
            "it (ulimit -l)"
        )
    if error == errno.ENOMEM:
        return f"the program is at a limit of its memory: {_WHAT_TO_DO}"
    return f"the program may not map memory (error {error})"


def _limits(pid: int, need: Need) -> Iterator[tuple[str, int, int]]:
    """Each limit's name, what is free below it, and what darc would take of that. What the program
    has had mapped at one time it may need again."""
    status, limits = procfs.status(pid), procfs.limits(pid)
    again = max(0, _kilobytes(status, "VmPeak") - _kilobytes(status, "VmSize"))
    for name, limit, used, wanted in (
        ("its limit of address space (ulimit -v)", "Max address space", "VmSize", need.mapped),
        ("its limit of data (ulimit -d)", "Max data size", "VmData", need.written),
    ):
        most, text = limits.get(limit), status.get(used, "").split()
        if most is not None and text:
            yield name, most - (int(text[0]) << 10) - again, wanted
    for folder in groups_of(pid, Controller.MEMORY):
        free = _free_in(folder)
        if free is not None:
            yield f"the memory limit of its cgroup ({folder.name or '/'})", free, need.touched
    if _number(Path("/proc/sys/vm/overcommit_memory")) == 2:
        meminfo = procfs.fields(Path("/proc/meminfo"), ":")
        free = _kilobytes(meminfo, "CommitLimit") - _kilobytes(meminfo, "Committed_AS")
        yield "the system (vm.overcommit_memory is 2)", free, need.written


def _free_in(folder: Path) -> int | None:
    """Bytes that a cgroup may still take; what it has cached of files would make room."""
    for limit, used, cached in (
        ("memory.max", "memory.current", ("inactive_file", "active_file")),
        (
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            ("total_inactive_file", "total_active_file"),
        ),
    ):
        most, now = _number(folder / limit), _number(folder / used)
        if most is not None and now is not None:
            stat = procfs.fields(folder / "memory.stat", " ")
            return most - now + sum(int(stat.get(name, "0")) for name in cached)
    return None


def _number(file: Path) -> int | None:
    """The number in a file; ``None`` where there is none, as in ``max``."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _kilobytes(fields: dict[str, str], name: str) -> int:
    return int(fields.get(name, "0 kB").split()[0]) << 10


def _kib(size: int) -> str:
    return f"{size >> 10} KiB"
