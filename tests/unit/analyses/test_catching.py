"""Which calls are late: the debugger's own stops do not make them so."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.analyses.analysis import Step
from darc.analyses.catching import Catcher
from darc.collectors.duties import Running, StandingCall
from darc.debuggee import holds, procfs
from darc.debuggee.holds import Holds, Scheduled
from darc.debuggee.perf_stacks import Waking
from darc.debuggee.wakers import told
from darc.model.catching import CaughtCall
from darc.model.offtimes import OffTimes
from darc.model.ops import Off, OffReason
from darc.model.standing import ThreadStanding

HZ = 1000


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class OpenCalls:
    """One call, of thread 7, which began when this was made."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.begun = clock, clock.now
        self.is_there = True
        self.stood = self.in_probe = False
        self.thread: Scheduled | None = None

    def running(self) -> Sequence[Running]:
        seconds = self.clock.now - self.begun
        begun = round(HZ * self.begun)
        return [Running("call", 7, seconds, begun)] if self.is_there else []

    def waits_for(self, call: Running) -> None: ...

    def standing(self, call: Running, event: None) -> StandingCall:
        del event
        where = ThreadStanding(call.thread, None, ("f0",), is_whole=True)
        return StandingCall(where, None, "thread 2")

    def deep_wait(self, call: Running) -> None: ...

    def may_have_stood(self) -> bool:
        return self.stood

    def scheduled(self, call: Running) -> Scheduled | None:
        del call
        return self.thread

    def is_in_probe(self, call: Running) -> bool:
        del call
        return self.in_probe


class Late:
    """Calls of 10 s are late; the program goes on, and was looked at."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.calls, self.off = clock, OpenCalls(clock), cast(Any, None)
        made = SimpleNamespace(
            **{name: lambda *_: None for name in ("search", "keep_ops", "watch_waits")},
            await_user=lambda: self.asked.append("user"),
            hz=HZ,
        )
        self.asked: list[str] = []
        brief = SimpleNamespace(
            **dict.fromkeys(("parameters", "root", "spec", "program", "note")),
            collector=SimpleNamespace(counting=made, ops=made, open_calls=self.calls),
            switches=SimpleNamespace(begin=lambda: None, off=lambda *_: self.off),
        )
        self.analysis = Catcher(cast(Any, brief), seconds=10.0)
        self.analysis.goes_on()
        self.analysis.look()

    def is_late(self, after: float) -> bool:
        """Whether it is when it was looked at once a second for so long."""
        for _ in range(int(after)):
            self.clock.now += 1
            self.analysis.look()
        return self.analysis.urgent == 7

    def stop(self, seconds: float) -> None:
        """One that darc knows of."""
        self.analysis.stands()
        self.clock.now += seconds
        self.analysis.look()
        self.analysis.goes_on()
        self.analysis.look()


@pytest.fixture
def late(clock: Clock) -> Late:
    return Late(clock)


def test_a_call_is_late_by_its_time(late: Late) -> None:
    assert not late.is_late(9)
    assert late.is_late(1)
    assert late.analysis.decide() is Step.SHOW


def test_where_it_stands_is_known_until_the_program_goes_on(late: Late) -> None:
    analysis = late.analysis
    assert late.is_late(10)
    assert analysis.decide() is Step.SHOW
    assert analysis.part.place is None, "the user sees nothing yet"
    analysis.show()
    place = analysis.part.place
    assert place is not None
    assert (place.seconds, place.where.functions, place.show) == (10.0, ("f0",), "thread 2")
    analysis.goes_on()
    assert analysis.part.place is None
    analysis.show()
    assert analysis.part.place is None, "there is none to be shown"


def test_a_stop_does_not_make_a_call_late(late: Late) -> None:
    assert not late.is_late(4)
    late.stop(50)
    assert not late.is_late(5)
    assert late.is_late(1)
    assert late.analysis.decide() is Step.SHOW


def test_nobody_is_asked_for_while_the_program_stands(late: Late) -> None:
    """Who is asked for then comes as soon as it goes on."""
    assert not late.is_late(9)
    late.analysis.stands()
    assert not late.is_late(60)
    assert late.analysis.seconds_left is None


def test_nor_is_the_agent_asked_to_hurry_once_more(late: Late) -> None:
    assert late.is_late(10)
    late.asked.clear()
    late.analysis.decide()
    assert late.asked == ["user"]


def test_what_the_debugger_does_unheard_does_not_make_a_call_late(late: Late) -> None:
    assert not late.is_late(4)
    late.calls.stood = True
    assert not late.is_late(50)
    late.calls.stood = False
    assert not late.is_late(5)
    assert late.is_late(1)


@pytest.mark.parametrize(("grows", "after"), [((0, 0.0), 3), ((1, 0.5), 3), ((2, 0.0), None)])
def test_a_debugger_that_is_never_quiet_hides_no_call(
    late: Late, grows: tuple[int, float], after: int | None
) -> None:
    """What a thread that was not switched has had is its own, and what it ran for."""
    late.calls.stood = True
    for second in range(100):
        switches, ran = grows
        late.calls.thread = Scheduled("R", second * switches, int(second * ran * 1e9))
        if late.is_late(1):
            assert after is not None
            return
    assert after is None


def test_a_thread_that_waits_to_go_on_after_a_stop_is_not_late(late: Late) -> None:
    """As others have the processors: what the stop has begun lasts still."""
    assert not late.is_late(4)
    late.stop(50)
    since = round(HZ * late.clock.now)
    late.calls.thread = Scheduled("R", 1, 0)
    late.off = OffTimes((Off(since - 50 * HZ, since + 20 * HZ, OffReason.UNKNOWN),))
    assert not late.is_late(20)
    late.off = OffTimes((Off(since - 50 * HZ, since + 20 * HZ, OffReason.STOPPED),))
    assert not late.is_late(5)
    assert late.is_late(1)


def test_one_that_sleeps_since_then_is(late: Late) -> None:
    """It has run, and waits for something of the program's."""
    assert not late.is_late(4)
    late.stop(50)
    since = round(HZ * late.clock.now)
    late.calls.thread = Scheduled("S", 1, 0)
    late.off = OffTimes((Off(since - 1, since + 20 * HZ, OffReason.UNKNOWN),))
    assert not late.is_late(5)
    assert late.is_late(1)


