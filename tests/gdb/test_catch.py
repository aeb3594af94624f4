"""``darc catch``: the program stops inside a call that is slow, in its thread."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.build import build, build_waiting
from tests import debugger
from tests.debugger import IN_BOTH, STOOD_STILL, attempt, mark
from tests.permission import needs_permission

TOOLS = f"source {debugger.ROOT / 'tests' / 'inside_gdb.py'}"
LIVE = r"\r\x1b\[K[^\r\n]*handle: [^\r\n]*"

CATCH = "darc catch handle --above 2ms"
CAUGHT = re.compile(
    r'handle under way for \d+(?:\.\d+)?ms in thread \d+ "waiting"(?: \([^()]*\))?, in \S+ ← '
    r"(?:.*← )?append ← serve_slowly ← handle; waits for the lock log_lock, "
    r'held by thread \d+ "waiting"(.*)'
)


@IN_BOTH
def test_inside_the_call_again_and_again(tmp_path: Path) -> None:
    """Each time the thread stands below f0, and the owner is a helper; 'darc stop' ends it, and the
    program comes to its end as ever."""
    stops = [part for number in range(3) for part in ("continue", mark(f"stop{number}"), "bt")]
    commands = [CATCH, "run", mark("first"), "bt", *stops, "darc stop", "continue", debugger.EXIT]
    done = debugger.debug(tmp_path, build_waiting(), ("holders", "2000"), commands)
    assert len(re.findall(STOOD_STILL, done.gdb, re.M)) == 4, done.gdb
    told = " ".join(done.gdb.split("\n")).replace("darc: ", "\n")
    assert told.count("handle under way for ") == 4, done.gdb
    holders = CAUGHT.findall(told)  # the lock may be free at that moment
    assert any(re.search("in .*(flush|rotate)_log ← help", one) for one in holders), done.gdb
    for name in ("first", "stop0", "stop1", "stop2"):
        assert re.search(r"#\d+:? .*\bhandle ?\(op=", done.section(name)), done.gdb
    assert (done.program_status, done.output) == (0, b"waiting: holders, 2000\n")


@IN_BOTH
def test_a_wait_that_is_over_is_none(tmp_path: Path) -> None:
    """The thread has got the lock that it had waited for, and works with it."""
    late = CATCH.replace("2ms", "10ms")
    stops = [part for number in range(3) for part in ("continue", mark(f"stop{number}"), "bt")]
    commands = [late, "run", mark("first"), "bt", *stops, "kill"]
    done = debugger.debug(tmp_path, build_waiting(), ("works", "2000"), commands)
    told = re.findall(r"handle under way for .*", done.gdb)
    assert len(told) == 4
    at_work = [line for line in told if "work_on_log" in line]
    assert at_work, done.gdb
    assert not any("waits for" in line for line in at_work), done.gdb


@IN_BOTH
def test_a_lock_that_is_waited_for_since_a_stop(tmp_path: Path) -> None:
    """What such a call waits for was not written down: the thread itself shows it."""
    is_gdb = debugger.current() == debugger.GDB
    once = "tbreak append" if is_gdb else "breakpoint set -o true -n append"
    commands = [CATCH, once, "run", mark("stopped"), "bt", "continue", mark("caught"), "bt", "kill"]
    done = debugger.debug(tmp_path, build_waiting(), ("long", "2000"), commands)
    assert re.search(r"#\d+:? .*\bhandle ?\(op=", done.section("stopped")), done.gdb
    told = " ".join(done.gdb.split("\n"))
    (held,) = CAUGHT.findall(told)
    assert re.match(r", in .*keep_log ← help", held), done.gdb


@IN_BOTH
def test_in_a_thread_that_blocks_the_signal(tmp_path: Path) -> None:
    """Another thread stops then: the user is shown that of the call all the same, or how to."""
    select = "info threads" if debugger.current() == debugger.GDB else "thread select 2"
    commands = [CATCH, "run", mark("caught"), select, "bt", "darc stop", "continue", debugger.EXIT]
    done = debugger.debug(tmp_path, build("aside"), ("4000",), commands)
    assert "handle under way for " in done.gdb
    assert re.search(r"#\d+:? .*\bhandle ?\(op=", done.section("caught")), done.gdb
    if debugger.current() != debugger.GDB:
        assert "; in another thread: 'thread select 2'" in done.gdb
    assert (done.program_status, done.output) == (0, b"aside: 4000 operations, 0 wrong\n")


@IN_BOTH
@pytest.mark.parametrize("mode", ["all", "read"])
def test_in_a_program_that_blocks_every_signal(tmp_path: Path, mode: str) -> None:
    """It stops all the same, in the thread of the call, and goes on; one that reads its signals
    finds none of darc's."""
    stops = ["continue", mark("again"), "bt", "darc stop", "continue", debugger.EXIT]
    commands = [CATCH, "run", mark("caught"), "bt", *stops]
    done = debugger.debug(tmp_path, build("aside"), ("4000", mode), commands)
    for name in ("caught", "again"):
        assert re.search(r"#\d+:? .*\bhandle ?\(op=", done.section(name)), done.gdb
    assert done.gdb.count("handle under way for ") == 2
    assert "in another thread" not in done.gdb
    assert (done.program_status, done.output) == (0, b"aside: 4000 operations, 0 wrong\n")


