"""Processes that share the program's memory and are no threads of it: no debugger stops them, and
they run through code and stacks that darc writes to."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.code.processor import decode
from darc.debuggee.procfs import MemoryFile, children, program_counter, regions
from fixtures.build import build
from tests.debugger import GDB, NEWEST_AT_NIGHT, Done, Server, current, debug, let_go, server
from tests.disassembly import functions

SLOW_HAND = """
import struct, time
from darc.pads import restoring

class SlowHand:
    @staticmethod
    def pack(*values):
        time.sleep(0.002)
        print("looked at a word of a stack, which is written now")
        return struct.pack(*values)

restoring.struct = SlowHand
"""
"""darc's look at a stack's word and its writing there are far from one another."""

_POKE_USER, _DETACH, _SEIZE, _INTERRUPT, _CONT = 6, 17, 0x4206, 0x4207, 7
_DEBUG_ADDRESS, _DEBUG_CONTROL = 848, 848 + 7 * 8
_WALL = 0x4000_0000


@pytest.fixture
def running() -> Iterator[Server]:
    with server(build("companions")) as made:
        yield made


def attach(folder: Path, running: Server, commands: list[str]) -> Done:
    return debug(folder, None, (), commands, options=["-p", str(running.pid)])


@NEWEST_AT_NIGHT
def test_their_stacks_are_left_alone(running: Server, tmp_path: Path) -> None:
    """A call of theirs comes back, and another one is made, as darc puts the program's own return
    address where that of the first one was: the second one came back behind the first one's
    call."""
    (tmp_path / "slow_hand.py").write_text(SLOW_HAND)
    loading = "source" if current() == GDB else "command script import"
    search = ["darc start handle --max-time 400ms", "continue", "darc stop"]
    begin = f"{loading} {tmp_path / 'slow_hand.py'}"
    done = attach(tmp_path, running, [begin, *(search * 8), "detach"])
    assert "looked at a word of a stack" in done.gdb, done.gdb
    let_go(running.pid)
    running.operations()
    assert running.finish() == 0


def _trace(request: int, thread: int, address: int = 0, data: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    assert libc.ptrace(request, thread, address, data) == 0, os.strerror(ctypes.get_errno())


def stop_at(process: int, address: int) -> None:
    """Leaves a process stopped for all, before its instruction at ``address``."""
    _trace(_SEIZE, process)
    _trace(_INTERRUPT, process)
    os.waitpid(process, _WALL)
    _trace(_POKE_USER, process, _DEBUG_ADDRESS, address)
    _trace(_POKE_USER, process, _DEBUG_CONTROL, 1)
    _trace(_CONT, process)
    _, status = os.waitpid(process, _WALL)
    assert os.WSTOPSIG(status) == signal.SIGTRAP
    _trace(_POKE_USER, process, _DEBUG_CONTROL, 0)
    os.kill(process, signal.SIGSTOP)
    _trace(_DETACH, process)


@NEWEST_AT_NIGHT
def test_one_that_stands_in_the_instructions_that_are_written_over(
    running: Server, tmp_path: Path
) -> None:
    """It goes on with them in the pad, as a thread of the program does."""
    base = next(one.start for one in regions(running.pid) if one.path == str(running.program))
    handle = base + functions(running.program)["handle"][0][0]
    with MemoryFile(running.pid) as memory:
        second = int(decode(memory.read(handle, 16), handle)[0].next_ip)
    assert second < handle + 5
    beside = children(running.pid)[0]
    stop_at(beside, second)
    commands = ["darc start handle --max-time 1s", "continue", "darc stop", "detach"]
    done = attach(tmp_path, running, commands)
    assert "calls seen" in done.gdb, done.gdb
    let_go(running.pid)
    assert program_counter(beside) != second
    os.kill(beside, signal.SIGCONT)
    running.operations()
    assert running.finish() == 0
