"""What ``darc why`` looks into next, and for how long, without a program or a clock."""

from __future__ import annotations

import dataclasses
import re
from types import SimpleNamespace
from typing import cast

import pytest

from darc.analyses.whyanswer import answer_to
from darc.code.program import Program
from darc.model.ftree import Cause, Ending, Fnode, RootCausePath
from darc.model.functionset import FunctionSet
from darc.model.ops import KeptOps, ObjectKind, OpClass
from darc.model.parameters import Parameters, Probes
from darc.model.part import parts_of
from darc.model.profile import OCTAVES
from darc.model.snapshot import Snapshot
from darc.model.status import EndedBy, Status
from darc.model.waits import Holder, Role, WaitedFor, Waits
from darc.model.why import Answer, Verdict, Why
from darc.search.inquiry import Elsewhere, Inquiry, Search
from darc.search.suspects import costs_more, suspects, too_few
from darc.views.exporters.json import to_json
from darc.views.general.status import status
from darc.views.style import Style
from tests.unit.ops import call, made_op
from tests.unit.sets import HZ, function, of, row

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


def too_late(search: Search) -> tuple[Answer, Fnode]:
    """The answer to a search that the time was up for before it had decided anything."""
    root = Fnode(search.suspect.row.function)
    name = search.suspect.name
    shown = Snapshot(name, Status.INCONCLUSIVE, Probes.PAD, ftree=root, ended_by=EndedBy.TIME)
    return Answer(search.suspect, shown), root


def searched(known: FunctionSet, *late: str) -> Why:
    """What is said when all was looked into, of these functions too late."""
    inquiry = Inquiry(Parameters())
    inquiry.profiled(known, None)
    while isinstance(step := inquiry.next(12.0), Search):
        inquiry.answered(*(too_late if step.suspect.name in late else found)(step))
    return inquiry.evidence(None, None, has_ended=False).why()


def headline(why: Why) -> str:
    text = status(Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(why)), Style())
    return str(text).splitlines()[0]


def test_the_headline_says_what_costs_more_than_the_answer() -> None:
    why = searched(KNOWN, "log_line")
    assert [one.suspect.name for one in why.answers] == ["serve", "log_line"]
    told = "answer 2 costs more, and there was no time to look into it"
    command = "'darc start log_line --peak last'"
    assert headline(why) == f"darc: why: found, not sure: {told}: {command}"
    assert to_json(Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(why)))["why"]["costlier"][
        "function"
    ] == ("log_line")
    failed = dataclasses.replace(why.answers[1], found=None, why="no pad")
    assert why.costlier is not None
    why = dataclasses.replace(why, answers=(why.answers[0], failed))
    assert "answer 2 costs more, and why is not known: 'darc" in headline(why)


def test_also_where_others_had_the_processor_in_the_lesser_ones_calls() -> None:
    why = searched(KNOWN, "log_line")
    shown = why.answers[0].found
    assert shown is not None
    root = shown.paths[0].nodes[0]
    path = RootCausePath((root,), Ending(Cause.PREEMPTION, 20))
    first = dataclasses.replace(why.answers[0], found=dataclasses.replace(shown, paths=(path,)))
    assert first.is_preempted
    line = headline(dataclasses.replace(why, answers=(first, why.answers[1])))
    assert "answer 2 costs more" in line
    assert "had the processor" not in line


def test_so_it_does_of_one_that_nobody_came_to_look_into() -> None:
    inquiry = begun()
    serve = next(one for one in suspects(KNOWN) if one.name == "serve")
    inquiry.answered(*found(Search(serve, Parameters())))
    why = inquiry.evidence(None, None, has_ended=False).why()
    assert not why.is_sure
    told = "log_line costs more, and there was no time to look into it: 'darc start log_line"
    assert told in headline(why)


def test_what_costs_less_is_no_matter_of_the_headline() -> None:
    why = searched(KNOWN, "serve")
    assert [one.suspect.name for one in why.answers] == ["log_line", "serve"]
    assert headline(why) in ("darc: why: found, not sure", "darc: why: found, sure")


def test_more_of_the_time_in_shorter_calls_costs_more_too() -> None:
    """Of about the same delay: 35 % beside 12 %."""
    known = of(row("flush", {10: 1000, 23: 10, 24: 12}), row("reply", {10: 1000, 20: 2, 21: 180}))
    flush, reply = suspects(known)
    assert (flush.name, reply.name) == ("flush", "reply")
    assert flush.delay > reply.delay
    assert costs_more(reply, flush)
    many = of(row("flush", {10: 1000, 24: 22}), row("tiny", {6: 90_000, 13: 60_000}))
    flush, tiny = suspects(many)
    assert tiny.share > flush.share
    assert not costs_more(tiny, flush), "its delay is slight"


