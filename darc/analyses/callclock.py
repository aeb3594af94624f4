"""For how long calls have been under way while the debugger held nothing.

A stop is long over for the program when darc hears of it, and has only begun to end when darc has
done its part: so that time counts alone for which all else tells that nothing was held. At a stop
the records of switches tell when a call's thread was stopped, which is some time before darc is
asked, and for how long it was before (:func:`spent`).
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from darc.collectors.duties import Running, SeesOpenCalls
from darc.debuggee.holds import Scheduled
from darc.debuggee.switchwatch import SwitchWatch
from darc.model.ops import OffReason

_MOST_DOUBTFUL = 8
"""Calls whose threads are looked at, to know whether the debugger has held these."""


@dataclass(frozen=True)
class CallTime:
    """What a call has spent its time on, up to when its thread was stopped."""

    seconds: float
    """From its begin up to then; earlier stops are in it."""
    own: float
    """For how many of these the debugger did not hold it, at most."""
    off: Mapping[OffReason, float] | None = None
    """Why its thread had no processor, for which parts of that; where it was blocked, or stopped,
    and nothing tells which, that is not known. ``None``: nothing tells of any of it, and all that
    may be a stop is left out."""
    by_quota: float = 0.0
    """For which part of it its CPU quota was used up, at most."""


def spent(switches: SwitchWatch, call: Running, now: float, hz: float) -> CallTime | None:
    """The program stands still since some time before ``now``, when the call would have been under
    way for so many seconds; ``None`` where nothing tells what its thread did."""
    begin, after = call.begun, call.begun + int(now * hz)
    known = switches.off(call.thread, begin, after)
    if known is None:
        return None
    # It has left its processor, and not come back: for this stop.
    lasts = next((o for o in known.off if o.reason is OffReason.UNKNOWN and o.end >= after), None)
    if lasts is None or lasts.start <= begin:
        return None
    end = lasts.start
    sums = {
        reason: sum(one.within(begin, end) for one in known.off if one.reason is reason)
        for reason in OffReason
    }
    doubtful = min(known.doubtful, sums[OffReason.BLOCKED])
    sums[OffReason.BLOCKED] -= doubtful
    sums[OffReason.UNKNOWN] += doubtful
    shares = {reason: took / (end - begin) for reason, took in sums.items()}
    by_quota = min(known.by_quota / (end - begin), shares[OffReason.READY])
    own = end - begin - sums[OffReason.STOPPED]
    return CallTime((end - begin) / hz, own / hz, shares, by_quota)


@dataclass
class _UnderWay:
    """What is known of a call."""

    own: float = 0.0
    """For how long it has been under way while the debugger held nothing, in seconds."""
    scheduled: Scheduled | None = None
    """Its thread, as it was looked at last."""
    waited: tuple[float, float] = (0.0, 0.0)
    """For how long its thread waited for a processor when the debugger had let it go on, which is
    left out, in seconds; and when that was, see :attr:`CallClock._goes_since`."""
    waits: bool = False
    """Whether it did so still."""


class CallClock:
    """Of the calls of f0 that are under way, as they are looked at one time after the other."""

    def __init__(self, calls: SeesOpenCalls, switches: SwitchWatch, hz: float, late: float) -> None:
        """Calls that have been under way for ``late`` seconds are looked at more closely. A cycle
        is one of ``hz`` in a second."""
        self._open = calls
        self._switches = switches
        self._hz = hz
        self._late = late
        self._calls: dict[Hashable, _UnderWay] = {}
        """Those that were under way at the last look, which was then."""
        self._looked = time.monotonic()
        self._stood = True
        """Whether the program has stood still since."""
        self._goes_since = self._looked
        """When it was seen first that it goes on after that."""

    def stands(self) -> None:
        """The program stands still, or has only just been let go on."""
        self._stood = True

    def own(self, call: Running) -> float:
        """In seconds; 0 of a call that was not under way at the last look."""
        known = self._calls.get(call.key)
        return 0.0 if known is None else known.own

    def was_at_most(self, call: Running, seconds: float) -> None:
        """At a stop: no more than that was :meth:`own`, as it has turned out."""
        if (known := self._calls.get(call.key)) is not None:
            known.own = min(known.own, seconds)

    def count(self, calls: Sequence[Running]) -> None:
        """``calls`` are under way now; what was known of others is forgotten."""
        since, is_held = self._since_last()
        known, self._calls = self._calls, {}
        gone_by: dict[Hashable, float] = {}
        doubtful: list[Running] = []
        for call in calls:
            one = self._calls[call.key] = known.get(call.key) or _UnderWay()
            gone_by[call.key] = max(0.0, min(call.seconds, since))
            if not is_held:
                one.own += gone_by[call.key]
            if one.own < self._late <= call.seconds:
                doubtful.append(call)
            else:
                one.scheduled = None
        doubtful.sort(key=lambda call: -call.seconds)
        for n, call in enumerate(doubtful):
            one = self._calls[call.key]
            before = one.scheduled
            one.scheduled = self._open.scheduled(call) if n < _MOST_DOUBTFUL else None
            if is_held and before is not None and one.scheduled is not None:
                one.own += min(gone_by[call.key], one.scheduled.was_let_run(before))

    def _since_last(self) -> tuple[float, bool]:
        """How long ago the last look was, in seconds, and whether the debugger may have held the
        program since."""
        now = time.monotonic()
        since, self._looked = now - self._looked, now
        stood, self._stood = self._stood, False
        is_held = self._open.may_have_stood() or stood
        if is_held:
            self._goes_since = now
        return since, is_held

    def correct(self, call: Running) -> None:
        """Leaves out for how long the thread of one of these calls, once it had been held, waited
        for a processor that others had: to the program that is still the debugger's stop."""
        one = self._calls[call.key]
        gone_by = self._looked - self._goes_since
        before, when = one.waited
        if gone_by >= call.seconds or (when == self._goes_since and not one.waits):
            return  # it began later, or has gone on
        thread = one.scheduled or self._open.scheduled(call)
        if thread is None or not thread.is_ready:
            return  # it has gone on, to wait for something else: most do, and are soon known to
        end = call.begun + int(call.seconds * self._hz)
        begin = end - int(gone_by * self._hz)
        known = self._switches.off(call.thread, min(call.begun, begin), end)
        if known is None:
            return
        held = (OffReason.STOPPED, OffReason.UNKNOWN)  # that is what lasts still
        off = [o for o in known.off if o.reason in held and o.start <= begin < o.end]
        waited = sum(o.within(begin, end) for o in off) / self._hz
        one.own -= waited - (before if when == self._goes_since else 0.0)
        one.waited = waited, self._goes_since
        one.waits = any(o.reason is OffReason.UNKNOWN for o in off)
