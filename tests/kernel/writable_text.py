"""Sourced by darc-gdb: says how much of the kernel's code its own page tables let it write."""

import gdb

from kgdb.pagetables import DIRECT_MAP, WRITABLE, leaf


def _read(address: int, size: int) -> bytes:
    return bytes(gdb.selected_inferior().read_memory(address, size))


def _address(name: str) -> int:
    return int(gdb.parse_and_eval(f"(unsigned long) &{name}"))


def _direct_map() -> int:
    try:
        return int.from_bytes(_read(_address("page_offset_base"), 8), "little")
    except gdb.error:  # the kernel has none
        return DIRECT_MAP


def _writable() -> int:
    at, end = _address("_stext"), _address("_etext")
    pointers, direct_map, found = _address("level3_kernel_pgt"), _direct_map(), 0
    while at < end:
        page = leaf(_read, pointers, direct_map, address=at)
        assert page is not None
        found += bool(page.entry & WRITABLE)
        at = (at // page.size + 1) * page.size
    return found


print(f"{_writable()} pages of the code are writable")
