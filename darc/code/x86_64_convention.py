"""How functions are called by hand on x86-64 (System V ABI): what
:class:`~darc.code.architecture.Convention` asks for.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from darc.code.architecture import SignalFrame
from darc.code.frame_rule import WORD, WORD_SIZE
from darc.code.x86_64 import PROGRAM_COUNTER, RESULT, RETURN, STACK_POINTER, SYSTEM_CALL

_ALIGNMENT = 16
_TRAP_FLAG = 1 << 8
_SET_NUMBER = b"\xb8"  # mov eax, imm32
_MOVE_FOURTH = b"\x49\x89\xca"  # mov r10, rcx

ARGUMENTS: tuple[str, ...] = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
"""Of a function, the first one first."""
SYSTEM_CALL_ARGUMENTS: tuple[str, ...] = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
"""Of a system call. Its number stands where the result will."""
SCRATCH: tuple[str, ...] = (RESULT, "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
"""What a call may leave otherwise, as may the flags."""
KEPT: tuple[str, ...] = ("rbx", "rbp", "r12", "r13", "r14", "r15")
"""What a function leaves as it was, unless it does not come to its end."""
FLAGS = "eflags"
GENERAL: tuple[str, ...] = (*SCRATCH, *KEPT, STACK_POINTER, FLAGS, PROGRAM_COUNTER)
"""All that a call by hand may change; what says where the thread goes on comes last."""

SIGNAL_FRAME = SignalFrame(back=-176, alternate=-152, vector_state=56, registers_before=16)
"""``struct rt_sigframe`` (arch/x86/include/asm/sigframe.h)."""
PROGRAMS_END = 0x7FFF_FFFF_0000
"""Of 47 bits (``TASK_SIZE_MAX``), but for the last pages."""
GUARD, GUARD_TURN = 0x30, 0x11
"""Of ``PTR_MANGLE``: see ``sysdeps/unix/sysv/linux/x86_64/pointer_guard.h`` of glibc."""


def without_traps(flags: int) -> int:
    """The flags of a program that steps itself (TF), for code that is none of its: a trap while
    signals are blocked would be its end, whatever handler it has."""
    return flags & ~_TRAP_FLAG


@dataclass(frozen=True)
class SystemVCall:
    """A call of the function at ``address`` that is made by setting the registers of a stopped
    thread, which comes back to ``back``: that stands in the stack word at ``slot`` by then."""

    address: int
    arguments: Sequence[int]
    slot: int
    back: int

    def return_address(self) -> bytes:
        """What is to stand at ``slot``."""
        return struct.pack("<Q", self.back)

    def registers(self) -> dict[str, int]:
        """What is to be set, in this order. The register of the result is cleared: no arguments are
        in vector registers, and the kernel restarts no system call that the thread was in."""
        arguments = zip(ARGUMENTS, self.arguments, strict=False)
        return {
            STACK_POINTER: self.slot,
            **{name: value & WORD for name, value in arguments},
            RESULT: 0,
            PROGRAM_COUNTER: self.address,
        }

    @property
    def stack_behind(self) -> int:
        """The stack pointer of a thread that has come back from it."""
        return self.slot + WORD_SIZE

    def has_returned(self, program_counter: int, stack_pointer: int) -> bool:
        """Whether a thread that is here has come back from it."""
        return (program_counter, stack_pointer) == (self.back, self.stack_behind)


def system_call_function(number: int) -> bytes:
    """The code of a function that makes this system call, with its own arguments, and returns what
    the kernel does."""
    return _SET_NUMBER + struct.pack("<I", number) + _MOVE_FOURTH + SYSTEM_CALL + RETURN


def free_slot(stack_pointer: int, distance: int) -> int:
    """Where a return address may stand, at least so many bytes below the stack pointer, for the
    function to find its stack aligned."""
    return ((stack_pointer - distance) & -_ALIGNMENT) - WORD_SIZE


call_by_hand = SystemVCall
