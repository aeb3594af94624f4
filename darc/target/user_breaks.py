"""The user's own breakpoints: where they stand, and when that changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence


class UserBreakpoints(ABC):
    """All that the debugger lists, but for darc's."""

    @abstractmethod
    def addresses(self) -> Sequence[int]:
        """Where they stand: no patch may cover one."""

    @abstractmethod
    def when_changed(self, handler: Callable[[], None] | None) -> None:
        """``handler`` is called after the user has set or changed a breakpoint, before the program
        goes on."""
