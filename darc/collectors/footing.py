"""The foothold that pads of an analysis stand on: that of the analysis before, or a new one."""

from __future__ import annotations

from collections.abc import Callable

from darc.agent.layout import Room
from darc.code.program import Program
from darc.collectors.collector import Remains
from darc.debuggee.debuggee import Debuggee
from darc.model.errors import PadsImpossibleError
from darc.pads.backend import PadBackend
from darc.pads.foothold import Foothold

_MOST_EARLIER = 8
"""Footholds of earlier analyses that may be there beside the one in use: 2 MiB each, as a rule."""


class Footing:
    """That of one analysis in ``debuggee``; ``note`` takes what the user should know."""

    def __init__(
        self,
        debuggee: Debuggee,
        backend: PadBackend,
        earlier: Remains | None,
        note: Callable[[str], None],
    ) -> None:
        """``earlier`` are what another analysis has left there, a foothold or something else."""
        self._debuggee = debuggee
        self._backend = backend
        self._note = note
        self.remains = earlier
        """What stays there for the next analysis; ``None``: there is nothing, or not any more."""

    @property
    def foothold(self) -> Foothold | None:
        """The one that is there."""
        return self.remains if isinstance(self.remains, Foothold) else None

    def take(self, program: Program, room: Room, resolution: int) -> Foothold:
        """One with that much ``room`` in its tables: an agent is in the debuggee.

        Raises:
            PadsImpossibleError: there can be none.
        """
        remains, known = self.remains, self.foothold
        is_ours = remains is not None and remains.identity == self._debuggee.identity
        if known is not None and is_ours and known.is_usable(room):
            known.reopen(program, resolution)
            return known
        if remains is not None and is_ours and not remains.give_back():
            remains.close()
        self.remains = None  # also where there is to be no other one
        new = self._backend.new_foothold(program, room)
        earlier = new.earlier(known if is_ours else None)
        if earlier >= _MOST_EARLIER:
            earlier = new.earlier(patient=True)
        self._tell_earlier(earlier)
        new.install(resolution)
        self.remains = new
        return new

    def _tell_earlier(self, number: int) -> None:
        """``number`` of earlier footholds are still there, and another one is to be."""
        if number >= _MOST_EARLIER:
            raise PadsImpossibleError(
                f"the memory of {number} earlier analyses is still in the program, as something "
                "may lead there: 'darc stop' gives it back as soon as nothing does"
            )
        if number:
            self._note(
                f"the memory of {number} earlier {'analysis' if number == 1 else 'analyses'} stays "
                "in the program for now, as something may lead there"
            )

    def lost(self) -> str | None:
        """At a stop: why it is not there any more."""
        return self.foothold.lost() if self.foothold is not None else None

    def is_there(self) -> bool:
        """Whether the program that it was put into is the one that runs."""
        foothold = self.foothold
        return (
            foothold is not None
            and foothold.identity == self._debuggee.identity
            and foothold.is_there()
        )
