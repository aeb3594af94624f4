"""Code that is put back by ``/proc`` beside a debugger that cannot let a program go: a process that
stands still gets what is noted of it, and no more."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.debuggee import beside, journal, procfs
from darc.debuggee.journal import ProcessJournal
from darc.model.ftree import CallKind
from darc.pads.processor import patch_bytes
from darc.target.target import Passage, Place, Region
from tests.code import altered_code

INT3 = b"\xcc"
CLOCK_NANOSLEEP = "230"


class Standing:
    """A process that is stopped in a wait, and what a debugger has noted of it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.noted = ProcessJournal(pid, required=True)
        self.noted.open()
        self.code = next(self._code())

    def _code(self) -> Iterator[Region]:
        for region in procfs.regions(self.pid):
            if "x" in region.permissions and region.path.endswith("libc.so.6"):
                yield region

    @property
    def pc(self) -> int:
        return int(Path(f"/proc/{self.pid}/syscall").read_text().split()[-1], 16)

    def read(self, address: int, size: int) -> bytes:
        with procfs.MemoryFile(self.pid) as memory:
            return memory.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        with procfs.MemoryFile(self.pid) as memory:
            memory.write(address, data)

    def patch(self, address: int, written: bytes, original: bytes | None = None) -> Place:
        """As darc does it: noted with what the program has there, then written."""
        place = Place(address, original or self.read(address, len(written)), written)
        self.noted.patches([place])
        self.write(address, written)
        return place

    def altered(self) -> list[str]:
        compared, _, altered = altered_code(self.pid)
        assert compared > 0
        return altered


@pytest.fixture
def standing() -> Iterator[Standing]:
    child = subprocess.Popen(["sleep", "1000"])
    try:
        while not _waits(child.pid):
            os.sched_yield()
        os.kill(child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        made = Standing(child.pid)
        yield made
        made.noted.close(lambda place: False)
    finally:
        child.kill()
        child.wait()


def _waits(pid: int) -> bool:
    return Path(f"/proc/{pid}/syscall").read_text().split()[0] == CLOCK_NANOSLEEP


def jump(source: int, target: int) -> bytes:
    return b"\xe9" + (target - source - 5).to_bytes(4, "little", signed=True)


def test_what_is_noted_and_the_debuggers_breakpoints_are_put_back(standing: Standing) -> None:
    base = standing.code.start + 0x1000
    standing.patch(base, jump(base, base + 0x400))
    standing.patch(base + 0x40, INT3)
    standing.write(base + 0x80, INT3)  # the debugger's own, which nobody notes
    assert standing.altered()
    assert beside.is_noted(standing.pid)
    assert beside.put_back(standing.pid)
    assert standing.altered() == []


def test_a_place_that_was_patched_twice_gets_its_first_bytes(standing: Standing) -> None:
    base = standing.code.start + 0x1000
    first = standing.patch(base, jump(base, base + 0x400))
    standing.patch(base, jump(base, base + 0x800), first.original)
    assert beside.put_back(standing.pid)
    assert standing.altered() == []


def test_what_the_program_has_written_over_is_left(standing: Standing) -> None:
    base = standing.code.start + 0x1000
    standing.patch(base, jump(base, base + 0x400))
    own = b"\x90" * 5
    standing.write(base, own)
    assert beside.put_back(standing.pid)
    assert standing.read(base, 5) == own


@pytest.mark.parametrize("where", ["within a patch", "where a patch leads"])
def test_nothing_is_written_while_a_thread_is_in_what_was_changed(
    standing: Standing, where: str
) -> None:
    pc, base = standing.pc, standing.code.start + 0x1000
    if where == "within a patch":
        standing.patch(pc - 2, jump(pc - 2, base))
    else:
        standing.patch(base, jump(base, pc))
    before = standing.altered()
    assert not beside.put_back(standing.pid)
    assert standing.altered() == before


def test_a_longer_call_leads_to_its_pad_as_well(standing: Standing) -> None:
    """It begins with prefixes that mean nothing, so that it is as long as what stood there."""
    pc, base = standing.pc, standing.code.start + 0x1000
    standing.patch(base, patch_bytes(CallKind.INDIRECT, base, 7, pc))
    before = standing.altered()
    assert not beside.put_back(standing.pid)
    assert standing.altered() == before


def test_nothing_is_written_while_code_is_borrowed(standing: Standing) -> None:
    base = standing.code.start + 0x1000
    place = standing.patch(base, jump(base, base + 0x400))
    standing.noted.borrows(
        Passage(place=place, thread=standing.pid, leave=base, registers={}, mask=None)
    )
    assert not beside.put_back(standing.pid)
    assert standing.read(base, 5) == place.written
    standing.noted.gives_back()


def test_of_a_process_of_which_nothing_is_noted(standing: Standing) -> None:
    standing.noted.close(lambda place: False)
    assert not beside.is_noted(standing.pid)
    assert not beside.put_back(standing.pid)
    assert journal.left(standing.pid) is None
