"""What records of switches say of a thread: made-up records."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.debuggee import perf
from darc.debuggee.perf import Switch
from darc.debuggee.switch_history import (
    AT_ONCE_NS,
    SOON_NS,
    Growth,
    Interval,
    OffTime,
    Queued,
    Seen,
    Woken,
    awake_times,
    by_quota,
    off_times,
)
from darc.model.ops import OffReason

MS, US = 1_000_000, 1000
ME, OTHER, DEBUGGER = 7, 8, 1

BLOCKED, READY = OffReason.BLOCKED, OffReason.READY
STOPPED, UNKNOWN = OffReason.STOPPED, OffReason.UNKNOWN


def waits(*spans: tuple[int, int], thread: int = ME, preempted: bool = False) -> list[Switch]:
    found = []
    for out, back in spans:
        found += [Switch(out, thread, True, preempted), Switch(back, thread, False)]
    return found


def awake(*spans: tuple[int, int]) -> list[Switch]:
    """The debugger's, which sleeps in between."""
    found = [Switch(0, DEBUGGER, True)]
    for begin, end in spans:
        found += [Switch(begin, DEBUGGER, False), Switch(end, DEBUGGER, True)]
    return found


def off(
    switches: Sequence[Switch],
    tracer: Sequence[Switch] = (),
    end: int = 100 * MS,
    **more: Any,
) -> tuple[OffTime, ...]:
    switches = sorted(switches, key=lambda switch: switch.time)
    return off_times(Seen(ME, switches, tracer, **more), 0, end)


def reasons(
    switches: Sequence[Switch], tracer: Sequence[Switch] = (), **more: Any
) -> list[OffReason]:
    return [one.reason for one in off(switches, tracer, **more)]


class TestWaits:
    def test_preempted_is_ready_and_all_else_blocked(self) -> None:
        records = waits((1 * MS, 2 * MS)) + waits((3 * MS, 5 * MS), preempted=True)
        assert off(records) == (OffTime(1 * MS, 2 * MS, BLOCKED), OffTime(3 * MS, 5 * MS, READY))

    def test_other_threads_do_not_matter(self) -> None:
        assert off(waits((1 * MS, 2 * MS), thread=OTHER)) == ()

    def test_the_way_from_a_probe_to_a_switch(self) -> None:
        """What ended just before the call began, or begins just behind its end, is not in it."""
        records = [Switch(1 * US, ME, False), Switch(100 * MS - 1 * US, ME, True)]
        assert off(records) == ()

    def test_records_that_are_missing_make_time_unknown(self) -> None:
        """The thread ran at both ends of the call."""
        records = [Switch(2 * MS, ME, False), Switch(90 * MS, ME, True)]
        assert off(records) == (OffTime(0, 2 * MS, UNKNOWN), OffTime(90 * MS, 100 * MS, UNKNOWN))

    def test_a_loss_is_unknown_and_so_is_a_wait_behind_it(self) -> None:
        found = off(waits((10 * MS, 60 * MS)), losses=[Interval(20 * MS, 30 * MS)])
        assert found == (
            OffTime(10 * MS, 20 * MS, BLOCKED),
            OffTime(20 * MS, 30 * MS, UNKNOWN),
            OffTime(30 * MS, 60 * MS, UNKNOWN),
        )

    def test_a_loss_that_no_wait_touches_is_not_computing(self) -> None:
        assert off([], losses=[Interval(20 * MS, 30 * MS)]) == (OffTime(20 * MS, 30 * MS, UNKNOWN),)

    @given(st.lists(st.integers(1, 99 * MS), unique=True, max_size=40), st.data())
    def test_no_time_is_off_twice(self, times: list[int], data: st.DataObject) -> None:
        records = [
            Switch(time, ME, data.draw(st.booleans()), data.draw(st.booleans())) for time in times
        ]
        losses = [Interval(*sorted(data.draw(st.tuples(*[st.integers(0, 100 * MS)] * 2))))]
        found = off(records, losses=losses)
        for one, after in pairwise(found):
            assert one.begin < one.end <= after.begin


