"""What darc takes of a program's memory, and gives back."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from darc.debuggee import procfs
from fixtures.build import build
from tests.debugger import (
    IN_BOTH,
    IN_LLDB_AT_NIGHT,
    REPORT,
    ROOT,
    Done,
    Server,
    debug,
    mark,
    server,
    undisturbed,
)
from tests.kills import programs as hazards
from tests.waiting import wait_for_changes, wait_until

TOOLS = f"source {ROOT / 'tests' / 'inside_gdb.py'}"
START = "darc start handle --peak >400us"
PATH = ("handle", "lookup", "burn")
MIB = 1 << 10  # in KiB, as /proc tells


SHOW_MAPPED = "python print(open(f'/proc/{gdb.selected_inferior().pid}/maps').read())"


def attach(folder: Path, running: Server, commands: Sequence[str]) -> Done:
    return debug(folder, None, (), [TOOLS, *commands], options=["-p", str(running.pid)])


def show(pid: int) -> str:
    return f"shell grep -E '^Vm|^RssAnon' /proc/{pid}/status"


def kib(text: str, name: str) -> int:
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(fields[name].split()[0])


def rounds(pid: int) -> int:
    """How often a program has slept that sleeps once in a round."""
    return int(procfs.fields(Path(f"/proc/{pid}/status"), ":")["voluntary_ctxt_switches"])


def test_a_small_analysis_takes_two_mib(tmp_path: Path) -> None:
    with server(build("server")) as running:
        before = kib(Path(f"/proc/{running.pid}/status").read_text(), "VmSize")
        commands = [START, mark("during"), show(running.pid), "continue", REPORT]
        done = attach(tmp_path, running, [*commands, mark("after"), show(running.pid)])
        assert done.paths == [PATH], done.gdb
        assert kib(done.section("during"), "VmSize") - before <= 2 * MIB
        assert running.finish() == 0


@IN_BOTH
def test_no_call_meets_a_page_of_darcs_that_is_not_there_yet(tmp_path: Path) -> None:
    """Operations take less than a page fault: those of the agent's would be the slow ones."""
    commands = ["darc start serve --peak '>3us' --start-ops 20000", "run", REPORT, "continue"]
    done = debug(tmp_path, build("rare"), ("200000", "faults"), commands)
    assert done.paths == [("serve", "refill", "crunch")], done.gdb
    # One for each call that the debugger has made in it, on a stack of its own.
    assert int(done.output.split(b"faults: ")[1]) < 50, done.output


@IN_BOTH
def test_a_stack_that_grows_down(tmp_path: Path) -> None:
    """Nothing of darc's is mapped where it is to grow to: while the program is analysed, and for as
    long as it lives."""
    with server(build("growsdown")) as running:
        done = attach(tmp_path, running, [START, "continue", REPORT, "detach"])
        assert done.paths == [PATH], done.gdb
        while running.operations() < 100_000:
            pass  # by then it is as deep as it will ever be
        assert running.finish() == 0


@pytest.mark.parametrize(("what", "room"), [("address", 4), ("data", 4), ("address", 16)])
def test_no_room_below_a_limit(what: str, room: int, tmp_path: Path) -> None:
    """Refused in words, and nothing is left: the program is given all that it asks for, also where
    it asks for most of the room from time to time alone."""
    with server(build("limited"), what, str(room * MIB)) as running:
        while not running.operations():
            pass  # some were made, and it has had all that it asks for
        count = procfs.mapping_count(running.pid)
        done = attach(tmp_path, running, [f"{START} --probes pad"])
        assert "pads would take" in done.gdb
        assert "--max-probes" in done.gdb
        assert running.operations()
        assert abs(procfs.mapping_count(running.pid) - count) <= 1
        assert running.finish() == 0


@pytest.mark.parametrize(
    ("what", "room"), [("address", 32), ("data", 32), ("execute", 1), ("files", 1)]
)
def test_room_below_a_limit(what: str, room: int, tmp_path: Path) -> None:
    with server(build("limited"), what, str(room * MIB)) as running:
        done = attach(tmp_path, running, [f"{START} --probes pad", "continue", REPORT])
        assert done.paths == [PATH], done.gdb
        assert running.finish() == 0


