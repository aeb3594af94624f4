"""What files say by sentences alone, as values.

Files have the words that users read, and nothing beside them. Here, and nowhere else, such words
are looked at: what reads a file hands values on.
"""

from __future__ import annotations

import re

from darc.model.ftree import Cut, Unclear
from darc.model.leftout import CALLED_OFF, NO_TIME, LeftOut, LeftOutFor, too_many

_TOO_MANY = re.compile(re.escape(too_many(0).text).replace("0", r"[\d,]+"))
"""What is said where too many functions were asked for, however many were not."""


def cut_in(remark: str) -> tuple[Cut | None, str | None]:
    """What :attr:`~darc.model.ftree.Ending.remark` is made of: the cut, and the note."""
    for cut in Cut:
        if remark == cut.value:
            return cut, None
        if remark.startswith(f"{cut.value}; "):
            return cut, remark.removeprefix(f"{cut.value}; ")
    return None, remark


def unclear_in(remark: str) -> frozenset[Unclear]:
    """What it says that nobody knows of a path's end."""
    return frozenset(one for one in Unclear if one.value in remark)


def left_out_for(why: str) -> LeftOut:
    """The reason why a function was left out."""
    for one in (NO_TIME, CALLED_OFF):
        if why == one.text:
            return one
    return LeftOut(why, LeftOutFor.NUMBER if _TOO_MANY.fullmatch(why) else LeftOutFor.ITSELF)