class TestWoken:
    """By the debugger, where the kernel tells who woke a thread."""

    def test_what_the_debugger_lets_go_on_it_has_held(self) -> None:
        """However long before that it was awake, and whatever it did then: as at a vfork."""
        records = waits((10 * MS, 15 * MS), (15 * MS + 20 * US, 18 * MS))
        ends = [Woken(15 * MS - 10 * US, True), Woken(18 * MS - 10 * US, False)]
        assert reasons(records, wakings=ends) == [STOPPED, BLOCKED]
        assert reasons(records) == [BLOCKED, BLOCKED]
        assert reasons(records, wakings=[Woken(o.time, False) for o in ends]) == [BLOCKED, BLOCKED]

    def test_a_sleep_that_a_stop_interrupts_was_one(self) -> None:
        """The signal that is to stop the thread wakes it."""
        records = waits((10 * MS, 15 * MS), (15 * MS + 20 * US, 18 * MS), (40 * MS, 50 * MS))
        ends = [Woken(time - 10 * US, True) for time in (15 * MS, 18 * MS, 50 * MS)]
        assert reasons(records, wakings=ends) == [BLOCKED, STOPPED, STOPPED]
        doubtful = [one.is_doubtful for one in off(records, wakings=ends)]
        assert doubtful == [True, False, False], "two stops, one behind the other, look alike"

    def test_a_sleep_that_a_stop_has_ended_which_goes_on_was_one(self) -> None:
        """As of a call that is caught: the thread stands, and what it stands in has no end yet."""
        records = [*waits((10 * MS, 99 * MS)), Switch(99 * MS + 20 * US, ME, True)]
        ends = [Woken(99 * MS - 10 * US, True)]
        for end in (99 * MS + 10 * US, 100 * MS):
            assert reasons(records, wakings=ends, end=end)[0] is BLOCKED

    def test_a_sleep_that_a_stop_of_darcs_interrupts_is_not_doubtful(self) -> None:
        records = waits((10 * MS, 15 * MS), (15 * MS + 20 * US, 18 * MS))
        ends = [Woken(time - 10 * US, True) for time in (15 * MS, 18 * MS)]
        stops = [Interval(15 * MS + 30 * US, 17 * MS)]
        found = off(records, wakings=ends, stops=stops)
        told = [(one.reason, one.is_doubtful) for one in found]
        assert told == [(BLOCKED, False), (STOPPED, False)]

    def test_who_comes_later_finds_it_awake(self) -> None:
        records = waits((10 * MS, 15 * MS))
        ends = [Woken(12 * MS, False), Woken(14 * MS, True)]
        assert reasons(records, wakings=ends) == [BLOCKED]