def test_memory_that_is_locked(tmp_path: Path) -> None:
    """Nothing of darc's is locked, and no more is used than what calls come to."""
    with server(build("limited"), "locked", str(8 * MIB)) as running:
        running.operations()
        before = Path(f"/proc/{running.pid}/status").read_text()
        commands = [f"{START} --probes pad", mark("during"), show(running.pid)]
        done = attach(tmp_path, running, [*commands, mark("go"), "continue", REPORT])
        assert done.paths == [PATH], done.gdb
        during = done.section("during")
        # The program itself has that much more from time to time, also in the middle of a stop.
        taken = -(-8 * MIB * 6 // 10 // 4) * 4
        assert abs(kib(during, "VmLck") - kib(before, "VmLck")) in {0, taken}
        used = kib(during, "RssAnon") - kib(before, "RssAnon")
        assert min(used % taken, -used % taken) < 2 * MIB
        assert running.finish() == 0


def test_a_limit_of_locked_memory(tmp_path: Path) -> None:
    """The kernel refuses in the middle; what was mapped before is given back."""
    with server(build("limited"), "locked", "1000") as running:
        running.operations()
        count = procfs.mapping_count(running.pid)
        done = attach(tmp_path, running, [f"{START} --probes pad"])
        assert "ulimit -l" in done.gdb
        assert running.operations()
        assert procfs.mapping_count(running.pid) == count
        assert running.finish() == 0


COUNT = "darc start handle --start-ops 1000000000"
"""Counts every call until the program ends."""


def count_of(done: Done) -> int:
    assert done.report is not None, done.gdb
    assert b", 0 wrong" in done.output, done.gdb
    return int(done.report["profile"]["count"])


def test_threads_that_take_over_storage(tmp_path: Path) -> None:
    """A thread that ends within an operation leaves nothing to the one that has its storage."""
    done = debug(tmp_path, build("lodgers"), ("reuse", "100"), [COUNT, "run", REPORT])
    assert count_of(done) == 200


def test_more_threads_one_after_the_other_than_there_is_room_for(tmp_path: Path) -> None:
    """Those that have ended make room, with what was counted of them."""
    done = debug(tmp_path, build("lodgers"), ("short", "300"), [COUNT, "run", REPORT])
    assert count_of(done) == 600


@pytest.mark.parametrize(
    ("what", "number"), [("stay", "500"), ("stay", "4200"), ("bare", "100000")]
)
def test_threads_that_are_there(what: str, number: str, tmp_path: Path) -> None:
    """Each has room of its own. One without storage of its own cannot be told from its parent,
    which costs measurements and no more."""
    with server(build("lodgers"), what, number, "wait") as running:
        done = attach(tmp_path, running, [COUNT, "continue", REPORT])
        assert done.report is not None, done.gdb
        count = done.report["profile"]["count"]
        # All are there as the program goes on, and begin at once: what they do then may not count.
        held_up = re.search(r"(\d+) calls were not counted", " ".join(done.report["notes"]))
        count += int(held_up[1]) if held_up else 0
        whole = 8 * int(number)  # of those that do not count some are counted twice as one
        wanted = 0.95 * whole < count <= whole if what == "stay" else count > 0
        assert wanted, done.report["notes"]
        assert running.read_line().endswith(b" 0 wrong\n")


EARLY, OPS, FIRST = 5, 8000, 4
"""Calls of crowd's before its threads begin, and of each of those; threads that there is room for
before more is taken."""


@IN_LLDB_AT_NIGHT
@pytest.mark.parametrize("threads", [80, 600])
def test_threads_that_begin_later(threads: int, tmp_path: Path) -> None:
    """The tables were made for one: larger ones are taken when threads find no room."""
    arguments = (str(OPS), str(threads), str(EARLY))
    done = debug(tmp_path, build("crowd"), arguments, [COUNT, "run", REPORT])
    assert done.report is not None, done.gdb
    total = OPS * threads + EARLY
    assert EARLY + FIRST * OPS < done.report["profile"]["count"] <= total, done.gdb
    assert (0, done.output) == undisturbed(build("crowd"), arguments)


def test_a_search_among_threads_that_begin_later(tmp_path: Path) -> None:
    """Calls that there is no room for cast no votes: the answer is as for those that were there."""
    done = debug(
        tmp_path,
        build("crowd"),
        ("60000", "600", str(EARLY)),
        ["darc start handle --peak >800us --start-ops 6400 --lookahead 1", "run", REPORT, "kill"],
    )
    assert done.paths == [("handle", "store", "usleep", "nanosleep", "clock_nanosleep")], done.gdb


def test_a_limit_that_is_met_on_the_way(tmp_path: Path) -> None:
    """The analysis goes on with the room that it has, and tells of it; the program has all it
    needs."""
    arguments = (str(OPS), "200", str(EARLY))
    done = debug(
        tmp_path,
        build("crowd"),
        arguments,
        ["set exec-wrapper prlimit --as=41943040", COUNT, "run", mark("status"), "darc status",
         REPORT],
    )  # fmt: skip
    assert done.report is not None, done.gdb
    assert 0 < done.report["profile"]["count"] < OPS * 200
    told = done.section("status")
    assert "no room for more threads" in told
    assert "ulimit -v" in told
    assert "calls were not timed: there were more threads" in told
    assert (0, done.output) == undisturbed(build("crowd"), arguments)


@IN_LLDB_AT_NIGHT
def test_memory_is_given_back_where_signals_come_into_pads(tmp_path: Path) -> None:
    """What the kernel has saved for a handler that has come back leads nowhere: neither below the
    stack nor on a stack of the handlers' own."""
    start = "darc start handle --peak last --start-ops 100 --decision-ops 3 --max-time 9s"
    with hazards.running("ticks", tmp_path) as program:
        before = size_of(program.pid)
        for _ in range(4):
            commands = [
                *(f"handle {name} nostop noprint pass" for name in ("SIGALRM", "SIGUSR1")),
                *(start, "continue", "darc stop", "detach"),
            ]
            done = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
            hazards.wait_until_let_go(program.pid)
            assert "every probe is out" in done.gdb
            assert size_of(program.pid) - before <= 64
            program.check()
        program.finish()


@pytest.mark.parametrize("leaving", ["darc stop", "detach"])
def test_memory_is_given_back(leaving: str, tmp_path: Path) -> None:
    """After the end the program has what it had before, and the landings that were used. Other
    debuggers that come use those again."""
    with server(build("server")) as running:
        before = kib(Path(f"/proc/{running.pid}/status").read_text(), "VmSize")
        sizes = []
        for _ in range(3):
            done = attach(tmp_path, running, [START, "continue", REPORT, leaving])
            assert done.paths == [PATH], done.gdb
            sizes.append(kib(Path(f"/proc/{running.pid}/status").read_text(), "VmSize") - before)
        assert 0 < sizes[0] <= 64
        assert sizes == [sizes[0]] * 3
        assert running.finish() == 0


def test_memory_and_result_of_the_one_before_a_name_that_is_not_there(tmp_path: Path) -> None:
    """It waits for a library in the place of what was found, until it waits no more."""
    commands = [
        "darc start handle --peak last --start-ops 500",
        "run",
        mark("waits"),
        "darc start hadnle",
        "darc stop",
        REPORT,
        SHOW_MAPPED,
        "kill",
    ]
    done = debug(tmp_path, build("mixture"), ("20000",), commands)
    found = done.section("waits")
    assert "waits for a library" in found, done.gdb
    assert "waits no more" in found, done.gdb
    assert [path[-1] for path in done.paths] == ["clock_nanosleep"], done.gdb
    areas = re.findall("^([0-9a-f]+)-([0-9a-f]+) r-xp .* 0 *$", done.gdb, re.M)
    assert sum(int(end, 16) - int(start, 16) for start, end in areas) <= 64 << 10, areas


def size_of(pid: int) -> int:
    """Of its mappings without its stack, which grows by itself, in KiB."""
    stacks = (one for one in procfs.regions(pid) if one.path == "[stack]")
    own = sum(one.end - one.start for one in stacks) >> 10
    return kib(Path(f"/proc/{pid}/status").read_text(), "VmSize") - own


@IN_LLDB_AT_NIGHT
@pytest.mark.parametrize("command", ["start handle --probes pad", "profile handle lookup"])
def test_nothing_is_left_by_an_analysis_that_is_refused(command: str, tmp_path: Path) -> None:
    """There is no room for pads where it needs them. The program goes on right away."""
    with hazards.running("filled", tmp_path) as program:
        before = size_of(program.pid)
        done = debug(
            tmp_path, None, (), [f"darc {command}", SHOW_MAPPED], options=["-p", str(program.pid)]
        )
        assert "no room for a pad" in done.gdb
        own = re.findall("^([0-9a-f]+)-([0-9a-f]+) r-xp .* 0 *$", done.gdb, re.M)
        assert sum(int(end, 16) - int(start, 16) for start, end in own) <= 64 << 10, own
        assert size_of(program.pid) - before <= 64  # landings
        hazards.wait_until_let_go(program.pid)
        program.check()
        program.finish()


@IN_LLDB_AT_NIGHT
@pytest.mark.parametrize("pointers", ["own", "shared"])
@pytest.mark.parametrize("ends", ["found", "stopped"])
def test_memory_is_given_back_of_green_threads(ends: str, pointers: str, tmp_path: Path) -> None:
    """Below the stack pointers of coroutines that rest no word leads to the agent or to a pad."""
    with server(build("greens"), pointers) as running:

        def interrupt() -> None:
            # By no signal: what one interrupts is on the coroutine's stack then. Nor while tables
            # grow, each time at a stop that counts as a round: the thread is in the agent then.
            wait_for_changes(running.pid)
            before = rounds(running.pid)
            wait_until(lambda: rounds(running.pid) > before + 200)
            os.kill(running.pid, signal.SIGINT)

        before = kib(Path(f"/proc/{running.pid}/status").read_text(), "VmSize")
        ops = "3000" if ends == "found" else "500000000"
        if ends == "stopped":
            threading.Thread(target=interrupt, daemon=True).start()
        start = f"darc start handle --peak last --start-ops {ops}"
        done = attach(tmp_path, running, [start, "continue", "darc stop", "detach"])
        assert "every probe is out" in done.gdb, done.gdb
        assert kib(Path(f"/proc/{running.pid}/status").read_text(), "VmSize") - before <= 256
        running.operations()
        assert running.finish() == 0


def test_many_threads_take_what_they_use_of_large_tables(tmp_path: Path) -> None:
    """Each has a context of its own; of tables for twice as many, no more is there than the pages
    that they have come to."""
    with server(build("greens"), "own") as running:
        status = Path(f"/proc/{running.pid}/status")

        def interrupt() -> None:
            wait_until(lambda: kib(status.read_text(), "VmSize") > 64 * MIB)
            before = rounds(running.pid)
            wait_until(lambda: rounds(running.pid) > before + 20)
            os.kill(running.pid, signal.SIGINT)

        before = kib(status.read_text(), "RssAnon")
        threading.Thread(target=interrupt, daemon=True).start()
        commands = ["darc start handle --peak last --start-ops 500000000", "continue"]
        shown = [mark("during"), show(running.pid), mark("end"), "darc stop", "detach"]
        done = attach(tmp_path, running, [*commands, *shown])
        during = done.section("during")
        assert kib(during, "RssAnon") - before <= 20 * MIB
        assert running.finish() == 0


def test_memory_is_given_back_of_workers_that_wait(tmp_path: Path) -> None:
    """In the holes of the frames in which they wait stand return addresses of calls that are over:
    by these nobody comes back to a pad."""
    once = ["darc start serve --peak last", "run", REPORT, "darc stop", mark("after")]
    done = debug(tmp_path, build("jobs"), ("1000000",), [*once, SHOW_MAPPED, "kill"])
    assert done.paths == [("serve", "compact", "usleep", "nanosleep", "clock_nanosleep")], done.gdb
    own = re.findall("^([0-9a-f]+)-([0-9a-f]+) r-xp .* 0 *$", done.section("after"), re.M)
    assert own, done.gdb
    assert sum(int(end, 16) - int(start, 16) for start, end in own) <= 64 << 10, own


AGAIN = """
import gc, os
from pathlib import Path

import gdb

import darc_gdb

PID = gdb.selected_inferior().pid


def of_pads():
    \"\"\"What tells of the places of pads, given up together when half of the room is used.\"\"\"
    foothold = darc_gdb.APP._stay.remains
    pads = [] if foothold is None else foothold._pads
    parts = [part for pad in pads for part in (pad, pad.rows, pad.frames, *pad.frames)]
    return sum(map(gc.is_tracked, parts))


def kept():
    \"\"\"What neither of the two may have more of, however often it is analysed.\"\"\"
    gc.collect()
    counts = [len(gc.get_objects()) - of_pads()]
    for process in (os.getpid(), PID):
        folder = Path(f"/proc/{process}")
        counts.append(len(list((folder / "fd").iterdir())))
        counts.append((folder / "maps").read_bytes().count(b"\\n"))
    return counts


seen = []
for number in range(45):
    for command in COMMANDS:
        try:
            gdb.execute(command, to_string=True)
        except gdb.error as error:
            if number == 0:
                print(error)
    seen.append(kept() if number >= 40 or 20 <= number < 25 else None)
# The last analysis is there, and has more to tell at times.
print("kept:", *map(min, zip(*seen[20:25])), *map(min, zip(*seen[40:])))
"""


@pytest.mark.parametrize(
    ("program", "args", "commands"),
    [
        ("server", (), (START, "continue")),
        ("server", (), (START, "continue", "darc report", "darc stop")),
        ("limited", ("locked", "1000"), (f"{START} --probes pad",)),
    ],
    ids=["again", "stopped", "refused"],
)
def test_many_analyses_keep_nothing(
    program: str, args: tuple[str, ...], commands: tuple[str, ...], tmp_path: Path
) -> None:
    """Objects, descriptors and mappings, of the debugger and of the program."""
    script = tmp_path / "again.py"
    script.write_text(f"COMMANDS = {commands!r}\n{AGAIN}")
    with server(build(program), *args) as running:
        running.operations()
        done = attach(tmp_path, running, [f"source {script}"])
        assert ("ulimit -l" in done.gdb) == (program == "limited"), done.gdb
        found = re.findall(r"^kept: (.*)$", done.gdb, re.M)
        assert found, done.gdb
        numbers = [int(number) for number in found[0].split()]
        objects, descriptors, mappings, own_descriptors, own_mappings = (
            after - before for before, after in zip(numbers[:5], numbers[5:], strict=True)
        )
        # Over 150 analyses they are 51,290 and 250 more or less: a session is more.
        assert objects < 12 * 20, numbers
        assert (own_descriptors, own_mappings) == (0, 0), numbers
        assert descriptors <= 5, numbers  # gdb's own files come and go,
        assert mappings <= 5, numbers  # and Python's memory
        assert running.finish() == 0


IN_TURN = """
import gdb

import darc_gdb
from darc.debuggee import procfs

PID = gdb.selected_inferior().pid
data = [r for r in procfs.regions(PID) if "/server-" in r.path and "w" in r.permissions][-1]


def keep(number):
    \"\"\"As a frame does on whose place other frames were: what they left stays for a while.\"\"\"
    for area in darc_gdb.APP._stay.remains._areas:
        word = area.base + area.used - 8
        place = data.end - 64 + number % 8 * 8
        gdb.selected_inferior().write_memory(place, word.to_bytes(8, "little"))


OPTIONS = "--peak >400us --start-ops 200 --max-probes 10"

for number in range(1, 13):
    function = ("handle", "lookup")[number % 2]
    gdb.execute(f"darc start {function} {OPTIONS}", to_string=True)
    print("result:", "burn" in gdb.execute("continue", to_string=True))
    if KEEPS:
        keep(number)
    if LEAVES:
        gdb.execute("detach", to_string=True)
        gdb.execute(f"attach {PID}", to_string=True)
    if number in (4, 12):
        size = procfs.status(PID)["VmSize"].split()[0]
        print("figures:", procfs.mapping_count(PID), size)
"""


@pytest.mark.parametrize("leaves", [False, True], ids=["stays", "leaves"])
@pytest.mark.parametrize("keeps", [False, True], ids=["nothing", "stale"])
def test_two_functions_in_turn(keeps: bool, leaves: bool, tmp_path: Path) -> None:
    """Memory is flat, also where words that nobody needs any more lead to some of the pads."""
    script = tmp_path / "in_turn.py"
    script.write_text(f"KEEPS, LEAVES = {keeps}, {leaves}\n{IN_TURN}")
    with server(build("server")) as running:
        done = attach(tmp_path, running, [f"source {script}"])
        assert done.gdb.count("result: True") == 12, done.gdb
        figures = re.findall(r"^figures: (.*)$", done.gdb, re.M)
        assert len(figures) == 2, done.gdb
        assert figures[0] == figures[1], done.gdb
        assert running.finish() == 0


USED_UP = """
import gdb

import darc_gdb
from darc.pads import returns

START = "darc start handle --peak >400us --start-ops 200"
for number in range(5):
    gdb.execute(START, to_string=True)
    said = gdb.execute("continue", to_string=True)
    said += gdb.execute("darc report", to_string=True)
    print("burn:", "lookup → burn" in said, "told:", "as many calls were timed" in said)
    for pool in darc_gdb.APP._stay.remains.landings:  # as if others had them
        words = range(returns._SITES, returns._CALLERS)
        raw = b"".join(number.to_bytes(8, "little") for number in words)
        darc_gdb.APP._target.memory.write(pool._word(words.start), raw)
        pool._known = None
"""


USED_UP_MEANWHILE = """
import gdb

import darc_gdb
from darc.pads import returns

gdb.execute("darc start handle --peak >400us --start-ops 200", to_string=True)
for pool in darc_gdb.APP._stay.remains.landings:  # as if a search had taken them on its way
    words = range(returns._SITES, returns._CALLERS)
    raw = b"".join(number.to_bytes(8, "little") for number in words)
    darc_gdb.APP._target.memory.write(pool._word(words.start), raw)
    pool._known = None
said = gdb.execute("continue", to_string=True)
said += gdb.execute("darc report", to_string=True)
print("burn:", "lookup → burn" in said, "told:", "as many calls were timed" in said)
"""


def landings_used_up(folder: Path, script: str) -> tuple[list[tuple[str, str]], str]:
    """What it says of each search, and all that gdb says; the program ends well."""
    file = folder / "used_up.py"
    file.write_text(script)
    with server(build("server")) as running:
        done = attach(folder, running, [f"source {file}"])
        assert running.finish() == 0, done.gdb
    return re.findall(r"^burn: (\w+) told: (\w+)$", done.gdb, re.M), done.gdb


def test_there_are_more_landings_when_a_search_uses_up_those_that_there_are(tmp_path: Path) -> None:
    """In its midst: a call in the program maps them, while darc's writes are gathered."""
    found, said = landings_used_up(tmp_path, USED_UP_MEANWHILE)
    assert found == [("True", "False")], said


def test_there_are_more_landings_when_those_are_used_up(tmp_path: Path) -> None:
    """Up to a limit, which is told."""
    found, said = landings_used_up(tmp_path, USED_UP)
    assert found == [("True", "False")] * 4 + [("False", "True")], said
