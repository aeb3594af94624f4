"""What is behind a wait: the lives of those who ended it, from what tasks did meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from darc.analyses.behind import DEEPEST, Behind
from darc.analyses.waits import Wait, WaitPart
from darc.analyses.wakeups import sleeps_of
from darc.model.ops import (
    By,
    History,
    KeptOps,
    Moment,
    MomentKind,
    Off,
    OffReason,
    Op,
    OpClass,
)
from darc.model.waits import Role
from tests.unit.wakeups import MS, ran, woken

OP, WAKER = 1, 7
"""Ids of the op's task, and of the one that wakes it in test_wakeups.py."""


def switch(time: int, task: int, other: int, *, cpu: int = 0, is_ready: bool = False) -> Moment:
    return Moment(
        time=time,
        kind=MomentKind.SWITCH,
        cpu=cpu,
        task=task,
        other=other,
        is_ready=is_ready,
        name=f"task{task}",
    )


def wake(time: int, task: int, other: int, *, cpu: int = 0, by: By = By.TASK) -> Moment:
    return Moment(time=time, kind=MomentKind.WAKE, cpu=cpu, task=task, other=other, by=by)


def ended(time: int, task: int, *, cpu: int = 0) -> Moment:
    return Moment(time=time, kind=MomentKind.DISK, cpu=cpu, task=task, name=f"task{task}")


def work(time: int, task: int, function: int, before: int = 0) -> Moment:
    return Moment(time=time, kind=MomentKind.WORK, cpu=1, task=task, work=function, before=before)


def kept(*moments: Moment, since: int = 0) -> KeptOps:
    return KeptOps(hz=1000 * MS, history=History(moments, since))


def slept(by: By = By.TASK, thread: int = WAKER) -> Op:
    """An op whose task slept from 1 to 11 ms, and was woken at 10 ms."""
    return Op(
        *(1, OpClass.IN_PEAK, OP, 0, 20 * MS, 0, 20 * MS),
        events=(woken(10 * MS, by, thread),),
        off=(Off(MS, 11 * MS, OffReason.BLOCKED),),
    )


def parts(op: Op, *moments: Moment, since: int = 0) -> tuple[WaitPart, ...]:
    """Of its first wait."""
    found: list[Wait] = sleeps_of(op, Behind(kept(*moments, since=since)))
    return found[0].parts


def shape(found: tuple[WaitPart, ...]) -> list[Any]:
    """Roles and milliseconds, and what is behind."""
    return [
        (p.role, p.start / MS, p.end / MS, *([shape(p.behind)] if p.behind else [])) for p in found
    ]


def test_who_ran_all_the_time_is_the_end_of_it() -> None:
    first, _ = parts(slept())
    assert shape((first,)) == [(Role.WOKE, 1, 10, [(Role.DID, 1, 10)])]


def test_whoever_the_waker_waited_for_is_followed() -> None:
    first, _ = parts(
        slept(),
        switch(2 * MS, 0, WAKER, cpu=1),
        wake(8 * MS, WAKER, 9),
        switch(9 * MS, WAKER, 0, cpu=1),
    )
    by_other = (Role.WOKE, 2, 8, [(Role.DID, 2, 8)])
    assert shape(first.behind) == [
        (Role.DID, 1, 2),
        (Role.SLEPT, 2, 8, [by_other]),
        (Role.READY, 8, 9),
        (Role.DID, 9, 10),
    ]


def test_a_sleep_that_began_before_is_as_long_as_the_wait() -> None:
    first, _ = parts(slept(), wake(8 * MS, WAKER, 0, by=By.INTERRUPT), switch(8 * MS, WAKER, 0))
    assert shape(first.behind) == [
        (Role.SLEPT, 1, 8, [(Role.INTERRUPT, 1, 8)]),
        (Role.DID, 8, 10),
    ]


