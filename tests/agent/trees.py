"""What a program does, for the agent and its model: drawn by hypothesis, and as examples."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.agent.world import (
    FUNCTIONS,
    MOST_TARGETS,
    OP,
    Run,
    Setting,
    Timed,
    Tree,
    signal_of,
    tree_of,
)

Op = tuple[int, ...]


WORK, CALL, INDIRECT, TAIL, RETURN, JUMP, HIDE, SHOW, ARM, RESUME, YIELD, DEBUGGER, END, TRACE = (
    OP[name]
    for name in "WORK CALL INDIRECT TAIL RETURN JUMP HIDE SHOW ARM RESUME YIELD DEBUGGER END "
    "TRACE".split()
)


HANDLERS = range(3, 6)


_MORE = int(os.environ.get("DARC_AGENT_EXAMPLES", "0"))
"""So many examples, others each time; without it, the same 150 always."""


EXAMPLES = settings(
    max_examples=_MORE or 150,
    derandomize=not _MORE,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def look(done: Run) -> None:
    """What holds whatever was counted."""
    assert done.fault is None, f"a fault at {done.fault[0]:#x}, {done.fault[1]:#x}"
    assert done.status == 0, signal_of(done.status)
    assert done.wrongs == []


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """What is timed: up to a dozen sites."""
    timed: list[Timed] = []
    functions: list[int | None] = [0]
    for _ in range(draw(st.integers(0, 9))):
        places = [n for n, function in enumerate(functions) if function is not None]
        parent = draw(st.sampled_from(places))
        function = functions[parent]
        assert function is not None
        kind = draw(st.sampled_from(("call", "call", "call", "tail", "indirect")))
        callee = 0 if kind == "indirect" else draw(st.integers(0, FUNCTIONS - 1))
        where = (kind, function, callee)
        if any(one.parent == parent and one.where == where for one in timed):
            continue
        lanes = draw(st.integers(1, (1 << MOST_TARGETS + 1) - 1))
        timed.append(Timed(parent, where, draw(st.integers(0, 4)) > 0, lanes))
        functions.append(None if kind == "indirect" else callee)
    analysis = draw(st.sets(st.integers(0, len(timed)), max_size=4)) | {0}
    return tree_of(timed, sorted(analysis))


FUNCTION = st.integers(0, FUNCTIONS - 1)


JUMPS = st.tuples(st.just(JUMP), st.integers(0, 5), st.integers(0, 1))


EXCEPTIONS = st.sampled_from(((HIDE,), (SHOW,)))


SWITCHES = st.one_of(st.tuples(st.just(RESUME), st.integers(0, 2)), st.just((YIELD,)))


ARMS = st.tuples(st.just(ARM), st.integers(0, 130), st.sampled_from(HANDLERS))


@st.composite
def settings_of(draw: st.DrawFn, *, small: bool = False, steady: bool = True) -> Setting:
    """An analysis; ``steady``: nothing comes between two instructions of darc's own, so that it is
    known which way each call goes there."""
    costs = st.sampled_from((0, 0, 1, 7, 60))
    of_ways = costs if steady else st.just(0)
    full_cost, span_cost = draw(costs), draw(costs)
    low = draw(st.sampled_from((0, 0, 0, 16, 64)))
    return Setting(
        trees=(draw(trees()), draw(trees())),
        resolution=draw(st.sampled_from((1, 2, 5))),
        analyse=draw(st.integers(0, 3)) > 0,
        peak=(low, draw(st.sampled_from((1 << 62, 1 << 62, low + 64)))),
        least_op=draw(st.sampled_from((0, 0, 16, 200))),
        needed=draw(st.sampled_from((1 << 40, 1 << 40, 2, 5))),
        batch=draw(st.sampled_from((1, 1, 3))),
        inner_cost=draw(costs),
        tsc_step=draw(st.sampled_from((0, 1, 26))),
        full_cost=full_cost,
        path_cost=draw(costs),
        span_cost=span_cost,
        kept_cost=draw(costs) if steady else full_cost + span_cost,
        pass_cost=draw(of_ways),
        slow_cost=draw(of_ways),
        indirect_cost=draw(of_ways),
        return_cost=draw(of_ways),
        first_cost=draw(of_ways),
        closing_cost=draw(of_ways),
        target_cost=draw(of_ways),
        tail_cost=draw(of_ways),
        tail_inner=draw(of_ways),
        by_longest=draw(st.booleans()),
        records=draw(st.sampled_from((2, 4, 8, 16))) if small else 2048,
        contexts=draw(st.sampled_from((1, 2))) if small else 8,
        signal=draw(st.sampled_from((0, 23))),
        no_callers=small and draw(st.integers(0, 9)) == 0,
        other_stack=draw(st.booleans()),
    )