class TestStops:
    def test_a_stop_that_darc_knows_of(self) -> None:
        records = waits((1 * MS, 9 * MS), (20 * MS, 21 * MS))
        assert reasons(records, stops=[Interval(2 * MS, 8 * MS)]) == [STOPPED, BLOCKED]

    def test_a_wait_within_a_stop_was_another(self) -> None:
        """The thread had not stopped yet."""
        assert reasons(waits((3 * MS, 4 * MS)), stops=[Interval(2 * MS, 8 * MS)]) == [BLOCKED]

    def test_a_debugger_that_sleeps_holds_nobody(self) -> None:
        assert reasons(waits((10 * MS, 20 * MS)), awake((1 * MS, 2 * MS), (30 * MS, 31 * MS))) == [
            BLOCKED
        ]

    def test_a_signal_that_is_passed_on(self) -> None:
        """The stop wakes the debugger, which lets the thread go on and sleeps again."""
        records = waits((10 * MS, 10 * MS + 14 * US))
        tracer = awake((10 * MS + 2 * US, 10 * MS + 12 * US))
        assert reasons(records, tracer) == [STOPPED]

    def test_a_debugger_that_waits_for_other_threads_as_well(self) -> None:
        first, second = 10 * MS + 5 * US, 10 * MS + 300 * US
        tracer = awake((first, first + 200 * US), (second, second + 200 * US))
        assert reasons(waits((10 * MS, second + 190 * US)), tracer) == [STOPPED]

    def test_a_long_wait_in_which_the_debugger_was_awake_for_another(self) -> None:
        records = waits((10 * MS, 60 * MS))
        records += waits((30 * MS, 30 * MS + 20 * US), thread=OTHER)
        tracer = awake((30 * MS + 2 * US, 30 * MS + 15 * US))
        assert off(records, tracer) == (OffTime(10 * MS, 60 * MS, BLOCKED),)

    def test_on_a_busy_processor_waiting_for_it_tells(self) -> None:
        """The debugger came late to the stop, and the thread late to a processor: as long as each
        had to wait for one."""
        records = waits((10 * MS, 18 * MS))
        tracer = awake((14 * MS, 14 * MS + 10 * US))
        queues = {
            "tracer_queued": [Queued(0, 100 * MS), Queued(90 * MS, 104 * MS)],
            "queued": [Queued(0, 500 * MS), Queued(90 * MS, 504 * MS)],
        }
        assert reasons(records, tracer, **queues) == [STOPPED]
        idle = [Queued(0, 5), Queued(90 * MS, 5)]
        assert off(records, tracer, tracer_queued=idle, queued=idle) == (
            OffTime(10 * MS, 18 * MS, BLOCKED, is_doubtful=True),
        )

    def test_what_fits_worse_than_another_threads_wait_is_none(self) -> None:
        records = waits((10 * MS, 12 * MS))
        records += waits((10 * MS + 500 * US, 10 * MS + 510 * US), thread=OTHER)
        tracer = awake((10 * MS + 501 * US, 10 * MS + 508 * US))
        assert off(records, tracer) == (OffTime(10 * MS, 12 * MS, BLOCKED),)

    def test_two_waits_that_fit_as_badly_are_doubtful(self) -> None:
        records = waits((10 * MS, 12 * MS))
        records += waits((10 * MS + 100 * US, 12 * MS), thread=OTHER)
        tracer = awake((11 * MS, 11 * MS + 10 * US))
        found = off(records, tracer)
        assert [(one.reason, one.is_doubtful) for one in found] == [(BLOCKED, True)]

    @pytest.mark.parametrize("ends", [11 * MS, 30 * MS])
    def test_a_debugger_that_is_awake_as_it_has_let_the_program_go_on(self, ends: int) -> None:
        """Nothing says that it was awake for another stop; it may have been."""
        records = waits((10 * MS, 13 * MS))
        stop = Interval(1 * MS, 10 * MS - 33 * US)
        found = off(records, awake((1 * MS, ends)), stops=[stop])
        assert found == (OffTime(10 * MS, 13 * MS, BLOCKED, is_doubtful=True),)

    def test_preemption_wakes_no_debugger(self) -> None:
        tracer = awake((10 * MS + 2 * US, 10 * MS + 12 * US))
        assert reasons(waits((10 * MS, 10 * MS + 14 * US), preempted=True), tracer) == [READY]

    def test_preempted_itself_the_debugger_is_not_asleep(self) -> None:
        records = [
            Switch(0, DEBUGGER, True),
            Switch(5, DEBUGGER, False),
            Switch(7, DEBUGGER, True, was_preempted=True),
            Switch(9, DEBUGGER, False),
            Switch(11, DEBUGGER, True),
        ]
        assert awake_times(records) == [Interval(0, 0), Interval(5, 11)]

    def test_limits_are_in_order(self) -> None:
        assert AT_ONCE_NS < SOON_NS


STOP, LONG = (10 * MS, 48 * MS), (5 * US, 150 * US, 37 * MS, 38 * MS + 80 * US)


def served(at: int = STOP[0], *turns: int) -> list[tuple[int, int]]:
    """When a server is awake for a stop: it tells of that, sleeps while the debugger evaluates a
    condition, and lets the program go on."""
    times = turns or LONG
    return [(at + a, at + b) for a, b in zip(times[::2], times[1::2], strict=True)]