def test_who_had_the_processor_that_the_waker_could_have_had() -> None:
    first, _ = parts(
        slept(),
        switch(2 * MS, 9, WAKER, cpu=1, is_ready=True),
        switch(5 * MS, 8, 9, cpu=1, is_ready=True),
        switch(6 * MS, 4, 3, cpu=0),
        switch(9 * MS, WAKER, 8, cpu=1),
    )
    assert shape(first.behind) == [
        (Role.DID, 1, 2),
        (Role.READY, 2, 9, [(Role.RAN, 2, 5), (Role.RAN, 5, 9)]),
        (Role.DID, 9, 10),
    ]
    assert [one.by.thread for one in first.behind[1].behind if one.by] == [9, 8]


def test_the_task_that_does_nothing_has_no_processor() -> None:
    first, _ = parts(slept(), switch(2 * MS, 0, WAKER, is_ready=True), switch(9 * MS, WAKER, 0))
    assert shape(first.behind)[1] == (Role.READY, 2, 9)


def test_a_circle_is_cut() -> None:
    """Two tasks that wake each other again and again, and the op's own is no cause of its wait."""
    first, _ = parts(
        slept(),
        switch(2 * MS, 9, WAKER),
        wake(8 * MS, WAKER, 9),
        switch(3 * MS, WAKER, 9),
        wake(4 * MS, 9, WAKER),
        switch(9 * MS, WAKER, 9),
    )
    assert first.behind
    chain = [
        *(switch(2 * MS, 0, number, cpu=number) for number in range(10, 40)),
        *(wake(9 * MS - number, number, number + 1) for number in range(10, 40)),
        *(switch(9 * MS, number, 0, cpu=number) for number in range(10, 40)),
    ]
    chain.sort(key=lambda one: one.time)
    first, _ = parts(slept(thread=10), *chain)
    depth, level = 0, first.behind
    while level:
        depth += 1
        level = tuple(inner for one in level for inner in one.behind if one.role is not Role.DID)
    assert depth <= 2 * DEEPEST


def test_a_disk_is_divided_among_those_it_served() -> None:
    first, _ = parts(
        slept(By.SOFT_INTERRUPT, 0),
        ended(4 * MS, 8),
        ended(7 * MS, 9),
        ended(10 * MS, OP),
        wake(10 * MS, OP, 0, by=By.SOFT_INTERRUPT),
    )
    assert shape((first,)) == [
        (
            *(Role.SOFT_INTERRUPT, 1, 10),
            [(Role.DISK, 1, 4), (Role.DISK, 4, 7), (Role.DISK, 7, 10)],
        )
    ]
    assert [one.by.thread for one in first.behind if one.by] == [8, 9, OP]


def test_a_timer_after_a_request_is_no_disk() -> None:
    first, _ = parts(
        slept(By.INTERRUPT, 0),
        ended(4 * MS, 8),
        switch(5 * MS, 3, 0),
        wake(10 * MS, OP, 0, by=By.INTERRUPT),
    )
    assert shape((first,)) == [(Role.INTERRUPT, 1, 10)]


def test_what_a_worker_did_is_told_by_function() -> None:
    first, _ = parts(slept(), work(6 * MS, WAKER, 0x200, before=0x100), work(9 * MS, WAKER, 0x300))
    assert shape(first.behind) == [(Role.DID, 1, 6), (Role.DID, 6, 9), (Role.DID, 9, 10)]
    assert [one.by.object for one in first.behind if one.by] == [0x100, 0x200, 0x300]


def test_what_was_written_over_is_not_made_up() -> None:
    first, _ = parts(slept(), switch(2 * MS, 0, WAKER), since=2 * MS)
    assert not first.behind


def test_all_who_ran_in_the_ops_own_place_are_told() -> None:
    op = replace(slept(), events=(ran(MS),), off=(Off(MS, 6 * MS, OffReason.READY),))
    moments = (
        switch(MS, 9, OP, is_ready=True),
        switch(4 * MS, 8, 9),
        switch(6 * MS, OP, 8),
    )
    assert shape(parts(op, *moments)) == [(Role.RAN, 1, 4), (Role.RAN, 4, 6)]
    assert shape(parts(op)) == [(Role.RAN, 1, 6)]
