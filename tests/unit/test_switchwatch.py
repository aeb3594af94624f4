"""What a search is told of what was watched, and for how long."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from darc.debuggee.switchwatch import OffWatch, SwitchWatch
from darc.model.errors import UnsupportedError
from darc.model.offtimes import OffTimes, WatchedOps
from darc.model.ops import KeptOps, Off, OffReason, OpClass
from tests.unit.ops import made_op

_OP = made_op(1, OpClass.IN_PEAK, 900, start=1000)
_OFF = OffTimes((Off(1100, 1300, OffReason.BLOCKED),))


class Watch(OffWatch):
    """Knows of one thread, and notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def drain(self) -> None:
        self.told.append("drain")

    def stands(self) -> None:
        self.told.append("stands")

    def goes_on(self) -> None:
        self.told.append("goes on")

    @property
    def missed(self) -> int:
        return 0

    @property
    def why_no_wakers(self) -> str | None:
        return "nobody looked"

    def off(self, calls: Sequence[tuple[int, int, int]]) -> list[OffTimes | None]:
        return [_OFF if thread == 7 else None for thread, _, _ in calls]

    def close(self) -> None:
        self.told.append("close")


def test_it_watches_from_the_beginning_to_the_end() -> None:
    watch = Watch()
    switches = SwitchWatch(lambda: watch)
    switches.drain()
    assert not switches.is_watching
    switches.begin()
    switches.begin()
    switches.goes_on()
    switches.drain()
    switches.end()
    assert watch.told == ["stands", "goes on", "drain", "close"]
    assert switches.off(7, 0, 10) == _OFF  # what was seen can still be asked for


def test_ops_have_what_was_seen_of_their_threads() -> None:
    kept = KeptOps(10**9, (dataclasses.replace(_OP, thread=7), dataclasses.replace(_OP, thread=8)))
    switches = SwitchWatch(Watch)
    assert switches.watched(kept) == WatchedOps(kept)
    switches.begin()
    found = switches.watched(kept)
    assert [op.off for op in found.kept.ops] == [_OFF.off, None]
    assert (found.unwatched, found.kept.why_no_wakers) == (1, "nobody looked")


def test_why_there_is_no_watch_is_told() -> None:
    def refuse() -> OffWatch | None:
        raise UnsupportedError("the kernel does not let you")

    notes: list[str] = []
    switches = SwitchWatch(refuse, notes.append)
    switches.begin()
    assert notes == ["the kernel does not let you"]
    assert not switches.is_watching
