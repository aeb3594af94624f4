"""What a killed debugger's journal says is mapped, in this process, where a thread may need it."""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from darc.code.program import Program
from darc.debuggee.leftbehind import give_back_noted, left_behind
from darc.debuggee.procfs import MemoryFile, regions
from darc.pads.foothold import MARK
from darc.target.target import Region
from tests.fake_target import FakeTarget, FakeThread


class Watched(FakeTarget):
    """A process that would unmap memory for darc."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.process = pid
        self.unmapped: list[Sequence[int]] = []
        self.fake_threads[1] = FakeThread(1)

    def system_call(self, number: int, arguments: Sequence[int]) -> int:
        self.unmapped.append(arguments)
        return 0


PLACE = 0x3A5B_2C4D_0000
"""Where nothing ever was in a process: of what was where the kernel would put an area, words may be
left that lead there still."""

CHILD = f"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv)
{{
    int private = MAP_PRIVATE | MAP_ANONYMOUS;
    char *area = mmap((void *){PLACE}, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, private, -1, 0);
    uint64_t *stack = mmap(0, 4096, PROT_READ | PROT_WRITE, private, -1, 0);
    if (argc < 2 || area != (char *){PLACE} || stack == MAP_FAILED)
        return 1;
    uint64_t mark = {int.from_bytes(MARK, "little")}ull;
    memcpy(area, &mark, sizeof mark);
    *stack = (uint64_t)area + atoi(argv[1]);
    if (write(1, "\\n", 1) != 1)
        return 1;
    for (char byte; read(0, &byte, 1) > 0;);
    return 0;
}}
"""


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("child") / "child"
    compiler = ["gcc", "-O2", "-x", "c", "-", "-o", str(program)]
    subprocess.run(compiler, input=CHILD, text=True, check=True)
    return program


@contextlib.contextmanager
def process_with_a_word(child: Path, offset: int) -> Iterator[tuple[int, range]]:
    """A process with an area of darc's and, elsewhere, a word that leads so far into it; and none
    besides, as an interpreter may have, whose heap keeps what was once in it."""
    command = [str(child), str(offset)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin:
            assert process.stdout.readline() == b"\n"
            yield process.pid, range(PLACE, PLACE + (1 << 20))


@pytest.mark.parametrize(
    ("offset", "is_kept"), [(0x63E2, True), (64, True), (31, False), (0, False)]
)
def test_where_a_thread_may_come_back_to(child: Path, offset: int, is_kept: bool) -> None:
    """A signal's handler has interrupted it there: its program counter does not tell. The area
    begins with a header: pads compare with its address, and nobody comes there."""
    with process_with_a_word(child, offset) as (pid, area), MemoryFile(pid) as memory:
        target = Watched(pid)
        program = Program(target, Path("/"), [])
        give_back_noted(target, memory, program=program, pid=pid, noted=[area])
    assert target.unmapped == ([] if is_kept else [(area.start, len(area))])


@pytest.mark.parametrize("is_leaving", [True, False])
def test_a_debugger_was_killed_as_it_was_about_to_unmap(is_leaving: bool) -> None:
    """What has nothing in it may be of the program's own by then."""
    area = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE, mmap.PROT_READ)
    with MemoryFile(os.getpid()) as memory:
        base = next(
            one.start
            for one in regions(os.getpid())
            if one.end - one.start == len(area) and one.permissions == "r--p" and not one.path
        )
        target, place = Watched(os.getpid()), range(base, base + len(area))
        give_back_noted(
            target,
            memory,
            program=Program(target, Path("/"), []),
            pid=os.getpid(),
            noted=[place],
            leaving={place} if is_leaving else set(),
        )
    assert target.unmapped == ([] if is_leaving else [(base, len(area))])


def test_memory_that_was_half_made_as_the_user_pressed_ctrl_c_is_passed_by() -> None:
    """What it names for its tables is not mapped: all later commands had failed at it."""
    base, gone = 0x5555_0000_0000, 0x7FFF_F707_6000
    target = FakeTarget()
    target.map(base, struct.pack("<8sQ8sQ", MARK, gone, bytes(8), 4096))
    place = Region(start=base, end=base + 4096, permissions="r-xp", offset=0, path="")
    with MemoryFile(os.getpid()) as memory:
        assert left_behind(target, memory, [place]) == []
