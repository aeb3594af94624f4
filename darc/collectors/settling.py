"""For how long what a stop has caused is not taken for what the program does.

What is due while a program stands still, as its timers and its clients' requests are, is begun by
all threads at once when it goes on, and they wait for each other as they never do else. Calls of
which much lies in that time do not count (``is_unsettled`` in ``darc/agent/f0.c``).
"""

from __future__ import annotations

from darc.agent.memory import AgentMemory
from darc.debuggee import clock
from darc.pads.backend import PadBackend

_PER_STOP = 2.0
"""How many times as long as the stop: threads that are at work for two thirds of the time have
caught up by then (what came in ``s`` is done after ``s * u / (1 - u)``)."""

_PER_THREAD = 0.01
"""Seconds for each thread but one, as each has one thing to catch up with."""

_FEW = 8
"""Threads that are no herd: each has little to wait for."""

_LONGEST = 2.0
"""Seconds at most."""

_FIRST = 3.0
"""Seconds that may not count beyond those that others allow:"""

_FOR_EACH = 3
"""so many for each that counts. A program that is stopped all the time is measured for a fourth of
it."""

_MUCH = 0.1
"""Of the time in which the program ran: if so much does not count, it is told."""


class Settling:
    """After the stops of one analysis."""

    def __init__(self, backend: PadBackend, *, is_asked: bool) -> None:
        """``is_asked``: else all calls count."""
        self._backend = backend
        self._is_asked = is_asked
        self._stood: int | None = None
        """The time-stamp counter when the program stopped, while it stands still."""
        self._went: int | None = None
        """When it went on before that,"""
        self._window = 0
        """and for how many cycles calls have not counted then, if it ran so long."""
        self._unsettled = self._settled = 0
        """Cycles that it ran so far in which calls have not counted, and in which they have."""

    def stands(self, since: int | None = None) -> None:
        """The program has stopped, at ``since`` by the time-stamp counter; else just now. Told
        again at the same stop, it changes nothing."""
        if self._stood is not None:
            return
        self._stood = clock.tsc_now() if since is None else since
        if self._went is not None:
            ran = max(0, self._stood - self._went)
            self._unsettled += min(ran, self._window)
            self._settled += max(0, ran - self._window)

    def goes_on(self, tables: AgentMemory) -> None:
        """The program goes on now."""
        if self._stood is None or not self._is_asked:
            return
        now, hz = clock.tsc_now(), clock.tsc_hz()
        threads = self._backend.thread_count()
        others = threads - 1 if threads > _FEW else 0
        longest = int(min(_LONGEST, _PER_THREAD * others) * hz)
        left = _FOR_EACH * self._settled + int(_FIRST * hz) - self._unsettled
        before = self._window
        self._window = max(0, min(int(_PER_STOP * (now - self._stood)), longest, left))
        self._stood, self._went = None, now
        if before or self._window:
            tables.set(resumed=now, settled=now + self._window)

    @property
    def seconds(self) -> float:
        """For how long the program ran so far and calls did not count. Any thread."""
        unsettled, went = self._unsettled, self._went
        if self._stood is None and went is not None:
            unsettled += max(0, min(clock.tsc_now() - went, self._window))
        return unsettled / clock.tsc_hz()

    @property
    def is_much(self) -> bool:
        """Whether so much time did not count that it is to be told."""
        return self._unsettled > _MUCH * (self._unsettled + self._settled)
