"""Memory that a kernel's own functions give, as to a module. It is never given back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from darc.model.errors import TargetError, UnsupportedError
from darc.target.memory import PAGE
from kgdb.program import KernelProgram

MakeCall = Callable[[int, Sequence[int]], int]
"""Calls a function of the kernel."""

_EXECMEM_MODULE_TEXT = 0


class KernelAllocator:
    """Of one kernel; ``call`` is :meth:`kgdb.calls.KernelCalls.call`."""

    def __init__(self, kernel: KernelProgram, call: MakeCall, *, writes_text: bool) -> None:
        """``writes_text``: the debugger writes also what is read-only."""
        self._kernel = kernel
        self._call = call
        self._writes_text = writes_text

    def data(self, size: int) -> int:
        """Memory for data, all zero; 0: there is none."""
        return self._call(self._function("vzalloc_noprof", "vzalloc"), [size])

    def code(self, size: int) -> int:
        """Memory in reach of the kernel's code, to be executed.

        Raises:
            TargetError: there is none.
        """
        if self._kernel.value("module_alloc") is not None:
            base = self._call(self._function("module_alloc"), [size])
        else:
            base = self._call(self._function("execmem_alloc"), [_EXECMEM_MODULE_TEXT, size])
        if not base:
            raise TargetError(f"the kernel has no {size >> 20} MiB of memory for modules")
        for name in ("set_memory_ro", "set_memory_x")[not self._writes_text :]:
            error = self._call(self._function(name), [base, size // PAGE])
            if error & 0xFFFFFFFF:
                raise TargetError(f"the kernel's {name} failed for the memory of the pads")
        return base

    def _function(self, *names: str) -> int:
        """The first of them that the kernel has.

        Raises:
            UnsupportedError: it has none.
        """
        for name in names:
            found = self._kernel.value(name)
            if found is not None:
                return found
        raise UnsupportedError(f"the kernel has no function {names[0]}: darc finds no memory there")
