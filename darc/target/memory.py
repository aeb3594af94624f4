"""The program's memory as a debugger reads and writes it."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from darc.model.errors import DarcError, TargetError

PAGE = 4096
"""Bytes of a page."""


Read = Callable[[int, int], bytes]
"""So many bytes of memory at an address, as :meth:`Memory.read` gives them."""

Write = Callable[[int, bytes], None]
"""Bytes into memory at an address, as :meth:`Memory.write` puts them."""


class Hidden(Protocol):
    """Memory that the debugger cannot reach by its addresses."""

    def read(self, address: int, size: int) -> bytes | None:
        """``None``: nothing is there."""

    def write(self, address: int, data: bytes) -> bool:
        """Whether anything is there."""


class Memory(ABC):
    """That of a target's program."""

    @abstractmethod
    def read(self, address: int, size: int) -> bytes:
        """Memory of the program, without the debugger's own breakpoints."""

    def is_there(self, address: int) -> bool:
        """Whether there is memory that can be read now, whatever was read before."""
        try:
            self.read(address, 1)
        except TargetError:
            return False
        return True

    @abstractmethod
    def write(self, address: int, data: bytes) -> None:
        """Writes memory, code too; breakpoints that stand there stay."""

    def write_code(self, address: int, data: bytes) -> None:
        """As :meth:`write`; in a batch, behind all that was written with that."""
        self.write(address, data)

    def batched(self, fill: range) -> contextlib.AbstractContextManager[None]:
        """While all threads stand still: writes may wait until :meth:`flush`, or until the end. In
        ``fill``, which nobody else writes to meanwhile, bytes between two writes may be written as
        they are."""
        del fill
        return contextlib.nullcontext()

    def at_once(self) -> contextlib.AbstractContextManager[None]:
        """While a thread of the program runs, for a call of darc's: what waited has been written
        before, what is written meanwhile does not wait, and nothing that was read is kept."""
        return contextlib.nullcontext()

    def flush(self) -> None:  # noqa: B027  most have nothing to do
        """What was written is in the program from now on."""


def word_at(memory: Memory, address: int, size: int = 8) -> int | None:
    """The number that stands there; ``None``: it cannot be read."""
    try:
        return int.from_bytes(memory.read(address, size), "little")
    except DarcError:
        return None
