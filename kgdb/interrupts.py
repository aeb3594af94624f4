"""What interrupts any function of a kernel, each as a call that stands at its own entry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from darc.code.architecture import Site
from darc.code.processor import decode
from darc.model.ftree import CallKind, Function
from kgdb.devices import Devices
from kgdb.foreign_probes import FTRACE_NOP

PREEMPTS = "preempt_schedule_irq"
_DEVICES = "__common_interrupt"
_INTERRUPTS = (
    _DEVICES,
    "__sysvec_apic_timer_interrupt",
    "__sysvec_call_function",
    "__sysvec_call_function_single",
    "__sysvec_irq_work",
    "__sysvec_hyperv_callback",
    "__sysvec_hyperv_stimer0",
    "__sysvec_xen_hvm_callback",
    "__sysvec_kvm_asyncpf_interrupt",
    "irq_exit_rcu",
    PREEMPTS,
)
"""What interrupts any function: handlers, soft interrupts behind them, and the scheduler where
another task is to run then."""

_HYPERVISORS = {"hyperv": 2, "xen": 4, "kvm": 5}
"""Of ``enum x86_hypervisor_type``, those whose handlers have their names."""

_VECTORS = {
    "__sysvec_apic_timer_interrupt": 0xEC,
    "__sysvec_hyperv_stimer0": 0xED,
    "__sysvec_hyperv_callback": 0xF3,
    "__sysvec_xen_hvm_callback": 0xF3,
    "__sysvec_kvm_asyncpf_interrupt": 0xF3,
    "__sysvec_irq_work": 0xF6,
    "__sysvec_call_function_single": 0xFB,
    "__sysvec_call_function": 0xFC,
}
"""irq_vectors.h"""


class Interrupted(Protocol):
    """The kernel that they interrupt."""

    def value(self, name: str) -> int | None: ...
    def way_in(self, entry: int) -> int: ...
    def read(self, address: int, size: int) -> bytes: ...


class InterruptHandlers:
    """The handlers of a kernel's interrupts; ``devices`` tell whose interrupts are whose."""

    def __init__(self, program: Interrupted, devices: Devices | None) -> None:
        self._program = program
        self._devices = devices

    def sites(self) -> Iterator[Site]:
        """Those that can be entered, each as a call that stands at its own entry."""
        for name in _INTERRUPTS:
            entry = self._program.value(name)
            if entry is None or not self._is_in_use(name):
                continue
            at = self._program.way_in(entry)
            if self._program.read(at, 5) == FTRACE_NOP:
                nop, kind = decode(FTRACE_NOP, at)[0], CallKind.INTERRUPT
                is_one = self._devices is None or name != _DEVICES
                yield Site(
                    address=entry,
                    kind=kind,
                    patch=at,
                    length=5,
                    back=at + 5,
                    target=None,
                    pointer=None,
                    instruction=nop,
                    slot=None,
                    is_own_callee=is_one,
                )

    def _is_in_use(self, name: str) -> bool:
        owner = next((own for own in _HYPERVISORS if f"_{own}_" in name), None)
        place = self._program.value("x86_hyper_type")
        if owner is None or place is None:
            return True
        return int.from_bytes(self._program.read(place, 4), "little") == _HYPERVISORS[owner]

    def note(self, handler: Function) -> str | None:
        """Which vector or device a handler was entered for, where that can be told."""
        vector = _VECTORS.get(handler.symbol)
        if vector is not None:
            return f"vector {vector:#x}"
        return self._devices.note(handler.address) if self._devices is not None else None
