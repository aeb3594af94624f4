"""Tasks whose calls no debugger sees any more: none becomes one, and one that has is freed."""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.agent import compiled
from darc.agent.compiled import AgentSymbol
from darc.agent.fieldnames import ContextField
from kgdb.vm.machine import Machine
from tests import debugger
from tests.kernel.analyses import TEXT, assert_unharmed, connected
from tests.kernel.machines import WATCHDOG_SECONDS, assert_goes_on, typed, workload

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(2 * WATCHDOG_SECONDS)]

START = "darc start vfs_read --task piperead --start-ops 150 --peak '>10ms' --max-time 80"
ENDLESS = f"{START} --decision-ops 1000000"
SLEEP = ("vfs_read", "pipe_read", "schedule")

STUCK = (
    "import gc; from darc.agent.memory import AgentMemory; "
    "tables = [one for one in gc.get_objects() if isinstance(one, AgentMemory)][-1]; "
    "idle = tables.blob.offset('darc_context.idle'); "
    "found = tables.contexts.addresses(); "
    "[gdb.selected_inferior().write_memory(at + idle, bytes(4)) for at in found]"
)
"""Leaves every task's context as if that were inside the agent."""

LINGER = r"""
import re, struct
from darc.agent import compiled

code = compiled.load().code
inferior = gdb.selected_inferior()
agent = int(gdb.parse_and_eval("(unsigned long) &darc_stub_returned"))
agent -= compiled.load().symbols["darc_stub_returned"]

def found():
    for page in range(agent & ~0xfff, agent + 0x100000, 0x1000):
        try:
            held = bytes(inferior.read_memory(page, 0x1000))
        except gdb.MemoryError:
            return
        for at in re.finditer(STORES, held):
            if page + at.start() > agent + len(code):
                yield page + at.start(), at[0]

STORES = re.compile(rb"\x48\x89\x42(?:\x08\x48\x89\x42\x10|\x10\x48\x89\x42\x08)")
((place, stores),) = found()  # of the op, and of its innermost call: mov [rdx + 8 or 16], rax
cave = agent + compiled.load().symbols["darc_calibrate"]  # which has done its work
linger = b"\x41\xba" + struct.pack("<I", 3_000_000) + b"\x41\xff\xca\x75\xfb"  # with r10d
moved = stores[:4] + linger + stores[4:]
back = b"\xe9" + struct.pack("<i", place + 8 - (cave + len(moved) + 5))
inferior.write_memory(cave, moved + back)
inferior.write_memory(place, b"\xe9" + struct.pack("<i", cave - place - 5) + b"\x90" * 3)
print("the pad lingers")
"""
"""f0's pad takes some ms between its two last stores, in which the clock interrupts it."""

ROUNDS = 40

DIE = (
    "import itertools, os; written = itertools.count(); gdb.events.memory_changed.connect("
    "lambda _: os.kill(os.getpid(), 9) if next(written) == {number} else None)"
)


DIE_IN_A_CALL = """
import itertools, os, threading, time
from pathlib import Path
from kgdb.vm import qmp

def die():
    while not qmp.execute(Path('{monitor}'), 'query-status')['running']:
        time.sleep(0.001)
    os.kill(os.getpid(), 9)

def written(event):
    distance = int(gdb.parse_and_eval('(unsigned long) $rsp')) - event.address % 2**64
    if 0 < distance < 4096 and next(calls) == {number}:
        threading.Thread(target=die, daemon=True).start()

calls = itertools.count()
gdb.events.memory_changed.connect(written)
"""
"""Kills gdb while the machine runs for a call of a function of the kernel: for each, darc writes
to the borrowed task's stack, below what that uses."""


@pytest.fixture
def machine() -> Iterator[Machine]:
    with workload("piperead", cpus=2, kaslr=True) as started:
        yield started


