"""The fs base of a thread, for lldbs that do not know the register: glibc and musl keep a thread's
id in the block that fs points to, and the block's own address in its first word."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from darc.debuggee import procfs
from darc.model.errors import TargetError
from darc.target.target import Region

_ID_AT = (720, 48)
"""Where in that block the thread's id is: glibc, musl."""

_LARGEST = 1 << 26
_CHUNK = 1 << 20


def find(pid: int, thread: int, stack: int) -> int | None:
    """The thread's fs base, ``None`` when it cannot be told by looking."""
    number = struct.pack("<i", procfs.own_id(pid, thread))
    with procfs.MemoryFile(pid) as memory:
        for region in _places(procfs.regions(pid), stack):
            try:
                found = _find_in(memory, region, number)
            except TargetError:
                continue
            if found is not None:
                return found
    return None


def _places(regions: Iterable[Region], stack: int) -> list[Region]:
    """Private memory: the thread's own stack, from its stack pointer on, then by size."""
    own, others = [], []
    for region in regions:
        if "rw-p" not in region.permissions or Path(region.path).is_absolute():
            continue
        if region.start <= stack < region.end:
            start = stack & ~15
            own.append(
                Region(
                    start=start,
                    end=region.end,
                    permissions=region.permissions,
                    offset=0,
                    path=region.path,
                )
            )
        elif region.end - region.start <= _LARGEST:
            others.append(region)
    return [*own, *sorted(others, key=lambda r: r.end - r.start)]


def _find_in(memory: procfs.MemoryFile, region: Region, number: bytes) -> int | None:
    for start in range(region.start, region.end, _CHUNK):
        data = memory.read(start, min(_CHUNK, region.end - start))
        at = data.find(number)
        while at >= 0:
            for offset in _ID_AT:
                base = start + at - offset
                if base % 16 == 0 and base >= region.start:
                    word = int.from_bytes(memory.read(base, 8), "little")
                    if word == base:
                        return base
            at = data.find(number, at + 1)
    return None
