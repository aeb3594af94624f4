"""Where a kernel has mapped code for modules, by its page tables (Intel SDM volume 3, 4.5)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from darc.target.memory import Read

_TABLE = 4096
_LARGE_SIZE = 1 << 21
_LOWEST = 0xFFFF_FFFF_A000_0000
_HIGHEST = 0xFFFF_FFFF_FF00_0000
"""Between them modules live, in every configuration of x86-64."""

_TOP = 0xFFFF_FF80_0000_0000
"""What the last page directory pointer table spans, by 1 GiB an entry."""

_PRESENT, WRITABLE, _LARGE, _NO_EXECUTE = 1 << 0, 1 << 1, 1 << 7, 1 << 63
_ADDRESS = 0x000F_FFFF_FFFF_F000

DIRECT_MAP = 0xFFFF_8880_0000_0000
"""Where physical memory is mapped, unless the kernel has a ``page_offset_base``: with four levels
of page tables and no randomisation (Documentation/x86/x86_64/mm.rst)."""


def executable_areas(
    read: Read, pointers: int, direct_map: int, text: range = range(0)
) -> Iterator[int]:
    """The first address of each run of executable pages among modules, and each page of those that
    one large leaf maps: from 6.13 on kernels with CONFIG_ARCH_HAS_EXECMEM_ROX give parts of these
    away (mm/execmem.c). ``pointers`` is the address of that table (``level3_kernel_pgt``),
    ``direct_map`` that of physical address 0, and ``text`` the kernel's own code, which is none of
    them."""
    before = False
    for page, is_executable, is_large in _pages(read, pointers, direct_map):
        if is_large and is_executable and page not in text:
            yield from range(page, page + _LARGE_SIZE, _TABLE)
        elif is_executable and not is_large and not before:
            yield page
        before = is_executable


def _pages(read: Read, pointers: int, direct_map: int) -> Iterator[tuple[int, bool, bool]]:
    for gigabyte, directory in _entries(read, pointers, _TOP, 30):
        if gigabyte + (1 << 30) <= _LOWEST or not _is_table(directory):
            continue
        for start, table in _entries(read, (directory & _ADDRESS) + direct_map, gigabyte, 21):
            if not _LOWEST <= start < _HIGHEST or not _is_table(table):
                is_large = _LOWEST <= start < _HIGHEST and bool(table & _LARGE)
                yield start, is_large and _is_executable(table), is_large
                continue
            for page, entry in _entries(read, (table & _ADDRESS) + direct_map, start, 12):
                yield page, _is_executable(entry), False


@dataclass(frozen=True)
class Leaf:
    """The entry that maps a page, of whatever size in bytes, and where it stands."""

    place: int
    entry: int
    size: int

    def physical(self, address: int) -> int:
        """The physical address of one that it maps."""
        offset = self.size - 1
        return (self.entry & _ADDRESS & ~offset) | (address & offset)


def leaf(
    read: Read, pointers: int, direct_map: int, *, address: int, levels: int = 3
) -> Leaf | None:
    """What maps an address; arguments as above, where ``pointers`` may also be a table ``levels``
    above the pages. ``None``: nothing does."""
    table = pointers
    for shift in (48, 39, 30, 21, 12)[-levels:]:
        place = table + 8 * (address >> shift & 511)
        entry = int.from_bytes(read(place, 8), "little")
        if not entry & _PRESENT:
            return None
        if shift == 12 or entry & _LARGE:
            return Leaf(place, entry, 1 << shift)
        table = (entry & _ADDRESS) + direct_map
    raise AssertionError("the last level is a leaf")


def _is_executable(entry: int) -> bool:
    return bool(entry & _PRESENT) and not entry & _NO_EXECUTE


def _is_table(entry: int) -> bool:
    return bool(entry & _PRESENT) and not entry & _LARGE


def _entries(read: Read, table: int, start: int, shift: int) -> Iterator[tuple[int, int]]:
    for number, (entry,) in enumerate(struct.iter_unpack("<Q", read(table, _TABLE))):
        yield start + (number << shift), entry