@IN_BOTH
def test_a_stop_of_the_users_is_shown(tmp_path: Path) -> None:
    """SIGSTOP without darc's mark does what it does without darc."""
    late = CATCH.replace("2ms", "1h")
    goes_on = "signal 0" if debugger.current() == debugger.GDB else "kill"
    commands = [late, "run", mark("stopped"), "bt", goes_on, debugger.EXIT]
    done = debugger.debug(tmp_path, build("aside"), ("4000", "stop"), commands)
    assert re.search(r"signal SIGSTOP", done.gdb), done.gdb
    if debugger.current() == debugger.GDB:
        assert (done.program_status, done.output) == (0, b"aside: 4000 operations, 0 wrong\n")


@IN_BOTH
@pytest.mark.parametrize("late", ["darc catch", "darc catch --peak last"])
def test_the_peak_of_a_search_is_what_is_late(tmp_path: Path, late: str) -> None:
    search = "darc start handle --start-ops 200 --decision-ops 10 --peak >1ms"
    commands = [search, "run", mark("caught"), late, "continue", "bt", "kill"]
    done = debugger.debug(tmp_path, build_waiting(), ("semaphore", "4000"), commands)
    caught = done.section("caught")
    assert "handle under way for" in caught
    assert "waits for the semaphore tokens" in caught
    assert re.search(r"#\d+:? .*\btake_token\b", caught), done.gdb


@needs_permission
@IN_BOTH
@pytest.mark.parametrize(
    ("program", "args", "what"),
    [
        ("waiting", ("holders", "2000"), "blocked"),
        ("preempted", ("400000",), "ready, without a processor"),
    ],
)
def test_what_a_call_has_spent_its_time_on(
    tmp_path: Path, program: str, args: tuple[str, ...], what: str
) -> None:
    """A lock that is waited for, and another program that has the processor: where both look alike
    from inside, as the thread stands wherever it was."""
    executable = build_waiting() if program == "waiting" else build(program)
    commands = [CATCH, "run", *["continue"] * 3, "kill"]
    done = debugger.debug(tmp_path, executable, args, commands)
    told = re.findall(
        r"handle under way for \S+ in thread \d+ \S+ "
        r"\((\d+) % ([^(),]*(?:, without[^(),]*)?)[,)]",
        done.gdb,
    )
    assert len(told) == 4, done.gdb
    assert any(reason == what and int(share) > 50 for share, reason in told), done.gdb


def test_among_five_hundred_threads(tmp_path: Path) -> None:
    commands = [CATCH, "run", mark("caught"), "bt", "darc stop", "kill"]
    done = debugger.debug(tmp_path, build_waiting(), ("horde", "2000"), commands)
    assert "handle under way for " in done.gdb
    assert re.search(r"#\d+:? .*\bhandle ?\(op=", done.section("caught")), done.gdb
    assert "every probe is out" in done.gdb


def test_a_thread_that_no_signal_stops_is_described(tmp_path: Path) -> None:
    """It waits for a child of vfork: the call is told of, and the program goes on to the next."""
    done = debugger.debug(tmp_path, build_waiting(), ("deep", "200"), [CATCH, "run", "kill"])
    told = " ".join(done.gdb.split())
    assert re.search(
        r"note: handle was under way for \d+ms in thread \d+, which no signal stops where it waits "
        r"in the kernel",
        told,
    ), done.gdb
    assert "\\n" not in done.gdb, done.gdb  # lines, not what stands for them
    caught = re.findall(r"handle under way for [^;]*?, in (.*?serve_slowly)", told)
    assert caught, done.gdb
    assert "wait_deeply" not in caught[0]


@IN_BOTH
def test_a_lock_that_another_process_holds(tmp_path: Path) -> None:
    commands = [CATCH, "run", mark("caught"), "continue", "kill"]
    done = debugger.debug(tmp_path, build_waiting(), ("shared", "4000"), commands)
    told = " ".join(done.gdb.split("\n"))
    held = (
        r"waits for the lock 0x\w+ in shared memory, held(?: when the wait began)? by \d+, "
        r"which is no thread of this program"
    )
    assert re.search(held, told), done.gdb


SLOW = """python exec("import gdb, time\\nclass Slow(gdb.Function):\\n def __init__(self): \
super().__init__('slow')\\n def invoke(self): time.sleep(1); return 0\\nSlow()")"""
"""A condition of a breakpoint that takes a second, for gdb, which asks nobody about the stop."""


def test_what_the_debugger_does_by_itself_makes_no_call_late(tmp_path: Path) -> None:
    """It holds the program in each call for longer, and tells nobody of that."""
    late = ["darc catch handle --above 800ms", SLOW, "break part_two if $slow()"]
    args = ("3", "alone")
    done = debugger.debug(tmp_path, build("preempted"), args, [*late, "run", debugger.EXIT])
    assert "handle under way for" not in done.gdb, done.gdb
    assert done.program_status == 0
    assert b"preempted: 3 operations" in done.output


