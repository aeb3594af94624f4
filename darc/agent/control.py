"""The agent's control structure (``struct darc_control`` of ``abi.h``), in the program's memory."""

from __future__ import annotations

import dataclasses
import functools
from typing import Unpack

from darc.agent.compiled import Blob
from darc.agent.damage import guarded
from darc.agent.fieldnames import ControlField
from darc.agent.fieldvalues import ControlWords
from darc.agent.layout import Layout
from darc.target.memory import Read, Write

_EXCEPTIONS: tuple[ControlField, ...] = (
    ControlField.FROM_COUNT,
    ControlField.FROM_MEMBER,
    ControlField.ONLY_THREAD,
    ControlField.IDLE_MEMBERS,
)
"""Where one of these is set, calls of a set do not count alike."""

_ASKED = frozenset((*_EXCEPTIONS, ControlField.MODE, ControlField.MAY_READ_POINTER))
"""What ``plain_set`` follows from."""


class Word:
    """A field of the control structure, that of the attribute's name where no other one is said. It
    is read from the program each time, and set by :meth:`Control.set`."""

    def __init__(self, field: ControlField | None = None) -> None:
        self._field = field

    def __set_name__(self, owner: type, name: str) -> None:
        self._field = self._field or ControlField[name.upper()]

    def __get__(self, control: Control, owner: type) -> int:
        assert self._field is not None
        return control.get(self._field)


