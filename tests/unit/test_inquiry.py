"""What ``darc why`` looks into next, and for how long, without a program or a clock."""

from __future__ import annotations

from darc.model.ftree import Cause, Ending, Fnode, RootCausePath
from darc.model.functionset import FunctionSet
from darc.model.parameters import Parameters, Probes
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.model.why import Answer, Verdict
from darc.search.inquiry import Elsewhere, Inquiry, Search
from tests.unit.sets import function, of, row

SLOW = {10: 1000, 11: 200, 24: 30}
KNOWN = of(row("log_line", {**SLOW, 24: 90}), row("serve", SLOW))


def begun() -> Inquiry:
    inquiry = Inquiry(Parameters())
    inquiry.profiled(KNOWN, None)
    return inquiry


def found(search: Search) -> tuple[Answer, Fnode]:
    """The answer to a search whose function waits for something by itself."""
    root = Fnode(search.suspect.row.function)
    path = RootCausePath((root,), Ending(Cause.BLOCKED, 20))
    shown = Snapshot(search.suspect.name, Status.FOUND, Probes.PAD, ftree=root, paths=(path,))
    return Answer(search.suspect, shown), root


def test_the_last_search_has_all_the_time_that_is_left() -> None:
    inquiry = begun()
    seconds = []
    for rest in (12.0, 6.0):
        step = inquiry.next(rest)
        assert isinstance(step, Search)
        seconds.append(step.parameters.max_time)
        inquiry.answered(*found(step))
    assert seconds == [6.0, 6.0]
    assert inquiry.next(5.0) is None
    assert inquiry.is_over


def test_a_search_that_would_have_no_time_is_not_begun() -> None:
    inquiry = begun()
    assert inquiry.next(0.9) is None
    why = inquiry.evidence(None, None, has_ended=False).why()
    assert why.verdict is Verdict.UNKNOWN
    assert [one.name for one in why.open] == ["log_line", "serve"]


def test_what_could_not_be_begun_is_an_answer_without_a_cause() -> None:
    inquiry = begun()
    first = inquiry.next(12.0)
    assert isinstance(first, Search)
    inquiry.failed("no pad can be made")
    second = inquiry.next(12.0)
    assert isinstance(second, Search)
    assert second.suspect != first.suspect
    assert inquiry.best is None
    answer, root = found(second)
    inquiry.answered(answer, root)
    assert inquiry.best is answer
    told = inquiry.evidence(None, None, has_ended=False).why()
    assert [(one.suspect, one.why) for one in told.answers] == [
        (second.suspect, None),
        (first.suspect, "no pad can be made"),
    ]


def test_where_the_work_is_elsewhere_is_asked_once() -> None:
    inquiry = Inquiry(Parameters())
    nothing = FunctionSet((), uncalled=(function("idle"),), seconds=3.0)
    inquiry.profiled(nothing, (4096,))
    assert inquiry.next(12.0) == Elsewhere((4096,))
    inquiry.profiled(nothing, (8192,))
    assert inquiry.next(12.0) is None
