"""What the contract's checks need besides a target: the program of ``program.c``, driven as a user
of the debugger would drive it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from darc.target.target import Target


class World(ABC):
    """A debugger with the program loaded and not started. The user's breakpoint on ``stop_here``
    is set."""

    target: Target

    @abstractmethod
    def start(self) -> None:
        """Starts the program, up to its first ``stop_here``."""

    @abstractmethod
    def go(self) -> int | None:
        """Lets the program go on to its next stop for the user; the pc there, or ``None`` when the
        program has ended."""

    @abstractmethod
    def kill(self) -> None:
        """Kills the program."""

    @abstractmethod
    def address(self, name: str) -> int:
        """Address of a symbol."""

    @abstractmethod
    def set_breakpoint(self, address: int) -> None:
        """Sets a breakpoint of the user's."""

    @abstractmethod
    def clear_breakpoint(self, address: int) -> None:
        """Takes it out again."""

    @abstractmethod
    def set_pending(self, accept: bool) -> None:
        """The debugger's setting for breakpoints on functions that do not exist yet."""

    @abstractmethod
    def shown(self) -> str:
        """All that the target has emitted."""
