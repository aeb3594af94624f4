"""What the agent and the debugger have agreed on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from darc.agent import compiled
from darc.agent.compiled import AgentSymbol
from darc.agent.constants import Constants
from darc.agent.control import Word
from darc.agent.fieldnames import ControlField, RecordField, Structure
from darc.agent.structures import RecordRow
from darc.code.faults import ELSEWHERE, FAULTS
from darc.code.landmarks import Landmark
from darc.collectors.losses import Unmeasured
from darc.model.ops import MOST_KEPT, MomentKind
from tools import agent_constants, agent_structures

HEADER = Path(compiled.__file__).with_name("abi.h")


def test_no_number_stands_for_two_things() -> None:
    """Places would be taken for those of another kind."""
    enumerations = re.findall(r"enum (\w+) \{(.*?)\n\};", HEADER.read_text(), re.S)
    assert "darc_site_kind" in dict(enumerations)
    for name, body in enumerations:
        numbers = re.findall(r"^    DARC_\w+ = (\d+),", body, re.M)
        assert len(numbers) == len(set(numbers)), name


def test_signals_are_those_that_the_debugger_asks_for() -> None:
    """Of the others the agent would tell too late, or never."""
    constants = compiled.load().constants
    low = [signal for signal in ELSEWHERE if signal < constants.FIRST_REAL_TIME]
    assert sum(1 << signal for signal in low) == constants.ELSEWHERE
    assert ELSEWHERE.keys() - low == set(range(constants.FIRST_REAL_TIME, 65))
    assert sum(1 << signal for signal in FAULTS) == constants.FAULTS


def test_as_many_ops_are_kept_as_analyses_ask_for() -> None:
    """A closing round of more would wait for ops that the agent has no room for."""
    assert compiled.load().constants.KEPT_OPS == MOST_KEPT, "darc/agent/abi.h, darc/model/ops.py"


def test_constants_are_those_of_the_header() -> None:
    """So that mypy sees a name that the header does not have."""
    assert agent_constants.FILE.read_text() == agent_constants.text(), "tools/agent_constants.py"
    assert "MAX_TARGETS" in Constants.__annotations__


def test_rows_are_those_of_the_compiled_agent() -> None:
    """So that mypy sees a field that there is not."""
    for file, text in agent_structures.MADE.items():
        assert file.read_text() == text(), "tools/agent_structures.py"
    assert {"slot", "pad_back", "at"} <= RecordRow.__annotations__.keys()
    assert {*RecordField, *ControlField} < compiled.load().fields.keys()


def test_what_of_the_agent_is_asked_for_is_there() -> None:
    assert set(AgentSymbol) <= compiled.load().symbols.keys()


def test_no_attribute_has_a_name_that_the_header_has_not() -> None:
    with pytest.raises((KeyError, RuntimeError)):

        class _Wrong:
            thread_kex = Word()


def test_a_row_has_what_stands_in_its_fields() -> None:
    blob = compiled.load()
    raw = blob.pack(Structure.RECORD, slot=0x7000, pad_back=1 << 63, open=1, entered=7)
    row = blob.unpack(RecordRow, raw, at=0x1000)
    assert (row.at, row.slot, row.pad_back, row.open, row.entered) == (
        0x1000,
        0x7000,
        1 << 63,
        1,
        7,
    )
    assert blob.unpack(RecordRow, raw[:80], at=0x1000) == row._replace(entered=0)


def test_what_could_not_be_measured_is_counted_in_words() -> None:
    fields = compiled.load().fields
    for loss in Unmeasured:
        assert loss.value in fields, loss


def test_what_values_name_is_in_the_header() -> None:
    constants = compiled.load().constants
    for named in (*Landmark, *MomentKind):
        assert constants.named(named.value) > 0


def test_an_agent_that_lacks_a_constant_is_of_another_version() -> None:
    with pytest.raises(KeyError):
        Constants.of({"DARC_ABI_VERSION": compiled.ABI_VERSION})
