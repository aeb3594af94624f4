"""What files say by sentences alone, as values.

Files have the words that users read, and nothing beside them. Here, and nowhere else, such words
are looked at: what reads a file hands values on.
"""

from __future__ import annotations

from darc.model.ftree import Cut, Unclear


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
