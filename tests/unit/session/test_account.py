"""What a session tells of itself."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from darc.model.parameters import Probes
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.session.account import Account
from darc.session.figures import RunFigures
from tests.fake_target import FakeTarget

KNOWN = Snapshot("f", Status.PROFILING, Probes.PAD, warnings=("the analysis warns",))


class Session:
    """One whose collector has lost calls, and warns."""

    def __init__(self) -> None:
        self.alive = True
        self.running: list[int] = []
        self.collector = SimpleNamespace(
            losses=lambda: ["some were lost", "first of all"],
            warnings=lambda: ["the collector warns"],
            hits=(3, 0.25),
            cut_short=0,
            open_calls=SimpleNamespace(running=lambda: self.running),
        )
        self.analysis = SimpleNamespace(lacks=lambda *_: "")


@pytest.fixture
def session() -> Session:
    return Session()


def account_of(session: Session) -> Account:
    target = FakeTarget()
    return Account(
        session,  # type: ignore[arg-type]
        target=target,
        program=None,  # type: ignore[arg-type]
        debuggee=None,  # type: ignore[arg-type]
        root=None,  # type: ignore[arg-type]
        spec="f",
        figures=RunFigures(target),
        notes=["first of all"],
    )


def told(account: Account, known: Snapshot = KNOWN) -> Snapshot:
    return account.whole(known, lines=False, tree=lambda _: ())


def test_notes_come_in_order_and_once(session: Session) -> None:
    shown = told(account_of(session))
    assert shown.warnings == ("the analysis warns", "the collector warns")
    assert shown.notes == ("first of all", "some were lost", *shown.warnings)


def test_stops_for_hits_count(session: Session) -> None:
    account = account_of(session)
    assert (account.cost.stops, account.cost.stopped_seconds) == (3, 0.25)
    assert told(account).program.stops == 3


def test_a_function_that_was_not_called(session: Session) -> None:
    """That is said in the end: until then it may still be."""
    account = account_of(session)
    account.unless_called = "f was not called"
    assert account.unless_called not in told(account).notes
    session.alive = False
    assert told(account).notes[-1] == account.unless_called


def test_files_that_came_amid_calls(session: Session) -> None:
    account = account_of(session)
    account.files_changed()
    session.running = [1]
    account.files_changed()
    assert not any("loaded" in note for note in told(account).notes), "none was in the peak"
    known = dataclasses.replace(KNOWN, program=ProgramFigures(in_peak_calls=2))
    text = told(account, known).notes[-1]
    assert text.startswith("the program loaded or unloaded files once meanwhile")
