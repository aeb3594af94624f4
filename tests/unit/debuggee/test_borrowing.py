"""The program's code that is borrowed for a system call, and what memory is asked for with."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterable

import pytest

from darc.code.processor import system_call_function
from darc.code.system_calls import SystemCall
from darc.debuggee import limits
from darc.debuggee.borrowing import borrowed
from darc.debuggee.mapflags import CODE, DATA, Access, MapFlag, mmap_arguments
from darc.model.errors import TargetError
from darc.target.target import Journal, Place
from tests.fake_target import FakeTarget

PLACE = 0x40_1000
OWN = bytes(range(1, 65))
FUNCTION = system_call_function(SystemCall.ARCH_PRCTL)


class Noting(Journal):
    """Notes what stood in the program at that moment."""

    def __init__(self, target: FakeTarget) -> None:
        self.target = target
        self.seen: list[tuple[Place, bytes]] = []

    def patches(self, places: Iterable[Place]) -> None:
        read = self.target.memory.read
        self.seen += [(place, read(place.address, len(place.original))) for place in places]


class Refusing(Journal):
    """Has no room."""

    def patches(self, places: Iterable[Place]) -> None:
        raise TargetError("the disk is full")


@pytest.fixture
def target() -> FakeTarget:
    made = FakeTarget()
    made.map(PLACE, OWN)
    return made


def test_what_stood_there_is_noted_before_and_stands_there_again(target: FakeTarget) -> None:
    journal, own = Noting(target), OWN[: len(FUNCTION)]
    with borrowed(target.memory, journal, PLACE, SystemCall.ARCH_PRCTL) as function:
        assert function == PLACE
        assert target.memory.read(PLACE, len(FUNCTION)) == FUNCTION
    assert journal.seen == [(Place(PLACE, own, FUNCTION), own)]
    assert target.memory.read(PLACE, len(OWN)) == OWN


def test_it_is_given_back_where_the_call_fails(target: FakeTarget) -> None:
    def fails() -> None:
        with borrowed(target.memory, Journal(), PLACE, SystemCall.ARCH_PRCTL):
            raise TargetError("it did not come back")

    with pytest.raises(TargetError, match="come back"):
        fails()
    assert target.memory.read(PLACE, len(OWN)) == OWN


def test_nothing_is_written_that_could_not_be_noted(target: FakeTarget) -> None:
    def fails() -> None:
        with borrowed(target.memory, Refusing(), PLACE, SystemCall.ARCH_PRCTL):
            pytest.fail("nobody may call it")

    with pytest.raises(TargetError, match="disk"):
        fails()
    assert target.memory.read(PLACE, len(OWN)) == OWN


def test_memory_is_asked_for_as_the_c_library_does() -> None:
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    data = mmap.PROT_READ | mmap.PROT_WRITE
    assert mmap_arguments(4096) == (0, 4096, data, kind, (1 << 64) - 1, 0)
    assert (mmap.PROT_READ | mmap.PROT_EXEC, data) == (CODE, DATA)
    there = mmap_arguments(8192, Access.NONE, MapFlag.NORESERVE, place=PLACE)
    assert there == (PLACE, 8192, 0, kind | 0x4000, (1 << 64) - 1, 0)


def test_what_the_kernel_refuses_memory_with_has_a_cause() -> None:
    assert "mlockall" in limits.refused(errno.EAGAIN)
    assert "at a limit of its memory" in limits.refused(errno.ENOMEM)
    assert limits.refused(errno.EPERM) == "the program may not map memory (error 1)"
