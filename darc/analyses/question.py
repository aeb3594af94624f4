"""What an analysis asks the user at a stop, before it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class About(Enum):
    """What of a snapshot a question is about, and is shown with it."""

    PROFILE = auto()
    FTREE = auto()
    PART = auto()
    """What its analysis knows beside these (:class:`darc.model.part.Part`)."""


@dataclass(frozen=True)
class Question:
    """A choice that is the user's."""

    about: About
    text: str
    """What to choose, and by which command, as it stands in the middle of a sentence."""
    unanswered: str | None = None
    """Where nothing is done without an answer: what is told to whom lets the program go on."""

    @property
    def is_waited_for(self) -> bool:
        """Whether nothing is done without an answer."""
        return self.unanswered is not None
