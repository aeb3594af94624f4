"""From events to waits: what belongs to a wait, and when it was over."""

from __future__ import annotations

from dataclasses import replace

from darc.analyses.waits import merge, waits_of
from darc.model.ftree import Fnode, Function
from darc.model.ops import Event, ObjectKind, Off, OffReason, Op, OpClass, Span, Stack
from darc.model.waits import Role
from darc.views.waitsview import holder_text
from tests.unit.waits import LOCK, MINE, NOWHERE, OTHER, A, B, wait

MS = 2_000_000


def release(time: int, thread: int, lock: int = LOCK) -> Event:
    return Event(
        time=time,
        object=lock,
        kind=ObjectKind.LOCK,
        is_release=True,
        thread=thread,
        node=None,
        stack=NOWHERE,
    )


def op(*events: Event, off: tuple[Off, ...] | None = None) -> Op:
    end = 20 * MS
    return Op(
        number=1,
        kept_as=OpClass.IN_PEAK,
        thread=MINE,
        start=0,
        end=end,
        cost=0,
        latency=end,
        least=100,
        events=events,
        off=off,
    )


def asleep(start: int, end: int) -> Off:
    return Off(start, end, OffReason.BLOCKED)


def told(one: Op) -> list[list[tuple[Role, int, int]]]:
    return [[(p.role, p.start, p.end) for p in found.parts] for found in waits_of(one)]


def test_holders_follow_each_other() -> None:
    found = told(op(wait(0, A), release(3 * MS, A), release(4 * MS, B)))
    assert found == [[(Role.HELD, 0, 3 * MS), (Role.HELD, 3 * MS, 4 * MS)]]


def test_who_has_the_lock_when_the_thread_has_had_it_held_nobody_up() -> None:
    found = told(op(wait(0), release(1 * MS, A), release(2 * MS, MINE), release(9 * MS, B)))
    assert found == [[(Role.HELD, 0, 1 * MS)]]


def futex(event: Event) -> Event:
    return replace(event, kind=ObjectKind.FUTEX)


def test_a_futex_that_is_passed_on_is_a_lock() -> None:
    """Whoever releases it wakes one of those that wait, and that one the next."""
    events = [wait(0), release(10 * MS, A), release(11 * MS, B), release(12 * MS, MINE)]
    found = told(op(*map(futex, events)))
    assert found == [[(Role.HELD, 0, 10 * MS), (Role.HELD, 10 * MS, 11 * MS)]]
    found = told(op(*map(futex, events[:3])))
    assert found == [[(Role.WOKE, 0, 11 * MS)]], "nobody knows that it is one"


def test_a_later_sleep_is_another_matter() -> None:
    sleeps = (asleep(1000, 1 * MS), asleep(1 * MS + 1000, 9 * MS))
    found = told(op(wait(0), release(1 * MS - 500, A), off=sleeps))
    assert found == [[(Role.HELD, 0, MS - 500), (Role.HANDED_OVER, MS - 500, MS)]]


def test_a_wait_goes_on_where_another_thread_was_faster() -> None:
    sleeps = (asleep(1000, 1 * MS), asleep(1 * MS + 1000, 3 * MS))
    found = told(op(wait(0), release(1 * MS, A), release(3 * MS, B), off=sleeps))
    assert found == [[(Role.HELD, 0, MS), (Role.HELD, MS, 3 * MS)]]


def test_a_sleep_long_after_is_none_of_a_lock_that_was_had_at_once() -> None:
    assert told(op(wait(0, A), off=(asleep(5 * MS, 9 * MS),))) == []


def test_a_release_of_another_lock_does_not_count() -> None:
    sleeps = (asleep(1000, 4 * MS),)
    found = told(op(wait(0), release(1 * MS, B, OTHER), release(4 * MS, A), off=sleeps))
    assert found == [[(Role.HELD, 0, 4 * MS)]]


def test_who_gives_up_was_held_up_by_the_owner_as_far_as_it_is_known() -> None:
    sleeps = (asleep(1000, 4 * MS),)
    assert told(op(wait(0, A), off=sleeps)) == [[(Role.HELD_FIRST, 0, 4 * MS)]]
    assert told(op(wait(0), off=sleeps)) == [[(Role.NOT_SEEN, 0, 4 * MS)]]


def test_of_a_wait_that_was_not_followed_nothing_is_guessed() -> None:
    alone = replace(wait(0, A), is_followed=False)
    sleeps = (asleep(1000, 4 * MS),)
    assert told(op(alone, off=sleeps)) == [[(Role.NOT_FOLLOWED, 0, 4 * MS)]]
    one = replace(op(wait(0, kind=ObjectKind.CONDITION), off=sleeps), lost_events=3)
    assert told(one) == [[(Role.NOT_FOLLOWED, 0, 4 * MS)]]


