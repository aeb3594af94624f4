"""What the kernel is told of memory that a program is let map for darc (mmap(2), madvise(2))."""

from __future__ import annotations

from enum import IntEnum, IntFlag

_NO_FILE = (1 << 64) - 1


class Access(IntFlag):
    """What the program may do in one of darc's mappings."""

    NONE = 0
    READ = 1
    WRITE = 2
    EXECUTE = 4


DATA = Access.READ | Access.WRITE
CODE = Access.READ | Access.EXECUTE


class MapFlag(IntFlag):
    """How one of the mappings is made."""

    NONE = 0
    PRIVATE = 2
    ANONYMOUS = 0x20
    NORESERVE = 0x4000
    FIXED_NOREPLACE = 0x100000


class Advice(IntEnum):
    """What one of the mappings is for."""

    NOHUGEPAGE = 15
    WIPEONFORK = 18


def mmap_arguments(
    size: int, access: Access = DATA, flags: MapFlag = MapFlag.NONE, *, place: int = 0
) -> tuple[int, ...]:
    """Those of mmap(2) for memory of the process's own that is no file's, at ``place`` or, where
    that is 0, where the kernel likes."""
    flags |= MapFlag.PRIVATE | MapFlag.ANONYMOUS
    return place, size, int(access), int(flags), _NO_FILE, 0
