"""From a kernel's switches and wake-ups to waits."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace

import pytest

from darc.analyses.waits import merge
from darc.analyses.wakeups import sleeps_of, waits_and_sleeps_of
from darc.model.offtimes import OffTimes
from darc.model.ops import By, Event, ObjectKind, Off, OffReason, Op, OpClass, Ran, Span, Stack
from darc.model.waits import Role
from tests.unit import samples
from tests.unit.wakeups import MS, NOWHERE, ran, woken


def op(*events: Event, off: tuple[Off, ...], spans: tuple[Span, ...] = ()) -> Op:
    end = 20 * MS
    return Op(
        *(1, OpClass.IN_PEAK, 1, 0, end, 0, end),
        least=100,
        events=events,
        off=off,
        spans=spans,
    )


def asleep(start: int, end: int) -> Off:
    return Off(start, end, OffReason.BLOCKED)


class Names:
    """Of nobody but those who say it themselves."""

    def place(self, stack: Stack) -> tuple[str, ...]:
        return self.path(stack, None)

    def path(self, stack: Stack, within: str | None) -> tuple[str, ...]:
        return ("try_to_wake_up", "wake_up_q", "up_write", "grow")

    def object(self, kind: ObjectKind, address: int) -> str:
        raise AssertionError(kind)

    def thread(self, number: int) -> str:
        return ""

    def function(self, address: int) -> str:
        return f"{address:#x}"

    def is_shared(self, address: int) -> bool:
        return False

    def outsider(self, number: int) -> str | None:
        return None


def told(one: Op) -> list[list[tuple[Role, int, int]]]:
    return [[(p.role, p.start, p.end) for p in found.parts] for found in sleeps_of(one)]


def test_a_sleep_is_its_wakers_until_the_wake_up() -> None:
    found = told(op(woken(4 * MS), woken(5 * MS), off=(asleep(MS, 6 * MS),)))
    assert found == [[(Role.WOKE, MS, 4 * MS), (Role.HANDED_OVER, 4 * MS, 6 * MS)]]


def test_interrupts_wake_too() -> None:
    off = (asleep(MS, 2 * MS), asleep(3 * MS, 5 * MS), asleep(6 * MS, 7 * MS))
    found = told(op(woken(2 * MS, By.INTERRUPT), woken(4 * MS, By.SOFT_INTERRUPT), off=off))
    roles = [[role for role, _, _ in parts] for parts in found]
    assert roles == [
        [Role.INTERRUPT, Role.HANDED_OVER],
        [Role.SOFT_INTERRUPT, Role.HANDED_OVER],
        [Role.NOT_SEEN],
    ]


def test_whom_an_interrupt_came_upon_has_not_woken_anybody() -> None:
    timer = woken(2 * MS, By.INTERRUPT, 0, name="")
    others = (
        replace(timer, time=4 * MS, is_outside=True),
        replace(timer, time=6 * MS, name="swapper"),
    )
    off = (asleep(MS, 2 * MS), asleep(3 * MS, 4 * MS), asleep(5 * MS, 6 * MS))
    (waits,) = merge([op(timer, *others, off=off)], "handle", Names(), sleeps_of).objects
    by = [holder for holder in waits.holders if holder.role is Role.INTERRUPT]
    assert [(one.cycles, one.thread, one.is_outside) for one in by] == [(3 * MS, "", False)]


def test_who_ran_while_the_task_could_have() -> None:
    found = told(op(ran(MS), off=(Off(MS, 6 * MS, OffReason.READY),)))
    assert found == [[(Role.RAN, MS, 6 * MS)]]


def test_what_ops_waited_for_is_merged_by_where_and_by_whom() -> None:
    root, _ = samples.tree()
    flush, write = root.find("1.7"), root.find("1.7.1")
    spans = (Span(flush, MS, 12 * MS), Span(write, 2 * MS, 11 * MS))
    one = op(
        *(woken(8 * MS), ran(13 * MS)),
        off=(asleep(3 * MS, 10 * MS), Off(13 * MS, 14 * MS, OffReason.READY)),
        spans=spans,
    )
    waits = merge([one, one], "handle", Names(), sleeps_of)
    assert waits.waited == 16 * MS
    sleep, ready = waits.objects
    assert sleep.kind is ObjectKind.WAKE_UP
    assert sleep.path == ("write_out", "flush", "handle")
    shown: Mapping[Role, tuple[str, tuple[str, ...], int]] = {
        one.role: (one.thread, one.path, one.cycles) for one in sleep.holders
    }
    assert shown == {
        Role.WOKE: ("waker", ("up_write", "grow"), 10 * MS),
        Role.HANDED_OVER: ("", (), 4 * MS),
    }
    assert (ready.kind, ready.path) == (ObjectKind.PROCESSOR, ())
    assert [(h.role, h.thread, h.threads) for h in ready.holders] == [(Role.RAN, "spin", (9,))]


def process_op(*events: Event, wakers: tuple[Event, ...] | None, off: tuple[Off, ...]) -> Op:
    return replace(op(*events, off=off), wakers=wakers)


def waited(one: Op) -> list[tuple[ObjectKind, list[tuple[Role, int]]]]:
    return [
        (found.begin.kind, [(p.role, p.end - p.start) for p in found.parts])
        for found in waits_and_sleeps_of(one)
    ]


def begun(time: int, kind: ObjectKind, owner: int = 0) -> Event:
    return Event(
        time=time,
        object=0x1000,
        kind=kind,
        is_release=False,
        thread=owner,
        node=None,
        stack=NOWHERE,
    )


def outside(time: int) -> Event:
    return replace(woken(time), is_outside=True)


def test_who_posts_from_another_process_is_who_woke_it() -> None:
    semaphore = begun(MS, ObjectKind.SEMAPHORE)
    one = process_op(semaphore, wakers=(outside(4 * MS),), off=(asleep(MS + 100, 5 * MS),))
    woke = [(Role.WOKE, 3 * MS), (Role.HANDED_OVER, MS)]
    assert waited(one) == [(ObjectKind.SEMAPHORE, woke)]


def test_whoever_wakes_from_a_shared_lock_has_held_it() -> None:
    lock = begun(MS, ObjectKind.LOCK, owner=7)
    sleeps = (asleep(MS + 100, 4 * MS), asleep(4 * MS + 100, 5 * MS))
    one = process_op(lock, wakers=(outside(3 * MS), outside(5 * MS)), off=sleeps)
    assert waited(one) == [(ObjectKind.LOCK, [(Role.HELD, 2 * MS), (Role.HELD, 2 * MS)])]


def test_a_timer_that_wakes_it_released_nothing() -> None:
    sleeps = (asleep(MS + 100, 5 * MS),)
    timer = woken(5 * MS, By.INTERRUPT, 0)
    one = process_op(begun(MS, ObjectKind.SEMAPHORE), wakers=(timer,), off=sleeps)
    assert waited(one) == [(ObjectKind.SEMAPHORE, [(Role.NOT_SEEN, 4 * MS)])]


def test_a_release_that_was_seen_is_told_by_itself() -> None:
    released = replace(begun(3 * MS, ObjectKind.LOCK, owner=7), is_release=True)
    events, sleeps = (begun(MS, ObjectKind.LOCK), released), (asleep(MS + 100, 4 * MS),)
    one = process_op(*events, wakers=(woken(3 * MS + 50),), off=sleeps)
    held = [(Role.HELD, 2 * MS), (Role.HANDED_OVER, MS)]
    assert waited(one) == [(ObjectKind.LOCK, held)]


def test_other_sleeps_are_told_with_their_wakers_where_these_are_known() -> None:
    sleeps = (asleep(MS, 5 * MS), asleep(6 * MS, 6 * MS + 50))
    assert waited(process_op(wakers=None, off=sleeps)) == [(ObjectKind.CALL, [])]
    one = process_op(wakers=(outside(4 * MS),), off=sleeps)
    woke = [(Role.WOKE, 3 * MS), (Role.HANDED_OVER, MS)]
    assert waited(one) == [(ObjectKind.WAKE_UP, woke)]  # the other is too short


def test_in_which_call_it_was_blocked_is_told_to_anybody() -> None:
    root, _ = samples.tree()
    flush, write = root.find("1.7"), root.find("1.7.1")
    spans = (Span(flush, MS, 12 * MS), Span(write, 2 * MS, 11 * MS))
    one = replace(op(off=(asleep(3 * MS, 10 * MS),), spans=spans), wakers=None)
    (call,) = merge([one], "handle", Names(), waits_and_sleeps_of).objects
    assert (call.kind, call.path) == (ObjectKind.CALL, ("write_out", "flush", "handle"))
    assert (call.cycles, call.holders) == (7 * MS, ())


def test_where_there_was_no_room_a_sleep_may_have_been_any_wait() -> None:
    one = replace(process_op(wakers=None, off=(asleep(MS, 5 * MS),)), lost_events=1)
    assert waited(one) == []


def test_the_time_without_a_processor_is_told_but_within_waits() -> None:
    def ready(start: int, end: int) -> Off:
        return Off(start, end, OffReason.READY)

    released = replace(begun(3 * MS, ObjectKind.LOCK, owner=7), is_release=True)
    off = (ready(200, 900), ready(MS + 50, MS + 500), asleep(MS + 600, 4 * MS))
    one = process_op(begun(MS, ObjectKind.LOCK), released, wakers=None, off=off)
    kinds = [kind for kind, _ in waited(one)]
    assert kinds == [ObjectKind.PROCESSOR, ObjectKind.LOCK]


def test_who_had_the_processor_is_told_where_that_was_watched() -> None:
    hog = Ran(MS, 5 * MS, 9, "hog", is_outside=True)
    own = Ran(5 * MS, 6 * MS, 7, "", is_outside=False)
    one = process_op(wakers=None, off=(Off(MS, 6 * MS, OffReason.READY, (hog, own)),))
    (processor,) = merge([one], "handle", Names(), waits_and_sleeps_of).objects
    assert processor.kind is ObjectKind.PROCESSOR
    shown = [(h.role, h.thread, h.threads, h.is_outside, h.cycles) for h in processor.holders]
    assert shown == [
        (Role.RAN, "hog", (9,), True, 4 * MS),
        (Role.RAN, "", (7,), False, MS),
    ]


def test_a_thread_that_was_woken_may_wait_for_whoever_has_its_processor() -> None:
    hog = Ran(4 * MS, 6 * MS, 9, "hog", is_outside=True)
    off = (Off(MS, 6 * MS, OffReason.BLOCKED, (hog,)),)
    one = process_op(wakers=(outside(4 * MS),), off=off)
    lock = replace(begun(MS, ObjectKind.LOCK), time=MS)
    released = replace(begun(4 * MS, ObjectKind.LOCK, owner=7), is_release=True)
    other = process_op(lock, released, wakers=None, off=off)
    for each in (one, other):
        (wait,) = waits_and_sleeps_of(each)
        (handed,) = (part for part in wait.parts if part.role is Role.HANDED_OVER)
        ((ran,),) = (handed.behind,)
        assert ran.by is not None
        assert (ran.role, ran.by.name, ran.end - ran.start) == (Role.RAN, "hog", 2 * MS)


class Callers(Names):
    """A stack's pointer says who stands there."""

    def place(self, stack: Stack) -> tuple[str, ...]:
        return self.path(stack, None)

    def path(self, stack: Stack, within: str | None) -> tuple[str, ...]:
        return (("flush", "handle"), ("serve",), ("other", "handle"))[stack.pointer]


