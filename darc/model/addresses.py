"""Whose addresses are: a kernel's, or a program's."""

from __future__ import annotations

_KERNELS_HALF = 1 << 63
"""Of 64 bits the upper half is the kernel's in Linux, by its rules for x86-64, and for arm64, too
(Documentation/arch/x86/x86_64/mm.rst, arch/arm64/memory.rst): no processor is asked, and of calls
in a file none could be."""


def is_kernels(address: int) -> bool:
    """Whether an address is in the kernel's half, as it was linked or as it was moved."""
    return address >= _KERNELS_HALF
