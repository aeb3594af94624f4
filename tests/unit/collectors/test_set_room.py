"""Room in the agent's tables for functions of a set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.agent import compiled
from darc.agent.fieldnames import Structure
from darc.agent.layout import plan, room_for, room_for_set
from darc.agent.memory import AgentMemory
from darc.collectors.set_collector import MOST_FUNCTIONS


@pytest.mark.parametrize("threads", [1, 8, 300, 5000])
@pytest.mark.parametrize("functions", [1, 144, 500, MOST_FUNCTIONS])
def test_every_function_has_a_word_in_each_context(functions: int, threads: int) -> None:
    """The agent does not ask: beyond it there is another thread's context, or nothing."""
    blob = compiled.load()
    layout = plan(blob, room_for_set(functions, threads))
    tables = AgentMemory(
        blob=blob, base=0, layout=layout, read=lambda _, size: bytes(size), write=lambda _, __: None
    )
    assert tables.members.most >= functions
    assert layout.room.blocks * blob.sizes[Structure.BLOCK] <= 64 << 20


@given(st.integers(1, 4000), st.integers(1, 3000), st.integers(1, 5000), st.integers(0, 1 << 28))
def test_what_holds_a_set_and_a_search_has_room_for_each(
    functions: int, threads: int, probes: int, code: int
) -> None:
    """One that follows the other finds room, and the program does not stand still for more."""
    of_set, of_search = room_for_set(functions, threads), room_for(probes, threads, code)
    both = of_set.joined(of_search)
    assert both.holds(of_set)
    assert both.holds(of_search)
    assert of_search.joined(of_set) == both
    assert of_set.joined(of_set) == of_set
    for name in ("nodes", "records", "contexts"):
        number = getattr(both, name)
        assert number & (number - 1) == 0
