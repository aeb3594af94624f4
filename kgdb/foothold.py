"""The foothold in a kernel: memory that its own functions give, as to a module.

It is never given back: a task may sleep for days in a call that a pad has made. Another analysis
uses it again, also that of another debugger.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from darc.agent.memory import AgentMemory, plan
from darc.errors import TargetError, UnsupportedError
from darc.foothold import MARK, MARK_SIZE, Area, Foothold, ThreadKey
from darc.pads import x86_64 as pads
from darc.target import Target
from kgdb.program import KernelProgram

_PAGE = 4096
_AREA_SIZE = 1 << 20
_CONTEXTS = (64, 16)
_EXECMEM_MODULE_TEXT = 0

Call = Callable[[int, Sequence[int]], int]
"""Calls a function of the kernel."""


class KernelFoothold(Foothold):
    """The agent's memory in one kernel; ``call`` is :meth:`kgdb.guest.Guest.call`."""

    def __init__(
        self,
        target: Target,
        program: KernelProgram,
        identity: int,
        call: Call,
        enter: Callable[[], None],
    ) -> None:
        """``enter`` brings a task to where functions may be called."""
        super().__init__(target, program, identity)
        self._kernel = program
        self._call = call
        self._enter = enter

    def install(self, resolution: int) -> None:
        self._enter()
        super().install(resolution)

    def call(self, address: int, arguments: Sequence[int]) -> int:
        return self._call(address, arguments)

    def _kernels(self, *names: str) -> int:
        """The first of the functions that the kernel has."""
        for name in names:
            found = self._kernel.value(name)
            if found is not None:
                return found
        raise UnsupportedError(f"the kernel has no function {names[0]}: darc finds no memory there")

    def _take_tables(self) -> AgentMemory:
        allocate = self._kernels("vzalloc_noprof", "vzalloc")
        for count in _CONTEXTS:
            layout = plan(self._blob, count)
            base = self.call(allocate, [layout.size])
            if base:
                return AgentMemory(self._blob, base, layout, self._target.read, self._target.write)
        raise TargetError(f"the kernel has no {layout.size >> 20} MiB of memory to give")

    def _take_areas(self) -> None:
        if self._areas:
            return
        base = self._module_memory()
        if not base:
            raise TargetError(f"the kernel has no {_AREA_SIZE >> 20} MiB of memory for modules")
        self._target.write(base, MARK + struct.pack("<Q", self.tables.control))
        pages = _AREA_SIZE // _PAGE
        for name in ("set_memory_ro", "set_memory_x"):
            error = self.call(self._kernels(name), [base, pages])
            if error & 0xFFFFFFFF:
                raise TargetError(f"the kernel's {name} failed for the memory of the pads")
        start, end = _whole_block(base, base + _AREA_SIZE)
        if start != base:
            self._target.write(start, MARK + struct.pack("<Q", self.tables.control))
        self._areas.append(Area(start, end - start, MARK_SIZE))

    def _module_memory(self) -> int:
        """Memory in reach of the kernel's code."""
        if self._kernel.value("module_alloc") is not None:
            return self.call(self._kernels("module_alloc"), [_AREA_SIZE])
        return self.call(self._kernels("execmem_alloc"), [_EXECMEM_MODULE_TEXT, _AREA_SIZE])

    def _thread_key(self) -> ThreadKey:
        return ThreadKey.STACK

    def is_there(self) -> bool:
        try:
            magic = self.tables.get("magic")
        except TargetError:
            return False
        return magic == self._blob.constants["DARC_MAGIC"]

    def close(self) -> None:
        pass  # nothing of it is here


def _whole_block(start: int, end: int) -> tuple[int, int]:
    """The larger part of [start, end) that is in one block of pads."""
    border = end // pads.BLOCK * pads.BLOCK
    if not start < border < end:
        return start, end
    return (start, border) if border - start > end - border else (border, end)
