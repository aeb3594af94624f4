"""What the agent's tables tell, a class for each kind of row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from darc.agent.fieldnames import AgentField


@dataclass(frozen=True)
class NodeTotal:
    """What the agent counted of one node over all threads since the last decision."""

    own: int
    votes: int
    ops: int
    calls: int
    sum: int
    max_sum: int


@dataclass(frozen=True)
class Node:
    """One row of the node table."""

    parent: int
    first_child: int
    child_count: int
    timed: bool
    passes: bool = False
    """Whether its calls are left alone, as if there was no pad."""
    others_of: int | None = None
    """Where it stands for all targets of an indirect site that there is no room for: which site."""


EVERY_LANE = (1 << 32) - 1


class Route(NamedTuple):
    """What calls at a site lead to that are made by one node."""

    parent: int
    child: int
    """The row of what is called; of an indirect site, the first of as many as there are"""
    lanes: int = EVERY_LANE
    """bits here: which of its targets have a row, and, behind those, whether all others have one.
    Calls of a target without are left alone."""


@dataclass(frozen=True)
class PatchedSite:
    """A place whose bytes were replaced, and what stood there."""

    index: int
    kind: int
    """``enum darc_site_kind``."""
    address: int
    original: bytes


@dataclass(frozen=True)
class Lead:
    """What stands, or stood, in the program's code and leads to a pad."""

    index: int
    address: int
    length: int
    """Bytes."""
    pad: int


@dataclass(frozen=True)
class Stale:
    """Something in a context that looks as if a longjmp had left it behind."""

    context: int
    serial: int
    mark: AgentField
    """Where its serial is written to say so."""


@dataclass(frozen=True)
class OpenSlot:
    """An open record: whose op it is of, and whether its call returns to the agent yet, as
    its pad's return address is in its slot."""

    serial: int
    comes_back: bool


@dataclass(frozen=True)
class OpenRecord:
    """A call that is under way, as the agent has noted it."""

    address: int
    slot: int
    start: int
    tails: tuple[int, ...]
    """When each tail call in its frame began."""


@dataclass(frozen=True)
class KeptSpan:
    """A call of node ``node``: times of the TSC, and the cycles of probes between them."""

    start: int
    end: int
    cost: int
    node: int


@dataclass(frozen=True)
class KeptSum:
    """All calls of a node in one op: their latencies in cycles, summed and the longest one's."""

    node: int
    calls: int
    sum: int
    max: int


@dataclass(frozen=True, kw_only=True)
class KeptEvent:
    """An op's thread may be about to wait for ``object``, or another thread to release it."""

    time: int
    """Of the TSC."""
    object: int
    is_release: bool
    what: int
    """The kind of the function that was entered, as the agent numbers them."""
    life: int
    """The id of who releases, or of the mutex's owner; 0: not known."""
    node: int | None
    """The number of the innermost open call below f0, where it is in one."""
    frame: int
    """What the thread had in its frame pointer,"""
    stack: int
    """where the return address of the function is,"""
    words: tuple[int, ...]
    """and the stack from there on."""
    name: str
    """Of a kernel's task that does so; empty in an interrupt."""
    is_followed: bool = True
    """Whether those who release it could be told that somebody waits."""
    first: int = 0
    """When the first one was that is added up here,"""
    held: int = 0
    """and of a release for how many cycles it was held; of a wait, how many like it came later."""


@dataclass(frozen=True)
class Walker:
    """What the agent has counted of one thread in a walk."""

    context: int
    spent: int
    """Cycles that are taken out of the calls that they fall into."""
    first: tuple[int, ...]
    """When the first call began of a counted member, and of an idle one (TSC); 0: none was."""
    counted: Mapping[int, tuple[int, int]]
    """Calls and cycles, by the number of the member."""


@dataclass(frozen=True)
class KeptSwitch:
    """An op's task was off the processor: times of the TSC, and whether it could have run."""

    out: int
    back: int
    is_ready: bool
    next: int
    """The id of the task that had the processor then,"""
    name: str
    """and its name."""


@dataclass(frozen=True)
class KeptMoment:
    """What a kernel's task did while another one, that of a kept op, had no processor: ``struct
    darc_moment`` of ``abi.h``."""

    time: int
    kind: int
    cpu: int
    task: int
    other: int
    how: int
    what: int
    before: int
    stack: int
    frame: int
    name: str
    words: tuple[int, ...]
    """Of its stack; none where nobody asks for them."""


def task_name(raw: bytes) -> str:
    """What a kernel has written into ``task_struct.comm``."""
    return raw.split(b"\0")[0].decode("utf-8", "replace")


@dataclass(frozen=True)
class KeptOp:
    """An op as the agent has kept it; ``life`` is its thread's own id, where that is known."""

    is_fast: bool
    """Of the fastest peak, not of the chosen one."""
    is_slowest: bool
    life: int
    start: int
    end: int
    cost: int
    latency: int
    lost: int
    spans: tuple[KeptSpan, ...]
    sums: tuple[KeptSum, ...]
    events: tuple[KeptEvent, ...]
    """By time."""
    lost_events: int
    lost_waits: int = 0
    """Of these, how many are waits of which nothing is known."""
    switches: tuple[KeptSwitch, ...] = ()
    """In a kernel: by time."""
    lost_switches: int = 0


@dataclass(frozen=True)
class RunningOp:
    """A call of f0 that is under way: of which context and serial, in the thread with which id of
    its own (0: not known), and since when (TSC). A stop may move that on: it is no part of what
    tells one from another."""

    context: int
    serial: int
    life: int
    start: int = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A call of f0 that is being measured."""

    context: int
    thread: int
    """By what the agent knows it."""
    serial: int
    is_sure: bool
    """Whether its thread was not in the agent, nor in the middle of an unwinder's work."""
    began: int
    jump_time: int
    records: tuple[OpenRecord, ...]
