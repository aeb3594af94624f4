"""Devices' interrupts: which vector leads to which handler.

All of them come in by one function of the kernel's (``__common_interrupt``), which finds the line
that a vector stands for in a table of its processor (``vector_irq``, arch/x86/kernel/irq.c). A line
has a list of actions, each with a handler and a device's name (``/proc/interrupts`` shows them).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from darc.agent.fieldvalues import ControlWords
from darc.code.frame_rule import WORD
from darc.model.addresses import is_kernels
from darc.model.errors import FormatError, TargetError
from darc.target.memory import Read
from kgdb import tasks
from kgdb.image import AddressOf, KernelImage

_VECTORS = 256
_NAME_SIZE = 64
_MOST_ACTIONS = 16
"""Of one line that devices share; more is no list but a mistake."""

_ERRORS = (1 << 64) - 4096


@dataclass(frozen=True)
class TtyLayout:
    """The value of the table's symbol, and offsets in bytes: of a line's first action, of an
    action's parts."""

    table: int
    action: int
    handler: int
    name: int
    following: int

    def for_agent(self, bias: int) -> ControlWords:
        """What the agent is told, to tell devices apart; ``bias`` is how far the kernel was
        moved."""
        return {
            "vectors_at": tasks.seen_from_gs(self.table, bias),
            "action_at": self.action,
            "handler_at": self.handler,
        }


@functools.lru_cache(maxsize=4)
def layout(image: KernelImage) -> TtyLayout | None:
    """Where one kernel has what. ``None``: it has no such table, or no types."""
    table = image.values.get("vector_irq")
    if table is None:
        return None
    try:
        types = tasks.types(image)
        return TtyLayout(
            table,
            types.offset("irq_desc", "action"),
            *(types.offset("irqaction", field) for field in ("handler", "name", "next")),
        )
    except FormatError:
        return None


class Devices:
    """Those of a kernel that has stopped."""

    def __init__(self, read: Read, value: AddressOf, layout: TtyLayout, bias: int = 0) -> None:
        """``bias`` is how far the kernel was moved."""
        self._table = tasks.seen_from_gs(layout.table, bias)
        self._read = read
        self._value = value
        self._layout = layout

    def note(self, handler: int) -> str | None:
        """The vectors and the names of what has the handler at an address. ``None``: nothing."""
        try:
            found = dict.fromkeys(self._lines(handler))
        except TargetError:
            return None
        return ", ".join(f"vector {vector:#x} of {name}" for vector, name in found) or None

    def _lines(self, handler: int) -> Iterator[tuple[int, str]]:
        for base in self._processors():
            table = self._read(base + self._table & WORD, 8 * _VECTORS)
            for vector in range(_VECTORS):
                line = int.from_bytes(table[8 * vector : 8 * vector + 8], "little")
                for own, name in self._actions(line):
                    if own == handler:
                        yield vector, name

    def _processors(self) -> Iterator[int]:
        """Where the variables of each begin."""
        offsets, count = self._value("__per_cpu_offset"), self._value("nr_cpu_ids")
        if offsets is None or count is None:
            return
        number = int.from_bytes(self._read(count, 4), "little")
        raw = self._read(offsets, 8 * number)
        yield from (int.from_bytes(raw[at : at + 8], "little") for at in range(0, len(raw), 8))

    def _actions(self, line: int) -> Iterator[tuple[int, str]]:
        """Handlers and names of a line's devices."""
        if not _is_pointer(line):
            return
        at = self._word(line + self._layout.action)
        for _ in range(_MOST_ACTIONS):
            if not _is_pointer(at):
                return
            text = self._word(at + self._layout.name)
            raw = self._read(text, _NAME_SIZE) if _is_pointer(text) else b"?"
            name = raw.split(b"\0")[0].decode("ascii", "replace")
            yield self._word(at + self._layout.handler), name
            at = self._word(at + self._layout.following)

    def _word(self, address: int) -> int:
        return int.from_bytes(self._read(address, 8), "little")


def _is_pointer(value: int) -> bool:
    return is_kernels(value) and value < _ERRORS
