"""Calls of the kernel's functions, in a task that is borrowed while it makes a system call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from darc.code.convention import FLAGS, GENERAL, HandMadeCall, free_slot
from darc.code.processor import PROGRAM_COUNTER, RESULT, STACK_POINTER
from darc.model.errors import TargetError
from kgdb.remote import Remote

_INTERRUPT_FLAG = 0x200
_CLEARANCE = 256
"""Bytes of the stack of the task that is borrowed for a call that are left alone."""

_CALL, _CALL_SIZE = 0xE8, 5
_WAITING = "waits for the kernel"
_NO_TASK = (
    "no task made a system call, in which darc gets memory for its probes: let something run in "
    "the machine, a command at its console, say, and try again"
)


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
        slot = free_slot(saved[STACK_POINTER], _CLEARANCE)
        call = HandMadeCall(address, arguments, slot, place)
        try:
            return self._run(call, saved)
        finally:
            if self._remote.register(STACK_POINTER) in (call.slot, call.stack_behind):
                self._restore(saved)  # it is the task itself, before or after the call

    def call_instead(self, address: int, arguments: Sequence[int]) -> int:
        """The same where the stack pointer cannot be set (kgdb), and what is below it is in use:
        the function is entered in place of the handler, by whose call the task is at its place.
        That call is made again in the end."""
        place = self._borrowed()
        saved = self._registers()
        slot = saved[STACK_POINTER]
        call = HandMadeCall(address, arguments, slot, place)
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
        for name, value in saved.items():
            if self._remote.register(name) != value:
                self._remote.set_register(name, value)

    def _run(self, call: HandMadeCall, saved: dict[str, int]) -> int:
        """Makes it in the borrowed task, whose registers are ``saved``: those are set alone that it
        has otherwise, as there may be some that cannot be."""
        self._remote.target.memory.write(call.slot, call.return_address())
        for name, value in call.registers().items():
            if saved[name] != value:
                self._remote.set_register(name, value)
        self._run_to(call.back, stack_pointer=call.stack_behind)
        return self._remote.register(RESULT)

    def _run_to(self, address: int, *, stack_pointer: int) -> None:
        """Until the borrowed task is there, which its stack tells from all others."""

        def is_there() -> bool:
            return self._remote.register(STACK_POINTER) == stack_pointer

        self._remote.run_to(address, is_there, _WAITING)
