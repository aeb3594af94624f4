"""What frame information calls x86-64's registers (System V ABI, AMD64 supplement, figure 3.36),
and code that is told by its bytes where that does not tell (see
:class:`~darc.code.architecture.FrameRegisters`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NAMES: Mapping[int, str] = {
    0: "rax", 1: "rdx", 2: "rcx", 3: "rbx", 4: "rsi", 5: "rdi", 6: "rbp", 7: "rsp",
    8: "r8", 9: "r9", 10: "r10", 11: "r11", 12: "r12", 13: "r13", 14: "r14", 15: "r15",
}  # fmt: skip
FRAME_POINTER = 6
RETURN_ADDRESS = 16

EXCEPTION_RETURN = re.compile(rb"\x48\x89\xcc\x59\xff\xe1")  # mov rsp, rcx; pop rcx; jmp rcx

SANDBOX_CALL = re.compile(
    rb"\xb8(?:\x9d\0\0\0|\x3d\x01\0\0).{0,24}?\x0f\x05|\x48\x89\xf8[^\xc3]{0,40}?\x0f\x05",
    re.DOTALL,
)
"""mov eax, 157 (prctl) or 317 (seccomp), or mov rax, rdi; and soon behind it a syscall."""
