"""Who sees to it that a process goes on when its debugger is killed, or loses it."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from darc.debuggee import journal, watchover
from darc.debuggee.watchover import WatchOver


class WatchedProcess:
    """A process of a debugger; what guardians were told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **target: bool) -> None:
        self.told: list[str] = []
        self.shell = True
        monkeypatch.setattr(watchover, "Guardian", self._guardian)
        monkeypatch.setattr(journal, "left", lambda pid: None)
        known = {"outlives_debugger": True, "is_stopped": False, **target}
        made: Any = SimpleNamespace(
            outlives_debugger=known["outlives_debugger"],
            is_stopped_for_all=lambda: known["is_stopped"],
        )
        self.over = WatchOver(made, os.getpid())

    def _guardian(self, pid: int) -> Any:
        if not self.shell:
            raise OSError("no shell is here")
        self.told.append(f"watches {'its own' if pid == os.getpid() else pid}")
        return SimpleNamespace(
            leave=lambda: self.told.append("leaves"), lose=lambda: self.told.append("loses")
        )


@pytest.mark.parametrize(("lost", "told"), [(False, "leaves"), (True, "loses")])
def test_a_program_that_outlives_its_debugger_has_a_guardian_from_the_first(
    lost: bool, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = WatchedProcess(monkeypatch)
    farewell = world.over.begin()
    assert world.told == ["watches its own"]
    farewell(lost)
    assert world.told[1:] == [told]


@pytest.mark.parametrize(("lost", "told"), [(False, []), (True, ["watches its own", "loses"])])
def test_one_that_ends_with_its_debugger_has_one_where_it_is_lost(
    lost: bool, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = WatchedProcess(monkeypatch, outlives_debugger=False)
    farewell = world.over.begin()
    assert not world.told
    farewell(lost)
    assert world.told == told


def test_what_another_has_stopped_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world = WatchedProcess(monkeypatch, is_stopped=True)
    assert world.over.is_stopped_by_another()
    world.over.begin()(True)
    assert not world.told


def test_what_a_debugger_that_was_killed_has_stopped_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = WatchedProcess(monkeypatch, is_stopped=True)
    monkeypatch.setattr(journal, "left", lambda pid: object())
    assert not world.over.is_stopped_by_another()
    world.over.begin()
    assert world.told == ["watches its own"]


@pytest.mark.parametrize("outlives", [True, False])
def test_without_a_shell_it_is_left_to_the_next_darc(
    outlives: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = WatchedProcess(monkeypatch, outlives_debugger=outlives)
    world.shell = False
    world.over.begin()(True)
    assert not world.told
