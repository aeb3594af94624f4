"""Where a kernel lets tracers stand: the places that ftrace keeps, and what is no kprobe's.

ftrace's own list is the only proof that the nop at a function's entry is nobody else's: those of
static branches look the same, and the kernel dies where it finds other bytes than it has written
there (``jump_label_transform``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from darc.model.errors import TargetError
from darc.target.memory import Read
from kgdb.btf import Btf
from kgdb.image import KernelImage

_MOST_PAGES = 1 << 16
_MOST_RECORDS = 1 << 20
_BLACKLIST = ("__start_kprobe_blacklist", "__stop_kprobe_blacklist")


def places(read: Read, types: Btf, first: int) -> frozenset[int]:
    """Where ftrace has a nop or a call, in the kernel and in its modules; ``first`` is the address
    of ``ftrace_pages_start``. Raises FormatError, TargetError."""
    return frozenset(_places(read, types, first))


def _places(read: Read, types: Btf, first: int) -> Iterator[int]:
    following, records, count = (
        types.offset("ftrace_page", one) for one in ("next", "records", "index")
    )
    address, size = types.offset("dyn_ftrace", "ip"), types.size("dyn_ftrace")
    page = _word(read, first)
    for _ in range(_MOST_PAGES):
        if not page:
            return
        number = int.from_bytes(read(page + count, 4), "little")
        if number > _MOST_RECORDS:
            break
        raw = read(_word(read, page + records), size * number) if number else b""
        for at in range(address, len(raw), size):
            yield int.from_bytes(raw[at : at + 8], "little")
        page = _word(read, page + following)
    raise TargetError("the kernel's list of places for tracers cannot be read")


def without_kprobes(image: KernelImage) -> frozenset[int]:
    """The functions of the kernel's own file that its developers let no kprobe stand in
    (``NOKPROBE_SYMBOL``), as their addresses there."""
    start, end = (image.values.get(name) for name in _BLACKLIST)
    if start is None or end is None or end <= start:
        return frozenset()
    raw = image.content(start, end - start)
    return frozenset(struct.unpack(f"<{len(raw) // 8}Q", raw[: len(raw) & ~7]))


def _word(read: Read, address: int) -> int:
    return int.from_bytes(read(address, 8), "little")
