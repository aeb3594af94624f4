"""Processes that share another one's memory are held, as the kernel tells of them, and let go."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.debuggee import procfs
from darc.debuggee.companions import Sharers, StillCompanions
from darc.target import living
from fixtures.build import build, build_leader
from tests.debugger import Server, server
from tests.waiting import wait_until


@pytest.fixture
def running() -> Iterator[Server]:
    with server(build("companions")) as made:
        yield made


def test_they_stand_still_as_long_as_they_are_held(running: Server) -> None:
    beside = procfs.children(running.pid)
    assert sorted(Sharers(running.pid).look()) == sorted(beside)
    companions = StillCompanions(running.pid)
    with companions:
        before = companions.program_counters(), companions.stack_pointers()
        assert set(before[0]) == set(before[1]) == set(beside)
        with companions:
            assert [living.state(one, one) for one in beside] == ["t", "t"]
        assert [living.state(one, one) for one in beside] == ["t", "t"]
        running.operations()  # the program itself is its debugger's to stop
        assert (companions.program_counters(), companions.stack_pointers()) == before
    assert [procfs.tracer(one) for one in beside] == [0, 0]
    assert running.finish() == 0


def test_one_that_its_user_has_stopped_stays_so(running: Server) -> None:
    beside = procfs.children(running.pid)[0]
    os.kill(beside, signal.SIGSTOP)
    while living.state(beside, beside) != "T":
        os.sched_yield()
    with StillCompanions(running.pid) as companions:
        assert beside in companions.program_counters()
    wait_until(lambda: living.state(beside, beside) == "T")  # it wakes to stop again
    os.kill(beside, signal.SIGCONT)
    assert running.finish() == 0


def test_a_program_without_any() -> None:
    """Not a child of fork, either, which has a memory of its own."""
    with subprocess.Popen(["sleep", "1000"]) as child:
        try:
            with StillCompanions(os.getpid()) as companions:
                assert not companions.program_counters()
        finally:
            child.kill()


@pytest.mark.parametrize("told", [None, "near", "far", "wrapped"])
def test_those_that_are_made_later_are_found(
    running: Server, tmp_path: Path, told: str | None
) -> None:
    """By their numbers alone, where the kernel has given few since; whatever it tells, all are."""
    beside = procfs.children(running.pid)
    made = {"near": beside[0] - 1, "far": 1, "wrapped": beside[-1] + 1}
    if told is not None:
        (tmp_path / "ns_last_pid").write_text(str(made[told]))
        (tmp_path / "pid_max").write_text("4194304")
    sharers = Sharers(running.pid, tmp_path)
    sharers.look()
    sharers.is_complete()
    vars(sharers)["_found"] = frozenset()  # as if they had not been there yet
    (tmp_path / "ns_last_pid").write_text(str(beside[-1]))
    assert sorted(sharers.look()) == sorted(beside)
    assert sorted(sharers.look()) == sorted(beside)
    assert running.finish() == 0


def test_a_first_thread_that_has_ended_shares_nothing_with_the_kernel() -> None:
    """Neither has a memory; another thread of the program has."""
    with server(build_leader()) as running:
        wait_until(lambda: living.state(running.pid, running.pid) in living.ENDED)
        assert Sharers(running.pid).look() == frozenset()
