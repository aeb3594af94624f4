"""What lldb's target makes of a process that is new, fails or ends: there is no lldb here."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import darc_lldb
from darc.model.errors import TargetError
from darc.target.outcome import Outcome


@pytest.fixture
def lifetime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, with constants of lldb's that mean nothing; gone at the end with what it imports,
    none of which is to be known with such an lldb."""
    lldb: Any = ModuleType("lldb")
    lldb.__getattr__ = lambda name: name
    monkeypatch.setitem(sys.modules, "lldb", lldb)
    before = set(sys.modules)
    yield importlib.import_module("darc_lldb.lifetime")
    for name in {one for one in sys.modules if one.startswith("darc_lldb.")} - before:
        del sys.modules[name]
        delattr(darc_lldb, name.partition(".")[2])


@pytest.fixture
def pid() -> Iterator[int]:
    """A process that nobody traces."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        yield process.pid


@dataclass
class Inferior:
    """What lldb has selected."""

    callbacks: Any
    known: int | None = None
    watcher: Any = None
    is_here: bool = True
    lock: Any = field(default_factory=threading.RLock)
    asks: list[bool] = field(default_factory=list)

    def is_local(self) -> bool:
        return self.is_here

    def is_core(self, process: object) -> bool:
        return False

    def meet(self, process: Any, watcher: Any) -> None:
        self.known, self.watcher = process.GetProcessID(), watcher

    def lose(self) -> None:
        self.known = None
        if self.watcher is not None:
            self.watcher.close()

    def may_ask(self, may: bool) -> None:
        self.asks.append(may)


class Others:
    """Stop hooks of others, and whether they are free."""

    are_free = False

    def program_ended(self) -> None:
        self.are_free = True


class ToldLifetime:
    """A lifetime, and who is told of it."""

    def __init__(self, lifetime: ModuleType) -> None:
        self.told: list[object] = []
        self.inferior = Inferior(
            SimpleNamespace(
                failed=lambda error: self.told.append(str(error)),
                went_on=self.tells("went on"),
                end=self.tells("end"),
                lost=lambda pid, why: self.told.append(("lost", pid, why)),
            )
        )
        self.others = Others()
        self.life = lifetime.Lifetime(
            self.inferior,
            SimpleNamespace(forget=self.tells("threads")),
            SimpleNamespace(forget_places=self.tells("places")),
            others=self.others,
            bell=SimpleNamespace(forget=self.tells("bell")),
            hears_stand=lambda: True,
        )

    def tells(self, what: str) -> Callable[[], None]:
        return lambda: self.told.append(what)

    def meet(self, pid: int) -> None:
        self.life.meet(SimpleNamespace(GetProcessID=lambda: pid))

    def close(self) -> None:
        if self.inferior.watcher is not None:
            self.inferior.watcher.close()


@pytest.fixture
def world(lifetime: ModuleType) -> Iterator[ToldLifetime]:
    made = ToldLifetime(lifetime)
    yield made
    made.close()


def test_a_process_is_met_once(world: ToldLifetime, pid: int) -> None:
    world.meet(pid)
    watcher = world.inferior.watcher
    world.meet(pid)
    assert (world.inferior.known, world.told) == (pid, ["threads"])
    assert world.inferior.watcher is watcher


def test_one_that_is_elsewhere_or_gone_is_not_met(world: ToldLifetime) -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        pass
    world.meet(process.pid)
    world.inferior.is_here = False
    world.meet(1)
    assert (world.inferior.known, world.inferior.watcher) == (None, None)


def test_the_one_before_has_ended_when_another_one_is_met(world: ToldLifetime, pid: int) -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        pass
    world.inferior.known = process.pid
    world.meet(pid)
    assert world.told == ["places", "end", "bell", "threads"]
    assert (world.inferior.known, world.others.are_free) == (pid, True)


def test_one_that_lives_is_lost_and_that_is_told_once(world: ToldLifetime, pid: int) -> None:
    world.inferior.known = pid
    world.life.ended(pid + 1)
    assert not world.told
    world.life.ended(pid)
    world.life.ended(pid)
    assert world.told == ["places", ("lost", pid, None), "bell"]


def test_what_fails_in_a_process_that_nobody_traces_is_its_loss(
    world: ToldLifetime, pid: int
) -> None:
    def fails(error: Exception) -> Callable[[], None]:
        def function() -> None:
            raise error

        return function

    world.life.guarded(fails(TargetError("no such memory")))
    world.inferior.known = pid
    world.life.guarded(fails(ValueError("a mistake")))
    assert world.told == ["no such memory", "a mistake"]
    world.life.guarded(fails(TargetError("no such memory")))
    assert ("lost", pid, None) in world.told


def test_files_that_are_new_are_told_of(world: ToldLifetime) -> None:
    """And what fails then lets the program go on."""
    assert world.life.modules_changed() is Outcome.CONTINUE
    world.life.tell_of_modules(lambda: Outcome.STOP)
    assert world.life.modules_changed() is Outcome.STOP

    def fails() -> Outcome:
        raise ValueError("a mistake")

    world.life.tell_of_modules(fails)
    assert world.life.modules_changed() is Outcome.CONTINUE
    assert world.told == ["a mistake"]
    world.life.executed()
    assert world.told[1:] == ["threads", "a mistake"]


def test_what_the_watcher_sees_is_told_without_asking_lldb(world: ToldLifetime) -> None:
    world.life.went_on()
    assert (world.inferior.asks, world.told) == ([False], ["went on"])
    assert world.life.hears_stand()


def test_who_lets_a_program_go_whose_first_thread_has_ended(
    world: ToldLifetime, lifetime: Any, monkeypatch: pytest.MonkeyPatch, pid: int
) -> None:
    """Not where lldb tells of the others; and why is told where the program is lost."""
    released = []

    def let_go(number: int, *, stands: bool) -> bool:
        released.append((number, stands))
        return True

    release = 22
    monkeypatch.setattr(lifetime.release, "major", lambda: release)
    monkeypatch.setattr(lifetime.beside, "is_noted", lambda number: True)
    monkeypatch.setattr(lifetime.procfs, "tracer", lambda number: 1)
    monkeypatch.setattr(lifetime.beside, "let_go", let_go)
    world.inferior.known = pid
    world.life.stuck(pid)
    assert not released
    release = 19
    world.life.stuck(pid + 1)
    assert not released
    world.life.stuck(pid)
    assert released == [(pid, True)]
    world.life.ended(pid)
    (told,) = [one for one in world.told if isinstance(one, tuple)]
    assert f"the first thread of process {pid} has ended" in told[2]
    assert "nothing of darc's is in its code" in told[2]
