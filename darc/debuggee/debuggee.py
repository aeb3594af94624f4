"""What is debugged: a process of this machine, or a kernel.

Descent, votes, tables and pads are the same everywhere. What differs is here: where code comes
from, what may be timed, whose calls count, and what stops it (a duty each,
:mod:`darc.debuggee.duties`), and how an analysis begins and ends in it. How pads live there, where
there may be any, is the matter of its :class:`~darc.pads.backend.PadBackend`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from darc.code.program import Program
from darc.debuggee.duties import (
    CanBeStopped,
    Clocked,
    HasCode,
    SeenBeside,
    TakesBreakpoints,
    TellsOfThreads,
    TellsWaits,
)
from darc.debuggee.nature import Nature
from darc.model.parameters import Parameters
from darc.pads.backend import PadBackend
from darc.target.target import Journal


class Debuggee(
    Clocked, HasCode, TellsWaits, TellsOfThreads, TakesBreakpoints, SeenBeside, CanBeStopped
):
    """One process or kernel that a debugger has stopped."""

    journal = Journal()
    """Where its changes are noted before they are made."""

    @property
    @abstractmethod
    def nature(self) -> Nature:
        """What kind of thing it is."""

    @property
    @abstractmethod
    def identity(self) -> int:
        """Tells it from others that the debugger had or will have: a process id, for a kernel what
        stays the same until it boots anew."""

    @property
    def pads(self) -> PadBackend | None:
        """How pads live there; ``None``: there can be none."""
        return None

    def clean_up(
        self, program: Program, *, unmap: bool = True, of_memory: bool = False
    ) -> list[str]:
        """Takes out what a debugger that was killed left there, as
        :meth:`~darc.pads.backend.PadBackend.clean_up` does."""
        return (
            []
            if self.pads is None
            else self.pads.clean_up(program, unmap=unmap, of_memory=of_memory)
        )

    @abstractmethod
    def check_supported(self) -> None:
        """Raises :class:`~darc.model.errors.UnsupportedError` for modes of the debugger that darc
        refuses."""

    @property
    def opening(self) -> str | None:
        """What the user is to know before an analysis goes on."""
        return None

    def absent(self, parameters: Parameters) -> str | None:
        """What is to be timed by ``parameters`` and is not there at the moment, for the user;
        ``None`` where it is, or nothing tells."""
        del parameters
        return None

    @abstractmethod
    def begin(self) -> None:
        """Probes are about to be put in."""

    @abstractmethod
    def leave(self, is_there: bool = True) -> None:
        """Every probe is out: undoes what :meth:`begin` changed, as far as what runs there
        ``is_there`` still."""

    def watch_over(self) -> Callable[[bool], None]:
        """From now on it goes on if the debugger is killed, where that can be seen to. What is
        returned is called with ``False`` when the debugger lets it go, or it is gone; with ``True``
        when the debugger has lost it."""
        return lambda lost: None

    def died(self) -> str | None:
        """At a stop: why nothing will be called there any more, though all of it can be read and
        the debugger has it still."""
        return None

    def lost(self) -> str | None:
        """At a stop: why what the debugger has is not what an analysis has begun in, where the
        debugger does not say so."""
        return None
