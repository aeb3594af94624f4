"""Which collector counts for a session, from its first probe to its last."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from darc.collectors.collector import Collector, CollectorBrief, Way
from darc.debuggee.switchwatch import SwitchWatch
from darc.model.errors import EntryImpossibleError, TargetError, UnsupportedError
from darc.model.parameters import Parameters, Probes
from darc.session.collecting import Collecting


class Made:
    """A collector, which writes down what becomes of it."""

    kind = Probes.BREAKPOINT
    is_of_one = True
    out_of_reach: str | None = None
    remains = None
    stays = False
    """Whether it cannot be taken out."""

    def __init__(self, told: list[str], name: str) -> None:
        self._told, self._name = told, name

    def install(self, _code: object, needed: int) -> list[str]:
        self._told.append(f"{self._name} in for {needed}")
        return [f"{self._name} is in"]

    def modules_changed(self) -> list[str]:
        return [f"{self._name} has seen the files"]

    def losses(self) -> list[str]:
        return [f"{self._name} lost some"]

    def warnings(self) -> list[str]:
        return [f"{self._name} warns"]

    def remove(self) -> None:
        self._told.append(f"{self._name} out")
        if self.stays:
            raise TargetError("it stays")

    def gone(self) -> None:
        self._told.append(f"{self._name} gone")

    def abandon(self) -> None:
        self._told.append(f"{self._name} abandoned")


class Bench:
    """A session's collecting, each of whose collectors has a number."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.notes: list[str] = []
        self.begun: list[Collector] = []
        numbers = iter(range(1, 9))
        way = Way(
            Made,  # type: ignore[arg-type]
            lambda _: Made(self.told, f"number {next(numbers)}"),  # type: ignore[arg-type,return-value]
        )
        self.brief: Any = CollectorBrief(
            target=None,  # type: ignore[arg-type]
            program=SimpleNamespace(function=lambda _: None),  # type: ignore[arg-type]
            debuggee=None,  # type: ignore[arg-type]
            root=None,  # type: ignore[arg-type]
            spec="f",
            parameters=Parameters(probes=Probes.BREAKPOINT),
            listener=None,  # type: ignore[arg-type]
            note=self.notes.append,
        )
        self.collecting = Collecting(self.brief, way, SwitchWatch())

    def begin(self) -> Bench:
        self.collecting.begin(None, self.begun.append)  # type: ignore[arg-type]
        return self


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_it_begins(bench: Bench) -> None:
    bench.begin()
    assert bench.told == [f"number 1 in for {bench.brief.parameters.profile_calls}"]
    assert bench.notes == ["number 1 is in"]
    assert bench.begun == [bench.collecting.collector]
    assert bench.collecting.alive


def test_what_it_is_for_cannot_begin(bench: Bench) -> None:
    def refuse(_collector: Collector) -> None:
        raise UnsupportedError("no analysis")

    with pytest.raises(UnsupportedError, match="no analysis"):
        bench.collecting.begin(None, refuse)  # type: ignore[arg-type]
    assert bench.told[-1] == "number 1 out"
    assert not bench.collecting.alive


def test_where_f0_takes_no_probe_the_user_is_told_what_else_can(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector itself knows of no other, nor how it is asked for."""

    def refuse(_made: Made, _code: object, needed: int) -> list[str]:
        del needed
        raise EntryImpossibleError("cannot time f: it is too short")

    monkeypatch.setattr(Made, "install", refuse)
    monkeypatch.setattr("darc.session.collecting.told_of_other", lambda kind, _: f"; not {kind}")
    with pytest.raises(UnsupportedError) as raised:
        bench.begin()
    assert str(raised.value) == f"cannot time f: it is too short; not {Probes.BREAKPOINT}"
    assert bench.told == ["number 1 out"]
    assert not bench.collecting.alive


@pytest.mark.parametrize("is_of_one", [True, False])
def test_where_calls_are_out_of_reach_the_user_is_told_what_else_can(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, is_of_one: bool
) -> None:
    """Nothing else can time many functions."""
    monkeypatch.setattr(Made, "out_of_reach", "no calls from afar")
    monkeypatch.setattr(Made, "is_of_one", is_of_one)
    monkeypatch.setattr("darc.session.collecting.told_of_other", lambda kind, _: f"; not {kind}")
    told = f"no calls from afar; not {Probes.BREAKPOINT}" if is_of_one else "no calls from afar"
    bench.begin()
    assert bench.notes == ["number 1 is in", told]
    bench.collecting.modules_changed()
    assert bench.notes[2:] == ["number 1 has seen the files", told]
    monkeypatch.setattr(Made, "out_of_reach", None)
    bench.collecting.modules_changed()
    assert bench.notes[4:] == ["number 1 has seen the files"]


def test_another_takes_its_place(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is out by then, and what it has to say is kept."""
    monkeypatch.setattr("darc.session.collecting.kind_for_the_rest", lambda kind: kind)
    bench.begin().collecting.fall_back(0x1000)
    assert bench.told[1:] == ["number 1 out", "number 2 in for 0"]
    assert bench.notes[1:] == ["number 1 lost some", "number 1 warns", "number 2 is in"]
    assert bench.collecting.collector is not bench.begun[0]
    assert bench.collecting.alive


def test_what_cannot_be_taken_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where somebody tries again, it is not over yet."""
    monkeypatch.setattr(Made, "stays", True)
    bench.begin()
    with pytest.raises(TargetError, match="it stays"):
        bench.collecting.finish()
    assert bench.collecting.alive
    with pytest.raises(TargetError, match="it stays"):
        bench.collecting.take_out()
    assert not bench.collecting.alive


def test_the_program_is_gone(bench: Bench) -> None:
    bench.begin().collecting.gone(lambda: bench.told.append("last look"))
    assert bench.told[1:] == ["last look", "number 1 gone"]
    assert not bench.collecting.alive


def test_the_debugger_has_lost_the_program(bench: Bench) -> None:
    bench.begin().collecting.abandon()
    assert bench.told[1:] == ["number 1 abandoned"]
    assert not bench.collecting.alive