@pytest.mark.parametrize("by", [By.TASK, By.INTERRUPT])
def test_who_was_in_the_same_call_has_passed_its_wake_up_on(by: By) -> None:
    """As writers of a full pipe do, each to the next."""
    root, _ = samples.tree()
    write = dataclasses.replace(root.find("1.7.1").function, module="libc.so.6")
    own = root.find("1.7").add_child(write, samples.site(17))
    here, elsewhere, besides = (Stack(pointer, 0, (), 1) for pointer in range(3))
    reader = replace(woken(8 * MS, by, thread=9), stack=elsewhere)
    second = replace(woken(9 * MS, thread=8), stack=here, before=reader)
    first = replace(woken(10 * MS), stack=here, before=second)
    role = Role.WOKE if by is By.TASK else Role.INTERRUPT
    siblings = Role.WOKE, ("flush", "handle")
    for last, expected in (
        (first, {siblings: 2 * MS, (role, ("serve",)): 5 * MS}),
        (replace(first, stack=besides), {(Role.WOKE, ("other", "handle")): 7 * MS}),
        (replace(first, before=None), {siblings: 7 * MS}),
        (replace(first, before=replace(second, time=2 * MS)), {siblings: 7 * MS}),
    ):
        one = process_op(wakers=(last,), off=(asleep(3 * MS, 11 * MS),))
        one = replace(one, spans=(Span(own, MS, 12 * MS),))
        (sleep,) = merge([one], "handle", Callers(), waits_and_sleeps_of).objects
        assert sleep.path == ("write_out", "flush", "handle")
        known = {(h.role, h.path): h.cycles for h in sleep.holders}
        assert known.pop((Role.HANDED_OVER, ())) == MS
        assert known == expected