def test_where_half_of_the_time_is_too_little_what_costs_most_has_all_of_it() -> None:
    for rest, seconds in ((5.0, 5.0), (10.0, 6.0), (20.0, 10.0)):
        step = begun().next(rest)
        assert isinstance(step, Search)
        assert step.parameters.max_time == seconds


RARE = {9: 9000, 12: 9000, 13: 2000, 20: 5, 22: 3, 26: 4, 27: 3, 28: 2}
"""Nine calls of 70 to 500 ms, and fewer than twenty are far to the right."""


def test_too_few_calls_that_take_much_are_no_sign_that_nothing_stands_out() -> None:
    known = of(row("run_tasks", RARE), row("plain", {10: 5000}))
    assert suspects(known) == ()
    why = searched(known)
    assert why.verdict is Verdict.UNKNOWN
    text = str(status(Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(why)), Style()))
    assert text.startswith("darc: why: cannot tell\n")
    told = (
        r"  too few calls to tell: run_tasks: 9 of 20017 calls take 67ms and more, about \d+ms, not"
    )
    assert re.search(told, text), text
    assert "'darc start run_tasks --start-time 10s' or 'darc why --time 20s' sees more" in text
    assert "nothing stands out" not in text
    shown = Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(why))
    assert to_json(shown)["why"]["too_few"]["slow"] == 9
    assert [one.function.name for one in shown.named] == ["run_tasks"]


def test_nor_where_all_that_stood_out_is_slow_as_all_are() -> None:
    known = of(row("run_tasks", RARE), row("serve", SLOW))
    inquiry = Inquiry(Parameters())
    inquiry.profiled(known, None)
    step = inquiry.next(12.0)
    assert isinstance(step, Search)
    answer, root = found(step)
    inquiry.answered(dataclasses.replace(answer, is_disturbed=True), root)
    why = inquiry.evidence(None, None, has_ended=False).why()
    assert why.verdict is Verdict.UNKNOWN
    assert why.rare is not None


@pytest.mark.parametrize(
    "bins",
    [
        {9: 9000, 12: 9000, 24: 4},  # four of them
        {9: 9000, 12: 9000, 21: 9},  # they take a hundredth of the time
        {18: 9000, 26: 9},  # the others take more
        {9: 9000, **dict.fromkeys(range(10, 28), 3)},  # no gap
        {9: 50, 26: 9},  # too few in all
        {9: 9000, 28: 19},  # more than twice as long as there is something to do
    ],
)
def test_what_is_not_told_as_too_few(bins: dict[int, int]) -> None:
    known = dataclasses.replace(of(row("f", bins)), busy=1.0)
    assert too_few(known, lambda function: False) is None


@pytest.mark.parametrize(("lacked", "is_idle"), [(0.51, True), (0.95, False)])
def test_who_waits_for_work_and_then_for_a_processor_waits_for_work(
    lacked: float, is_idle: bool
) -> None:
    """As an event loop's poller does on a busy machine: without the second part its calls would be
    slow all the same, and that is idle time."""
    known = of(row("poller", SLOW), row("serve", {10: 1000, 11: 200, 22: 60}))
    inquiry = Inquiry(Parameters())
    inquiry.profiled(known, None)
    step = inquiry.next(12.0)
    assert isinstance(step, Search)
    assert step.suspect.name == "poller"
    root = Fnode(step.suspect.row.function)
    wait = root.add_child(function("epoll_wait"), None)
    cycles = 19 * 3 * step.suspect.threshold
    holder = Holder(
        role=Role.HANDED_OVER, thread="", path=(), cycles=round(lacked * cycles), ops=19
    )
    woken = WaitedFor(
        kind=ObjectKind.WAKE_UP,
        name="",
        path=(),
        cycles=cycles,
        ops=19,
        waits=19,
        holders=(holder,),
    )
    ops = tuple(
        made_op(n, kind, 1000, spans=[call(0, wait, 0, 900)])
        for n, kind in enumerate((OpClass.IN_PEAK, OpClass.FASTEST), 1)
    )
    shown = Snapshot(
        "poller",
        Status.FOUND,
        Probes.PAD,
        ftree=root,
        paths=(RootCausePath((root, wait), Ending(Cause.BLOCKED, 20)),),
        ops=KeptOps(HZ, ops, sees_waits=True),
        waits=Waits(19, cycles, (woken,)),
    )
    nobody = cast(Program, SimpleNamespace(callers=None))
    answer = answer_to(step.suspect, shown, known, nobody)
    assert (answer.idle == "epoll_wait") == is_idle
    inquiry.answered(answer, root)
    following = inquiry.next(6.0)
    assert isinstance(following, Search), "the next one is looked into"
    assert following.suspect.name == "serve"
    inquiry.answered(*found(following))
    why = inquiry.evidence(None, None, has_ended=False).why()
    assert ([one.suspect.name for one in why.answers] == ["serve"]) == is_idle
