"""Calls that are kept whole on a made-up machine, and when their thread had no processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from darc.collectors.duties import KeepsOps
from darc.debuggee.switchwatch import OffWatch
from darc.model.offtimes import OffTimes
from darc.model.ops import KeptOps, Off, OffReason, OpClass
from tests.unit.machine import TID, Debuggee
from tests.unit.ops import made_op


class KeptCalls(KeepsOps):
    """Keeps every call that the machine makes from when it is asked to."""

    def __init__(self) -> None:
        self.asked: tuple[int, tuple[int, int]] | None = None
        """``least`` and ``fast``, as an analysis has asked for them."""
        self.watches_waits = False
        self._calls: list[tuple[int, int]] = []

    def keep_ops(self, least: int, fast: tuple[int, int]) -> None:
        self.asked = least, fast
        self._calls.clear()

    def watch_waits(self) -> None:
        self.watches_waits = True

    def kept_ops(self) -> KeptOps:
        ops = [
            made_op(number, OpClass.IN_PEAK, end - start, start=start, thread=TID)
            for number, (start, end) in enumerate(self._calls, 1)
        ]
        return KeptOps(Debuggee.hz, tuple(ops), in_peak_seen=len(ops))

    def called(self, start: int, end: int) -> None:
        """The machine has made a call."""
        if self.asked is not None:
            self._calls.append((start, end))


class MadeUpWatch(OffWatch):
    """Knows when each call of one thread was off its processor; ``off`` tells by its begin and
    end."""

    def __init__(self, off: Callable[[int, int], Sequence[Off]]) -> None:
        self._off = off
        self.told: list[str] = []

    def watch_places(self) -> None:
        self.told.append("places")

    def drain(self) -> None:
        self.told.append("drain")

    def stands(self) -> None:
        self.told.append("stands")

    def goes_on(self) -> None:
        self.told.append("goes on")

    def close(self) -> None:
        self.told.append("close")

    @property
    def missed(self) -> int:
        return 0

    @property
    def why_no_wakers(self) -> str | None:
        return "nobody looked"

    @property
    def why_no_places(self) -> str | None:
        return "there was no room"

    def off(self, calls: Sequence[tuple[int, int, int]]) -> list[OffTimes | None]:
        return [
            OffTimes(tuple(self._off(begin, end))) if thread == TID else None
            for thread, begin, end in calls
        ]


def blocked(share: float) -> MadeUpWatch:
    """One by which calls are blocked for this ``share`` of their time, at their beginnings."""
    return MadeUpWatch(
        lambda begin, end: [Off(begin, begin + int(share * (end - begin)), OffReason.BLOCKED)]
    )
