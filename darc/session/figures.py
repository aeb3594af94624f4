"""How long an analysis is under way, and what it takes of the program."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator

from darc.model.snapshot import ProgramFigures
from darc.target.target import Target


class RunFigures:
    """Of one session, from its making to its end."""

    def __init__(self, target: Target, spent: float = 0.0) -> None:
        """For ``spent`` seconds darc was at work for it before."""
        self._target = target
        self._spent = spent
        self._started = time.monotonic()
        self._ended: float | None = None
        self._stops = 0
        self._stopped_seconds = self._longest = 0.0
        self._own_stops_before = target.own_stops
        self._own_stops = 0
        self._setup_seconds = 0.0

    @property
    def seconds(self) -> float:
        """Since its beginning, up to its end. Any thread."""
        return (self._ended or time.monotonic()) - self._started

    @property
    def seconds_of_limit(self) -> float:
        """Those that count for ``--max-time``: with what darc was at work before. Any thread."""
        return self.seconds + self._spent

    @contextlib.contextmanager
    def stop(self) -> Iterator[None]:
        """The program stands still for a decision."""
        begin = time.monotonic()
        self._stops += 1
        try:
            yield
        finally:
            took = time.monotonic() - begin
            self._stopped_seconds += took
            self._longest = max(self._longest, took)

    def was_set_up(self, seconds: float) -> None:
        """It took so long until its probes were ready, while the program stood still."""
        self._setup_seconds = seconds

    def count_stops(self) -> None:
        """Takes down how often darc has stopped the program. What it does after the end is not
        counted."""
        if self._ended is None:
            self._own_stops = self._target.own_stops - self._own_stops_before

    def end(self) -> None:
        """The analysis is over."""
        self._ended = time.monotonic()

    def added_to(self, program: ProgramFigures, hits: tuple[int, float]) -> ProgramFigures:
        """These, with all stops: those at ``hits`` of its probes as well, so many in so many
        seconds."""
        self.count_stops()
        number, seconds = hits
        return dataclasses.replace(
            program,
            stops=max(self._stops + number, self._own_stops),
            stopped_seconds=round(self._stopped_seconds + seconds, 6),
            setup_seconds=round(self._setup_seconds, 6),
            longest_stop=round(self._longest, 6),
        )
