"""The program's threads, where they stand, and their registers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence


class Threads(ABC):
    """Those of a target's program, by the system's ids."""

    @abstractmethod
    def ids(self) -> Sequence[int]:
        """All of them."""

    @abstractmethod
    def program_counters(self) -> Mapping[int, int]:
        """Where every thread stands, by its id."""

    @abstractmethod
    def read_register(self, thread: int, name: str) -> int:
        """A register of one thread, by its name in ``darc/code/processor.py``."""

    @abstractmethod
    def write_register(self, thread: int, name: str, value: int) -> None:
        """Sets a general register of one thread."""

    def show(self, thread: int) -> str | None:
        """At a stop for the user: makes it the thread that commands are about. ``None``: it is;
        else what the user types for that."""
        del thread
        return None
