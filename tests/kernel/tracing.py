"""Another view of the guests' switches: the kernel's own trace of them (tracefs)."""

from __future__ import annotations

import re
from typing import Any

from kgdb.vm.machine import Machine
from tests.kernel.machines import typed

TRACING = "/sys/kernel/tracing"
SWITCHES = f"{TRACING}/events/sched/sched_switch"

WITHIN = 15_000
"""Cycles of a guest whose counter counts instructions, at 1 GHz: what its kernel does between its
own look at the clock and darc's."""


def begin(machine: Machine, task: str) -> None:
    """The kernel writes down the task's switches itself, with the counter that darc reads."""
    typed(machine, f"echo x86-tsc > {TRACING}/trace_clock; echo 16384 > {TRACING}/buffer_size_kb")
    wanted = f'prev_comm == "{task}" || next_comm == "{task}"'
    typed(machine, f"echo '{wanted}' > {SWITCHES}/filter; echo 1 > {SWITCHES}/enable")


def _end(machine: Machine) -> None:
    typed(machine, f"echo 0 > {SWITCHES}/enable; cp {TRACING}/trace /tmp/trace")


def _traced(machine: Machine, op: dict[str, Any]) -> list[tuple[int, int]]:
    """When the op's task was off its processor, by the kernel's own trace."""
    task, start, end = op["thread"], op["start"], op["end"]
    program = (
        f"/(prev|next)_pid={task} /{{for(i=1;i<=NF;i++)if($i~/^[0-9]+:$/){{t=$i+0;"
        f'if(t>={start}&&t<={end})print(/prev_pid={task} /?"out":"in"),$i}}}}'
    )
    lines = typed(machine, f"awk '{program}' /tmp/trace")
    switches = re.findall(r"^(out|in) (\d+):", lines, re.M)
    kinds, times = [kind for kind, _ in switches], [int(time) for _, time in switches]
    assert kinds == ["out", "in"] * (len(kinds) // 2), lines
    return list(zip(times[::2], times[1::2], strict=True))


def assert_as_traced(machine: Machine, ops: list[dict[str, Any]]) -> None:
    """Each switch of each op is one of the trace's, which ends, and was then."""
    _end(machine)
    for op in ops:
        seen = [(one["start"], one["end"]) for one in op["off"]]
        known = _traced(machine, op)
        assert len(seen) == len(known) > 0, (seen, known)
        for (out, back), (true_out, true_back) in zip(seen, known, strict=True):
            assert abs(out - true_out) <= WITHIN, (seen, known)
            assert abs(back - true_back) <= WITHIN, (seen, known)
