"""What a search is told of what was watched, and for how long."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterable, Mapping

from darc.debuggee import procfs
from darc.debuggee.switches import ProcessWatching
from darc.debuggee.switchwatch import Forerunner, OffWatch, SwitchWatch
from darc.model.errors import UnsupportedError
from darc.model.offtimes import OffTimes, WatchedOps
from darc.model.ops import KeptOps, Off, OffReason, OpClass, Ran
from tests.unit.keptcalls import MadeUpWatch, blocked
from tests.unit.machine import TID, MadeUpWatching
from tests.unit.ops import made_op

_OP = made_op(1, OpClass.IN_PEAK, 900, start=1000)
_OFF = OffTimes((Off(1000, 1450, OffReason.BLOCKED),))


def test_it_watches_from_the_beginning_to_the_end() -> None:
    watch = blocked(0.5)
    switches = SwitchWatch(MadeUpWatching(lambda: watch))
    switches.drain()
    assert not switches.is_watching
    switches.watch_places()
    switches.begin()
    switches.begin()
    switches.goes_on()
    switches.drain()
    switches.watch_places()
    switches.end()
    assert watch.told == ["stands", "goes on", "drain", "places", "close"]
    assert switches.off(TID, 1000, 1900) == _OFF  # what was seen can still be asked for


class Seen(Forerunner):
    def __init__(self) -> None:
        self.told: list[str] = ["made"]

    def wait(self) -> None:
        self.told.append("wait")

    def close(self) -> None:
        self.told.append("close")


def test_what_takes_long_of_a_watch_is_begun_before_it_and_ended_behind_it() -> None:
    made: list[Seen] = []

    def expect() -> Seen:
        made.append(Seen())
        return made[-1]

    watch = blocked(0.5)
    switches = SwitchWatch(MadeUpWatching(lambda: watch, expect=expect))
    switches.expect()
    switches.expect()
    switches.begin()
    switches.expect()
    assert [one.told for one in made] == [["made", "wait"]]
    switches.end()
    switches.end()
    assert [one.told for one in made] == [["made", "wait", "close"]]


def test_what_was_begun_for_a_watch_that_never_came_is_ended() -> None:
    seen = Seen()
    switches = SwitchWatch(MadeUpWatching(lambda: None, expect=lambda: seen))
    switches.expect()
    switches.end()
    switches.expect()
    assert seen.told == ["made", "close"]


def test_ops_have_what_was_seen_of_their_threads() -> None:
    kept = KeptOps(
        10**9, (dataclasses.replace(_OP, thread=TID), dataclasses.replace(_OP, thread=TID + 1))
    )
    switches = SwitchWatch(MadeUpWatching(lambda: blocked(0.5)))
    assert switches.watched(kept) == WatchedOps(kept)
    switches.begin()
    found = switches.watched(kept)
    assert [op.off for op in found.kept.ops] == [_OFF.off, None]
    assert (found.unwatched, found.kept.why_no_wakers) == (1, "nobody looked")
    assert found.kept.why_no_places == "there was no room"


def test_threads_that_are_in_no_op_have_names() -> None:
    """Those of the program that had a thread's processor, or have woken it; each is asked for
    once."""
    asked: list[set[int]] = []

    class Named(MadeUpWatch):
        def names(self, threads: Iterable[int]) -> Mapping[int, str]:
            asked.append(set(threads))
            return {TID + 1: "pool"}

    ran = (
        Ran(start=1100, end=1200, number=TID + 1, name="", is_outside=False),
        Ran(start=1200, end=1300, number=77, name="another program", is_outside=True),
    )
    watch = Named(lambda begin, end: [Off(begin, end, OffReason.READY, ran)])
    switches = SwitchWatch(MadeUpWatching(lambda: watch))
    switches.begin()
    op = dataclasses.replace(_OP, thread=TID)
    kept = switches.watched(KeptOps(10**9, (op,), threads={TID: "worker"})).kept
    assert kept.threads == {TID: "worker", TID + 1: "pool"}
    assert asked == [{TID + 1}]


def test_why_there_is_no_watch_is_told() -> None:
    def refuse() -> OffWatch | None:
        raise UnsupportedError("the kernel does not let you")

    notes: list[str] = []
    switches = SwitchWatch(MadeUpWatching(refuse), notes.append)
    switches.begin()
    assert notes == ["the kernel does not let you"]
    assert not switches.is_watching


def test_where_the_stacks_of_threads_end() -> None:
    """Of those that wait: a thread that runs is not told of."""
    switches = SwitchWatch(ProcessWatching(os.getpid()))
    waits = threading.Event()
    thread = threading.Thread(target=waits.wait)
    thread.start()
    try:
        while thread.native_id not in switches.stack_pointers():
            os.sched_yield()
        pointer = switches.stack_pointers()[thread.native_id or 0]
    finally:
        waits.set()
        thread.join()
    (region,) = (r for r in procfs.regions(os.getpid()) if r.start <= pointer < r.end)
    assert not region.is_stack
    assert "w" in region.permissions
