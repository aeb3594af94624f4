"""When threads were off their processors, against what the system tells the threads themselves.

The program (``fixtures/offcpu/oracle.c``) looks at its own clocks and counters before and after
each thing that it does. What is compared is of the same run, so that it holds on any machine; one
that is busy may hold up one of two looks at the clocks, and the test is run again.
"""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pytest

from darc.debuggee import clock, leavings, perf, perf_stacks, procfs, switch_rings, switches, wakers
from darc.debuggee.eventends import end, wait_for_ends
from darc.debuggee.firstevents import FirstEvents
from darc.debuggee.switches import ClockPairs, Switches
from darc.model.offtimes import OffTimes
from darc.model.ops import OffReason
from fixtures.build import build_oracle
from tests.permission import needs_permission

pytestmark = pytest.mark.timeout(120)

A_SWITCH = 60
"""µs that two accounts of one wait may differ by, as the kernel reads its clocks at other moments
on its way from one thread to the next: 7 to 15 on an idle machine, up to 28 seen on a busy one."""


@dataclass(frozen=True)
class Told:
    """What the system told a thread of one thing that it did; times in µs."""

    thread: int
    start: int
    end: int
    ran: float
    queued: float
    switches: int

    @property
    def off(self) -> float:
        return micros(self.end - self.start) - self.ran

    @staticmethod
    def of(line: str) -> Told:
        thread, start, end, ran, queued, count = map(int, line.split())
        return Told(
            thread=thread, start=start, end=end, ran=ran / 1e3, queued=queued / 1e3, switches=count
        )


def may_ask_who_wakes() -> bool:
    """Whether the kernel tells this process who wakes threads."""
    try:
        end(wakers.open_first(os.getpid()))
    except OSError:
        return False
    return True


def may_ask_for_stacks(pid: int) -> bool:
    """Whether the kernel tells this process where that one leaves its processor."""
    try:
        os.close(perf_stacks.open_leavings(pid, perf.processors()[0], 512))
    except PermissionError:
        return False
    return True


def micros(cycles: int) -> float:
    return cycles * 1e6 / clock.tsc_hz()


