"""Calls of the kernel's functions, in a task that is borrowed while it makes a system call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from darc.model.errors import TargetError
from kgdb.remote import Remote

_WORD = (1 << 64) - 1
_REGISTERS = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip eflags".split()
_ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_INTERRUPT_FLAG = 0x200
_CLEARANCE = 256
"""Bytes of the stack of the task that is borrowed for a call that are left alone."""

_CALL, _CALL_SIZE = 0xE8, 5
_WAITING = "waits for the kernel"


class KernelCalls:
    """Through one connection; see :meth:`go_to_system_call`."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._place: int | None = None

    def go_to_system_call(self, address: int, is_quiet: Callable[[], bool]) -> None:
        """Lets the kernel run until a task has just made a system call: ``address`` is where
        its handler begins or is called. There functions may be called that allocate and sleep:
        interrupts are on, nothing is locked (``is_quiet``)."""

        def accepts() -> bool:
            return bool(self._remote.register("eflags") & _INTERRUPT_FLAG) and is_quiet()

        self._place = None
        self._remote.run_to(address, accepts, "waits until a task makes a system call")
        self._place = address

    def call(self, address: int, arguments: Sequence[int]) -> int:
        """Calls a function of the kernel in the task that :meth:`go_to_system_call` has stopped,
        on its stack; other processors and tasks go on meanwhile. The debugger's own way would need
        an executable stack."""
        place = self._borrowed()
        saved = self._registers()
        own = ((saved["rsp"] - _CLEARANCE) & ~15) - 8
        try:
            self._remote.target.memory.write(own, place.to_bytes(8, "little"))
            self._remote.set_register("rsp", own)
            return self._run(address, arguments, own + 8)
        finally:
            if self._remote.register("rsp") in (
                own,
                own + 8,
            ):  # the task itself, before or after the call
                self._restore(saved)

    def call_instead(self, address: int, arguments: Sequence[int]) -> int:
        """The same where the stack pointer cannot be set (kgdb), and what is below it is in use:
        the function is entered in place of the handler, by whose call the task is at its place.
        That call is made again in the end."""
        place = self._borrowed()
        saved = self._registers()
        slot = saved["rsp"]
        back = self._remote.target.memory.read(slot, 8)
        again = int.from_bytes(back, "little") - _CALL_SIZE
        self._check_call(again, place)
        try:
            self._remote.target.memory.write(slot, place.to_bytes(8, "little"))
            return self._run(address, arguments, slot + 8)
        finally:
            reached = self._remote.register("rsp")
            if reached == slot:  # it was not called
                self._remote.target.memory.write(slot, back)
                self._restore(saved)
            elif reached == slot + 8:
                self._restore(saved | {"rip": again})
                self._remote.run_to(
                    place, lambda: self._remote.register("rsp") == slot, "waits for the kernel"
                )

    def _check_call(self, address: int, target: int) -> None:
        code = self._remote.target.memory.read(address, _CALL_SIZE)
        reached = address + _CALL_SIZE + int.from_bytes(code[1:], "little", signed=True)
        if code[0] != _CALL or reached != target:
            raise TargetError("the kernel's handler of system calls is not called as darc expects")

    def _borrowed(self) -> int:
        """Where the task stands that is borrowed for a call."""
        if self._place is None or self._remote.register("rip") != self._place:
            raise TargetError("no task stands at a system call: type 'continue', then try again")
        return self._place

    def _registers(self) -> dict[str, int]:
        return {name: self._remote.register(name) for name in _REGISTERS}

    def _restore(self, saved: dict[str, int]) -> None:
        for name, value in saved.items():
            if self._remote.register(name) != value:
                self._remote.set_register(name, value)

    def _run(self, address: int, arguments: Sequence[int], rsp: int) -> int:
        """Runs the function in the borrowed task until it has returned, to where that stood, with
        the stack pointer at ``rsp``."""
        assert self._place is not None
        for name, value in zip(_ARGUMENTS, arguments, strict=False):
            self._remote.set_register(name, value & _WORD)
        self._remote.set_register("rax", 0)
        self._remote.set_register("rip", address)
        self._remote.run_to(
            self._place, lambda: self._remote.register("rsp") == rsp, "waits for the kernel"
        )
        return self._remote.register("rax")
