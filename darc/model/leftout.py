"""Why a function is left out of many that are timed at once: a kind, and the words for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class LeftOutFor(Enum):
    """What kinds of reasons there are. Session files have these values."""

    ITSELF = "itself"
    """What its code is like, or what was seen of its calls: no more time would help."""
    NUMBER = "number"
    """There are too many, and it is called from few places."""
    TIME = "time"
    """Making its probe would have taken too long."""
    USER = "user"
    """The user did not want to wait for that."""


@dataclass(frozen=True)
class LeftOut:
    """The reason why one is."""

    text: str
    """What users are told."""
    kind: LeftOutFor = LeftOutFor.ITSELF


NO_TIME = LeftOut("its pad was not made in time: fewer functions have more", LeftOutFor.TIME)
CALLED_OFF = LeftOut("Ctrl-C came before its pad was made", LeftOutFor.USER)


def too_many(most: int) -> LeftOut:
    """Where ``most`` can be taken."""
    text = f"fewer calls lead to them than to the {most:,} that can be timed at once"
    return LeftOut(text, LeftOutFor.NUMBER)
