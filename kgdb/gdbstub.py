"""What answers the debugger: QEMU's gdbstub from outside, or kgdb from inside the kernel.

QEMU stops the whole machine. kgdb is code of the kernel: a processor that is stopped runs it, on
the stack of the task that was stopped there, and reads and writes as the kernel may. The kernel's
text is read-only, so the debugger has to make it writable first, in the page tables; the kernel
looks there by itself when a write faults that was made by an older translation
(``spurious_kernel_fault``, arch/x86/mm/fault.c).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from darc.model.errors import TargetError
from darc.target.target import Target
from kgdb.image import AddressOf
from kgdb.pagetables import DIRECT_MAP, WRITABLE, Leaf, leaf

_KGDB_COUNTS = 0x11
"""What the exception by which kgdb is entered adds to ``preempt_count``: one interrupt and one NMI
(``irqentry_nmi_enter``), in units of one interrupt."""

_ANY_COUNTS = 0x7FFF_FFFF  # the highest bit is another matter
_CONTEXTS = 0x7FFF_FF00
"""The counts of interrupts alone: kgdb's own locks may disable preemption."""

_TABLES = "level3_kernel_pgt"
"""What maps the kernel's code and its modules."""

_HPET_CONFIG, _HPET_COUNTER = 0x10, 0xF0


class GdbStub:
    """QEMU's gdbstub: it reads and writes everything, and leaves no trace in the machine."""

    name = "QEMU"
    longest_packet: int | None = None
    """In bytes, where its line is to be spared while probes are in; see
    :meth:`kgdb.remote.Remote.spare_line`."""

    auto_lookahead: int | None = None
    """See :attr:`darc.pads.backend.PadBackend.auto_lookahead`."""

    blur = 10e-3
    """See :attr:`darc.debuggee.debuggee.Debuggee.breakpoints_blur`. What is emulated goes on slowly
    behind each stop: calls of microseconds were seen to take 3 to 20 ms."""

    hears_interrupts = True
    """Whether the debugger can stop what runs."""

    sets_stack_pointer = True
    """Whether a stopped task's can be set, and what lies below it is free."""

    writes_text = True
    """Whether it writes what the kernel has protected."""

    def __init__(self, target: Target, value: AddressOf, register: Callable[[str], int]) -> None:
        self._target = target
        self._value = value
        self._register = register

    @functools.cached_property
    def direct_map(self) -> int:
        """Where physical memory is mapped."""
        place = self._value("page_offset_base")
        return DIRECT_MAP if place is None else self._word(place)

    def why_no_pads(self) -> str | None:
        """Why the kernel's code cannot be patched by way of this."""
        return None

    def per_cpu_base(self) -> int:
        """Where the variables begin of the processor that is the debugger's thread."""
        return self._register("gs_base")

    def is_quiet(self, preempt_count: int) -> bool:
        """Whether the task with that count may allocate and sleep."""
        return preempt_count & _ANY_COUNTS == 0

    def clock(self) -> Callable[[], int] | None:
        """A clock of the machine, in ns, that stands still while it is stopped: the HPET, where
        the kernel has one. (IA-PC HPET specification 2.3; the time-stamp counter is no register
        of the gdbstub's.)"""
        place = self._value("hpet_virt_address")
        base = self._word(place) if place is not None else 0
        if not base or not self._word(base + _HPET_CONFIG) & 1:
            return None
        femtoseconds = self._word(base) >> 32
        return lambda: self._word(base + _HPET_COUNTER) * femtoseconds // 10**6

    def _word(self, address: int) -> int:
        return int.from_bytes(self._target.memory.read(address, 8), "little")

    def unlock(self, address: int, size: int) -> bool:
        """Makes memory writable that is not. Whether that changed anything."""
        return False

    def lock(self) -> None:
        """Undoes all of :meth:`unlock`."""

    def lock_again(self, start: int, end: int) -> None:
        """Undoes what another debugger has unlocked in the kernel's own text, [start, end)."""


class Kgdb(GdbStub):
    """kgdb, over a serial line."""

    name = "kgdb"
    longest_packet = 1000  # its buffer holds 1024
    auto_lookahead = 1  # a pad takes 350 bytes
    blur = 100e-3  # a hit takes 5 to 20 ms, with a function's call sites there are dozens
    hears_interrupts = False
    sets_stack_pointer = False
    writes_text = False

    def __init__(
        self,
        target: Target,
        value: AddressOf,
        register: Callable[[str], int],
        interrupts_count: Callable[[], int],
    ) -> None:
        """``interrupts_count`` is what one adds to ``preempt_count``."""
        super().__init__(target, value, register)
        self._interrupts_count = interrupts_count
        self._unlocked: list[int] = []
        self._unlocking = False

    def why_no_pads(self) -> str | None:
        if self._value(_TABLES) is not None:
            return None
        return "kgdb cannot write to the kernel's code, and its page tables are not found"

    def per_cpu_base(self) -> int:
        """kgdb has no such register, but says which processor it was entered on. Raises
        TargetError: it does not say."""
        active, offsets = self._value("kgdb_active"), self._value("__per_cpu_offset")
        if active is None or offsets is None:
            raise TargetError("the kernel does not say which processor kgdb has stopped")
        cpu = int.from_bytes(self._target.memory.read(active, 4), "little", signed=True)
        if cpu < 0:
            raise TargetError("kgdb has not stopped a processor")
        return int.from_bytes(self._target.memory.read(offsets + 8 * cpu, 8), "little")

    def clock(self) -> Callable[[], int] | None:
        return None  # the machine runs on while kgdb has stopped the kernel

    def is_quiet(self, preempt_count: int) -> bool:
        return preempt_count & _CONTEXTS == _KGDB_COUNTS * self._interrupts_count()

    def unlock(self, address: int, size: int) -> bool:
        if self._unlocking:
            return False
        self._unlocking = True
        try:
            return self._unlock(address, address + size)
        finally:
            self._unlocking = False

    def _unlock(self, at: int, end: int) -> bool:
        changed = False
        while at < end:
            found = self._leaf(at)
            if found is None:
                return False
            if not found.entry & WRITABLE:
                self._unlocked.append(found.place)
                self._set(found.place, found.entry | WRITABLE)
                changed = True
            at = (at // found.size + 1) * found.size
        return changed

    def lock(self) -> None:
        while self._unlocked:
            self._set(self._unlocked[-1], self._word(self._unlocked[-1]) & ~WRITABLE)
            self._unlocked.pop()

    def lock_again(self, start: int, end: int) -> None:
        enabled = self._value("rodata_enabled")
        if enabled is None or not self._target.memory.read(enabled, 1)[0]:
            return
        at = start
        while at < end and (found := self._leaf(at)) is not None:
            if found.entry & WRITABLE and found.place not in self._unlocked:
                self._set(found.place, found.entry & ~WRITABLE)
            at = (at // found.size + 1) * found.size

    def _leaf(self, address: int) -> Leaf | None:
        pointers = self._value(_TABLES)
        if pointers is None:
            return None
        return leaf(self._target.memory.read, pointers, self.direct_map, address=address)

    def _set(self, place: int, entry: int) -> None:
        self._target.memory.write(place, entry.to_bytes(8, "little"))


def gdbstub(
    target: Target,
    value: AddressOf,
    register: Callable[[str], int],
    interrupts_count: Callable[[], int],
) -> GdbStub:
    """That which answers now. The parameters are :class:`Kgdb`'s."""
    connected = value("kgdb_connected")
    if connected is not None and any(target.memory.read(connected, 4)):
        return Kgdb(target, value, register, interrupts_count)
    return GdbStub(target, value, register)
