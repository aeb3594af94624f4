"""What a thread that stands still waits for."""

from __future__ import annotations

from darc.debuggee.standing import Standing, is_over
from darc.model.ops import Event, ObjectKind, Stack

SLOT, BACK, ELSE = 0x7000, 0x1234, 0x5678


def wait() -> Event:
    return Event(
        time=1,
        object=0x1000,
        kind=ObjectKind.CONDITION,
        is_release=False,
        thread=0,
        node=None,
        stack=Stack(SLOT, 0, (BACK, 1, 2)),
    )


def test_a_wait_goes_on_while_its_function_does() -> None:
    where = Standing(
        names=("futex_wait", "wait", "f0"),
        addresses=(ELSE, ELSE, BACK),
        pointer=SLOT - 64,
        futex=0,
        is_whole=True,
    )
    assert not is_over(wait(), where, BACK)


def test_it_is_over_when_that_has_returned() -> None:
    assert is_over(
        wait(),
        Standing(names=("f0",), addresses=(ELSE,), pointer=SLOT + 8, futex=0, is_whole=True),
        BACK,
    )


def test_it_is_over_when_another_function_is_called_from_there() -> None:
    where = Standing(
        names=("signal", "f0"), addresses=(ELSE, ELSE), pointer=SLOT - 64, futex=0, is_whole=True
    )
    assert is_over(wait(), where, ELSE)


def test_a_word_that_was_left_on_the_stack_is_no_call() -> None:
    where = Standing(
        names=("write", "f0"), addresses=(ELSE, ELSE), pointer=SLOT - 64, futex=0, is_whole=True
    )
    assert is_over(wait(), where, BACK)


def test_where_the_callers_are_not_known_the_word_decides() -> None:
    assert not is_over(wait(), Standing(("write",), (ELSE,), SLOT - 64), BACK)
