"""gdb is killed where it counts; ``make kills`` does so at any moment (``tests/kills``)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from darc.debuggee import procfs
from darc.debuggee.journal import ProcessJournal
from darc.debuggee.procfs import children, regions
from darc.pads.foothold import MARK
from fixtures.build import build
from tests.code import INT3, altered_code, compare_code
from tests.debugger import (
    DARC_GDB,
    GDB,
    IN_BOTH,
    ROOT,
    WATCHDOG_SECONDS,
    Server,
    attempt,
    current,
    debug,
    let_go,
    parent,
    server,
    tracer,
    watched,
)
from tests.waiting import guardians, wait_for_changes, wait_until, wait_until_it_runs

INSIDE = ROOT / "tests" / "inside_gdb.py"

ANALYSES = """
import gdb
def say(word):
    print(word, flush=True)
say("attached")
while True:
    gdb.execute("darc start handle --peak >400us --start-ops 400 --decision-ops 4 --lookahead 1")
    say("started")
    gdb.execute("continue")
    say("found")
"""
"""The words tell how far gdb came before it was killed."""

AT_A_WRITE = """
import os
import signal
from darc.debuggee import process_pads
from darc_gdb.target import TARGET

lead_home, write_register = process_pads.lead_home, TARGET.threads.write_register
writes = []