def stop_in_a_probe(late: Late) -> None:
    """For a late call, which goes on then."""
    assert late.is_late(10)
    late.calls.in_probe = True
    assert late.analysis.decide() is Step.GO_ON
    late.analysis.goes_on()


def test_a_thread_in_a_probe_is_let_out(late: Late) -> None:
    """Nothing of the program's own is to be seen there."""
    stop_in_a_probe(late)
    late.calls.in_probe = False
    assert late.is_late(2)
    assert late.analysis.decide() is Step.SHOW
    assert not late.analysis.missed


def test_a_call_that_was_over_but_for_the_probe_is_missed(late: Late) -> None:
    stop_in_a_probe(late)
    late.calls.is_there = False
    assert not late.is_late(1)
    assert late.analysis.missed == 1


def test_a_thread_that_stays_in_a_probe_is_asked_more_and_more_seldom(late: Late) -> None:
    assert late.is_late(10)
    late.calls.in_probe = True
    stops = 0
    for _ in range(1000):
        late.clock.now += 0.01
        late.analysis.look()
        if late.analysis.urgent is not None:
            assert late.analysis.decide() is Step.GO_ON
            late.analysis.goes_on()
            stops += 1
    assert 2 < stops < 16
    assert not late.analysis.missed


# ------------------------------------------------------------------ when it was stopped


def records(late: Late, *off: tuple[float, float, OffReason], doubtful: float = 0) -> None:
    """Where the call's thread was off, in seconds since the call began."""
    begun = round(HZ * late.calls.begun)
    found = (Off(begun + round(HZ * a), begun + round(HZ * b), why) for a, b, why in off)
    late.off = OffTimes(tuple(found), doubtful=round(HZ * doubtful))


def caught(late: Late) -> CaughtCall:
    assert late.analysis.decide() is Step.SHOW
    late.analysis.show()
    place = late.analysis.part.place
    assert place is not None
    return place


def test_what_passes_until_darc_is_asked_is_no_time_of_the_call(late: Late) -> None:
    """Its thread has left the processor, and not come back."""
    assert late.is_late(10)
    late.clock.now += 50
    records(late, (2, 11, OffReason.BLOCKED), (11, 60, OffReason.UNKNOWN))
    place = caught(late)
    assert place.seconds == 11
    assert place.off is not None
    assert place.off[OffReason.BLOCKED] == pytest.approx(9 / 11)
    assert not place.off[OffReason.STOPPED]
    assert not place.off[OffReason.UNKNOWN]


