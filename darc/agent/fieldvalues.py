"""What may be written into the agent's structures, by their names in ``abi.h``.

Written by ``tools/agent_structures.py`` from the compiled agent: run that where one comes or goes.
"""

from __future__ import annotations

from typing import TypedDict


class ContextsWords(TypedDict, total=False):
    """Numbers of ``struct darc_contexts``, of up to 8 bytes."""

    count: int
    mask: int
    numbers: int


class ContextsValues(ContextsWords, total=False):
    """Whatever it has."""

    unused: bytes


class ControlWords(TypedDict, total=False):
    """Numbers of ``struct darc_control``, of up to 16 bytes."""

    action_at: int
    analysis: int
    analysis_count: int
    away: int
    batch: int
    bell: int
    bell_end: int
    bell_return: int
    bell_signal: int
    bell_slot: int
    bell_start: int
    block_next: int
    block_room: int
    blocks: int
    closing_cost: int
    code: int
    code_count: int
    context_size: int
    contexts: int
    cost_doubt: int
    cpu_of: int
    current_at: int
    deadline: int
    debugger: int
    delayed_of: int
    doorbell: int
    enter: int
    epoch: int
    exiting: int
    fast_high: int
    fast_low: int
    faults: int
    first_cost: int
    free_members: int
    fresh: int
    from_count: int
    from_member: int
    full_cost: int
    handler_at: int
    id_of: int
    idle_members: int
    indirect_cost: int
    inner_cost: int
    interrupt_members: int
    interrupted_ops: int
    is_measured: int
    kept: int
    kept_cost: int
    kept_next: int
    kept_room: int
    landing_count: int
    last_beat: int
    last_of: int
    least_op: int
    least_span: int
    leave: int
    left_ops: int
    life_at: int
    live: int
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
    magic: int
    may_grow: int
    may_read_pointer: int
    member_cost: int
    member_inner: int
    mode: int
    moment_next: int
    moment_room: int
    moments: int
    name_of: int
    needed: int
    no_calls: int
    node_count: int
    node_mask: int
    nodes: int
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
    plain_set: int
    preempt_at: int
    process: int
    queued_of: int
    record_count: int
    record_list: int
    record_mask: int
    records: int
    reserved: int
    resolution: int
    resumed: int
    return_cost: int
    rooms: int
    round: int
    route_room: int
    routes: int
    scan: int
    seen: int
    settled: int
    sheet_next: int
    sheet_room: int
    sheets: int
    short_of: int
    site_room: int
    sites: int
    slow_cost: int
    span_cost: int
    stack_at: int
    stack_of: int
    state_of: int
    tables_size: int
    tail_cost: int
    tail_inner: int
    target_cost: int
    task_at: int
    task_mask: int
    task_value: int
    thread_key: int
    totals_at: int
    tsc_step: int
    unsettled_calls: int
    vectors_at: int
    version: int
    wake: int
    work_of: int


class ControlValues(ControlWords, total=False):
    """Whatever it has."""

    classes: bytes
    handler: bytes
    handlers: bytes
    landings: bytes
    older: bytes
    thresholds: bytes
    waiters: bytes
    waiting: bytes


class RecordWords(TypedDict, total=False):
    """Numbers of ``struct darc_record``, of up to 8 bytes."""

    back: int
    below: int
    block: int
    context: int
    entered: int
    first_node: int
    landing: int
    node: int
    open: int
    overhead: int
    pad_back: int
    parent: int
    serial: int
    site: int
    slot: int
    start: int
    tail_count: int


class RecordValues(RecordWords, total=False):
    """Whatever it has."""

    tail_nodes: bytes
    tails: bytes


class SiteWords(TypedDict, total=False):
    """Numbers of ``struct darc_site``, of up to 8 bytes."""

    address: int
    back: int
    body: int
    control: int
    first_child: int
    first_parent: int
    indirect: int
    kind: int
    landings: int
    lead: int
    length: int
    overflow: int
    pad_back: int
    patched: int
    record_mask: int
    records: int
    route_count: int
    route_first: int
    target_count: int
    timed: int


class SiteValues(SiteWords, total=False):
    """Whatever it has."""

    original: bytes
    targets: bytes
