"""What backtraces show while pads are in the program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path


class Frames(ABC):
    """Backtraces as a debugger reads them."""

    @abstractmethod
    def show_pads(
        self, agent: Path, base: int, caller: Callable[[int, int], tuple[int, int] | None]
    ) -> None:
        """Makes backtraces right in the agent, whose ELF file ``agent`` is mapped at ``base``, and
        in pads: ``caller(pc, stack)`` gives the address of the stack word that holds (or held) the
        return address, and that return address; ``None`` where no pad is."""

    @abstractmethod
    def hide_pads(self) -> None:
        """Takes back what :meth:`show_pads` did."""

    @abstractmethod
    def forget(self) -> None:
        """Stack words were written: backtraces are to be read anew."""
