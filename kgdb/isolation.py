"""The kernel's memory while page-table isolation hides it.

A processor in user mode then has tables in which next to nothing of the kernel stands, and a
debugger that has stopped it there sees no more. The kernel's own tables are one page before those
(``PTI_USER_PGTABLE_MASK``, arch/x86/entry/calling.h). Switching them over for a moment would do,
but for a debugger that is killed meanwhile: the program would go on with them, and end by a fault.
So memory is read and written by its physical addresses.
"""

from __future__ import annotations

from darc.model.addresses import is_kernels
from kgdb.pagetables import leaf
from kgdb.remote import Remote

_USER_TABLES = 1 << 12
_FLAGS = (1 << 12) - 1
_FIVE_LEVELS = 1 << 12  # of cr4


class KernelMemory:
    """What the kernel itself sees, whatever the processor does that is gdb's thread. A
    :class:`~kgdb.remote.Hidden`."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def read(self, address: int, size: int) -> bytes | None:
        """``None``: the processor sees it as the kernel does, or not all of it is there."""
        with self._remote.physical() as is_physical:
            pieces = self._pieces(address, size) if is_physical else None
            if pieces is None:
                return None
            return b"".join(self._remote.read_raw(*piece) for piece in pieces)

    def write(self, address: int, data: bytes) -> bool:
        """Whether it was written so (see :meth:`read`)."""
        with self._remote.physical() as is_physical:
            pieces = self._pieces(address, len(data)) if is_physical else None
            if pieces is None:
                return False
            at = 0
            for place, size in pieces:
                self._remote.write_raw(place, data[at : at + size])
                at += size
            return True

    def _pieces(self, address: int, size: int) -> list[tuple[int, int]] | None:
        """Physical address and size of what [address, address + size) consists of. ``None``: it is
        not the kernel's, or not all of it is there, or it is not hidden."""
        tables = self._remote.register("cr3")
        if not tables & _USER_TABLES or not is_kernels(address):
            return None
        top = tables & ~(_USER_TABLES | _FLAGS)
        levels = 5 if self._remote.register("cr4") & _FIVE_LEVELS else 4
        pieces = []
        end = address + size
        while address < end:
            found = leaf(self._remote.read_raw, top, direct_map=0, address=address, levels=levels)
            if found is None:
                return None
            piece = min(end, (address // found.size + 1) * found.size) - address
            pieces.append((found.physical(address), piece))
            address += piece
        return pieces
