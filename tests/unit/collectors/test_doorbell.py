"""What a thread that rings waits for, beyond the debugger's own look."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.collectors.doorbell import Doorbell
from darc.debuggee import clock


class RungBell:
    """Its counter, and the agent's words."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, shares_clock: bool = True) -> None:
        self.now = 1000
        self.tables = SimpleNamespace(bell=0, bell_start=0, bell_end=0)
        monkeypatch.setattr(clock, "tsc_now", lambda: self.now)
        backend = SimpleNamespace(change_bell=lambda tables: None)
        installer = SimpleNamespace(tables=self.tables)
        nobody = cast(Any, None)
        self.bell = Doorbell(
            cast(Any, backend),
            cast(Any, installer),
            nobody,
            nobody,
            foothold=nobody,
            shares_clock=shares_clock,
        )

    def stop(self, *, heard: int, look: int, until_it_goes: int | None) -> None:
        """A thread rings, is heard so much later, looked at for so long, and goes on."""
        self.tables.bell, self.tables.bell_start = 1, self.now
        self.now += heard
        self.bell.heard()
        self.now += look
        self.tables.bell = 0
        self.bell.replied()
        if until_it_goes is not None:
            self.now += until_it_goes
            self.tables.bell_end = self.now
        self.now += 10_000


def test_until_it_is_heard_and_until_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    program = RungBell(monkeypatch)
    program.stop(heard=30, look=500, until_it_goes=7)
    assert program.bell.unheard_cycles == 30  # it is not known yet when it went on
    program.stop(heard=40, look=500, until_it_goes=None)  # led on at once
    assert program.bell.unheard_cycles == 30 + 7 + 40
    program.stop(heard=1, look=500, until_it_goes=2)
    assert program.bell.unheard_cycles == 30 + 7 + 40 + 1


def test_looks_that_nobody_rang_for_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    program = RungBell(monkeypatch)
    program.stop(heard=30, look=500, until_it_goes=7)
    program.bell.heard()  # the user's stop
    program.bell.replied()
    program.stop(heard=40, look=500, until_it_goes=2)
    assert program.bell.unheard_cycles == 30 + 40


def test_a_machine_of_its_own_has_its_own_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    program = RungBell(monkeypatch, shares_clock=False)
    for _ in range(2):
        program.stop(heard=30, look=500, until_it_goes=7)
    assert program.bell.unheard_cycles == 0
