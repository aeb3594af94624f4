"""One analysis after the other, without a word of the user's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from darc.app.finding import Request
from darc.model.snapshot import Snapshot
from darc.session.session import Session


class Pursuit(ABC):
    """What comes behind an analysis by itself, and what is made of all of them. The application
    begins each at the stop at which the one before has ended."""

    setup_seconds: float = 0.0
    """For so long the program stood still as the first one was made."""

    def was_set_up(self, seconds: float) -> None:
        """So long the program stood still as the first one was made."""
        self.setup_seconds = seconds

    @abstractmethod
    def may_follow(self, session: Session) -> bool:
        """Whether ``session`` has ended so that something may come behind it."""

    @abstractmethod
    def take(self, session: Session, shown: Snapshot) -> None:
        """``session`` is over, and ``shown`` is what it has found."""

    @abstractmethod
    def next(self) -> tuple[int, Request] | None:
        """What comes next: the address of the function to search in, or of none where many are
        timed; ``None``: that was all."""

    @abstractmethod
    def failed(self, why: str) -> None:
        """What :meth:`next` has asked for could not be begun."""

    @abstractmethod
    def stood_still(self, seconds: float) -> None:
        """Between two sessions, for so long."""

    @property
    @abstractmethod
    def sessions(self) -> Sequence[Session]:
        """Those whose ftrees were measured."""

    @property
    @abstractmethod
    def best(self) -> Session | None:
        """The session whose answer is the first one."""

    @abstractmethod
    def with_answer(self, session: Session, shown: Snapshot) -> Snapshot:
        """What ``session`` has found so far, which is ``shown``, with what is made of it."""
