"""What frame information calls x86-64's registers (System V ABI, AMD64 supplement, figure 3.36),
and the kernel where it samples them: see :class:`~darc.code.architecture.FrameRegisters`.
"""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[int, str] = {
    0: "rax", 1: "rdx", 2: "rcx", 3: "rbx", 4: "rsi", 5: "rdi", 6: "rbp", 7: "rsp",
    8: "r8", 9: "r9", 10: "r10", 11: "r11", 12: "r12", 13: "r13", 14: "r14", 15: "r15",
}  # fmt: skip
FRAME_POINTER = 6
RETURN_ADDRESS = 16
SAMPLED = 1 << 6 | 1 << 7 | 1 << 8
"""rbp, rsp and rip (``PERF_REG_X86_BP``, ``_SP`` and ``_IP``)."""
