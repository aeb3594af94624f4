"""Room in the agent's tables for functions of a set."""

from __future__ import annotations

import pytest

from darc.agent import compiled
from darc.agent.fieldnames import Structure
from darc.agent.layout import plan, room_for_set
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
