"""A kernel that runs behind a debugger's remote connection: where it is, what its symbols are, what
protects its text, and how it is interrupted.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

from darc.code.processor import branch_target, decode, is_indirect_call, jump_target
from darc.model.errors import TargetError, UnsupportedError
from darc.target.outcome import Outcome
from kgdb import tasks
from kgdb.calls import LOOKED_AT, WAYS_BACK, KernelCalls, WayBack, way_back
from kgdb.gdbstub import GdbStub, gdbstub
from kgdb.image import KernelImage, kernel_file, live_value
from kgdb.isolation import KernelMemory
from kgdb.remote import Remote

_IDT = 0xFFFF_FE00_0000_0000
"""Where x86-64 kernels map their interrupt descriptors, whatever their own address."""

_KEY, _KEY_SIZE = "ptr_key", 16
"""What a kernel hides pointers by in its messages: a random number, once for each boot
(lib/vsprintf.c)."""

_PANICS, _NO_PROCESSOR = "panic_cpu", -1

PANICKED = "the kernel has panicked"
DEAD = f"{PANICKED}: no function of it is called until it boots anew"

BOOTED_ANEW = "the machine was booted anew, and the probes are gone"

_NOT_THERE_YET = (
    "the machine runs no kernel, or one that has just begun: let it boot ('continue', then "
    "Ctrl-C), and try again"
)

_FIRST_HANDLERS = ("asm_exc_divide_error", "divide_error")

STACK_SHIFT = 14
"""Stack pointers of one task are the same but for so many bits."""


@functools.lru_cache(maxsize=4)
def _image(path: Path, _stamp: tuple[int, int]) -> KernelImage:
    return KernelImage(path)


class Kernel:
    """The kernel that the debugger is connected to."""

    def __init__(self, remote: Remote) -> None:
        """Raises FormatError: the debugger's file is no kernel; UsageError: it has none."""
        self.remote = remote
        self.target = target = remote.target
        self.calls = KernelCalls(remote, lambda: self._way_back)
        remote.be_patient()
        remote.be_virtual()
        remote.reach_through(KernelMemory(remote) if remote.is_qemu else None)
        path = kernel_file(target)
        seen = path.stat()
        self.image = _image(path, (seen.st_size, seen.st_mtime_ns))
        self.path = str(path)
        self.has_limit = False
        """Whether the analysis is to end at some time: :meth:`arm_limit` was called."""
        self._disarm: list[Callable[[], None]] = []
        self._boot = b""
        self.begun = False
        """Whether probes may be put in: between :meth:`begin` and :meth:`leave`."""

    @functools.cached_property
    def bias(self) -> int:
        """What address space layout randomisation has added to the kernel's addresses."""
        return self.live_bias()

    def live_bias(self) -> int:
        """As it is now, should another kernel run by now. Raises UnsupportedError; TargetError:
        there is none yet, as the machine has not come that far."""
        try:
            entry = self.target.memory.read(_IDT, 16)
        except TargetError as error:
            raise TargetError(f"{error}: {_NOT_THERE_YET}") from error
        live = int.from_bytes(entry[0:2] + entry[6:12], "little")
        for name in _FIRST_HANDLERS:
            if name in self.image.values:
                return live - self.image.values[name]
        raise UnsupportedError(f"{self.image.name} names no handler of exceptions")

    @functools.cached_property
    def gdbstub(self) -> GdbStub:
        """What answers the debugger."""
        return gdbstub(
            self.target,
            self.value,
            self.remote.register,
            lambda: tasks.interrupts_count(self.image),
        )

    def value(self, name: str) -> int | None:
        """The live address of a symbol of the kernel's own."""
        return live_value(self.image, name, self.bias)

    @property
    def identity(self) -> int:
        """Stays the same until it boots anew."""
        return self.bias + 1

    def note_boot(self) -> None:
        """The kernel that runs now is the one that is meant."""
        self._boot = self._key()

    def _key(self) -> bytes:
        place = self.value(_KEY)
        return b"" if place is None else self.target.memory.read(place, _KEY_SIZE)

    def is_another(self) -> bool:
        """Whether a kernel runs that has been booted since. In user mode, with page-table
        isolation, nothing tells where the connection reads virtual addresses alone."""
        try:
            return self.live_bias() != self.bias or (any(self._boot) and self._key() != self._boot)
        except TargetError:
            # In the kernel's own mode all of it is there, but for one that has just begun.
            return self.remote.is_qemu and not self.remote.register("cs") & 3

    def has_panicked(self) -> bool:
        """Whether it has: the first processor that panics writes its number there, and stays
        (``panic_cpu``, kernel/panic.c). ``False`` where a kernel has no such word."""
        place = self.value(_PANICS)
        if place is None:
            return False
        try:
            raw = self.target.memory.read(place, 4)
        except TargetError:  # in user mode, where nothing of it is mapped: it does not run there
            return False
        return int.from_bytes(raw, "little", signed=True) != _NO_PROCESSOR

    def begin(self) -> None:
        """Something is about to be written into its text."""
        if self.begun:
            return
        self.begun = True
        if self.gdbstub.longest_packet is not None:
            self.remote.spare_line(self.gdbstub.longest_packet)
        self.remote.unlock_by(self.gdbstub.unlock)

    def leave(self, is_there: bool = True) -> None:
        """Undoes :meth:`begin`, as far as it ``is_there`` still."""
        if not self.begun:
            return
        self.begun = False
        try:
            if is_there:
                self.gdbstub.lock()
        finally:
            self.remote.unlock_by(None)
            self.remote.spare_line_no_more()

    def arm_limit(self, handler: Callable[[], Outcome]) -> None:
        """See :meth:`darc.debuggee.debuggee.Debuggee.arm_limit`."""
        self.has_limit = True
        if self.gdbstub.hears_interrupts:
            self.remote.arm_interrupt(handler)
            self._disarm.append(self.target.bell.disarm)

    def disarm_limit(self) -> None:
        """Takes back what :meth:`arm_limit` set."""
        while self._disarm:
            self._disarm.pop()()

    def enter(self) -> None:
        """Lets it go on until a task makes a system call, and may allocate and sleep."""
        self._check_lives()
        try:
            self.calls.go_to_system_call(self._system_calls(), self._is_quiet)
        except TargetError:
            self._check_lives()  # that is why none did
            raise

    def _check_lives(self) -> None:
        """Raises TargetError: no task will ever run."""
        if self.has_panicked():
            raise TargetError(DEAD)

    @functools.cached_property
    def _way_back(self) -> WayBack | None:
        """Where a task takes its registers from its stack; ``None``: no place is known."""
        for name in WAYS_BACK:
            at = self.image.values.get(name)
            if at is not None and (found := way_back(self.image.content(at, LOOKED_AT), at)):
                return dataclasses.replace(found, address=found.address + self.bias)
        return None

    def _system_calls(self) -> int:
        """Where each task comes by that makes a system call."""
        entry = self.value("x64_sys_call")
        if entry is not None:
            return entry
        start = self.image.values.get("do_syscall_64")
        symbol = self.image.symbols.at(start) if start is not None else None
        if start is None or symbol is None:
            raise UnsupportedError("the kernel has no do_syscall_64")
        code = self.image.content(start, symbol.size)
        for instruction in decode(code, start):
            if is_indirect_call(instruction):
                return instruction.ip + self.bias
            called = branch_target(instruction)
            if called is not None and jump_target(instruction) is None:
                names = self.image.symbols.names_at(called)
                if any(name.startswith("__x86_indirect_thunk") for name in names):
                    return instruction.ip + self.bias
        raise UnsupportedError("the kernel's handler of system calls is not understood")

    def _is_quiet(self) -> bool:
        """Whether the task that runs may allocate and sleep."""
        per_cpu_base = self.gdbstub.per_cpu_base()
        count = tasks.preempt_count(self.target, self.image, self.bias, per_cpu_base)
        return self.gdbstub.is_quiet(count)
