"""What the agent and the debugger have agreed on."""

from __future__ import annotations

import re
from pathlib import Path

from darc.agent import compiled
from darc.agent.control import Words

HEADER = Path(compiled.__file__).with_name("abi.h")


def test_no_number_stands_for_two_things() -> None:
    """Places would be taken for those of another kind."""
    enumerations = re.findall(r"enum (\w+) \{(.*?)\n\};", HEADER.read_text(), re.S)
    assert "darc_site_kind" in dict(enumerations)
    for name, body in enumerations:
        numbers = re.findall(r"^    DARC_\w+ = (\d+),", body, re.M)
        assert len(numbers) == len(set(numbers)), name


def test_words_that_are_set_by_name_are_words() -> None:
    fields = compiled.load().fields
    for name in Words.__annotations__:
        _, size = fields[f"darc_control.{name}"]
        assert size in {1, 2, 4, 8, 16}, name
