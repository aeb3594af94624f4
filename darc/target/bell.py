"""A signal at which darc decides what becomes of the program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from darc.target.outcome import Outcome, carry_out


def reply(
    handler: Callable[[], Outcome] | None,
    *,
    follow_up: Callable[[], Outcome],
    failed: Callable[[Exception], None],
) -> Outcome:
    """What becomes of a program that the bell has stopped, where ``handler`` decides. Where that
    would leave it to the user, ``follow_up`` says whether another analysis has begun by itself.
    ``failed`` tells the user what went wrong, in one place."""
    if handler is None:
        return Outcome.CONTINUE
    decide = handler

    def decided() -> Outcome:
        outcome = decide()
        return outcome if outcome is Outcome.CONTINUE else follow_up()

    return carry_out(decided, failed=failed, instead=Outcome.STOP)


class Bell(ABC):
    """The signal that the agent rings with, or the thread beside; one at a time."""

    @abstractmethod
    def arm(self, signal: int, handler: Callable[[], Outcome]) -> None:
        """``handler`` decides, with all threads stopped, whenever a thread gets ``signal``, or
        :data:`~darc.debuggee.bell.KNOCK` with darc's mark. It may write memory and registers, but
        call nothing in the program. When it says so the program stops at once, for the user, where
        the thread then is. A signal that bears darc's mark (:mod:`darc.debuggee.bell`) never
        reaches a handler of the program's, nor stops it; any other does."""

    @abstractmethod
    def change(self, signal: int) -> None:
        """The handler of :meth:`arm` listens to another signal from now on. May be called
        while it decides."""

    @abstractmethod
    def disarm(self) -> None:
        """Takes back what :meth:`arm` set."""