def within_the_agent() -> str:
    """Stops where a call has just come back, in the middle of what the agent does then."""
    blob = compiled.load()
    start, idle = blob.symbols[AgentSymbol.STUB_RETURNED], blob.offset(ContextField.IDLE)
    inside = bytes((0xC7, 0x46, idle, 0, 0, 0, 0))  # mov dword ptr [rsi + idle], 0
    return f"hbreak *((char *) &darc_stub_returned + {blob.code.index(inside, start) + 7 - start})"


def assert_sees_the_calls(machine: Machine, folder: Path, *before: str) -> str:
    """What gdb says."""
    done = connected(machine, folder, *before, START, "continue", debugger.REPORT, "darc status")
    assert done.paths == [SLEEP], done.gdb
    return done.gdb


def test_a_stop_in_the_middle_of_the_agent(machine: Machine, tmp_path: Path) -> None:
    """darc takes its return addresses from the stack there; the task goes on and is seen again."""
    done = connected(
        machine, tmp_path, ENDLESS, within_the_agent(), "continue", "delete", "darc stop"
    )
    assert re.search(r"hit Breakpoint \d+, .*darc_stub_returned", done.gdb), done.gdb
    assert "darc: every probe is out" in done.gdb
    said = assert_sees_the_calls(machine, tmp_path)
    assert "seen no more" not in said
    assert_unharmed(machine)


def test_an_interrupt_in_the_middle_of_a_pad(machine: Machine, tmp_path: Path) -> None:
    """Between what says that an op has begun and what says which call it is in."""
    (tmp_path / "linger.py").write_text(LINGER)
    linger = f"source {tmp_path / 'linger.py'}"
    done = connected(machine, tmp_path, START, linger, "continue", "darc stop")
    assert "the pad lingers" in done.gdb, done.gdb
    assert "darc: every probe is out" in done.gdb, done.gdb
    assert_unharmed(machine)
    assert_goes_on(machine)


def test_calls_whose_debugger_is_killed_and_a_task_that_was_seen_no_more(
    machine: Machine, tmp_path: Path
) -> None:
    """A task that was borrowed as darc got memory goes on by itself. Then calls of one are seen no
    more: that is told, once."""
    moved = "darc start no_such_function"  # after which gdb knows where the kernel is
    connected(machine, tmp_path, moved, TEXT.format("before"))
    for number in (0, 1, 3):
        file = tmp_path / "die.py"
        file.write_text(DIE_IN_A_CALL.format(monitor=machine.monitor_socket, number=number))
        killed = connected(machine, tmp_path, f"source {file}", START)
        assert killed.status == -signal.SIGKILL, killed.gdb
        connected(machine, tmp_path, "darc stop", moved, TEXT.format("after"))
        assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
        assert_goes_on(machine)
        assert typed(machine, "cat /proc/uptime").count("\n") >= 2
        assert_unharmed(machine)
    assert_sees_the_calls(machine, tmp_path)
    connected(machine, tmp_path, START, f"python {STUCK}")
    told = r"(a task's calls were|the calls of \d+ tasks were) seen no more .*: they are again"
    assert re.search(told, assert_sees_the_calls(machine, tmp_path))
    assert not re.search(told, assert_sees_the_calls(machine, tmp_path))
    assert_unharmed(machine)


@pytest.mark.long
@pytest.mark.timeout(ROUNDS * WATCHDOG_SECONDS)
def test_debuggers_that_are_killed_one_after_the_other(machine: Machine, tmp_path: Path) -> None:
    """At any of their writes; the next one finds the task's calls, and nobody is told of a stale
    one."""
    assert_sees_the_calls(machine, tmp_path)
    numbers = random.Random(20)
    for _ in range(ROUNDS):
        die = DIE.format(number=numbers.randrange(1, 300))
        killed = connected(machine, tmp_path, f"python {die}", ENDLESS, "continue")
        assert killed.status in (0, -signal.SIGKILL), killed.gdb
        said = assert_sees_the_calls(machine, tmp_path)
        assert "seen no more" not in said
    assert_goes_on(machine)
    assert_unharmed(machine)
