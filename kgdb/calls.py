"""Calls of the kernel's functions, in a task that is borrowed while it makes a system call.

The debugger may be killed at any moment of a call, and nobody would give the task back its
registers. So they lie on its own stack, as an interrupt would have left them there (``struct
pt_regs``, arch/x86/include/asm/ptrace.h), and the function returns to where the kernel itself comes
back from interrupts, which takes all of them from there (arch/x86/entry/entry_64.S). A debugger
that lives stops the task at that place, for the function's result. What begins a call and what ends
it is set in one step, so that no debugger dies between two registers.

Of the kernel's ways back two will do, the first one that it has: ``nmi_restore``, where it comes
back from interrupts that cannot be masked, and ``restore_regs_and_return_to_kernel`` (since Linux
4.16), where it does so from all others that came to its own code. Ticks come by the second one
hundreds of times a second, and the debugger stops the machine each time: the first call of an
analysis took 4 to 15 s there in a machine that was busy, on a busy host, and had no end where that
left the machine no time between two ticks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iced_x86 import Code, Register

from darc.code.architecture import HandMadeCall
from darc.code.processor import (
    FLAGS,
    GENERAL,
    PROGRAM_COUNTER,
    RESULT,
    STACK_POINTER,
    call_by_hand,
    free_slot,
)
from darc.code.x86_64 import decode
from darc.model.errors import TargetError
from kgdb.remote import Remote

_INTERRUPT_FLAG = 0x200
_CLEARANCE = 256
"""Bytes of the stack of the task that is borrowed for a call that are left alone."""

_POPPED = (
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi",
    "rdi",
)  # fmt: skip
_SEGMENTS = ("cs", "ss")
_INTERRUPTED = (PROGRAM_COUNTER, "cs", FLAGS, STACK_POINTER, "ss")

LOOKED_AT = 64
"""Bytes of the kernel's way back from interrupts: its checks, and all that it pops."""

_CALL, _CALL_SIZE = 0xE8, 5
_WAITING = "waits for the kernel"
_NO_TASK = (
    "no task made a system call, in which darc gets memory for its probes: let something run in "
    "the machine, a command at its console, say, and try again"
)


@dataclass(frozen=True)
class WayBack:
    """Where code takes all registers from the frame that the stack pointer is at."""

    address: int
    passed_by: int
    """Words between the general registers and what an interrupt leaves there: ``orig_ax``, and
    what an NMI has behind that."""
    cleared: int
    """Words behind the frame that it clears."""


def way_back(code: bytes, address: int) -> WayBack | None:
    """What the kernel's ``code`` at an address is as a way back; ``None``: it is none that is known
    here. A kernel for tests of its own entries (``CONFIG_DEBUG_ENTRY``) looks at the frame before.
    """
    instructions = list(decode(code, address))
    pops = [number for number, one in enumerate(instructions) if one.code == Code.POP_R64]
    if len(pops) < len(_POPPED):
        return None
    first, behind = pops[0], pops[0] + len(_POPPED)
    popped = [one.op0_register for one in instructions[first:behind]]
    if behind >= len(instructions) or popped != [getattr(Register, n.upper()) for n in _POPPED]:
        return None
    last = instructions[behind]
    if last.code != Code.ADD_RM64_IMM8 or last.op0_register != Register.RSP:
        return None
    if last.immediate8 == 8:
        return WayBack(address, 1, 0)
    is_nmis = last.immediate8 == 0x30 and code[last.next_ip - address :].startswith(_ENDS_NMI)
    return WayBack(address, 6, 1) if is_nmis else None


_ENDS_NMI = bytes.fromhex("fd 48c744242800000000 48cf")
"""``std; movq $0, 40(%rsp); iretq``: its word that says that an NMI is being served."""

WAYS_BACK = ("nmi_restore", "restore_regs_and_return_to_kernel")
"""The kernel's names for them."""


