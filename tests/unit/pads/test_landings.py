"""What words lead to landings, and to which code of the program's own: made-up memory."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

from darc.agent import compiled
from darc.pads.returns import ReturnLandings

BASE, OWN = 0x10000, 0x401234


def landings(own: int) -> ReturnLandings:
    """Each of whose cells is of code that returns to ``own``."""
    memory: Any = SimpleNamespace(read=lambda address, size: struct.pack("<Q", own)[:size])
    target: Any = SimpleNamespace(memory=memory)
    return ReturnLandings(target, BASE)


def test_a_word_by_which_a_pad_goes_on_leads_to_the_caller_as_one_to_return_to_does() -> None:
    known = landings(OWN)
    limits = compiled.load().constants
    back = known.callers
    enter = back - limits.LANDING_BACK + limits.LANDING_ENTER
    assert known.own(back) == known.gone_on_to(back) == OWN
    assert known.gone_on_to(enter) == OWN
    assert known.own(enter) is None, "stacks keep it: the pad is yet to go there"
    assert known.gone_on_to(back + 1) is None
    assert known.gone_on_to(BASE + limits.LANDING_ENTER) is None, "a site's"


def test_a_cell_that_nobody_has_claimed_leads_nowhere() -> None:
    known = landings(0)
    assert known.own(known.callers) is None
    assert known.gone_on_to(known.callers) is None