def held(since: int, until: int, by: int) -> list[Event]:
    """Of a lock that an op waited for, and ``by`` released."""
    release = replace(begun(until, ObjectKind.LOCK), is_release=True, thread=by)
    return [begun(since, ObjectKind.LOCK), release]


def chain_of(one: Op, others: Mapping[int, OffTimes]) -> list[tuple[int, int]]:
    """Who is behind the first part of its wait, and for how long, and so on."""

    def off_of(thread: int, start: int, end: int) -> OffTimes | None:
        assert 2 * MS <= start < end <= 10 * MS
        known = others.get(thread)
        return known and replace(known, off=tuple(replace(o, start=start) for o in known.off))

    part, found = waits_and_sleeps_of(one, off_of)[0].parts[0], []
    while slept := [one for one in part.behind if one.role is Role.SLEPT and one.behind]:
        assert len(slept) == 1
        (part,) = slept[0].behind
        if part.role is not Role.WOKE:
            break
        assert part.by is not None
        found.append((part.by.thread, part.end - part.start))
    return found


def test_whom_the_holder_of_a_lock_waited_for_itself() -> None:
    one = process_op(*held(2 * MS, 10 * MS, by=8), wakers=(), off=(asleep(2 * MS, 10 * MS),))
    inner = OffTimes((asleep(MS, 9 * MS),), wakers=(woken(9 * MS, thread=9),))
    innermost = OffTimes((asleep(MS, 8 * MS),), wakers=(woken(8 * MS, thread=10),))
    assert chain_of(one, {8: inner}) == [(9, 7 * MS)]
    assert chain_of(one, {8: inner, 9: innermost}) == [(9, 7 * MS), (10, 6 * MS)]
    itself = OffTimes((asleep(MS, 8 * MS),), wakers=(woken(8 * MS, thread=1),))
    assert chain_of(one, {8: inner, 9: itself}) == [(9, 7 * MS)], "the op's own thread"
    timer = OffTimes((asleep(MS, 9 * MS),), wakers=(woken(9 * MS, By.INTERRUPT),))
    shortly = OffTimes((asleep(MS, 5 * MS),), wakers=(woken(5 * MS, thread=9),))
    unknown = OffTimes((asleep(MS, 9 * MS),), wakers=None)
    assert chain_of(one, {8: shortly}) == [(9, 3 * MS)], "also where that is the smaller part"
    for known in (timer, unknown):
        assert chain_of(one, {8: known}) == []
    assert chain_of(one, {}) == []


