"""Until when calls are watched: the time limit, and the user's Ctrl-C that the program blocks."""

from __future__ import annotations

from darc.session.figures import RunFigures
from darc.session.probing import Probing


class Deadline:
    """Of a session that runs for as long as ``figures`` tell, and for ``limit`` seconds at most.
    Any thread."""

    def __init__(self, session: Probing, figures: RunFigures, limit: float | None) -> None:
        self._session = session
        self._figures = figures
        self._limit = limit
        self._is_called_off = False

    @property
    def has_passed(self) -> bool:
        """Whether ``--max-time`` has."""
        return self._limit is not None and self._figures.seconds_of_limit >= self._limit

    @property
    def seconds_left(self) -> float | None:
        """Until there is to be a decision, whatever was seen: for ``--max-time``, or for
        ``--start-time``; none where the user wants a stop."""
        if self._is_called_off:
            return 0.0
        left = [] if self._limit is None else [self._limit - self._figures.seconds_of_limit]
        if (profiling := self._session.analysis.seconds_left) is not None:
            left.append(profiling)
        return min(left, default=None)

    def is_due(self) -> bool:
        """Whether that time is up."""
        left = self.seconds_left
        return left is not None and left <= 0

    def call_off(self) -> None:
        """The user's Ctrl-C came, and the program blocks it: it is to stop for the user."""
        self._is_called_off = True

    @property
    def is_called_off(self) -> bool:
        """Whether it is, and has not stopped yet."""
        return self._is_called_off

    def take_called_off(self) -> bool:
        """At a stop for the user: whether it answers :meth:`call_off`."""
        called_off, self._is_called_off = self._is_called_off, False
        return called_off