def write(*arguments):
    if len(writes) == {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    writes.append(arguments)
    write_register(*arguments)

def lead(*arguments):
    TARGET.threads.write_register = write
    assert lead_home(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

process_pads.lead_home = lead
"""
"""gdb dies when it has set so many of the registers of the thread that is to stop for the user."""

IN_A_CALL = """
import os
import signal
from darc_gdb.target import TARGET
from darc_gdb.tracee import Tracee

ask, write = Tracee._ask, TARGET.memory.write
steps = []

def step(do, *arguments):
    if len(steps) == {after} and "{when}" == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    steps.append(do)
    do(*arguments)
    if len(steps) == {after} + 1:
        os.kill(os.getpid(), signal.SIGKILL)

def asked(tracee, request, *arguments):
    if request in (7, 13, 0x420b):
        step(ask, tracee, request, *arguments)
    else:
        ask(tracee, request, *arguments)

Tracee._ask = asked
TARGET.memory.write = lambda *arguments: step(write, *arguments)
"""
"""gdb dies at one of the steps of a call that a thread makes for darc: memory is written, registers
and the mask of signals are set, the thread runs."""


@pytest.mark.parametrize("after", [0, 1, 5, 9, 10, 11, 12])
def test_kill_where_the_search_ends(after: int, tmp_path: Path) -> None:
    """The program goes on, and has its registers."""
    assert "started" in killed(tmp_path, AT_A_WRITE.format(after=after))


@pytest.mark.parametrize(
    ("program", "when", "after"),
    [
        *(("server", *moment) for moment in (("before", 1), ("after", 3), ("after", 5))),
        *(("alarms", "after", steps) for steps in (1, 2, 3, 40)),
    ],
)
def test_kill_in_a_call(program: str, when: str, after: int, tmp_path: Path) -> None:
    """The call comes back by itself, and the program goes on where it was."""
    how = IN_A_CALL.format(after=after, when=when)
    assert "started" not in killed(tmp_path, how, program)


BEFORE_A_CALL = """
import os
import signal
from darc_gdb.detours import BesideGdb

follow, sent = BesideGdb.follow, []

def die(*arguments):
    if len(sent) == {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    sent.append(arguments)
    follow(*arguments)

BesideGdb.follow = die
"""
"""gdb dies where code is borrowed for a call, before a thread is sent there."""

AS_IT_MEASURES = """
import os
import signal
from darc.debuggee.process_foothold import ProcessFoothold
from darc_gdb.tracee import Tracee

ask, call, calls = Tracee._ask, ProcessFoothold.call, []

def asked(tracee, request, *arguments):
    ask(tracee, request, *arguments)
    if request == 7 and len(calls) == {calls}:
        os.kill(os.getpid(), signal.SIGKILL)

def count(*arguments):
    calls.append(arguments)
    return call(*arguments)

Tracee._ask, ProcessFoothold.call = asked, count
"""
"""gdb dies while a thread is in the agent, to measure what pads cost."""

LED_TO = """
from darc.debuggee import leftbehind

def led_to(*arguments, wanted, is_inside, **others):
    return frozenset(filter(is_inside, (area.stop - 64 for area in wanted.areas)))

leftbehind.references = led_to
"""
"""As if a word on a stack led into each agent that was left behind, as a handler's frame may."""

TELL_OF_THE_AGENT = """
tables = app.session.remains.tables
may = tables.may_read_pointer
print(f"agent: {bool(tables.is_measured)} {bool(may)} {tables.full_cost > 0}")
"""


@pytest.mark.parametrize("calls", [1, 6])
def test_an_agent_that_had_not_measured_is_not_taken_over(calls: int, tmp_path: Path) -> None:
    """What it knows of threads and costs is not all: one without storage was asked for its first
    word."""
    with server(build("server")) as running:
        assert "started" not in kill(tmp_path, running.pid, AS_IT_MEASURES.format(calls=calls))
        let_go(running.pid)
        (tmp_path / "led_to.py").write_text(LED_TO)
        (tmp_path / "tell.py").write_text(TELL_OF_THE_AGENT)
        start = "darc start handle --start-ops 100000000"
        commands = [f"source {INSIDE}", "source led_to.py", start, "with-app tell.py", "darc stop"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
        may = procfs.may_read_pointer(running.pid)
        assert f"agent: True {may} True" in done.gdb, done.gdb
        assert running.finish() == 0


IN_A_DECISION = """
import os
import signal
from darc.collectors.pad_collector import PadCollector
from darc_gdb.target import TARGET

on_bell = PadCollector.on_bell
bells = []

def decide(collector):
    if len(bells) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    bells.append(collector)
    return on_bell(collector)

PadCollector.on_bell = decide
"""
"""gdb dies at the second bell, with probes in the code and all threads stopped."""


def test_kill_while_all_threads_are_stopped(tmp_path: Path) -> None:
    """All of them go on."""
    assert "started" in killed(tmp_path, IN_A_DECISION, "alarms", "threads")


@pytest.mark.parametrize("tables", ["whole", "damaged"])
def test_what_is_left_is_taken_out(tables: str, tmp_path: Path) -> None:
    """Also where nothing in the program tells of it; a program that was left stopped goes on."""
    with server(build("alarms"), "threads") as running:
        kill(tmp_path, running.pid, IN_A_DECISION)
        let_go(running.pid)
        assert altered(running)
        if tables == "damaged":
            forget_tables(running.pid)
        stands = "T" in {state(task) for task in Path(f"/proc/{running.pid}/task").iterdir()}
        done = stop(tmp_path, running)
        assert ("it goes on now" in done) == stands  # most often it goes on by itself
        assert "probes in the program: they were taken out" in done
        running.operations()
        assert altered(running) == []
        assert "nothing is being analysed" in stop(tmp_path, running)
        assert running.finish() == 0


@pytest.mark.parametrize("pointers", ["own", "shared"])
def test_what_is_left_of_green_threads_is_given_back(pointers: str, tmp_path: Path) -> None:
    """All of it, in the middle of a search: no coroutine that rests has a word on its stack that
    leads there."""
    with server(build("greens"), pointers) as running:
        before = unnamed(running)
        kill(tmp_path, running.pid, IN_A_DECISION)
        let_go(running.pid)
        running.operations()
        said = stop(tmp_path, running)
        assert "of its memory in the program, which is given back" in said
        assert "taken out" in said
        running.operations()
        assert altered(running) == []
        left = sum(end - start for start, end in unnamed(running) - before)
        assert left <= 256 << 10
        assert running.finish() == 0


@pytest.mark.debuggers(GDB)
def test_memory_that_is_given_back_is_told(tmp_path: Path) -> None:
    """A gdb that was told to end has taken its probes out, and left its memory. To give that back
    is no error, as it is where nothing was left."""
    with server(build("server")) as running:

        def tell() -> None:
            wait_for_changes(running.pid)
            running.operations()
            os.kill(tracer(running.pid), signal.SIGTERM)

        threading.Thread(target=tell, daemon=True).start()
        endless = "darc start handle --peak last --start-ops 500000000"
        debug(tmp_path, None, (), [endless, "continue"], options=["-p", str(running.pid)])
        let_go(running.pid)
        assert altered(running) == []
        first, second = (
            debug(tmp_path, None, (), ["darc stop"], options=["-p", str(running.pid)])
            for _ in range(2)
        )
        assert "darc: an earlier debugger had left" in first.gdb, first.gdb
        assert "KiB of its memory in the program, which is given back" in first.gdb
        assert first.status == 0
        assert "nothing is being analysed" not in first.gdb
        assert "nothing is being analysed" in second.gdb
        assert second.status == 1
        assert running.finish() == 0


def test_kills_in_calls_leave_nothing(tmp_path: Path) -> None:
    """Three are killed one after the other; then the next one starts, and another one ends it."""
    with server(build("server")) as running:
        for after in (0, 1, 4):
            kill(tmp_path, running.pid, BEFORE_A_CALL.format(after=after))
            let_go(running.pid)
            running.operations()
            assert altered(running)
        kill(tmp_path, running.pid, IN_A_DECISION)
        let_go(running.pid)
        assert "taken out" in stop(tmp_path, running)
        assert altered(running) == []
        assert "nothing is being analysed" in stop(tmp_path, running)
        assert running.finish() == 0


def test_one_after_the_other_is_killed(tmp_path: Path) -> None:
    """Each finds what it can use of those before it, and the last one gives all of it back."""
    with server(build("server")) as running:
        for _ in range(4):
            assert "started" in kill(tmp_path, running.pid, IN_A_DECISION)
            let_go(running.pid)
            before = running.operations()
            while running.operations() < before + 100:
                pass
        assert "taken out" in stop(tmp_path, running)
        assert altered(running) == []
        assert sum(end - start for start, end in unnamed(running, "x")) <= 1 << 16
        assert running.finish() == 0


BEFORE_THE_MARK = """
import os
import signal
from darc.debuggee.process_foothold import ProcessFoothold

ProcessFoothold._mark = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
"""
"""gdb dies where memory is mapped, and nothing in it says whose it is."""


def test_kill_before_anything_tells_of_its_memory(tmp_path: Path) -> None:
    with server(build("server")) as running:
        before = unnamed(running)
        kill(tmp_path, running.pid, BEFORE_THE_MARK)
        let_go(running.pid)
        running.operations()
        assert unnamed(running) != before
        stop(tmp_path, running)
        assert unnamed(running) == before
        assert running.finish() == 0


WITH_A_STOP_UNDER_WAY = """
import os
import signal
from darc.collectors.pad_collector import PadCollector
from darc_gdb.target import TARGET

def die(collector):
    os.kill(TARGET.pid, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGKILL)

PadCollector.on_bell = die
"""
"""gdb dies at the first bell. A SIGSTOP is on its way to the program, as from a gdb that has asked
a thread to stop and was killed before that had."""

UNWATCHED = """
from darc.debuggee import watchover

def none(pid):
    raise OSError("no shell is here")

watchover.Guardian = none
"""


@pytest.mark.parametrize("mode", ["plain", "threads"])
def test_a_program_that_is_left_stopped_goes_on(mode: str, tmp_path: Path) -> None:
    with server(build("alarms"), mode) as running:
        assert "started" in kill(tmp_path, running.pid, WITH_A_STOP_UNDER_WAY)
        let_go(running.pid)
        running.operations()
        assert "taken out" in stop(tmp_path, running)
        assert altered(running) == []
        assert running.finish() == 0


def test_the_next_darc_lets_it_go_on(tmp_path: Path) -> None:
    """Where nobody has done that before."""
    with server(build("alarms"), "threads") as running:
        kill(tmp_path, running.pid, UNWATCHED + WITH_A_STOP_UNDER_WAY)
        let_go(running.pid)
        wait_for_stop(running.pid)
        assert "it goes on now" in stop(tmp_path, running)
        running.operations()
        assert altered(running) == []
        assert running.finish() == 0


def test_who_stops_it_when_it_has_gone_on_means_it(tmp_path: Path) -> None:
    """The debugger was killed in the middle of a stop; the program's user has stopped it since."""
    with server(build("alarms"), "threads") as running:
        kill(tmp_path, running.pid, WITH_A_STOP_UNDER_WAY)
        let_go(running.pid)
        running.operations()
        wait_until(lambda: not guardians(running.pid))
        os.kill(running.pid, signal.SIGSTOP)
        wait_for_stop(running.pid)
        check_it_stays_stopped(tmp_path, running)
        running.operations()
        assert altered(running) == []
        assert running.finish() == 0


AT_ITS_PROMPT = """
import os
import signal
gdb.execute("darc start handle")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_who_stopped_it_before_the_debugger_came_means_it(tmp_path: Path) -> None:
    """That one is killed before it has let the program go on."""
    with server(build("server")) as running:
        os.kill(running.pid, signal.SIGSTOP)
        wait_for_stop(running.pid)
        kill(tmp_path, running.pid, AT_ITS_PROMPT)
        let_go(running.pid)
        wait_for_stop(running.pid)
        check_it_stays_stopped(tmp_path, running)
        running.operations()
        assert running.finish() == 0


@IN_BOTH
@pytest.mark.parametrize("commands", [["darc stop"], ["darc start handle", "darc status"]])
def test_a_program_that_nobody_knows_who_stopped(commands: list[str], tmp_path: Path) -> None:
    """The next darc says what to do."""
    with server(build("server")) as running:
        os.kill(running.pid, signal.SIGSTOP)
        wait_for_stop(running.pid)
        done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
        assert "has lost" not in done.gdb
        assert f"'kill -CONT {running.pid}' lets it go on" in done.gdb
        let_go(running.pid)
        os.kill(running.pid, signal.SIGCONT)
        running.operations()
        again = debug(tmp_path, None, (), [attempt("darc stop")], options=["-p", str(running.pid)])
        assert "kill -CONT" not in again.gdb
        assert running.finish() == 0


@IN_BOTH
@pytest.mark.parametrize("known", [True, False])
def test_the_next_darc_lets_a_child_go_on(*, known: bool, tmp_path: Path) -> None:
    """One that a debugger was killed over as the program made it, where nobody has seen that. It is
    let go on only where something tells of that debugger: the program may have stopped it."""
    with server(build("forking")) as running:
        if known:
            noted = ProcessJournal(running.pid, required=True)
            noted.open()
            noted.goes_on()
        command = [sys.executable, "-m", "tests.abandons", str(running.pid)]
        killed = subprocess.run(command, cwd=ROOT, check=False, timeout=WATCHDOG_SECONDS)
        assert killed.returncode == -signal.SIGKILL
        let_go(running.pid)
        (child,) = children(running.pid)
        wait_for_stop(child)
        done = debug(tmp_path, None, (), ["darc stop"], options=["-p", str(running.pid)])
        if known:
            assert f"as the program made its child {child}: that goes on now" in done.gdb
        else:
            assert f"child {child} is stopped, which may be meant: 'kill -CONT {child}'" in done.gdb
            assert state(Path(f"/proc/{child}")) == "T"
            os.kill(child, signal.SIGCONT)
        assert running.finish() == 0


@IN_BOTH
def test_code_that_takes_a_librarys_place(tmp_path: Path) -> None:
    """f0's library is unloaded after the debugger was killed, and the program maps code of its own
    there: nobody writes into that."""
    with server(build("farlib"), "4000000000", "attended") as running:
        kill_where_it_runs(tmp_path, running, "far_handle")
        mend_the_linker(running.pid)
        os.kill(running.pid, signal.SIGUSR1)
        assert running.read_line() == b"replaced\n"
        done = debug(tmp_path, None, (), ["darc stop"], options=["-p", str(running.pid)])
        assert "probes in the program: they were taken out" in done.gdb
        assert altered(running) == []
        os.kill(running.pid, signal.SIGTERM)
        assert running.read_line() == b"altered: 0\n"


def kill_where_it_runs(folder: Path, running: Server, function: str) -> None:
    """Kills a debugger, with its helper, while the program runs with probes in it."""

    def kill_all() -> None:
        wait_for_changes(running.pid)
        wait_until_it_runs(running.pid)
        tracing = tracer(running.pid)
        if current() != GDB:
            os.kill(parent(tracing), signal.SIGKILL)
        os.kill(tracing, signal.SIGKILL)

    threading.Thread(target=kill_all, daemon=True).start()
    commands = [f"darc start {function} --start-ops 1000000000", "continue"]
    done = debug(folder, None, (), commands, options=["-p", str(running.pid)])
    assert done.status == -signal.SIGKILL, done.gdb
    let_go(running.pid)
    assert altered(running)


def mend_the_linker(pid: int) -> None:
    """Takes out the debugger's own breakpoint, at which the program would end when it unloads."""
    _, found = compare_code(pid)
    with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:
        for one in found:
            if one.place.startswith("ld-linux") and one.live == INT3:
                memory.seek(one.address)
                memory.write(bytes([one.stored]))


def wait_for_stop(pid: int) -> None:
    """Waits until every thread is stopped, and nobody traces it."""
    until = time.monotonic() + WATCHDOG_SECONDS
    while {state(task) for task in Path(f"/proc/{pid}/task").iterdir()} != {"T"}:
        assert time.monotonic() < until, "it is not stopped"


def state(task: Path) -> str:
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


def unnamed(running: Server, permission: str = "") -> set[tuple[int, int]]:
    """Where its memory is that is no file's."""
    return {
        (region.start, region.end)
        for region in regions(running.pid)
        if not region.path and permission in region.permissions
    }


def killed(folder: Path, how: str, *program: str) -> str:
    """What gdb said before it was killed; the program has gone on."""
    name, *arguments = program or ("server",)
    with server(build(name), *arguments) as running:
        shown = kill(folder, running.pid, how)
        let_go(running.pid)
        before = running.operations()
        while running.operations() < before + 100:
            pass
        assert running.finish() == 0
    return shown


def kill(folder: Path, pid: int, how: str) -> str:
    """Kills a gdb on a program that runs; what it had said."""
    script = folder / "analyses.py"
    script.write_text(how + ANALYSES)
    command = [*DARC_GDB, "-nx", "-q", "-batch", "-p", str(pid)]
    quiet = ["-ex", "handle SIGALRM nostop noprint"]
    status, shown, _, _, _ = watched(folder, [*command, *quiet, "-ex", f"source {script}"])
    assert status == -signal.SIGKILL, shown
    return shown


def stop(folder: Path, running: Server) -> str:
    """What 'darc stop' says in another gdb."""
    return debug(folder, None, (), ["darc stop"], options=["-p", str(running.pid)]).gdb


def check_it_stays_stopped(folder: Path, running: Server) -> None:
    """'darc stop' says who may have meant that; then it goes on."""
    told = stop(folder, running)
    assert "it goes on now" not in told
    assert f"'kill -CONT {running.pid}' lets it go on" in told
    wait_for_stop(running.pid)
    os.kill(running.pid, signal.SIGCONT)


def altered(running: Server) -> list[str]:
    """Places in the code that differ from the file, but for gdb's own in the loader."""
    _, _, places = altered_code(running.pid)
    return [place for place in places if not place.startswith("ld-linux")]


def forget_tables(pid: int) -> None:
    """Nothing in the program tells any more where darc's tables are."""
    with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:
        for region in regions(pid):
            if "x" not in region.permissions or region.path:
                continue
            memory.seek(region.start)
            if memory.read(len(MARK)) == MARK:
                memory.seek(region.start)
                memory.write(bytes(16))