def lived(known: OffTimes | None) -> list[tuple[Role, int, int]]:
    """What the holder of a lock did from 2 to 10 ms: parts, and from when to when in ms."""
    one = process_op(*held(2 * MS, 10 * MS, by=8), wakers=(), off=(asleep(2 * MS, 10 * MS),))
    part = waits_and_sleeps_of(one, lambda thread, start, end: known)[0].parts[0]
    return [(p.role, p.start // MS, p.end // MS) for p in part.behind]


def test_what_the_holder_of_a_lock_did_itself() -> None:
    lost = Off(8 * MS, 9 * MS, OffReason.UNKNOWN)
    ready = Off(7 * MS, 8 * MS, OffReason.READY)
    assert lived(OffTimes((asleep(2 * MS, 6 * MS), ready, lost))) == [
        *((Role.SLEPT, 2, 6), (Role.DID, 6, 7), (Role.READY, 7, 8)),
        *((Role.UNKNOWN, 8, 9), (Role.DID, 9, 10)),
    ], "also where nobody tells who woke it"
    disk = OffTimes((asleep(2 * MS, 9 * MS),), wakers=(woken(8 * MS, By.INTERRUPT),))
    assert lived(disk) == [(Role.SLEPT, 2, 8), (Role.READY, 8, 9), (Role.DID, 9, 10)]
    assert lived(None) == [(Role.UNKNOWN, 2, 10)], "it was not watched"
