"""What only a debugger can do with a kernel: let it run to a place, and call a function of it.

On gdb's Python API, over a remote connection: QEMU's gdbstub or kgdb. All processors stand still
whenever gdb does.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence

import gdb

from darc.errors import TargetError
from darc_gdb.target import GdbTarget

_WORD = (1 << 64) - 1
_REGISTERS = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip eflags".split()
_ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_INTERRUPT_FLAG = 0x200
_CLEARANCE = 256
"""Bytes of the stack of the task that is borrowed for a call that are left alone."""

_SOON = 1.0
"""Seconds to wait before the user is told what for."""


class _Gate(gdb.Breakpoint):  # type: ignore[misc]
    def __init__(self, address: int, accepts: Callable[[], bool]) -> None:
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True
        self.accepts = accepts
        self.arrived = False

    def stop(self) -> bool:
        self.arrived = self.arrived or self.accepts()
        return self.arrived


class Guest:
    """The kernel behind gdb's remote connection."""

    def __init__(self, target: GdbTarget) -> None:
        self._target = target
        self._place: int | None = None

    @functools.cached_property
    def is_qemu(self) -> bool:
        """Whether the connection is to QEMU's gdbstub, which can watch memory."""
        return "ENABLE=" in gdb.execute("maint packet qqemu.sstepbits", to_string=True)

    def move_symbols(self, path: str, value: int, bias: int) -> None:
        """Lets gdb know where the kernel really is, if it does not: the file's ``linux_banner``,
        at ``value`` there, is ``bias`` higher."""
        with contextlib.suppress(gdb.error):
            known = int(gdb.parse_and_eval("(unsigned long) &linux_banner")) & _WORD
            if known == value:
                with gdb.with_parameter("confirm", False):
                    quoted = "'" + path.replace("'", "'\\''") + "'"
                    gdb.execute(f"symbol-file {quoted} -o {bias:#x}", to_string=True)

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
        """A register of the processor that is gdb's thread."""
        return int(gdb.newest_frame().read_register(name)) & _WORD

    def _write(self, name: str, value: int) -> None:
        gdb.execute(f"set ${name} = {value:#x}", to_string=True)

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
        place = self._place
        if place is None or self.register("rip") != place:
            raise TargetError("no task stands at a system call: type 'continue', then try again")
        saved = {name: self.register(name) for name in _REGISTERS}
        own = ((saved["rsp"] - _CLEARANCE) & ~15) - 8
        try:
            self._target.write(own, place.to_bytes(8, "little"))
            for name, value in zip(_ARGUMENTS, arguments, strict=False):
                self._write(name, value & _WORD)
            self._write("rax", 0)
            self._write("rsp", own)
            self._write("rip", address)
            self.run_to(place, lambda: self.register("rsp") == own + 8, "waits for the kernel")
            return self.register("rax")
        finally:
            if self.register("rsp") in (own, own + 8):  # the task itself, before or after the call
                for name, value in saved.items():
                    self._write(name, value)


@contextlib.contextmanager
def _told(waiting: str) -> Iterator[None]:
    """Tells the user what darc waits for, when that takes long."""
    over = threading.Event()

    def tell() -> None:
        if not over.wait(_SOON):
            gdb.post_event(lambda: None if over.is_set() else gdb.write(f"darc: {waiting}\n"))

    thread = threading.Thread(target=tell, name="darc", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
