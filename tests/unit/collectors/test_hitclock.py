"""The program's own time between hits that stop it."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from darc.collectors.hitclock import HitClock, Instant
from darc.debuggee.clock import Use

TIMES = st.integers(0, 10**7)
FIRST, SECOND, OTHER = 0x1000, 0x1004, 0x2000


@dataclass
class HitMachine:
    """A machine on which a hit costs ``before`` its handler and ``after`` it."""

    before: int = 70_000
    after: int = 30_000
    now: int = 0
    waited: int = 0
    own: int = 0

    def clock(self, stops_all: bool = True) -> HitClock:
        return HitClock(
            stops_all,
            waited=lambda _: self.waited,
            own_waits=lambda: {1: self.own},
            read=lambda: self.now,
        )

    def hit(
        self,
        clock: HitClock,
        handler: int = 5000,
        thread: int = 1,
        *,
        at: int = OTHER,
        follows: int | None = None,
    ) -> Instant:
        self.now += self.before
        with clock.hit(thread) as instant:
            clock.calibrate(thread, at, follows)
            self.now += handler
        self.now += self.after
        return instant

    def calibrate(self, clock: HitClock) -> None:
        while not clock.is_calibrated:
            self.hit(clock, at=FIRST)
            self.hit(clock, at=SECOND, follows=FIRST)


@dataclass
class Linux(HitMachine):
    """One that counts what the thread has of its processor. It is busy: each hit waits for one."""

    used: int = 0
    pauses: int = 0
    own_part: int = 9_000
    """What a hit makes the thread execute."""

    def clock(self, stops_all: bool = True) -> HitClock:
        return HitClock(
            stops_all,
            waited=lambda _: self.waited,
            own_waits=lambda: {1: self.own},
            read=lambda: self.now,
            use=lambda _: Use(self.used, self.pauses),
        )

    def hit(
        self,
        clock: HitClock,
        handler: int = 5000,
        thread: int = 1,
        *,
        at: int = OTHER,
        follows: int | None = None,
    ) -> Instant:
        self.used += self.own_part
        self.pauses += 1 if follows else 2
        return super().hit(clock, handler, thread, at=at, follows=follows)


@given(st.lists(st.tuples(TIMES, st.integers(0, 10**6)), min_size=1, max_size=10))
def test_hits_are_taken_out(steps: list[tuple[int, int]]) -> None:
    """However many there are between two instants, and however long their handlers take."""
    world = HitMachine()
    clock = world.clock()
    world.calibrate(clock)
    begin = end = world.hit(clock)
    own = 0
    for latency, handler in steps:
        world.now += latency
        own += latency
        end = world.hit(clock, handler)
    assert clock.between(begin, end) == max(1, own)
    assert clock.cost == world.before + world.after


def test_waiting_for_a_processor_is_taken_out() -> None:
    world = HitMachine()
    clock = world.clock()
    world.calibrate(clock)
    begin = world.hit(clock)
    world.now += 900_000 + 4_000_000 + 3_000_000
    world.waited += 4_000_000
    world.own += 3_000_000
    assert clock.between(begin, world.hit(clock)) == 900_000


def test_hits_of_other_threads() -> None:
    """They stop all threads, or only their own."""
    for stops_all in (True, False):
        world = HitMachine()
        clock = world.clock(stops_all)
        world.calibrate(clock)
        begin = world.hit(clock)
        world.hit(clock, thread=2)
        other = world.before + 5000 + world.after
        assert clock.between(begin, world.hit(clock)) == (1 if stops_all else other)


def test_only_neighbours_tell_the_cost() -> None:
    world = HitMachine()
    clock = world.clock()
    for _ in range(100):
        world.hit(clock, at=FIRST)
        world.now += 10**6
        world.hit(clock)
        world.hit(clock, at=SECOND, follows=FIRST)
        world.hit(clock, at=FIRST)
        world.hit(clock, thread=2, at=SECOND, follows=FIRST)
    assert not clock.is_calibrated
    assert clock.cost == 0


def test_where_nothing_can_be_measured() -> None:
    """The fast calls bound it: none is faster than nothing."""
    world = HitMachine()
    clock = world.clock()
    for latency in [0] * 30 + [10**7] * 70:
        begin = world.hit(clock)
        world.now += latency
        clock.observe(begin, world.hit(clock))
    assert clock.cost == world.before + world.after


def test_a_clock_that_stands_still_at_hits() -> None:
    """That of a machine that the debugger stops: what the debugger waits for is nothing to it."""
    world = HitMachine(before=20_000, after=7_000)
    clock = HitClock(
        True, own_waits=lambda: {1: world.own}, read=lambda: world.now, stands_still=True
    )
    while not clock.is_calibrated:
        world.hit(clock, handler=0, at=FIRST)
        world.hit(clock, handler=0, at=SECOND, follows=FIRST)
    begin = world.hit(clock, handler=0)
    world.now += 900_000
    world.own += 3_000_000
    assert clock.between(begin, world.hit(clock, handler=0)) == 900_000


def test_what_the_debugger_waits_for_within_a_handler_counts_once() -> None:
    world = HitMachine()
    clock = world.clock()
    world.calibrate(clock)
    begin = world.hit(clock)
    world.now += world.before
    with clock.hit(1):
        world.now += 50_000
        world.own += 50_000
    world.now += world.after + 900_000
    assert clock.between(begin, world.hit(clock)) == 900_000


@given(
    st.lists(
        st.tuples(TIMES, st.integers(0, 10**8), st.one_of(st.none(), st.integers(0, 10**8))),
        min_size=1,
        max_size=10,
    )
)
def test_processor_time_is_exact(steps: list[tuple[int, int, int | None]]) -> None:
    """However long hits make the thread wait. Where it sleeps, what it used counts at least."""
    world = Linux()
    clock = world.clock()
    world.calibrate(clock)
    begin = end = world.hit(clock)
    used = slept = noise = 0
    for run, late, sleep in steps:
        used += run
        world.used += run
        world.now += run + late
        if sleep is not None:
            world.pauses += 1
            world.now += sleep
            slept += sleep
            noise += late
        end = world.hit(clock)
    total = clock.between(begin, end)
    assert max(1, used) <= total <= max(1, used + slept + noise)
    assert noise or total >= used + slept - len(steps) * world.own_part
