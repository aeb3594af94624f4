"""What only a debugger can do with a kernel: let it run to a place, and call a function of it.

On gdb's Python API, over a remote connection: QEMU's gdbstub or kgdb. All processors stand still
whenever gdb does.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence

import gdb

from darc.model.errors import TargetError
from darc.target.ownthread import begin_thread
from darc_gdb.target import GdbTarget

_WORD = (1 << 64) - 1
_REGISTERS = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip eflags".split()
_ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_INTERRUPT_FLAG = 0x200
_CLEARANCE = 256
"""Bytes of the stack of the task that is borrowed for a call that are left alone."""

_PHYSICAL = "Qqemu.PhyMemMode:"

_CALL, _CALL_SIZE = 0xE8, 5
_PATIENCE = 60
"""Seconds."""
_SOON = 1.0
"""Seconds to wait before the user is told what for."""


class _Gate(gdb.Breakpoint):  # type: ignore[misc]
    def __init__(self, address: int, accepts: Callable[[], bool]) -> None:
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True
        self.accepts = accepts
        self.arrived = False
        self.failed: Exception | None = None

    def stop(self) -> bool:
        try:
            self.arrived = self.arrived or self.accepts()
        except Exception as error:  # gdb would say it aside, and stop as if it had been reached
            self.failed = error
        return self.arrived or self.failed is not None


class Guest:
    """The kernel behind gdb's remote connection."""

    def __init__(self, target: GdbTarget) -> None:
        self._target = target
        self._place: int | None = None
        self._set: list[tuple[str, str]] = []

    @functools.cached_property
    def is_qemu(self) -> bool:
        """Whether the connection is to QEMU's gdbstub, which can watch memory."""
        return "ENABLE=" in gdb.execute("maint packet qqemu.sstepbits", to_string=True)

    @staticmethod
    def be_patient() -> None:
        """Lets gdb wait for answers as long as a busy host may take for them, from now on. By
        itself it asks again after two seconds, is answered twice, and from then on takes each
        answer for that to another question."""
        if gdb.parameter("remotetimeout") < _PATIENCE:
            gdb.execute(f"set remotetimeout {_PATIENCE}", to_string=True)

    def move_symbols(self, path: str, value: int, bias: int) -> None:
        """Lets gdb know where the kernel really is, if it does not: the file's ``linux_banner``,
        at ``value`` there, is ``bias`` higher."""
        with contextlib.suppress(gdb.error):
            known = int(gdb.parse_and_eval("(unsigned long) &linux_banner")) & _WORD
            if known != (value + bias) & _WORD:
                with gdb.with_parameter("confirm", False):
                    quoted = "'" + path.replace("'", "'\\''") + "'"
                    gdb.execute(f"symbol-file {quoted} -o {bias:#x}", to_string=True)

    def set(self, settings: Sequence[tuple[str, str, str | None]]) -> None:
        """Changes settings of gdb until :meth:`unset`: the name, the value, the value then
        (``None``: what it was)."""
        for name, value, after in settings:
            before = gdb.parameter(name) if after is None else after
            text = {True: "on", False: "off"}.get(before, before)
            self._set.insert(0, (name, str(text)))
            self._setting(name, value)

    def unset(self) -> None:
        """Undoes :meth:`set`."""
        while self._set:
            self._setting(*self._set.pop(0))

    @staticmethod
    def _setting(name: str, value: str) -> None:
        with gdb.with_parameter("confirm", False):
            gdb.execute(f"set {name} {value}", to_string=True)

    # ------------------------------------------------------------------- running

    def run_to(self, address: int, accepts: Callable[[], bool], waiting: str) -> None:
        """Lets everything run until a processor comes to ``address`` and ``accepts`` says yes,
        which may look at its registers; that one is gdb's thread then.
        ``waiting`` tells the user what for, if that takes long.

        Raises:
            TargetError: it stopped for something else, Ctrl-C for example.
        """
        gate = _Gate(address, accepts)
        try:
            with self._target.on_errand(), self._without_users_breakpoints(), _told(waiting):
                gdb.execute("continue", to_string=True)
        except gdb.error as error:
            raise TargetError(f"gdb: {str(error).splitlines()[0].rstrip('.')}") from None
        finally:
            gate.delete()
        if gate.failed is not None:
            raise gate.failed
        if not gate.arrived:
            raise TargetError(f"interrupted: darc {waiting}")

    @contextlib.contextmanager
    def _without_users_breakpoints(self) -> Iterator[None]:
        """They are the user's to be stopped by, not darc's."""
        disabled = [b for b in gdb.breakpoints() if b.number > 0 and b.enabled]
        for own in disabled:
            own.enabled = False
        try:
            yield
        finally:
            for own in disabled:
                if own.is_valid():
                    own.enabled = True

    def register(self, name: str) -> int:
        """A register of the processor that is gdb's thread. Raises TargetError."""
        try:
            return int(gdb.newest_frame().read_register(name)) & _WORD
        except gdb.error as error:
            raise TargetError(f"gdb: {error}") from None

    def _write(self, name: str, value: int) -> None:
        gdb.execute(f"set ${name} = {value:#x}", to_string=True)

    @contextlib.contextmanager
    def physical(self) -> Iterator[bool]:
        """Whether gdb's addresses are physical ones meanwhile, as QEMU (4.1 and newer) allows: the
        machine itself knows nothing of it."""
        signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield self._ask(f"{_PHYSICAL}1")
        finally:
            try:
                self._ask(f"{_PHYSICAL}0")
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, signals)

    def be_virtual(self) -> None:
        """gdb's addresses are virtual ones, which an earlier debugger may have left otherwise."""
        if self.is_qemu:
            self._ask(f"{_PHYSICAL}0")

    @staticmethod
    def _ask(packet: str) -> bool:
        return '"OK"' in gdb.execute(f"maint packet {packet}", to_string=True)

    # --------------------------------------------------------------------- calls

    def go_to_system_call(self, address: int, is_quiet: Callable[[], bool]) -> None:
        """Lets the kernel run until a task has just made a system call: ``address`` is where
        its handler begins or is called. There functions may be called that allocate and sleep:
        interrupts are on, nothing is locked (``is_quiet``)."""

        def accepts() -> bool:
            return bool(self.register("eflags") & _INTERRUPT_FLAG) and is_quiet()

        self._place = None
        self.run_to(address, accepts, "waits until a task makes a system call")
        self._place = address

    def call(self, address: int, arguments: Sequence[int]) -> int:
        """Calls a function of the kernel in the task that :meth:`go_to_system_call` has stopped,
        on its stack; other processors and tasks go on meanwhile. gdb's own way would need an
        executable stack."""
        place = self._borrowed()
        saved = self._registers()
        own = ((saved["rsp"] - _CLEARANCE) & ~15) - 8
        try:
            self._target.write(own, place.to_bytes(8, "little"))
            self._write("rsp", own)
            return self._run(address, arguments, own + 8)
        finally:
            if self.register("rsp") in (own, own + 8):  # the task itself, before or after the call
                self._restore(saved)

    def call_instead(self, address: int, arguments: Sequence[int]) -> int:
        """The same where the stack pointer cannot be set (kgdb), and what is below it is in use:
        the function is entered in place of the handler, by whose call the task is at its place.
        That call is made again in the end."""
        place = self._borrowed()
        saved = self._registers()
        slot = saved["rsp"]
        back = self._target.read(slot, 8)
        again = int.from_bytes(back, "little") - _CALL_SIZE
        self._check_call(again, place)
        try:
            self._target.write(slot, place.to_bytes(8, "little"))
            return self._run(address, arguments, slot + 8)
        finally:
            reached = self.register("rsp")
            if reached == slot:  # it was not called
                self._target.write(slot, back)
                self._restore(saved)
            elif reached == slot + 8:
                self._restore(saved | {"rip": again})
                self.run_to(place, lambda: self.register("rsp") == slot, "waits for the kernel")

    def _check_call(self, address: int, target: int) -> None:
        code = self._target.read(address, _CALL_SIZE)
        reached = address + _CALL_SIZE + int.from_bytes(code[1:], "little", signed=True)
        if code[0] != _CALL or reached != target:
            raise TargetError("the kernel's handler of system calls is not called as darc expects")

    def _borrowed(self) -> int:
        """Where the task stands that is borrowed for a call."""
        if self._place is None or self.register("rip") != self._place:
            raise TargetError("no task stands at a system call: type 'continue', then try again")
        return self._place

    def _registers(self) -> dict[str, int]:
        return {name: self.register(name) for name in _REGISTERS}

    def _restore(self, saved: dict[str, int]) -> None:
        for name, value in saved.items():
            if self.register(name) != value:
                self._write(name, value)

    def _run(self, address: int, arguments: Sequence[int], rsp: int) -> int:
        """Runs the function in the borrowed task until it has returned, to where that stood, with
        the stack pointer at ``rsp``."""
        assert self._place is not None
        for name, value in zip(_ARGUMENTS, arguments, strict=False):
            self._write(name, value & _WORD)
        self._write("rax", 0)
        self._write("rip", address)
        self.run_to(self._place, lambda: self.register("rsp") == rsp, "waits for the kernel")
        return self.register("rax")


@contextlib.contextmanager
def _told(waiting: str) -> Iterator[None]:
    """Tells the user what darc waits for, when that takes long."""
    over = threading.Event()

    def tell() -> None:
        if not over.wait(_SOON):
            # Not by gdb, which keeps to itself whatever is written while the command runs.
            os.write(2, f"darc: {waiting}\n".encode())

    gdb.flush()
    thread = begin_thread(tell, "darc")
    try:
        yield
    finally:
        over.set()
        thread.join()