class Oracle:
    """The program, which waits for its order to begin."""

    def __init__(self, mode: str, count: int) -> None:
        self.process = subprocess.Popen(
            [build_oracle(), mode, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid

    def run(self) -> list[Told]:
        """All that it does; it is there still, then."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found = []
        for line in self.process.stdout:
            if line == "done\n":
                break
            found.append(Told.of(line))
        return found


@contextmanager
def oracle(mode: str, count: int) -> Iterator[Oracle]:
    made = Oracle(mode, count)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


@contextmanager
def drained(watch: Switches) -> Iterator[None]:
    """As the monitor thread does it."""
    done = threading.Event()

    def drain() -> None:
        while not done.wait(0.05):
            watch.drain()

    thread = threading.Thread(target=drain)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def seen(watch: Switches, told: list[Told]) -> list[OffTimes]:
    found = watch.off([(one.thread, one.start, one.end) for one in told])
    assert None not in found
    return [times for times in found if times is not None]


def time(times: OffTimes, *reasons: OffReason) -> float:
    """µs for one of these reasons."""
    return micros(sum(off.end - off.start for off in times.off if off.reason in reasons))


def watch_it(mode: str, count: int = 40) -> tuple[list[Told], list[OffTimes]]:
    with oracle(mode, count) as program, Switches(program.pid) as watch:
        with drained(watch):
            told = program.run()
        assert watch.missed == 0
        return told, seen(watch, told)


def agree(told: list[Told], mine: list[float], theirs: list[float]) -> bool:
    """Whether two accounts of the same things do. A virtual machine that is held up between the
    kernel's two looks at its clocks spoils one or the other of them, but no more."""
    good = [
        abs(a - b) <= 0.01 * b + A_SWITCH * max(1, one.switches)
        for one, a, b in zip(told, mine, theirs, strict=True)
    ]
    return 4 * sum(good) >= 3 * len(told) > 0


def offs(found: list[OffTimes], *reasons: OffReason) -> list[float]:
    return [time(one, *(reasons or OffReason)) for one in found]


@needs_permission
class TestAgainstTheSystemsOwnAccount:
    @pytest.mark.parametrize(
        "mode",
        ["sleep", "busy", "beside", "signals", "yield", "fork", "vfork", "clone", "crowd", "disk"],
    )
    def test_time_off_the_processor(self, mode: str) -> None:
        told, times = watch_it(mode, 20)
        found = times
        assert agree(told, offs(found), [one.off for one in told]), found
        assert not any(offs(found, OffReason.UNKNOWN))

    def test_every_switch_is_seen(self) -> None:
        told, times = watch_it("yield", 20)
        assert sum(one.switches for one in told) == sum(len(found.off) for found in times) > 0

    def test_beside_another_program_it_was_ready(self) -> None:
        """And as long as the system says it had waited for its processor."""
        told, times = watch_it("beside")
        assert sum(one.queued for one in told) > 0
        assert agree(told, offs(times, OffReason.READY), [one.queued for one in told]), times
        assert {off.reason for found in times for off in found.off} == {OffReason.READY}

    def test_asleep_it_was_blocked(self) -> None:
        for one, found in zip(*watch_it("sleep"), strict=True):
            reasons = {off.reason for off in found.off}
            assert OffReason.BLOCKED in reasons
            assert reasons <= {OffReason.BLOCKED, OffReason.READY}
            assert time(found, OffReason.BLOCKED) > time(found, OffReason.READY)
            assert micros(one.end - one.start) >= time(found, OffReason.BLOCKED) >= 2000

    def test_that_it_slept_already_is_known_from_where_it_ran(self) -> None:
        with oracle("sleep", 20) as program, Switches(program.pid) as watch:
            watch.watch_places()
            with drained(watch):
                told = program.run()
            for one, whole in zip(told, seen(watch, told), strict=True):
                longest = max(whole.off, key=lambda off: off.end - off.start)
                since = longest.end - (longest.end - longest.start) // 20
                (known,) = watch.off([(one.thread, since, one.end)])
                assert known is not None
                assert known.off[0].reason is OffReason.UNKNOWN, "the sample"
                asked = watch.slept(one.thread, since, one.end)
                assert asked is not None
                assert asked.off[0].start == since
                late = tuple(replace(off, ran=()) for off in whole.off if off.start > since)
                bare = tuple(replace(off, stack=None) for off in asked.off)
                assert bare == (replace(longest, start=since, ran=()), *late)
                assert (asked.off[0].stack is not None) == may_ask_for_stacks(program.pid)

    @pytest.mark.parametrize("mode", ["fork", "vfork", "clone"])
    def test_waiting_for_a_child_it_was_blocked(self, mode: str) -> None:
        for one, found in zip(*watch_it(mode, 10), strict=True):
            assert time(found, OffReason.BLOCKED) >= 1000, (one, found)

    def test_no_debugger_is_there_so_nothing_is_stopped_or_doubtful(self) -> None:
        for _one, found in zip(*watch_it("signals"), strict=True):
            assert time(found, OffReason.STOPPED) == 0
            assert found.doubtful == 0


@needs_permission
class TestThreads:
    COUNT = 10_000

    def test_the_shortest_lived_are_watched(self) -> None:
        """Nothing is locked in the program, and this process has no more descriptors and mappings
        for ten thousand threads than for one."""
        with oracle("storm", self.COUNT) as program, Switches(program.pid) as watch:
            before = descriptors(), procfs.mapping_count(os.getpid())
            with drained(watch):
                told = program.run()
            assert len({one.thread for one in told}) > 1000
            assert len(told) == self.COUNT
            assert watch.missed == 0
            after = descriptors(), procfs.mapping_count(os.getpid())
            assert after[0] == before[0]
            assert after[1] <= before[1] + 20  # of Python's own
            status = procfs.status(program.pid)
            assert status["VmLck"].split()[0] == status["VmPin"].split()[0] == "0"
            some = told[:: self.COUNT // 100]
            found = seen(watch, some)
            assert agree(some, offs(found), [one.off for one in some]), found

    def test_where_events_for_all_processors_are_too_many_each_has_one(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(switch_rings, "_MOST_EVENTS", 20)
        monkeypatch.setattr(perf, "processors", lambda: list(range(100)))
        with oracle("sleep", 20) as program, Switches(program.pid) as watch:
            assert events() <= 2
            with drained(watch):
                told = program.run()
            found = seen(watch, told)
            assert agree(told, offs(found), [one.off for one in told]), found

    def test_then_those_that_come_and_go_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(switch_rings, "_MOST_EVENTS", 20)
        monkeypatch.setattr(perf, "processors", lambda: list(range(100)))
        with oracle("storm", 500) as program, Switches(program.pid) as watch:
            before = descriptors()
            with drained(watch):
                told = program.run()
            watch.drain()
            found = watch.off([(one.thread, one.start, one.end) for one in told])
            unknown = sum(1 for times in found if times is None)
            assert watch.missed > 0
            assert unknown > 0
            assert events() <= 20
            assert descriptors() <= before + 20


def events() -> int:
    """The kernel's that this process has open."""
    wait_for_ends()
    links = [one.readlink() for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    return sum(1 for link in links if str(link) == "anon_inode:[perf_event]")


def descriptors() -> int:
    wait_for_ends()
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class Slept(NamedTuple):
    """One that the oracle tells."""

    asked: OffTimes | None

    @property
    def has_place(self) -> bool:
        return self.asked is not None and any(off.stack is not None for off in self.asked.off)


def slept(watch: Switches, told: list[Told]) -> list[Slept]:
    watch.off([(one.thread, one.start, one.end) for one in told])
    return [Slept(watch.slept(one.thread, one.start, one.end)) for one in told]


@needs_permission
class TestFirstEvents:
    """What takes the kernel long is done beside, and undone."""

    def test_events_of_each_kind_are_there_until_the_end(self) -> None:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        before = events()
        first = FirstEvents()
        first.wait()
        kinds = 1 + may_ask_who_wakes()
        assert events() == before + kinds
        first.close()
        first.close()
        assert (events(), resource.getrlimit(resource.RLIMIT_NOFILE)) == (before, limit)

    def test_the_limit_of_descriptors_stays_also_where_two_threads_have_raised_it(self) -> None:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        inside, other_began = threading.Event(), threading.Event()

        def raise_it() -> None:
            other_began.set()
            with switch_rings.room_for_descriptors():
                inside.set()

        with switch_rings.room_for_descriptors():
            other = threading.Thread(target=raise_it)
            other.start()
            other_began.wait()
            assert not inside.is_set()
        other.join()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == limit


@needs_permission
@pytest.mark.skipif(
    not may_ask_for_stacks(os.getpid()), reason="where threads sleep is told to the privileged"
)
class TestPlaces:
    """In which calls threads leave their processors."""

    def test_they_are_watched_where_that_is_asked_for_alone(self) -> None:
        with oracle("sleep", 10) as program, Switches(program.pid) as watch:
            before = events()
            with drained(watch):
                told = program.run()
            assert not any(one.has_place for one in slept(watch, told))
            assert (events(), watch.why_no_places) == (before, None)
        with oracle("sleep", 10) as program, Switches(program.pid) as watch:
            before = events()
            for _ in range(2):
                watch.watch_places()
                assert events() == before + len(perf.processors())
            with drained(watch):
                told = program.run()
            assert all(one.has_place for one in slept(watch, told))
            assert watch.why_no_places is None
            watch.close()
            assert events() == 0

    def test_they_are_given_up_where_threads_leave_too_often(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A record costs half as much as a switch. Here more than ten a second are too many."""
        monkeypatch.setattr(leavings, "_TOO_OFTEN", 10)
        with oracle("sleep", 300) as program, Switches(program.pid) as watch:
            before = events()
            watch.watch_places()
            with drained(watch):
                told = program.run()
            assert watch.why_no_places == leavings.TOO_OFTEN
            assert events() == before
            known = [one.has_place for one in slept(watch, told)]
        assert known[0]
        assert not any(known[250:])

    def test_threads_that_come_and_go_take_nothing_more(self) -> None:
        with oracle("storm", 500) as program, Switches(program.pid) as watch:
            watch.watch_places()
            before = events()
            with drained(watch):
                told = program.run()
            assert len(told) == 500
            assert events() == before

    @pytest.mark.parametrize(
        ("number", "word"), [(errno.ENOMEM, "ulimit -l"), (errno.EMFILE, "ulimit -n")]
    )
    def test_they_are_given_up_where_there_is_no_room(
        self, monkeypatch: pytest.MonkeyPatch, number: int, word: str
    ) -> None:
        """All else is told as without them."""
        with oracle("sleep", 10) as program, Switches(program.pid) as watch:
            before = descriptors()

            def refuse(fd: int, most: int) -> perf.Ring:
                os.close(fd)
                raise OSError(number, os.strerror(number))

            monkeypatch.setattr(perf, "map_ring", refuse)
            watch.watch_places()
            assert word in (watch.why_no_places or "")
            assert descriptors() == before
            with drained(watch):
                told = program.run()
            assert not any(one.has_place for one in slept(watch, told))
            found = seen(watch, told)
            assert agree(told, offs(found), [one.off for one in told]), found

    def test_they_leave_the_debugger_half_of_its_descriptors(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with oracle("sleep", 1) as program, Switches(program.pid) as watch:
            before, left = descriptors(), 2 * len(perf.processors()) - 1
            monkeypatch.setattr(leavings, "_descriptors_left", lambda: left)
            watch.watch_places()
            assert "ulimit -n" in (watch.why_no_places or "")
            assert descriptors() == before

    def test_not_of_more_threads_than_are_followed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Those have rings of their own, and later ones are to have them, too."""
        monkeypatch.setattr(switch_rings, "_MOST_EVENTS", 20)
        monkeypatch.setattr(perf, "processors", lambda: list(range(100)))
        with oracle("sleep", 1) as program, Switches(program.pid) as watch:
            before = events()
            watch.watch_places()
            assert watch.why_no_places == leavings.TOO_MANY
            assert events() == before

    def test_what_is_kept_of_them_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(leavings, "_KEPT_BYTES", 40_000)
        with oracle("sleep", 200) as program, Switches(program.pid) as watch:
            watch.watch_places()
            with drained(watch):
                told = program.run()
            first, *_, last = slept(watch, told)
            assert (first.has_place, last.has_place) == (False, True)

    def test_to_read_what_is_kept_takes_little_more(self) -> None:
        with oracle("sleep", 50) as program:
            fds = [
                perf_stacks.open_leavings(program.pid, processor, 512)
                for processor in perf.processors()
            ]
            rings = [perf.map_ring(fd, 128) for fd in fds]
            program.run()
            taken = [ring.take().data for ring in rings]
            for ring in rings:
                ring.close()
        read = [one for data in taken for one in perf_stacks.leavings(data).values()]
        index = sum(len(part) * part.itemsize for one in read for part in one)
        assert 0 < 20 * index < sum(map(len, taken))


@needs_permission
class TestOwner:
    def test_everything_is_given_back(self) -> None:
        before = descriptors(), procfs.mapping_count(os.getpid())
        for _ in range(5):
            with oracle("sleep", 1) as program, Switches(program.pid) as watch:
                watch.drain()
        assert (descriptors(), procfs.mapping_count(os.getpid())) <= (before[0], before[1] + 5)

    def test_closed_twice_and_asked_later(self) -> None:
        with oracle("sleep", 3) as program, Switches(program.pid) as watch:
            told = program.run()
            watch.drain()
            watch.close()
            watch.close()
            watch.drain()
            assert all(time(found, OffReason.BLOCKED) >= 2000 for found in seen(watch, told))

    def test_of_a_program_that_has_ended(self) -> None:
        with oracle("sleep", 3) as program, Switches(program.pid) as watch:
            told = program.run()
            program.process.kill()
            program.process.wait()
            assert all(time(found, OffReason.BLOCKED) >= 2000 for found in seen(watch, told))

    def test_before_it_began_nothing_is_known(self) -> None:
        with oracle("sleep", 3) as program:
            told = program.run()
            with Switches(program.pid) as watch:
                for one, found in zip(told, seen(watch, told), strict=True):
                    unknown = time(found, OffReason.UNKNOWN)
                    assert unknown == pytest.approx(micros(one.end - one.start))

    def test_records_without_room_are_unknown_and_never_computing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The smallest ring, and nobody empties it: more than one of each processor holds."""
        monkeypatch.setattr(switch_rings, "_RING_PAGES", 1)
        count = 100 * (os.cpu_count() or 1)
        with oracle("sleep", count) as program, Switches(program.pid) as watch:
            told = program.run()
            found = seen(watch, told)
        assert any(time(one, OffReason.UNKNOWN) for one in found)
        told_of = [
            time(times, *OffReason) >= 0.99 * one.off - A_SWITCH * one.switches
            for one, times in zip(told, found, strict=True)
        ]
        assert 4 * sum(told_of) >= 3 * len(told_of) > 0

    def test_what_is_forgotten_is_unknown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(switch_rings, "_KEPT_BYTES", 4096)
        with oracle("sleep", 200) as program, Switches(program.pid) as watch:
            with drained(watch):
                told = program.run()
            first, *_, last = seen(watch, told)
            assert time(first, OffReason.UNKNOWN) == pytest.approx(
                micros(told[0].end - told[0].start), rel=0.01
            )
            assert time(last, OffReason.UNKNOWN) <= time(first, OffReason.UNKNOWN)


class TestRefused:
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
    def test_another_users_program(self) -> None:
        """Really refused by the kernel."""
        with oracle("sleep", 1) as program:
            script = (
                "import os, sys\n"
                "from darc.debuggee.switches import Switches\n"
                "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
                "try: Switches(int(sys.argv[1]))\n"
                "except Exception as error: print(error)\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", script, str(program.pid)],
                capture_output=True,
                text=True,
                check=False,
                env={
                    "PATH": "/usr/bin:/bin",
                    "PYTHONPATH": str(Path(switches.__file__).parents[2]),
                },
            )
            assert done.stdout.startswith("cannot tell running from waiting: "), done.stderr
            assert done.stdout.count("\n") == 1


class TestClocks:
    def test_both_ways(self) -> None:
        pairs = ClockPairs(clock.tsc_hz())
        pairs.read()
        for _ in range(10_000):
            pairs.read()
        for _ in range(100):
            before = clock.tsc_now()
            now = clock.raw_now()
            after = clock.tsc_now()
            assert abs(pairs.to_cycles(pairs.to_ns(before)) - before) < clock.tsc_hz() * 1e-6
            slack = clock.tsc_hz() * 2e-6
            assert before - slack <= pairs.to_cycles(now) <= after + slack
