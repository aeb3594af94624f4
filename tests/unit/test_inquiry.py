"""What ``darc why`` looks into next, and for how long, without a program or a clock."""

from __future__ import annotations

import dataclasses

from darc.model.ftree import Cause, Ending, Fnode, RootCausePath
from darc.model.functionset import FunctionSet
from darc.model.parameters import Parameters, Probes
from darc.model.part import parts_of
from darc.model.profile import OCTAVES
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.model.why import Answer, Verdict
from darc.search.inquiry import Elsewhere, Inquiry, Search
from darc.search.suspects import suspects
from darc.views.general.status import status
from darc.views.style import Style
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


TAIL = {15: 800, 16: 2000, 17: 900, 18: 400, 19: 200, 20: 100, 21: 50, 22: 40, 23: 30}
"""Of 100 µs as a rule, and up to 12 ms, without a valley: they take half of a thread's time."""
SENDS = row("send_out", {7: 14_000, 14: 6000})
"""6,000 calls of 25 µs: 7 % of a thread's time, which nobody waits for."""


def test_a_slow_peak_that_is_slight_beside_a_tail_comes_behind_it() -> None:
    queue = row("next_job", {14: 1500, 15: 1500, 16: 700, 17: 800, 18: 300, 19: 50})
    known = of(SENDS, row("process_request", TAIL), queue)
    assert [one.name for one in suspects(known)] == ["send_out"]
    inquiry = Inquiry(Parameters())
    inquiry.profiled(known, None)
    first = inquiry.next(12.0)
    assert isinstance(first, Search)
    assert (first.suspect.name, first.suspect.is_tail) == ("process_request", True)
    assert first.parameters.peak == f"22-{OCTAVES}"
    inquiry.answered(*found(first))
    second = inquiry.next(12.0)
    assert isinstance(second, Search), "the tail of next_job is slight beside what is told already"
    assert second.suspect.name == "send_out"
    inquiry.answered(*found(second))
    assert inquiry.next(6.0) is None
    why = inquiry.evidence(None, None, has_ended=False).why()
    assert [one.suspect.name for one in why.answers] == ["process_request", "send_out"]
    assert why.tail is None
    shown = Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(why))
    assert "process_request: 70 of 4520 calls take 4.2ms and more, about 9.0ms" in status(
        shown, Style()
    )


def test_where_it_was_not_looked_into_the_answer_is_not_sure() -> None:
    known = of(SENDS, row("process_request", TAIL), every=0.5)
    inquiry = Inquiry(Parameters())
    inquiry.profiled(known, None)
    trifle = next(one for one in suspects(known))
    inquiry.answered(*found(Search(trifle, Parameters())))
    why = inquiry.evidence(None, None, has_ended=True).why()
    assert why.verdict is Verdict.FOUND
    assert not why.is_sure
    assert "a longer delay, as a long tail, was not looked into: process_request" in why.reasons
    shown = Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(why))
    assert "'darc start process_request --peak >600us' looks into these" in status(shown, Style())
    assert [one.function.name for one in shown.named] == ["send_out", "process_request"]
    assert [one.function.name for one in shown.profiles or ()] == ["send_out"]


def test_a_tail_is_looked_into_by_itself_where_it_takes_much_of_the_time() -> None:
    inquiry = Inquiry(Parameters())
    inquiry.profiled(of(row("process_request", TAIL)), None)
    step = inquiry.next(12.0)
    assert isinstance(step, Search)
    assert step.suspect.is_tail
    busy = dataclasses.replace(of(row("process_request", TAIL)), busy=4.0)
    inquiry = Inquiry(Parameters())
    inquiry.profiled(busy, None)
    assert inquiry.next(12.0) is None, "of four threads that have work"


def test_each_answer_says_that_it_may_wait_for_work() -> None:
    inquiry = begun()
    for name in ("log_line", "serve"):
        step = inquiry.next(12.0)
        assert isinstance(step, Search)
        answer, root = found(step)
        handed = "pthread_cond_wait" if name == "serve" else None
        inquiry.answered(dataclasses.replace(answer, handed=handed), root)
    why = inquiry.evidence(None, None, has_ended=False).why()
    text = status(Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(why)), Style())
    told = "    whether it waits in pthread_cond_wait for its next work, nobody can tell\n"
    assert text.index("\n2 serve") < text.index(told)


def behind_a_wait_for_work(inquiry: Inquiry, wait: str) -> Search:
    """What is searched for after next_job, which may wait for work in that function."""
    first = inquiry.next(12.0)
    assert isinstance(first, Search)
    assert first.suspect.name == "next_job"
    answer, root = found(first)
    inquiry.answered(dataclasses.replace(answer, handed=wait), root)
    second = inquiry.next(12.0)
    assert isinstance(second, Search)
    return second


def test_what_may_wait_for_work_does_not_keep_from_asking_who_had_the_processor() -> None:
    """All are slow now and then by the time that they take, as another program is in the way."""
    noisy = [
        row(f"f{n}", {11: round(400_000 * scale), 22: round(60 * scale)})
        for n, scale in enumerate((3, 1, 1, 0.8, 0.5))
    ]
    inquiry = Inquiry(Parameters())
    inquiry.profiled(of(*noisy, row("next_job", {11: 100_000, 22: 200})), None)
    second = behind_a_wait_for_work(inquiry, "epoll_wait")
    assert second.suspect.name == "f0"


def test_a_tail_comes_behind_what_may_wait_for_work() -> None:
    """Whatever delay that has: it may be none."""
    known = of(SENDS, row("process_request", TAIL), row("next_job", {11: 3000, 22: 400}))
    inquiry = Inquiry(Parameters())
    inquiry.profiled(known, None)
    second = behind_a_wait_for_work(inquiry, "pthread_cond_wait")
    assert (second.suspect.name, second.suspect.is_tail) == ("process_request", True)
