"""What ``/proc`` tells of a process whose first thread has ended before the others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.debuggee import procfs
from darc.debuggee.wordscan import own_pages
from darc.model.errors import TargetError
from darc.target import living
from fixtures.build import build_leader, build_successors
from tests.kills.programs import running
from tests.waiting import wait_until


@pytest.fixture
def pid() -> Iterator[int]:
    with subprocess.Popen([build_leader(), "0"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert process.stdout.readline() == b"ended\n"
        yield process.pid
        process.kill()


def test_another_thread_speaks_for_the_process(pid: int) -> None:
    assert living.state(pid, pid) == "Z"
    assert pid not in living.threads(pid)
    assert living.speaker(pid) in living.threads(pid)


def test_the_process_is_read_as_before(pid: int) -> None:
    code = next(r for r in procfs.regions(pid) if "x" in r.permissions)
    with procfs.MemoryFile(pid) as memory:
        assert memory.read(code.start, 16)
    assert not procfs.is_gone(pid)
    assert procfs.is_let_go(pid)
    assert procfs.file(pid) == str(build_leader().resolve())
    assert procfs.entry(pid)
    # The threads that live may be mapping something meanwhile.
    wait_until(lambda: procfs.mapping_count(pid) == len(procfs.regions(pid)))
    assert "VmSize" in procfs.status(pid)
    stack = next(r for r in procfs.regions(pid) if r.path == "[stack]")
    assert list(own_pages(pid, [range(stack.start, stack.end)]))


def test_a_process_whose_threads_end_one_after_the_other() -> None:
    """It lives all the time, and whatever is read of it is there."""
    with subprocess.Popen([build_successors()], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            wait_until(lambda: living.state(process.pid, process.pid) == "Z")
            for _ in range(1000):
                assert_can_be_read(process.pid)
        finally:
            process.kill()
            process.wait()
        assert procfs.is_gone(process.pid)


def assert_can_be_read(pid: int) -> None:
    own = str(build_successors().resolve())
    assert not procfs.is_gone(pid)
    assert procfs.is_let_go(pid)
    assert procfs.file(pid) == own
    assert procfs.entry(pid)
    (start,) = {one.start for one in procfs.regions(pid) if one.path == own and not one.offset}
    with procfs.MemoryFile(pid) as memory:
        assert memory.read(start, 4) == b"\x7fELF"


def test_a_process_that_is_about_to_be_gone() -> None:
    """The kernel takes a while to give back its memory: it has ended as soon as none is there."""
    filling = "import sys; held = bytearray(b'x') * (1 << 28); print(id(held), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", filling], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        address = int(process.stdout.readline())
        with procfs.MemoryFile(process.pid) as memory:
            memory.read(address, 8)
            process.kill()
            with pytest.raises(TargetError, match="the process has ended, or is another program"):
                read_on(memory, address)
            assert procfs.is_gone(process.pid)


def read_on(memory: procfs.MemoryFile, address: int) -> None:
    while True:
        memory.read(address, 8)


def test_a_process_speaks_for_itself() -> None:
    own = os.getpid()
    assert living.speaker(own) == own
    assert own in living.threads(own)


def test_threads_of_the_kernels_own_are_not_the_programs(tmp_path: Path) -> None:
    """What io_uring has made in the process runs no code of the program's."""
    with running("uring", tmp_path) as program:
        (made,) = set(living.tasks(program.pid)) - {program.pid}
        assert living.is_kernels(program.pid, made)
        assert living.threads(program.pid) == [program.pid]
        assert procfs.own_ids(program.pid) == {program.pid}
        program.finish()
