"""The agent's control structure (``struct darc_control`` of ``abi.h``), in the program's memory."""

from __future__ import annotations

import dataclasses
import functools
from typing import TypedDict, Unpack

from darc.agent.compiled import Blob
from darc.agent.damage import guarded
from darc.agent.layout import Layout
from darc.target.memory import Read, Write


class Words(TypedDict, total=False):
    """Fields of the control structure that are set by their names: numbers of up to 16 bytes."""

    action_at: int
    analysis_count: int
    away: int
    batch: int
    bell: int
    bell_return: int
    bell_signal: int
    bell_slot: int
    block_next: int
    closing_cost: int
    code_count: int
    contexts: int
    cost_doubt: int
    cpu_of: int
    current_at: int
    deadline: int
    delayed_of: int
    debugger: int
    epoch: int
    exiting: int
    fast_high: int
    fast_low: int
    faults: int
    free_members: int
    first_cost: int
    fresh: int
    from_count: int
    from_member: int
    full_cost: int
    handler_at: int
    heartbeat: int
    id_of: int
    idle_members: int
    indirect_cost: int
    inner_cost: int
    interrupt_members: int
    interrupted_ops: int
    is_measured: int
    kept_cost: int
    kept_next: int
    landing_count: int
    last_of: int
    least_op: int
    least_span: int
    left_ops: int
    loops: int
    lost_blocks: int
    lost_callers: int
    lost_contexts: int
    lost_foreign: int
    lost_jumps: int
    lost_moved: int
    lost_ops: int
    lost_records: int
    lost_tails: int
    may_grow: int
    may_read_pointer: int
    member_cost: int
    mode: int
    moment_next: int
    name_of: int
    needed: int
    no_calls: int
    node_count: int
    not_followed: int
    not_kept: int
    not_task: int
    older_count: int
    only_thread: int
    overdrawn_ops: int
    pass_cost: int
    path_cost: int
    patience: int
    peak_high: int
    peak_low: int
    preempt_at: int
    process: int
    queued_of: int
    record_count: int
    record_list: int
    record_mask: int
    records: int
    resolution: int
    resumed: int
    return_cost: int
    rooms: int
    round: int
    seen: int
    settled: int
    sheet_next: int
    short_of: int
    slow_cost: int
    span_cost: int
    stack_at: int
    stack_of: int
    state_of: int
    tail_cost: int
    tail_inner: int
    target_cost: int
    task_at: int
    task_mask: int
    task_value: int
    tsc_step: int
    vectors_at: int
    wake: int
    work_of: int


_EXCEPTIONS = ("from_count", "from_member", "only_thread", "idle_members")
"""Where one of these is set, calls of a set do not count alike."""

_ASKED = frozenset((*_EXCEPTIONS, "mode", "may_read_pointer"))
"""What ``plain_set`` follows from."""


class Word:
    """A field of the control structure, by the name of the attribute. It is read from the program
    each time, and set by :meth:`Control.set`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, control: Control, owner: type) -> int:
        return control.get(self._name)


@guarded
class Control:
    """The agent's, of tables at ``base`` with this ``layout``; ``read`` and ``write`` reach it."""

    def __init__(self, blob: Blob, base: int, layout: Layout, read: Read, write: Write) -> None:
        self.blob = blob
        self.base = base
        self.layout = layout
        self._read = read
        self._write = write
        self.constant: dict[str, int] = {}
        """Fields that the agent only reads, as they were written last."""
        self.written_resolution: int | None = None
        """That of the profile, as it was written last; ``None``: by another debugger."""

    magic, version = Word(), Word()
    epoch = Word()
    """Advanced at every stop."""
    round = Word()
    """Advanced at every decision: totals start anew."""
    heartbeat = Word()
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

    def field(self, name: str) -> tuple[int, int]:
        """Address and size in bytes of a field of the control structure."""
        offset, size = self.blob.fields[f"darc_control.{name}"]
        return self.base + self.layout.control + offset, size

    def get(self, name: str) -> int:
        """One field of the control structure, where its name is known only now; else the attribute
        of that name."""
        return int.from_bytes(self._read(*self.field(name)), "little")

    def set(self, **values: Unpack[Words]) -> None:
        """Sets fields of the control structure, one store each."""
        is_asked = not _ASKED.isdisjoint(values)
        if is_asked:
            self._set("plain_set", 0)
        for name, value in values.items():
            self._set(name, value)
        if is_asked:
            self._set("plain_set", self._is_plain_set())

    def move(self, **values: Unpack[Words]) -> None:
        """:meth:`set` of fields that are constant else."""
        self.set(**values)
        for name, value in values.items():
            assert isinstance(value, int)
            self.constant[name] = value

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

    def take(self, name: str) -> int:
        """What a field has counted, where its name is known only now: it begins anew."""
        count = self.get(name)
        self._set(name, 0)
        return count

    def _is_plain_set(self) -> bool:
        """Whether entries of a set need not be asked any of what else may leave them out."""
        limits = self.blob.constants
        if self.mode != limits.SET or self.get("thread_key") != limits.BY_STORAGE:
            return False
        return bool(self.get("may_read_pointer")) and not any(map(self.get, _EXCEPTIONS))

    def _set(self, name: str, value: object) -> None:
        assert isinstance(value, int)
        address, size = self.field(name)
        self._write(address, value.to_bytes(size, "little"))

    @functools.cached_property
    def knows_lives(self) -> bool:
        """Whether threads can be told apart by ids of their own."""
        return bool(self.life_at or self.id_of)