class TestServers:
    """A debugger of two processes, as lldb: that which traces sleeps while the other one thinks."""

    def test_a_stop_in_which_it_sleeps(self) -> None:
        """As at a watchpoint whose condition does not hold."""
        assert off(waits(STOP), awake(*served()), by_server=True) == (OffTime(*STOP, STOPPED),)

    def test_a_debugger_of_one_process_does_not_sleep(self) -> None:
        assert off(waits(STOP), awake(*served())) == (OffTime(*STOP, BLOCKED),)

    def test_it_is_awake_at_both_ends(self) -> None:
        early, late, twice = LONG[:2], (30 * MS, 38 * MS), (5 * US, 9 * US, 3 * MS, 4 * MS)
        for turns in (early, late, twice):
            tracer = awake(*served(STOP[0], *turns))
            assert off(waits(STOP), tracer, by_server=True) == (OffTime(*STOP, BLOCKED),)

    def test_a_wait_in_which_another_thread_runs_is_none_for_sure(self) -> None:
        """Signals of the other one's are passed on as it begins and as it ends."""
        first, last = STOP[0] + 2 * US, STOP[1] - 50 * US
        records = waits(STOP) + waits(*((t, t + 20 * US) for t in (first, last)), thread=OTHER)
        tracer = awake(*((t + 3 * US, t + 15 * US) for t in (first, last)))
        assert off(records, tracer, by_server=True) == (OffTime(*STOP, BLOCKED, is_doubtful=True),)

    def test_who_runs_all_the_time_is_not_stopped(self) -> None:
        records = [*waits(STOP), Switch(5 * MS, OTHER, False), Switch(60 * MS, OTHER, True)]
        assert off(records, awake(*served()), by_server=True) == (
            OffTime(*STOP, BLOCKED, is_doubtful=True),
        )

    def test_all_threads_stop_with_one(self) -> None:
        """The other one has hit it, and this one is stopped by the server's signal."""
        mine = (STOP[0] + 60 * US, STOP[1] + 30 * US)
        records = waits(STOP, thread=OTHER) + waits(mine)
        assert off(records, awake(*served()), by_server=True) == (OffTime(*mine, STOPPED),)

    def test_a_sleep_that_such_a_stop_ends_was_one(self) -> None:
        """The signal wakes the thread, which stops then."""
        sleep, stop = (1 * MS, STOP[0] + 40 * US), (STOP[0] + 50 * US, STOP[1] + 30 * US)
        records = waits(STOP, thread=OTHER) + waits(sleep, stop)
        found = off(records, awake(*served()), by_server=True)
        assert [(one.reason, one.is_doubtful) for one in found] == [
            (BLOCKED, False),
            (STOPPED, False),
        ]

    def test_a_step_behind_a_stop(self) -> None:
        """Over a breakpoint: the server has not slept since it let the thread make that."""
        step = (STOP[1] + 30 * US, STOP[1] + 9 * MS)
        tracer = awake(*served(), *served(step[0], 2 * MS, 3 * MS, 8 * MS, 9 * MS))
        found = off(waits(STOP, step), tracer, by_server=True)
        assert [one.reason for one in found] == [STOPPED, STOPPED]

    def test_stops_one_behind_the_other_that_the_kernel_tells_of_too(self) -> None:
        """As of a watchpoint in a loop. A stop that the server was not woken for was a sleep, as
        far as anybody knows, which the stop behind it has ended."""
        second = (STOP[1] + 20 * US, STOP[1] + 38 * MS)
        ends = [Woken(stop[1] - 10 * US, True) for stop in (STOP, second)]
        for first in (served(), [(STOP[1] - 90 * US, STOP[1] - 20 * US)]):
            tracer = awake(*first, *served(second[0]))
            found = off(waits(STOP, second), tracer, by_server=True, wakings=ends)
            told = [(one.reason, one.is_doubtful) for one in found]
            is_seen = len(first) > 1
            assert told == [(STOPPED if is_seen else BLOCKED, not is_seen), (STOPPED, False)]

    def test_a_wait_that_begins_while_it_is_awake_for_something_else_is_doubtful(self) -> None:
        """As where the user's Ctrl-C ends it."""
        tracer = awake((STOP[0] - 50 * US, STOP[0] + 20 * US), (STOP[1] - 9 * US, 60 * MS))
        assert off(waits(STOP), tracer, by_server=True) == (
            OffTime(*STOP, BLOCKED, is_doubtful=True),
        )

    def test_who_ends_a_wait_is_believed(self) -> None:
        ends = [Woken(STOP[1] - 10 * US, False)]
        found = off(waits(STOP), awake(*served()), by_server=True, wakings=ends)
        assert found == (OffTime(*STOP, BLOCKED),)


