"""Who had a processor while a thread could have run, by what the kernel writes down."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest

from darc.debuggee import perf, procfs, whoran
from darc.debuggee.perf import Drained, Naming
from darc.debuggee.whoran import WhoRan

OWN, HOG, OTHER, IDLE = (100, 101), (200, 200), (300, 301), (0, 0)
MS = 1_000_000


def turn(time: int, who: tuple[int, int], before: tuple[int, int], cpu: int = 0) -> bytes:
    """``who`` gets the processor that ``before`` had: the kernel tells it twice."""
    gone = struct.pack("<IHHIIIIQQ", 15, 1 << 13, 40, *who, *before, time - 3000, cpu)
    return gone + struct.pack("<IHHIIIIQQ", 15, 0, 40, *before, *who, time, cpu)


LOST = struct.pack("<IHHQQIIQQ", 2, 0, 48, 1, 5, *HOG, 2 * MS, 0)


class Fake:
    """A ring that is given its records."""

    def __init__(self) -> None:
        self.data = b""
        self.was_full = False

    def take(self) -> Drained:
        taken = Drained(self.data, self.was_full)
        self.data, self.was_full = b"", False
        return taken

    def close(self) -> None: ...


class Machine:
    """One of two processors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turns = {0: Fake(), 1: Fake()}
        self.namings = {0: Fake(), 1: Fake()}
        self.names: dict[tuple[int, int], str] = {HOG: "hog"}
        every = {**self.turns, **{number + 10: ring for number, ring in self.namings.items()}}
        monkeypatch.setattr(perf, "processors", lambda: [0, 1])
        monkeypatch.setattr(perf, "open_takeovers", lambda processor: processor)
        monkeypatch.setattr(perf, "open_namings", lambda processor: processor + 10)
        monkeypatch.setattr(perf, "map_ring", lambda fd, pages: every[fd])
        monkeypatch.setattr(procfs, "status", self._status)
        self.watch = WhoRan(0)

    def _status(self, process: int, thread: int) -> dict[str, str]:
        name = self.names.get((process, thread))
        return {} if name is None else {"Name": name}

    def run(self, until: int, *records: bytes, cpu: int = 0) -> None:
        self.turns[cpu].data += b"".join(records)
        self.watch.drain(until)

    def before(self, begin: int, end: int) -> list[tuple[int, int, str]]:
        found = self.watch.before(OWN[1], begin, end)
        return [(one.begin, one.end, one.name or f"{one.process}/{one.thread}") for one in found]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_who_took_the_processor_and_who_had_it_after(machine: Machine) -> None:
    machine.run(9 * MS, turn(MS, HOG, OWN), turn(3 * MS, OTHER, HOG), turn(4 * MS, OWN, OTHER))
    assert machine.before(MS, 4 * MS) == [(MS, 3 * MS, "hog"), (3 * MS, 4 * MS, "300/301")]


def test_a_processor_with_nothing_to_do_has_nobody(machine: Machine) -> None:
    machine.run(9 * MS, turn(3 * MS, IDLE, HOG), turn(4 * MS, OWN, IDLE))
    assert machine.before(MS, 4 * MS) == [(MS, 3 * MS, "hog")]


def test_the_times_of_the_threads_own_record_differ_a_little(machine: Machine) -> None:
    machine.run(9 * MS, turn(MS, HOG, OWN), turn(4 * MS, OWN, HOG))
    ((begin, end, name),) = machine.before(MS + 1500, 4 * MS - 1500)
    assert (begin, name) == (MS + 1500, "hog")
    assert abs(end - 4 * MS) <= 1500


def test_it_is_the_processor_that_the_thread_comes_to(machine: Machine) -> None:
    machine.turns[1].data = turn(2 * MS, OTHER, IDLE, 1)
    machine.run(9 * MS, turn(MS, HOG, IDLE), turn(4 * MS, OWN, HOG))
    assert machine.before(MS, 4 * MS) == [(MS, 4 * MS, "hog")]


def test_a_time_may_reach_over_several_looks(machine: Machine) -> None:
    machine.run(2 * MS, turn(MS, HOG, OWN))
    machine.run(3 * MS)
    machine.run(9 * MS, turn(4 * MS, OWN, HOG))
    assert machine.before(MS, 4 * MS) == [(MS, 4 * MS, "hog")]


@pytest.mark.parametrize("is_full", [False, True])
def test_where_there_was_no_room_nobody_is_named(machine: Machine, is_full: bool) -> None:
    machine.turns[0].was_full = is_full
    machine.run(2 * MS, turn(MS, HOG, OWN), b"" if is_full else LOST)
    machine.run(9 * MS, turn(4 * MS, OWN, HOG))
    assert machine.before(MS, 4 * MS) == []
    assert machine.before(3 * MS, 4 * MS) == [(3 * MS, 4 * MS, "hog")]


def test_nor_before_it_was_watched(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    monkeypatch.setattr(whoran, "_KEPT_BYTES", 250)
    machine.run(2 * MS, turn(MS, HOG, OWN))
    machine.run(9 * MS, turn(4 * MS, OWN, HOG), turn(5 * MS, HOG, OWN))
    machine.run(10 * MS, turn(9 * MS + 1, OWN, HOG))
    assert machine.before(MS, 4 * MS) == []
    assert machine.before(5 * MS, 9 * MS + 1) == [(5 * MS, 9 * MS + 1, "hog")]


def test_a_thread_that_did_not_come_back_waits_for_nobody_known(machine: Machine) -> None:
    machine.run(9 * MS, turn(MS, HOG, OWN))
    assert machine.before(MS, 9 * MS) == []


def naming(naming_: Naming) -> bytes:
    trailer = struct.pack("<IIQQ", 1, 1, MS, 0)
    if naming_.made_by is not None:
        made = (naming_.process, naming_.made_by[0], naming_.thread, naming_.made_by[1])
        return struct.pack("<IHHIIIIQ", 7, 0, 56, *made, MS) + trailer
    name = naming_.name.encode().ljust(16, b"\0")
    return struct.pack("<IHHII16s", 3, 0, 56, naming_.process, naming_.thread, name) + trailer


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ([Naming(*OTHER, "cc1")], "cc1"),
        ([Naming(*OTHER, made_by=HOG)], "hog"),
        ([Naming(*OTHER, made_by=HOG), Naming(*OTHER, "ld")], "ld"),
    ],
)
def test_who_has_ended_by_now_has_the_name_that_was_told(
    machine: Machine, told: Iterable[Naming], name: str
) -> None:
    machine.namings[1].data = b"".join(map(naming, told))
    machine.run(9 * MS, turn(MS, OTHER, OWN), turn(4 * MS, OWN, OTHER))
    assert machine.before(MS, 4 * MS) == [(MS, 4 * MS, name)]


def test_not_all_names_of_all_times_are_kept(
    monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    monkeypatch.setattr(whoran, "_MOST_NAMED", 3)
    machine.namings[0].data = b"".join(naming(Naming(n, n, f"p{n}")) for n in range(1, 9))
    machine.run(9 * MS, turn(MS, (8, 8), OWN), turn(2 * MS, (1, 1), (8, 8)))
    machine.run(10 * MS, turn(10 * MS - 1, OWN, (1, 1)))
    assert [name for *_, name in machine.before(MS, 10 * MS - 1)] == ["p8", "1/1"]
