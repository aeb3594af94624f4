"""Time that passes where a test says so."""

from __future__ import annotations

import pytest

from darc.analyses import runclock


class MovedTime:
    """Stands for the module ``time``; ``now`` are seconds, of which a test adds what passes."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def run_time(monkeypatch: pytest.MonkeyPatch) -> MovedTime:
    """By which a :class:`~darc.analyses.runclock.RunClock` goes."""
    made = MovedTime()
    monkeypatch.setattr(runclock, "time", made)
    return made