def test_where_there_was_no_room_it_may_have_been_any_wait() -> None:
    sleeps = (asleep(1000, 4 * MS), asleep(6 * MS, 9 * MS))
    one = replace(op(wait(0), release(4 * MS, A), off=sleeps), lost_events=3)
    assert merge([one], "handle", Nameless()).not_followed == 3 * MS
    assert merge([replace(one, lost_events=0)], "handle", Nameless()).not_followed == 0


def added(first: int, last: int, held: int, thread: int) -> Event:
    return replace(release(last, thread), first=first, held=held)


def test_releases_that_were_added_up_have_what_they_held_together() -> None:
    """Two take turns: A has it for 6 ms in all, B for 3."""
    first, second = added(MS, 8 * MS, 6 * MS, A), added(2 * MS, 9 * MS, 3 * MS, B)
    found = told(op(wait(0, A), first, second, release(10 * MS, MINE)))
    assert found == [[(Role.HELD, 0, 6 * MS), (Role.HELD, 6 * MS, 9 * MS)]]


def test_what_was_lost_between_added_releases_is_nobodys() -> None:
    found = told(op(wait(0, A), added(MS, 8 * MS, 6 * MS, A), release(10 * MS, MINE)))
    assert found == [[(Role.HELD, 0, 6 * MS), (Role.NOT_FOLLOWED, 6 * MS, 8 * MS)]]


def test_posts_behind_a_wait_do_not_make_it_longer() -> None:
    sleeps = (asleep(1000, 4 * MS),)
    begin = wait(0, kind=ObjectKind.SEMAPHORE)
    posts = replace(added(2 * MS, 4 * MS, 4 * MS, A), kind=ObjectKind.SEMAPHORE)
    assert told(op(begin, posts, off=sleeps)) == [[(Role.WOKE, 0, 4 * MS)]]


def many_waits(lost_waits: int = 0) -> Op:
    """Three calls of a function that waits, the first of which is written down, the third of which
    did not sleep."""
    name = "pthread_cond_wait"
    node = Fnode(
        Function(name=name, symbol=name, module="libc.so.6", address=0, offset=0), None, None
    )
    begin = replace(wait(0, kind=ObjectKind.CONDITION), node=node, more=2)
    signal = replace(release(2 * MS, A), kind=ObjectKind.CONDITION)
    sleeps = (asleep(1000, 2 * MS), asleep(3 * MS + 1000, 5 * MS))
    spans = tuple(Span(node, at * MS, (at + 2) * MS) for at in (0, 3, 6))
    return replace(op(begin, signal, off=sleeps), spans=spans, lost_waits=lost_waits)


def test_waits_without_room_are_for_what_those_like_them_were_for() -> None:
    found = told(many_waits())
    assert found[1:] == [[(Role.NOT_FOLLOWED, 3 * MS, 5 * MS)]]
    assert len(told(many_waits(lost_waits=1))) == 1, "or for another object"


class Nameless:
    def place(self, stack: Stack) -> tuple[str, ...]:
        return self.path(stack, None)

    def path(self, stack: Stack, within: str | None) -> tuple[str, ...]:
        return ()

    def object(self, kind: ObjectKind, address: int) -> str:
        return ""

    def thread(self, number: int) -> str:
        return ""

    def function(self, address: int) -> str:
        return f"{address:#x}"

    def is_shared(self, address: int) -> bool:
        return address == OTHER

    def outsider(self, number: int) -> str | None:
        return "server" if number == B else None


def test_what_is_shared_may_be_released_from_outside() -> None:
    sleeps = (asleep(1000, 4 * MS),)
    semaphore = replace(wait(0, kind=ObjectKind.SEMAPHORE), object=OTHER)
    (one,) = merge([op(semaphore, off=sleeps)], "handle", Nameless()).objects
    assert [(h.role, h.is_outside) for h in one.holders] == [(Role.NOT_SEEN, True)]
    mutex = replace(wait(0, B), object=OTHER)
    (one,) = merge([op(mutex, off=sleeps)], "handle", Nameless()).objects
    (holder,) = one.holders
    assert (holder.role, holder.thread, holder.is_outside) == (Role.HELD_FIRST, "server", True)
    text = holder_text(holder, one.kind, str)
    assert text == 'held, when the wait began, by thread 3 of another process, "server": 1 call'


def test_a_semaphores_wait_is_divided_at_each_post() -> None:
    """Of a pool: who passed it on first had it until then."""
    sleeps = (asleep(1000, 2 * MS), asleep(2 * MS + 1000, 5 * MS))
    begun = wait(0, kind=ObjectKind.SEMAPHORE)
    found = told(op(begun, release(2 * MS, A), release(5 * MS, B), off=sleeps))
    assert found == [[(Role.WOKE, 0, 2 * MS), (Role.WOKE, 2 * MS, 5 * MS)]]