def test_a_stop_before_is_told_as_one(late: Late) -> None:
    assert not late.is_late(5)
    late.stop(20)
    assert late.is_late(5)
    blocked = (0, 5, OffReason.BLOCKED), (25, 30, OffReason.BLOCKED)
    records(late, *blocked, (5, 25, OffReason.STOPPED), (30, 60, OffReason.UNKNOWN), doubtful=1)
    place = caught(late)
    assert place.seconds == 30
    assert place.off is not None
    shares = {why: round(30 * part) for why, part in place.off.items()}
    assert shares == {
        OffReason.BLOCKED: 9,
        OffReason.READY: 0,
        OffReason.STOPPED: 20,
        OffReason.UNKNOWN: 1,
    }


def test_one_that_is_late_by_its_stops_alone_goes_on(late: Late) -> None:
    """And is late once it has had the rest of its time."""
    assert late.is_late(10)
    records(late, (0, 6, OffReason.STOPPED), (10, 60, OffReason.UNKNOWN))
    assert late.analysis.decide() is Step.GO_ON
    late.analysis.goes_on()
    assert not late.analysis.missed
    late.analysis.look()
    assert not late.is_late(5)
    assert late.is_late(1)
    records(late, (0, 6, OffReason.STOPPED), (16, 60, OffReason.UNKNOWN))
    assert caught(late).seconds == 16


def test_one_that_ends_then_is_missed(late: Late) -> None:
    assert late.is_late(10)
    records(late, (0, 6, OffReason.STOPPED), (10, 60, OffReason.UNKNOWN))
    assert late.analysis.decide() is Step.GO_ON
    late.analysis.goes_on()
    late.calls.is_there = False
    assert not late.is_late(1)
    assert late.analysis.missed == 1


def test_where_nothing_tells_when_it_was_stopped(late: Late) -> None:
    """It was not before it was found late."""
    assert not late.is_late(5)
    late.stop(20)
    assert late.is_late(5)
    late.clock.now += 50
    place = caught(late)
    assert (place.seconds, place.off) == (10, None)


def test_who_sends_the_bell_lets_no_thread_go_on() -> None:
    """A thread of the debugger's process that does not trace the program."""
    wakings = [
        Waking(
            time=time,
            woken=7,
            process=5,
            thread=thread,
            in_interrupt=in_interrupt,
            in_soft_interrupt=False,
            stack=cast(Any, None),
        )
        for time, thread, in_interrupt in ((1, 5, False), (2, 6, False), (3, 5, True))
    ]
    assert [one.by_debugger for one in told(wakings, 5)] == [True, False, False]


# ------------------------------------------------------------------ what the kernel tells


class Kernel:
    """What ``/proc`` says of the debugger's thread and of the program."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state, self.switches, self.is_held = "S", 7, False
        monkeypatch.setattr(procfs, "tracer", lambda _: 5)
        monkeypatch.setattr(procfs, "is_held", lambda _: self.is_held)
        monkeypatch.setattr(holds, "scheduled", lambda _: Scheduled(self.state, self.switches, 0))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(monkeypatch)


def test_a_debugger_that_sleeps_holds_nothing_anew(kernel: Kernel) -> None:
    asked = Holds(3)
    assert asked.any_since()  # nothing is known of before
    assert [asked.any_since(), asked.any_since()] == [False, False]
    kernel.switches += 1
    assert [asked.any_since(), asked.any_since()] == [True, False]


def test_one_that_is_awake_may(kernel: Kernel) -> None:
    asked = Holds(3)
    asked.any_since()
    kernel.state = "R"
    assert asked.any_since()
    kernel.state = "S"
    assert [asked.any_since(), asked.any_since()] == [True, False]


def test_nor_does_it_wake_while_it_waits_for_somebody_else(kernel: Kernel) -> None:
    """As a helper that has told its debugger of the stop."""
    asked = Holds(3)
    asked.any_since()
    kernel.is_held = True
    assert [asked.any_since(), asked.any_since()] == [True, True]
    kernel.is_held = False
    assert [asked.any_since(), asked.any_since()] == [True, False]


@pytest.mark.parametrize(
    ("before", "now", "seconds"),
    [
        (Scheduled("S", 4, 0), Scheduled("S", 4, 0), float("inf")),
        (Scheduled("R", 4, 0), Scheduled("R", 4, 0), float("inf")),
        (Scheduled("S", 4, 0), Scheduled("t", 4, 0), 0),
        (Scheduled("t", 4, 0), Scheduled("R", 4, 0), 0),
        (Scheduled("R", 4, 10**9), Scheduled("R", 5, 3 * 10**9), 2),
        (Scheduled("R", 4, 10**9), Scheduled("R", 5, 0), 0),
    ],
)
def test_a_thread_that_was_not_switched_was_not_held(
    before: Scheduled, now: Scheduled, seconds: float
) -> None:
    assert now.was_let_run(before) == seconds
