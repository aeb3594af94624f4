"""Breakpoints of darc's own, which the user never sees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from darc.target.outcome import OnHit, Outcome


class Breaks(ABC):
    """One that stops once, and any number that stop each time."""

    @abstractmethod
    def break_once(self, address: int, handler: Callable[[], Outcome]) -> None:
        """Stops once at ``address`` and runs ``handler`` (which may call functions), which tells
        whether the program goes on."""

    @abstractmethod
    def cancel_break(self) -> None:
        """Takes back what :meth:`break_once` set."""

    @abstractmethod
    def set_break(self, address: int, on_hit: OnHit) -> Callable[[], None]:
        """Calls ``on_hit`` whenever a thread comes to ``address``, without the user's command
        noticing, and without a trace in the user's list of breakpoints. One at each address.

        Returns what takes it back, which may be called at any time and more than once; it is taken
        back by itself when the program is gone. Raises TargetError where no code is.
        """

    @property
    @abstractmethod
    def hits_stop_all(self) -> bool:
        """Whether no other thread runs while ``on_hit`` decides."""