SLOW_STOPS = """
import time
from darc.session.session import Session
decide = Session.decide
def decides(session):
    time.sleep(0.08)
    return decide(session)
Session.decide = decides
"""
"""Each stop begins so long before darc hears of it: twice as long as the lock is held for."""

UNTOLD_WAKERS = """
from darc.debuggee import switches
def refused(pid):
    raise PermissionError("as of those who are not privileged")
switches.Wakers = refused
"""

UNTOLD_SWITCHES = """
from darc.debuggee import switches
from darc.model.errors import UnsupportedError
def refused(pid):
    raise UnsupportedError("cannot tell running from waiting: as in a sandbox")
switches.Switches = refused
"""


@needs_permission
@IN_BOTH
@pytest.mark.parametrize("untold", ["", UNTOLD_WAKERS, UNTOLD_SWITCHES])
def test_the_stop_itself_is_no_time_of_the_call(tmp_path: Path, untold: str) -> None:
    """By the program's own clocks: since when the lock was held at the stop, and for how long that
    lasts with nobody who stops it. Calls that were under way at the stop before are among these."""
    (tmp_path / "slow.py").write_text(SLOW_STOPS + untold)
    clocks = [mark("clocks{}"), "print beat - held", "print hold"]
    stops = [
        part.format(number) for number in range(6) for part in ("continue", mark("at{}"), *clocks)
    ]
    stops[0] = "run"
    late = "darc catch handle --above 10ms"
    commands = [TOOLS, f"with-app {tmp_path / 'slow.py'}", late, *stops, "kill"]
    done = debugger.debug(tmp_path, build("held"), ("2000",), commands)
    told = re.findall(
        r'handle under way for (\d+(?:\.\d+)?)ms in thread \d+ "held"(?: \(([^()]*)\))?', done.gdb
    )
    assert len(told) == 6, done.gdb
    assert any("blocked" in parts for _, parts in told) is (untold != UNTOLD_SWITCHES), done.gdb
    texts = (done.section(f"clocks{number}") for number in range(6))
    told_by_program = [
        [int(ns) / 1e6 for ns in re.findall(r"\$\d+ = (\d+)", text)] for text in texts
    ]
    assert sum(float(took) for took, _ in told) < 1.5 * sum(
        since for since, _ in told_by_program
    ), done.gdb
    for (took, parts), (_, hold) in zip(told, told_by_program, strict=True):
        stopped = sum(map(int, re.findall(r"(\d+) % stopped", parts)))
        assert float(took) * (100 - stopped) < 150 * hold, done.gdb


@IN_BOTH
def test_ctrl_c_in_the_middle(tmp_path: Path) -> None:
    """No probe is to be seen then, in lldb from the first command on that looks; the catch goes on
    with the program, or is taken back, and the next one is as any."""
    with debugger.terminal(tmp_path, str(build("mixture"))) as gdb:
        gdb.command(TOOLS)
        gdb.command("darc catch handle --above 1h")
        gdb.enter("run 4000000000 > program.out")
        for _ in range(2):
            gdb.wait_for(LIVE)
            gdb.type("\x03")
            gdb.wait_for("SIGINT|SIGSTOP")
            gdb.prompt()
            assert "0 caught" in gdb.command("darc status")
            assert " 0 altered" in gdb.command("tell-code")
            gdb.enter("continue")
        gdb.wait_for(LIVE)
        gdb.type("\x03")
        gdb.wait_for("SIGINT|SIGSTOP")
        gdb.prompt()
        assert "every probe is out" in gdb.command("darc stop")
        gdb.command("darc catch handle --above 1ms")
        told = " ".join(gdb.command("continue").split())
        assert re.search(r"handle under way for .*handle", told), told
        assert re.search(r"\bhandle ?\(", gdb.command("bt"))
        assert " 0 altered" in gdb.command("tell-code")


@IN_BOTH
def test_at_a_terminal_what_is_told_is_wrapped_between_words(tmp_path: Path) -> None:
    with debugger.terminal(tmp_path, str(build("held")), columns=80) as gdb:
        gdb.command("darc catch handle --above 10ms")
        told = gdb.command("run 4000 > program.out")
    found = re.search(r"darc: handle under way for .*? its\s+probes", told.replace("\r", ""), re.S)
    assert found is not None, told
    first, *others = found[0].split("\n")
    assert others
    assert max(map(len, (first, *others))) <= 80, told
    assert all(re.match("  ", one) for one in others), told
    assert "waits for the lock lock, held by thread" in " ".join(found[0].split())


@IN_BOTH
def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    commands = [
        attempt("darc catch handle --above 10us"),
        attempt("darc catch"),
        attempt("darc catch handle"),
        attempt("darc catch handle --above soon"),
        attempt("darc catch handle --peak 1 --above 2ms"),
    ]
    done = debugger.debug(tmp_path, build_waiting(), (), commands)
    assert "'10us' is not a time of 1ms and more" in done.gdb
    assert "say of which function" in done.gdb
    assert "say how long is late" in done.gdb
    assert "--peak or --above, not both" in done.gdb
    assert "Traceback" not in done.gdb
