"""What is told of a call that was caught, word for word."""

from __future__ import annotations

import dataclasses
import re

import pytest

from darc.model.catching import Catching, CaughtCall
from darc.model.ops import ObjectKind, OffReason
from darc.model.part import parts_of
from darc.model.standing import HolderTold, LockHolder, OpenWait, ThreadStanding
from darc.views.exporters.json import to_json
from darc.views.general.status import place
from darc.views.style import Style
from tests.unit import samples

PLACE = CaughtCall(
    0.005,
    ThreadStanding(7, None, ("wait",), is_whole=False),
    off=None,
    by_quota=0.0,
    wait=None,
    show=None,
)
HOLDER = ThreadStanding(8, "b", ("write", "log"), is_whole=True)


def told(shown: CaughtCall, missed: int = 0) -> list[str]:
    snapshot = samples.snapshot(parts=parts_of(Catching(0.004, 1, missed, shown)))
    text = place(snapshot, Style(80))
    assert text is not None
    *lines, cost = text.splitlines()
    assert cost.startswith("  the program stood still for ")
    return lines


def test_a_stack_that_tells_not_to_what_it_goes_on_has_a_mark() -> None:
    assert told(PLACE) == ["darc: handle under way for 5.0ms in thread 7, in wait ← …"]


def test_without_functions_nothing_is_told_of_them() -> None:
    nowhere = dataclasses.replace(PLACE, where=ThreadStanding(7, "a", (), is_whole=False))
    assert told(nowhere) == ['darc: handle under way for 5.0ms in thread 7 "a"']


def test_what_its_time_went_on_how_to_see_it_and_what_was_missed() -> None:
    off = {OffReason.BLOCKED: 0.7, OffReason.READY: 0.2, OffReason.STOPPED: 0.01}
    deep = ("handle was under way for 60ms in thread 9",)
    shown = dataclasses.replace(
        PLACE, off=off, by_quota=0.1, show="thread 2", described=deep, where=HOLDER
    )
    assert told(shown, missed=2) == [
        "note: handle was under way for 60ms in thread 9",
        'darc: handle under way for 5.0ms in thread 8 "b" (70 % blocked, 20 % ready, without a '
        "processor, 9 % running, its CPU quota took up to 10 %), in write ← log; in another "
        "thread: 'thread 2' (2 late calls before had ended by the time of the stop)",
    ]


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        (None, ""),
        (LockHolder(8, HolderTold.NOW, where=HOLDER), ', held by thread 8 "b", in write ← log'),
        (
            LockHolder(8, HolderTold.NOW, where=ThreadStanding(8, None, (), is_whole=False)),
            ", held by thread 8",
        ),
        (
            LockHolder(8, HolderTold.NOW, is_outside=True),
            ", held by 8, which is no thread of this program",
        ),
        (
            LockHolder(8, HolderTold.AS_IT_BEGAN, is_outside=True, is_free=True),
            ", held when the wait began by 8, which is no thread of this program, and free at this "
            "moment",
        ),
        (LockHolder(8, HolderTold.AS_IT_BEGAN), ", held by thread 8 when the wait began"),
        (
            LockHolder(8, HolderTold.AS_IT_BEGAN, is_free=True),
            ", held by thread 8 when the wait began, and free at this moment",
        ),
        (LockHolder(0, HolderTold.AS_IT_BEGAN, is_free=True), ", free at this moment"),
        (LockHolder(0, HolderTold.AS_IT_BEGAN), ", held by nobody that it tells of"),
    ],
)
def test_who_has_what_it_waits_for(holder: LockHolder | None, words: str) -> None:
    wait = OpenWait(ObjectKind.LOCK, 0x1000, holder, name="table")
    shown = dataclasses.replace(PLACE, wait=wait)
    (line,) = told(shown)
    assert line.endswith(f"in wait ← …; waits for the lock table{words}")


LONG = "tokio::runtime::scheduler::multi_thread::worker::Context::run_task"


def test_at_a_terminal_names_are_short_and_lines_are_wrapped() -> None:
    functions = tuple(f"{LONG}_{number}" for number in range(12))
    holder = LockHolder(8, HolderTold.NOW, where=ThreadStanding(8, "b", functions, is_whole=True))
    wait = OpenWait(ObjectKind.LOCK, 0x1000, holder, name="table")
    where = ThreadStanding(7, "tokio-rt-worker", functions, is_whole=True)
    shown = dataclasses.replace(PLACE, where=where, wait=wait, show="thread 2")
    snapshot = samples.snapshot(parts=parts_of(Catching(0.004, 1, 0, shown)))
    at_terminal, in_batch, verbose = (
        str(place(snapshot, style))
        for style in (
            Style(80, wraps=True),
            Style(0, wraps=True),
            Style(80, verbose=True, wraps=True),
        )
    )
    lines = at_terminal.splitlines()
    assert max(map(len, lines)) <= 80
    first, *others = lines[: lines.index(next(one for one in lines if "stood still" in one))]
    assert first.startswith("darc: handle under way for 5.0ms in thread 7 ")
    assert others
    assert all(re.match(r" {4}\S", one) for one in others)
    assert "in another thread: 'thread 2'" in " ".join(at_terminal.split())
    assert functions[0] not in at_terminal
    assert at_terminal.count("tokio::runtime::…") == 24
    assert in_batch.count("\n") == 1
    assert all(one in in_batch for one in functions)
    assert all(one in " ".join(verbose.split()) for one in functions)
    assert max(map(len, verbose.splitlines())) <= 80 + len(LONG)
    call = to_json(snapshot)["catch"]["call"]
    assert call["functions"] == list(functions)
    assert call["waits_for"]["holder"]["where"]["functions"] == list(functions)
    assert call["seconds"] == 0.005
