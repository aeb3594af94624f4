"""Which collector counts for a session, and which one takes its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from darc.collectors.collector import Assignment, Collector, Remains, Way
from darc.collectors.ways import kind_for_the_rest, way_instead, ways_of
from darc.model.errors import ProbesImpossibleError
from darc.model.parameters import Probes


class Collecting:
    """Makes the collectors of one session for its ``assignment``. ``own`` is how to collect, where
    that is a way for its analysis alone: it takes the place of that of its kind."""

    def __init__(self, assignment: Assignment, own: Way | None) -> None:
        self._assignment = assignment
        self._own = own
        self.remains: Remains | None = assignment.remains
        """What stays in the debuggee, for the next analysis of it."""
        self.instead: str | None = None
        """Why another way was taken than the one that ``auto`` tries first."""

    def begin(self, put_in: Callable[[Way], None], note: Callable[[str], None]) -> None:
        """``put_in`` is given what ``--probes`` asks for. Of ``auto`` the first way; the second
        where the program can take no probe of the first at all and comes to no harm. Else, and
        where only f0 can take none, they are for the user to choose."""
        task = self._assignment
        first, *others = ways_of(task.parameters.probes, self._own)
        if task.parameters.probes is not Probes.AUTO:
            put_in(first)
            return
        why = first.collector.risk(task.debuggee)
        if why is None:
            try:
                put_in(first)
                return
            except ProbesImpossibleError as error:
                why = str(error)
        way, self.instead = way_instead(first, others, why, task.debuggee, task.spec)
        note(self.instead)
        put_in(way)

    def for_the_rest(self, before: Collector) -> Way:
        """The way that times calls which ``before``, which has counted, could not."""
        kind = kind_for_the_rest(before.kind)
        assert kind is not None
        (way,) = ways_of(kind, self._own)
        return way

    def new(self, way: Way) -> Collector:
        """One that is made so."""
        return way.new(replace(self._assignment, remains=self.remains))

    def leaves(self, collector: Collector) -> None:
        """It was put in, or could not be: what it has put there is the next one's."""
        self.remains = collector.remains
