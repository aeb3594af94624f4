"""What older files say by sentences alone, as values.

Up to version 4 session files had the words that users read then, and nothing beside them. The words
here are those, whatever is said today: they are never changed. Here, and nowhere else, such words
are looked at: what reads a file hands values on.
"""

from __future__ import annotations

import re

from darc.model.ftree import Cut, Unclear
from darc.model.leftout import LeftOut, LeftOutFor

_CUTS = {
    "maximum depth reached": Cut.DEPTH,
    "the search was not at its end": Cut.EARLY,
    "it calls itself on, more than once each time": Cut.DIVIDES,
}

_UNCLEAR = {
    "whether it ran or waited is not known": Unclear.HOW_SPENT,
    "the time may be theirs": Unclear.WHOSE,
}

_LEFT_OUT = {
    "its pad was not made in time: fewer functions have more": LeftOutFor.TIME,
    "Ctrl-C came before its pad was made": LeftOutFor.USER,
}

_TOO_MANY = re.compile(r"fewer calls lead to them than to the [\d,]+ that can be timed at once")
"""What was said where too many functions were asked for, however many were not."""


def cut_in(remark: str) -> tuple[Cut | None, str | None]:
    """What an ending's remark is made of: the cut, and the note."""
    for words, cut in _CUTS.items():
        if remark == words:
            return cut, None
        if remark.startswith(f"{words}; "):
            return cut, remark.removeprefix(f"{words}; ")
    return None, remark


def unclear_in(remark: str) -> frozenset[Unclear]:
    """What it says that nobody knows of a path's end."""
    return frozenset(unclear for words, unclear in _UNCLEAR.items() if words in remark)


def left_out_for(why: str) -> LeftOut:
    """The reason why a function was left out."""
    if _TOO_MANY.fullmatch(why):
        return LeftOut(why, LeftOutFor.NUMBER)
    return LeftOut(why, _LEFT_OUT.get(why, LeftOutFor.ITSELF))