class TestQuota:
    def test_the_longest_waits_are_the_quotas(self) -> None:
        ready = [Interval(10 * MS, 11 * MS), Interval(20 * MS, 80 * MS)]
        assert by_quota(ready, [Growth(0, 100 * MS, 59 * MS)]) == 59 * MS

    def test_no_more_than_there_was(self) -> None:
        assert by_quota([Interval(10 * MS, 11 * MS)], [Growth(0, 100 * MS, 59 * MS)]) == 1 * MS

    def test_a_wait_that_was_over_before_is_none_of_it(self) -> None:
        assert by_quota([Interval(10 * MS, 50 * MS)], [Growth(100 * MS, 200 * MS, 59 * MS)]) == 0

    def test_a_wait_over_several_looks(self) -> None:
        growths = [Growth(0, 50 * MS, 20 * MS), Growth(50 * MS, 90 * MS, 30 * MS)]
        assert by_quota([Interval(5 * MS, 60 * MS)], growths) == 30 * MS


HEADER, TRAILER = struct.Struct("<IHH"), struct.Struct("<IIQQ")


def record(kind: int, time: int, misc: int = 0, body: bytes = b"") -> bytes:
    size = HEADER.size + len(body) + TRAILER.size
    return HEADER.pack(kind, misc, size) + body + TRAILER.pack(ME, ME, time, 0)


class TestRecords:
    def test_of_each_kind(self) -> None:
        data = record(14, 5, 1 << 13) + record(14, 6) + record(14, 7, 1 << 13 | 1 << 14)
        data += record(2, 8, 0, struct.pack("<QQ", 1, 3))
        data += record(7, 9, 0, struct.pack("<IIIIQ", ME, ME, 99, ME, 9)) + record(4, 10)
        assert list(perf.records(data)) == [
            Switch(5, ME, True, False),
            Switch(6, ME, False, False),
            Switch(7, ME, True, True),
            perf.Loss(8),
            perf.Born(9, ME, 99),
        ]
        assert perf.time_of_first(data) == 5

    @given(st.lists(st.integers(0, 50), max_size=20), st.integers(0, 50), st.integers(0, 50))
    def test_some_of_many(self, times: list[int], begin: int, end: int) -> None:
        data = b"".join(record(14, time, (time % 4) << 13) for time in sorted(times))
        wanted = [one for one in perf.records(data) if begin <= one.time <= end]
        assert perf.switches_between(data, begin, end) == wanted

    def test_not_where_there_are_others(self) -> None:
        assert perf.switches_between(record(14, 5) + record(2, 6, 0, bytes(16)), 0, 9) is None
        assert perf.switches_between(record(4, 5), 0, 9) is None

    def test_nothing(self) -> None:
        assert perf.time_of_first(b"") is None
        assert list(perf.records(b"")) == []

    @pytest.mark.parametrize("size", [0, 8, 24, 31, 1000])
    def test_what_is_no_record_is_a_loss(self, size: int) -> None:
        bad = HEADER.pack(14, 0, size) + bytes(40)
        assert list(perf.records(record(14, 5) + bad)) == [Switch(5, ME, False), perf.Loss(5)]

    @given(st.binary(max_size=300))
    def test_any_bytes(self, data: bytes) -> None:
        for one in perf.records(data):
            assert one.time >= 0
        perf.time_of_first(data)