class KernelCalls:
    """Through one connection; see :meth:`go_to_system_call`."""

    def __init__(self, remote: Remote, way_back: Callable[[], WayBack | None]) -> None:
        """``way_back`` finds it; ``None``: the kernel has none, and a debugger that is killed
        within a call is the task's end."""
        self._remote = remote
        self._way_back = way_back
        self._place: int | None = None

    def go_to_system_call(self, address: int, is_quiet: Callable[[], bool]) -> None:
        """Lets the kernel run until a task has just made a system call: ``address`` is where
        its handler begins or is called. There functions may be called that allocate and sleep:
        interrupts are on, nothing is locked (``is_quiet``)."""

        def accepts() -> bool:
            return bool(self._remote.register(FLAGS) & _INTERRUPT_FLAG) and is_quiet()

        self._place = None
        self._remote.run_to(address, accepts, "waits until a task makes a system call", _NO_TASK)
        self._place = address

    def call(self, address: int, arguments: Sequence[int]) -> int:
        """Calls a function of the kernel in the task that :meth:`go_to_system_call` has stopped,
        on its stack; other processors and tasks go on meanwhile. The debugger's own way would need
        an executable stack."""
        place = self._borrowed()
        saved = self._registers()
        way_back = self._way_back()
        frame = b"" if way_back is None else self._frame(saved, way_back)
        slot = free_slot(saved[STACK_POINTER], _CLEARANCE + len(frame))
        back = place if way_back is None else way_back.address
        call = call_by_hand(address, arguments, slot, back)
        try:
            return self._run(call, saved, frame)
        finally:
            if self._remote.register(STACK_POINTER) in (call.slot, call.stack_behind):
                self._restore(saved)  # it is the task itself, before or after the call

    def _frame(self, saved: dict[str, int], way_back: WayBack) -> bytes:
        known = saved | {name: self._remote.register(name) for name in _SEGMENTS}
        words = [known[name] for name in _POPPED]
        words += [0] * way_back.passed_by
        words += [known[name] for name in _INTERRUPTED]
        words += [0] * way_back.cleared
        return struct.pack(f"<{len(words)}Q", *words)

    def call_instead(self, address: int, arguments: Sequence[int]) -> int:
        """The same where the stack pointer cannot be set (kgdb), and what is below it is in use:
        the function is entered in place of the handler, by whose call the task is at its place.
        That call is made again in the end."""
        place = self._borrowed()
        saved = self._registers()
        slot = saved[STACK_POINTER]
        call = call_by_hand(address, arguments, slot, place)
        back = self._remote.target.memory.read(slot, 8)
        again = int.from_bytes(back, "little") - _CALL_SIZE
        self._check_call(again, place)
        try:
            return self._run(call, saved)
        finally:
            reached = self._remote.register(STACK_POINTER)
            if reached == slot:  # it was not called
                self._remote.target.memory.write(slot, back)
                self._restore(saved)
            elif reached == call.stack_behind:
                self._restore(saved | {PROGRAM_COUNTER: again})
                self._run_to(place, stack_pointer=slot)

    def _check_call(self, address: int, target: int) -> None:
        code = self._remote.target.memory.read(address, _CALL_SIZE)
        reached = address + _CALL_SIZE + int.from_bytes(code[1:], "little", signed=True)
        if code[0] != _CALL or reached != target:
            raise TargetError("the kernel's handler of system calls is not called as darc expects")

    def _borrowed(self) -> int:
        """Where the task stands that is borrowed for a call."""
        if self._place is None or self._remote.register(PROGRAM_COUNTER) != self._place:
            raise TargetError("no task stands at a system call: type 'continue', then try again")
        return self._place

    def _registers(self) -> dict[str, int]:
        return {name: self._remote.register(name) for name in GENERAL}

    def _restore(self, saved: dict[str, int]) -> None:
        self._remote.set_registers(saved)

    def _run(self, call: HandMadeCall, saved: dict[str, int], behind: bytes = b"") -> int:
        """Makes it in the borrowed task, whose registers are ``saved``: those are set alone that it
        has otherwise, as there may be some that cannot be. ``behind`` is what the stack is to have
        behind the return address."""
        self._remote.target.memory.write(call.slot, call.return_address() + behind)
        wanted = call.registers().items()
        self._remote.set_registers({n: value for n, value in wanted if saved[n] != value})
        self._run_to(call.back, stack_pointer=call.stack_behind)
        return self._remote.register(RESULT)

    def _run_to(self, address: int, *, stack_pointer: int) -> None:
        """Until the borrowed task is there, which its stack tells from all others."""

        def is_there() -> bool:
            return self._remote.register(STACK_POINTER) == stack_pointer

        self._remote.run_to(address, is_there, _WAITING)
