"""What the agent and the debugger have agreed on."""

from __future__ import annotations

import re
from pathlib import Path

from darc import agent

HEADER = Path(agent.__file__).with_name("abi.h")


def test_no_number_stands_for_two_things() -> None:
    """Places would be taken for those of another kind."""
    enumerations = re.findall(r"enum (\w+) \{(.*?)\n\};", HEADER.read_text(), re.S)
    assert "darc_site_kind" in dict(enumerations)
    for name, body in enumerations:
        numbers = re.findall(r"^    DARC_\w+ = (\d+),", body, re.M)
        assert len(numbers) == len(set(numbers)), name
