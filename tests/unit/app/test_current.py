"""The analysis that the commands are about, and what stays of those before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from darc.app.current import Current
from darc.app.finding import Request
from darc.app.pursuit import Pursuit
from darc.model.contexts import Context
from darc.model.functionset import FunctionSet
from darc.model.part import parts_of
from darc.model.snapshot import Snapshot
from darc.session.session import Session
from tests.unit import samples
from tests.unit.sets import row

TABLE = samples.snapshot(parts=parts_of(FunctionSet((row("put", {20: 5}),))))


def session_of(shown: Snapshot) -> Session:
    return cast(Session, cast(Any, SimpleNamespace(snapshot=lambda **_: shown)))


def pursuit_of(*sessions: Session, best: Session | None) -> Pursuit:
    """One that says of each answer how many there are."""
    made = SimpleNamespace(sessions=sessions, best=best, with_answer=lambda _session, _found: TABLE)
    return cast(Pursuit, cast(Any, made))


def roots(trees: list[Context]) -> list[str]:
    return [function.name for tree in trees for function in tree.children]


def test_a_table_is_there_until_another_has_numbered_functions() -> None:
    current = Current()
    assert current.table() is None
    current.session = session_of(TABLE)
    assert current.table() is TABLE
    current.forget()
    assert current.session is None
    assert current.table() is TABLE
    current.session = session_of(samples.snapshot())
    assert current.table() is TABLE, "nothing there has a number"
    newer = samples.snapshot(parts=TABLE.parts)
    current.session = session_of(newer)
    assert current.table() is newer


def test_what_was_measured_stays() -> None:
    current = Current()
    current.session = session_of(samples.snapshot())
    assert roots(current.measured()) == ["handle"]
    current.forget()
    assert roots(current.measured()) == ["handle"]
    current.session = session_of(samples.snapshot(ftree=None))
    assert roots(current.measured()) == ["handle"], "it has measured nothing"


def test_what_nothing_has_come_of_takes_nobodys_place() -> None:
    current = Current()
    before = current.session = session_of(samples.snapshot())
    kept = current.forget()
    current.take_back(kept)
    assert current.session is before
    assert roots(current.measured()) == ["handle"], "once"


def test_what_waited_in_its_place_and_waits_no_more() -> None:
    """Also behind a second one that has waited in the place of the first."""
    current = Current()
    before = current.session = session_of(samples.snapshot())
    current.forget()
    current.forget()
    current.recall()
    assert current.session is before
    assert roots(current.measured()) == ["handle"]
    current.forget()
    later = session_of(samples.snapshot())
    current.begun(later, request=cast(Request, None))
    current.recall()
    assert current.session is later
    current.session = None
    current.recall()
    assert current.session is None, "another one has taken its place"


def test_what_begins_anew_has_what_comes_behind_it() -> None:
    current = Current()
    before = current.session = session_of(samples.snapshot())
    pursuit = current.pursuit = pursuit_of(before, best=None)
    current.begin_anew()
    assert current.session is None
    assert current.pursuit is pursuit
    current.recall()
    assert current.session is before


def test_the_best_of_a_pursuit_is_shown_and_the_others_trees_stay() -> None:
    current = Current()
    first, last = session_of(samples.snapshot()), session_of(samples.snapshot(ftree=None))
    current.session, current.pursuit = last, pursuit_of(first, last, best=last)
    assert current.shown(last) is TABLE, "what the pursuit makes of it"
    current.take_best()
    assert current.session is last
    assert roots(current.measured()) == ["handle"]
    current.pursuit = pursuit_of(first, last, best=None)
    current.take_best()
    assert current.session is last, "none has an answer"
