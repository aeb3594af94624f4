"""The rows of the agent's tables, with the numbers that ``abi.h`` says they have.

Written by ``tools/agent_structures.py`` from the compiled agent: run that where one comes or goes.
"""

from __future__ import annotations

from typing import NamedTuple


class BlockRow(NamedTuple):
    """``struct darc_block``."""

    calls: int
    sum: int
    max: int
    open: int
    serial: int
    member: int
    left: int
    recursions: int
    dropped: int
    lost: int
    foreign: int
    jumps: int
    at: int = 0
    """Where it is, of one that is told by that."""


class ContextRow(NamedTuple):
    """``struct darc_context``."""

    thread: int
    op: int
    top: int
    serial: int
    idle: int
    epoch: int
    sum: int
    unreported: int
    dropped: int
    in_peak: int
    round: int
    interrupted_ops: int
    spent: int
    left: int
    jump_time: int
    stale: int
    spoiled: int
    kept: int
    not_kept: int
    left_serial: int
    others_target: int
    others_time: int
    others_node: int
    others_serial: int
    life: int
    stuck: int
    interrupted: int
    held_up: int
    held_up_at: int
    aside: int
    aside_calls: int
    crowded: int
    at: int = 0
    """Where it is, of one that is told by that."""


class ControlRow(NamedTuple):
    """``struct darc_control``."""

    magic: int
    version: int
    reserved: int
    live: int
    doorbell: int
    enter: int
    leave: int
    sites: int
    nodes: int
    routes: int
    records: int
    contexts: int
    analysis: int
    analysis_count: int
    node_count: int
    resolution: int
    mode: int
    node_mask: int
    record_mask: int
    epoch: int
    resumed: int
    settled: int
    unsettled_calls: int
    last_beat: int
    deadline: int
    wake: int
    patience: int
    fresh: int
    debugger: int
    only_thread: int
    thread_key: int
    current_at: int
    preempt_at: int
    not_task: int
    stack_at: int
    vectors_at: int
    action_at: int
    handler_at: int
    stack_of: int
    queued_of: int
    delayed_of: int
    cpu_of: int
    work_of: int
    last_of: int
    state_of: int
    id_of: int
    name_of: int
    task_at: int
    peak_low: int
    peak_high: int
    least_op: int
    overdrawn_ops: int
    needed: int
    loops: int
    batch: int
    seen: int
    bell: int
    bell_signal: int
    bell_return: int
    bell_slot: int
    process: int
    exiting: int
    bell_start: int
    bell_end: int
    inner_cost: int
    tsc_step: int
    full_cost: int
    kept_cost: int
    path_cost: int
    pass_cost: int
    slow_cost: int
    indirect_cost: int
    return_cost: int
    span_cost: int
    first_cost: int
    closing_cost: int
    target_cost: int
    tail_cost: int
    cost_doubt: int
    tail_inner: int
    is_measured: int
    lost_records: int
    lost_contexts: int
    lost_ops: int
    left_ops: int
    interrupted_ops: int
    round: int
    context_size: int
    totals_at: int
    older_count: int
    tables_size: int
    may_grow: int
    short_of: int
    rooms: int
    site_room: int
    route_room: int
    faults: int
    no_calls: int
    record_count: int
    record_list: int
    may_read_pointer: int
    life_at: int
    lost_callers: int
    lost_jumps: int
    lost_foreign: int
    code: int
    code_count: int
    scan: int
    landing_count: int
    least_span: int
    fast_low: int
    fast_high: int
    kept: int
    kept_room: int
    kept_next: int
    sheets: int
    sheet_room: int
    sheet_next: int
    not_kept: int
    not_followed: int
    moments: int
    moment_room: int
    moment_next: int
    away: int
    blocks: int
    block_room: int
    block_next: int
    member_inner: int
    member_cost: int
    lost_blocks: int
    lost_moved: int
    lost_tails: int
    from_count: int
    from_member: int
    free_members: int
    idle_members: int
    interrupt_members: int
    plain_set: int
    at: int = 0
    """Where it is, of one that is told by that."""


class EventRow(NamedTuple):
    """``struct darc_event``."""

    time: int
    object: int
    kind: int
    what: int
    life: int
    node: int
    frame: int
    stack: int
    held: int
    way: int
    first: int
    at: int = 0
    """Where it is, of one that is told by that."""


class KeptRow(NamedTuple):
    """``struct darc_kept``."""

    owner: int
    latency: int
    start: int
    end: int
    cost: int
    serial: int
    life: int
    span_count: int
    sum_count: int
    lost: int
    lost_sums: int
    event_count: int
    waiter_count: int
    waiters: int
    switch_count: int
    lost_events: int
    takers: int
    is_reader: int
    lost_waits: int
    since: int
    began: int
    at: int = 0
    """Where it is, of one that is told by that."""


class RecordRow(NamedTuple):
    """``struct darc_record``."""

    slot: int
    site: int
    start: int
    overhead: int
    parent: int
    context: int
    serial: int
    open: int
    node: int
    tail_count: int
    below: int
    pad_back: int
    back: int
    first_node: int
    landing: int
    entered: int
    block: int
    at: int = 0
    """Where it is, of one that is told by that."""


class SiteRow(NamedTuple):
    """``struct darc_site``."""

    control: int
    records: int
    record_mask: int
    back: int
    pad_back: int
    landings: int
    body: int
    kind: int
    timed: int
    route_first: int
    route_count: int
    first_parent: int
    first_child: int
    indirect: int
    target_count: int
    address: int
    length: int
    patched: int
    lead: int
    overflow: int
    at: int = 0
    """Where it is, of one that is told by that."""