@guarded
class Control:
    """The agent's, of tables at ``base`` with this ``layout``; ``read`` and ``write`` reach it."""

    def __init__(self, blob: Blob, base: int, layout: Layout, *, read: Read, write: Write) -> None:
        self.blob = blob
        self.base = base
        self.layout = layout
        self._read = read
        self._write = write
        self.constant: dict[ControlField, int] = {}
        """Fields that the agent only reads, as they were written last."""
        self.written_resolution: int | None = None
        """That of the profile, as it was written last; ``None``: by another debugger."""

    magic, version = Word(), Word()
    contexts_at = Word(ControlField.CONTEXTS)
    """Where the table is in which threads find room."""
    thread_key = Word()
    """By what threads are told apart."""
    may_read_pointer = Word()
    """Whether they may read where their storage is without asking for its first word."""
    may_grow = Word()
    """Whether there may be more room yet, where there is none."""
    code_count = Word()
    """In how many stretches of code calls of f0 are timed."""
    epoch = Word()
    """Advanced at every stop."""
    round = Word()
    """Advanced at every decision: totals start anew."""
    last_beat = Word()
    """The time-stamp counter at the debugger's last sign of life."""
    resolution = Word()
    seen = Word()
    """Calls that counted since they were last asked for."""
    mode = Word()
    """``enum darc_mode``: what the agent does with calls."""
    bell = Word()
    """``enum darc_bell``: whether a thread has rung, or is about to."""
    bell_signal = Word()
    """0: the agent may not ring by itself."""
    bell_return, bell_slot = Word(), Word()
    """Where the thread that rang goes on in the program, and the stack word that held that."""
    bell_start, bell_end = Word(), Word()
    """The time-stamp counter when it rang, and when the program went on."""
    exiting = Word()
    """Whether the program is about to end."""
    full_cost, path_cost, slow_cost, first_cost, inner_cost = Word(), Word(), Word(), Word(), Word()
    """Cycles that a call adds to its caller: one that is timed, one on the path that is not, and
    what is added where the stub leaves its begin to C, and where it is the op's first one; and of
    a timed one, those in its own time."""
    cost_doubt = Word()
    """By how many more cycles a timed call may cost than was measured."""
    is_measured = Word()
    """Whether all of these are known: of an agent that was left behind before that, nothing can be
    relied on."""
    member_cost = Word()
    """The same of a function of a set; 0: it was not measured yet."""
    id_of = Word()
    """Where a task has its id (in kernels)."""
    faults = Word()
    """Bits: the program sets handlers for these signals now."""
    short_of = Word()
    """Bits (``enum darc_short``): there is no more room for these."""
    rooms = Word()
    """How often room for records was looked for, from 1 on: a thread that found none casts no votes
    until then."""
    record_count = Word()
    """How many records were ever claimed."""
    older_count = Word()
    """How many tables of contexts were full."""
    life_at = Word()
    """Where, seen from its thread pointer, a thread has the id of its own; 0: that is unknown."""
    least_span = Word()
    """Cycles: shorter calls are not kept one by one."""
    block_next = Word()
    """How many blocks of a set were asked for."""
    kept_next, sheet_next, not_kept, not_followed = Word(), Word(), Word(), Word()
    """Where room for an op is looked for next; how many found none; waits that found no place."""
    moment_next = Word()
    """How many moments of a kernel were written down."""
    lost_records, lost_callers, lost_foreign, lost_jumps = Word(), Word(), Word(), Word()
    """Calls that were not timed: no room, too many callers, callers in code that was generated, or
    none, as code had jumped there."""
    lost_contexts, lost_ops, left_ops = Word(), Word(), Word()
    """And as there were too many threads; ops whose exceptions were caught out of sight; and that
    have no end."""

    def raw(self, address: int, size: int) -> bytes:
        """Memory as it is, with the debugger's breakpoints."""
        return self._read(address, size)

    @property
    def control(self) -> int:
        """Address of the control structure."""
        return self.base + self.layout.control

    def field(self, field: ControlField) -> tuple[int, int]:
        """Address and size in bytes of a field of the control structure."""
        offset, size = self.blob.fields[field]
        return self.base + self.layout.control + offset, size

    def get(self, field: ControlField) -> int:
        """One field of the control structure, where it is known only now which one; else the
        attribute of its name."""
        return int.from_bytes(self._read(*self.field(field)), "little")

    def set(self, **values: Unpack[ControlWords]) -> None:
        """Sets fields of the control structure, one store each."""
        by_field = {ControlField[name.upper()]: value for name, value in values.items()}
        is_asked = not _ASKED.isdisjoint(by_field)
        if is_asked:
            self._set(ControlField.PLAIN_SET, 0)
        for field, value in by_field.items():
            self._set(field, value)
        if is_asked:
            self._set(ControlField.PLAIN_SET, self._is_plain_set())

    def move(self, **values: Unpack[ControlWords]) -> None:
        """:meth:`set` of fields that are constant else."""
        self.set(**values)
        for name, value in values.items():
            assert isinstance(value, int)
            self.constant[ControlField[name.upper()]] = value

    def move_records(self, record_list: int, records: int, room: int) -> None:
        """The table of calls and its list are at these addresses, with this ``room``, from now on.
        No thread is in the agent."""
        self.layout = dataclasses.replace(
            self.layout,
            room=dataclasses.replace(self.layout.room, records=room),
            record_list=record_list - self.base,
            records=records - self.base,
        )
        mask = self.layout.record_mask
        self.move(record_list=record_list, records=records, record_mask=mask)

    def take(self, field: ControlField) -> int:
        """What a field has counted, where it is known only now which one: it begins anew."""
        count = self.get(field)
        self._set(field, 0)
        return count

    def _is_plain_set(self) -> bool:
        """Whether entries of a set need not be asked any of what else may leave them out."""
        limits = self.blob.constants
        if self.mode != limits.SET or self.thread_key != limits.BY_STORAGE:
            return False
        return bool(self.may_read_pointer) and not any(map(self.get, _EXCEPTIONS))

    def _set(self, field: ControlField, value: object) -> None:
        assert isinstance(value, int)
        address, size = self.field(field)
        self._write(address, value.to_bytes(size, "little"))

    @functools.cached_property
    def knows_lives(self) -> bool:
        """Whether threads can be told apart by ids of their own."""
        return bool(self.life_at or self.id_of)
