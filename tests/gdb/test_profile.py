"""``darc profile``: many functions at once, each for itself, in programs that make it hard."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fixtures.build import build
from tests.code import INT3, compare_code
from tests.debugger import (
    DARC_GDB,
    EXIT,
    IN_BOTH,
    IN_LLDB_AT_NIGHT,
    REPORT,
    ROOT,
    Done,
    attempt,
    debug,
    let_go,
    mark,
    server,
    undisturbed,
    watched,
)
from tests.kills import programs as hazards

TOOLS = f"source {ROOT / 'tests' / 'inside_gdb.py'}"
ALL = "darc profile * --time 10min"
"""Up to the program's end, where every call was seen."""


def to_the_end(folder: Path, name: str, *args: str, command: str = ALL) -> Done:
    """The program under it; it must do what it does when nobody looks."""
    program = build(name)
    done = debug(folder, program, args, [command, "run", EXIT, REPORT])
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb
    assert "Traceback" not in done.gdb
    return done


def rows(done: Done) -> dict[str, dict[str, Any]]:
    """The functions that were called, by name."""
    assert done.report is not None, done.gdb
    return {row["function"]: row for row in done.report["set"]["functions"]}


def calls(done: Done) -> dict[str, int]:
    """Calls of each function, those that it never returned from with them."""
    return {name: row["calls"] + row["left"] for name, row in rows(done).items()}


@IN_BOTH
def test_every_call_of_every_function(tmp_path: Path) -> None:
    done = to_the_end(tmp_path, "mixture", "4000")
    found = calls(done)
    assert (found["handle"], found["lookup"], found["flush"], found["write_out"]) == (
        *(4000, 4000),
        *(62, 62),
    )
    own = rows(done)
    assert done.report is not None
    assert done.report["set"]["functions"][0]["function"] == "handle"  # slow now and then
    assert own["handle"]["sum"] > own["flush"]["sum"] > own["write_out"]["sum"] > 0
    assert len(own["handle"]["peaks"]) > 1
    reasons = {one["function"]: one["why"] for one in done.report["set"]["left_out"]}
    assert reasons["_start"]


@pytest.mark.parametrize("first", ["1", "handle"])
def test_where_to_look_and_then_why(tmp_path: Path, first: str) -> None:
    """The table; its rows by their numbers or names; and the program's code is its own again."""
    commands = [
        "darc profile handle flush 'write_*' --time 1s",
        "run",
        mark("histogram"),
        "darc histogram 1",
        mark("code"),
        "disassemble /r handle,+8",
        mark("save"),
        "darc save set.json",
        attempt("darc resume set.json"),
        mark("start"),
        f"darc start {first} --peak last --start-ops 2000 --decision-ops 5",
        "continue",
        mark("end"),
        attempt("darc histogram 2"),
        "kill",
    ]
    done = debug(tmp_path, build("mixture"), ("2000000",), commands)
    table = done.gdb.split("<histogram>")[0]
    assert re.search(r"^darc: handle flush write_\*: done$", table, re.M), done.gdb
    assert re.search(r"^1 +\S+ +\d+ .* handle$", table, re.M), done.gdb
    assert re.search(r"handle: \d+ calls", done.section("histogram"))
    assert "\te9 " not in done.section("code")
    assert "session saved to set.json" in done.section("save")
    assert "goes on with it" not in done.section("save")
    assert "set.json is of 'darc profile', which begins anew in each run" in done.section("save")
    cause = r"root cause of (bins [\d-]+|peak \d+): handle → flush → write_out"
    assert re.search(cause, done.section("start")), "of the row's peak, or of the last one in it"
    assert re.search(r" (flush|write_out): \d+ calls$", done.section("end"), re.M), "as before"


def came(comparison: dict[str, Any]) -> list[str]:
    """Functions with a peak that has many calls, and at least four times as many as it had: on a
    busy machine one call in a thousand or two is preempted, more in one run than in another."""
    return [
        one["function"]
        for one in comparison["functions"]
        if any(
            peak["verdict"] == "changed" and peak["now"] > max(0.005, 4 * peak["before"])
            for peak in one["peaks"]
        )
    ]


def test_what_a_change_has_made_slow(tmp_path: Path) -> None:
    """Two runs, before a change and after: the one function is told, by files and against what was
    profiled last; and not by two runs before it. On a busy machine others may change indeed."""
    program = build("regressed")
    commands = ["darc profile * --time 10min", "run", EXIT, "darc save before.json"]
    debug(tmp_path, program, ("60000",), commands)
    debug(tmp_path, program, ("60000",), [*commands[:3], "darc save again.json"])
    done = debug(
        tmp_path,
        program,
        ("60000", "1"),
        [
            *commands[:3],
            mark("live"),
            "darc compare before.json",
            "darc save after.json",
            mark("files"),
            "darc compare before.json after.json --by latency --format json -o diff.json",
            "darc compare before.json again.json --format json -o same.json",
            mark("errors"),
            attempt("darc compare"),
            attempt("darc compare 2 before.json"),
            attempt("darc compare before.json --by guess"),
        ],
    )
    assert re.search(r"^darc: before.json → now: \d of \d+ compared", done.section("live"), re.M)
    assert re.search(r"^ *!\d+ .* parse$", done.section("live"), re.M), done.gdb
    assert re.search(r"(came|grew|moved) .* → 1(\.\d)? % of", done.section("live")), done.gdb
    assert "called only now: reload" in done.section("live")
    found = json.loads((tmp_path / "diff.json").read_text())
    assert came(found) == ["parse"]
    assert found["by"] == "latency"
    assert came(json.loads((tmp_path / "same.json").read_text())) == []
    assert done.section("errors").count("sets are compared with saved ones") == 2
    assert "'guess' is not one of emd, chi2, ops, latency" in done.section("errors")
    assert "Traceback" not in done.gdb


def test_what_comes_at_equal_distances_of_time(tmp_path: Path) -> None:
    """A slow call in every fifth of a second, in intervals of 20 ms."""
    commands = [
        "darc profile handle flush --time 20s --every 20ms",
        "run",
        mark("table"),
        "darc status",
        mark("row"),
        "darc histogram 1",
        REPORT,
        mark("errors"),
        attempt("darc profile * --every 1ms"),
        attempt("darc profile * --time 10min --every 20ms"),
        attempt("darc profile * --time 1s --every 2s"),
    ]
    done = debug(tmp_path, build("periodic"), ("20",), commands)
    assert done.report is not None, done.gdb
    periods = [one for one in done.report["set"]["hints"] if one["kind"] == "period"]
    slow = {one["function"]: one["seconds"] for one in periods}
    assert slow["flush"] == pytest.approx(0.2, rel=0.1), done.gdb
    assert re.search(r"comes every (19|20|21)\dms$", done.section("table"), re.M), done.gdb
    assert "calls by latency and time" in done.section("row")
    every = rows(done)["flush"]["lapse"]
    assert len(every) >= 190
    assert sum(sum(one.values()) for one in every) in (19, 20)
    assert "'1ms' is not a time of 10ms and more" in done.section("errors")
    assert "take one of 1s" in done.section("errors")
    assert "Traceback" not in done.gdb


CTRL_C = (
    "python import os, signal; from darc.session.session import Session; "
    "Session.beat = lambda session: session.collector.counting.seen > 1000 and "
    "os.kill(session._pid, signal.SIGINT)"
)
"""As the terminal does to the program, once it has made some calls."""


def test_ctrl_c_ends_it_with_what_is_known(tmp_path: Path) -> None:
    commands = [
        CTRL_C,
        ALL,
        "run",
        mark("code"),
        "disassemble /r handle,+8",
        mark("again"),
        attempt("darc stop"),
        REPORT,
        "kill",
    ]
    done = debug(tmp_path, build("mixture"), ("2000000",), commands)
    table = done.gdb.split("<code>")[0]
    assert re.search(r"^darc: \*: stopped$", table, re.M), done.gdb
    assert re.search(r"^1 +\S+ +\d+ .* handle$", table, re.M), done.gdb
    assert "\te9 " not in done.section("code")
    assert rows(done)["handle"]["calls"] > 0


HARD = {
    "exceptions": ({"handle": 4000, "parse": 4000, "outer": 4000}, "handle"),
    "throwing": ({"handle": 4000, "parse": 4000, "burn": 4000}, "handle"),
    "longjmp": ({"handle": 4000, "parse": 4000, "burn": 4000}, "handle"),
    "coroutine": ({"handle": 4000, "fetch": 4000}, None),
    "yielding": ({"handle": 4967, "fetch": 4967}, "fetch"),
    "cancel": ({}, None),
    "retry": ({}, None),
    "setjmp": ({}, None),
    "signals": ({}, None),
    "recursion": ({"handle": 4000}, None),
    "redzone": ({"handle": 4000, "leaf": 4000}, None),
    "ipara": ({"handle": 4000}, None),
    "tracing": ({"handle": 4000}, None),
    "sharedstack": ({}, None),
    "stackargs": ({}, None),
}
"""Calls that there must be, and a function that exceptions or jumps leave."""


@pytest.mark.parametrize("name", HARD)
def test_programs_that_make_it_hard(tmp_path: Path, name: str) -> None:
    wanted, left = HARD[name]
    done = to_the_end(tmp_path, name, "4000")
    found = calls(done)
    assert {function: found[function] for function in wanted} == wanted
    if left is not None:
        assert 0 < rows(done)[left]["left"] < 4000
        assert "left by an exception or a longjmp" in done.gdb


TELL_PUT_IN = (
    "python from darc.collectors.set_collector import SetCollector as S; put_in = S.put_in; "
    "S.put_in = lambda own: (print('left', len(own.pads._to_make), 'of', "
    "len(own.pads.functions)), "
    "put_in(own))"
)


@IN_LLDB_AT_NIGHT
def test_functions_that_the_program_writes_over_are_left_out(tmp_path: Path) -> None:
    """A jump in their first bytes would lead anywhere when the program next writes a constant
    there."""
    with hazards.running("selfpatch", tmp_path) as program:
        commands = ["darc profile * --time 1s", "continue", REPORT, "darc stop"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
        hazards.wait_until_let_go(program.pid)
        program.check()
        program.finish()
    assert done.report is not None, done.gdb
    left_out = {row["function"]: row["why"] for row in done.report["set"]["left_out"]}
    assert "changed its first bytes" in left_out["constant"]
    assert {"handle", "lookup"} <= set(calls(done))


def test_pads_of_many_are_made_while_the_program_runs(tmp_path: Path) -> None:
    """It goes on meanwhile, a stop of the user's comes in between, and then all are timed."""
    commands = [
        TELL_PUT_IN,
        "break main",
        "run",
        "break compress_block",
        "darc profile libc.so.6!*st* /./ --time 1s",
        "continue",
        mark("between"),
        "disassemble /r handle,+8",
        "delete",
        mark("on"),
        "continue",
        mark("code"),
        "disassemble /r handle,+8",
        REPORT,
        "kill",
    ]
    done = debug(tmp_path, build("mixture"), ("2000000",), commands)
    assert "left" not in done.section("between"), done.gdb
    assert "\te9 " not in done.section("between")
    left = re.search(r"^left (\d+) of (\d+)$", done.section("on"), re.M)
    assert left is not None, done.gdb
    assert (int(left[1]), int(left[2]) > 300) == (0, True)
    assert rows(done)["handle"]["calls"] > 100
    assert "\te9 " not in done.section("code")
    assert "Traceback" not in done.gdb


def test_pads_that_take_too_long_are_left_out(tmp_path: Path) -> None:
    """And not made at one long stop: what there is by then is timed, for the whole time."""
    commands = [
        "python from darc.analyses import setmaking; setmaking._MAKING_SECONDS = 0.0",
        "break main",
        "run",
        "darc profile libc.so.6!*st* /./ --time 1s",
        "continue",
        REPORT,
        "kill",
    ]
    done = debug(tmp_path, build("mixture"), ("2000000",), commands)
    assert done.report is not None, done.gdb
    late = [one for one in done.report["set"]["left_out"] if "not made in time" in one["why"]]
    assert len(late) > 100, done.gdb
    assert f"{len(late)} not timed: its pad was not made in time" in done.gdb
    assert done.report["set"]["seconds"] >= 1
    assert "Traceback" not in done.gdb


def test_the_program_ends_before_pads_are_made(tmp_path: Path) -> None:
    program, args = build("mixture"), ("200",)
    commands = ["break main", "run", "darc profile libc.so.6!*st* /./", "continue", EXIT]
    done = debug(tmp_path, program, args, commands)
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb
    assert "Traceback" not in done.gdb


def test_five_nested_functions_are_left_in_every_way(tmp_path: Path) -> None:
    """By a return, an exception, a jump, a coroutine's switch, in a fork's child: each call is
    counted once, as what it was. The coroutine's last calls are under way at the end."""
    done = to_the_end(tmp_path, "nest", "4000")
    own = rows(done)
    thrown, jumped, in_coroutine = 1000, 960, 1000
    for name, left in (
        ("first", jumped),
        ("second", jumped),
        *((name, thrown + jumped) for name in ("third", "fourth", "fifth")),
    ):
        assert own[name]["left"] == left, (name, own[name])
        assert own[name]["calls"] in range(
            4000 - left + in_coroutine - 1, 4000 - left + in_coroutine + 1
        ), (name, own[name])


def test_a_member_is_unloaded_and_loaded_again(tmp_path: Path) -> None:
    program, args = build("farlib"), ("4000", "reload")
    commands = [
        "set breakpoint pending on",
        "break far_handle",
        "run",
        "delete",
        "darc profile libfar*!* --time 10min",
        "continue",
        EXIT,
        REPORT,
    ]
    done = debug(tmp_path, program, args, commands)
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb
    assert 0 < calls(done)["far_handle"] <= 4000
    assert "Traceback" not in done.gdb


def altered(pid: int) -> list[str]:
    """Bytes of code that darc has changed: breakpoints are the debugger's own."""
    return [one.place for one in compare_code(pid)[1] if one.live != INT3]


def test_debugger_is_killed_with_hundreds_of_probes_in(tmp_path: Path) -> None:
    """The program goes on; its children, threads and signals too; the next debugger takes all
    out."""
    with server(build("server")) as running:
        script = tmp_path / "die.gdb"
        script.write_text(
            "darc profile libc.so.6!*st* /./ --time 10min\n"
            "python import os, signal\n"
            "python from darc.session.session import Session\n"
            "python Session.beat = lambda session: session.collector.is_in and "
            "os.kill(os.getpid(), signal.SIGKILL)\n"
            "continue\n"
        )
        command = [*DARC_GDB, "-nx", "-q", "-batch", "-p", str(running.pid), "-x", str(script)]
        status, said, *_ = watched(tmp_path, command)
        assert status == -signal.SIGKILL, said
        let_go(running.pid)
        before = running.operations()
        assert len(altered(running.pid)) > 500
        while running.operations() < before + 100:
            pass
        attached = ["-nx", "-q", "-batch", "-p", str(running.pid), "-ex", "darc stop"]
        _, said, *_ = watched(tmp_path, [*DARC_GDB, *attached])
        assert "probes in the program: they were taken out" in said
        assert altered(running.pid) == []
        assert running.finish() == 0


def test_tail_calls_are_timed_to_the_same_return(tmp_path: Path) -> None:
    done = to_the_end(tmp_path, "tail", "4000")
    found, own = calls(done), rows(done)
    assert found["handle"] == 4000
    jumped = [row for name, row in own.items() if row["calls"] == 4000 and name != "handle"]
    assert len(jumped) >= 2


def test_a_loop_that_jumps_to_the_functions_own_first_byte_is_one_call(tmp_path: Path) -> None:
    done = to_the_end(tmp_path, "tailloop", "4000")
    own = rows(done)
    assert (own["handle"]["calls"], own["handle"]["left"]) == (4000, 0)
    assert own["step"]["calls"] == 20000
    assert own["handle"]["sum"] > own["step"]["sum"]


def test_functions_that_are_called_too_often_go_out(tmp_path: Path) -> None:
    """What was counted of them stays; the others go on."""
    done = to_the_end(tmp_path, "loop", "40000")
    own = rows(done)
    assert own["compare"]["until"] > 0
    assert own["compare"]["calls"] > 0
    assert own["handle"]["until"] is None
    assert own["handle"]["calls"] > 39000  # less those that stops have come in the middle of
    assert re.search(r"compare \(out at \d+\.\ds\)$", done.gdb, re.M)


USED = "print('used', sum(one.used for one in app._stay.remains.landings))"

FILL = """
from darc.pads import returns
pool = app._stay.remains.landings[0]
for number in range(returns._CALLERS, returns._COUNT):
    if not pool._back(number):
        app._target.memory.write(pool._word(number), (0x1234).to_bytes(8, "little"))
"""
"""No landing is left in one of the two pools for functions that are called from one place."""


@IN_LLDB_AT_NIGHT
def test_functions_that_are_all_called_from_one_place(tmp_path: Path) -> None:
    done = to_the_end(tmp_path, "dispatch", command="darc profile work_* --time 10min")
    found = {name: number for name, number in calls(done).items() if name.startswith("work_")}
    assert found == {f"work_{n:03}": 4000 for n in range(200)}
    assert "not timed" not in done.gdb


def test_the_same_functions_have_the_same_landings_again(tmp_path: Path) -> None:
    """Also those that share a caller."""
    (tmp_path / "used.py").write_text(USED)
    profile = ["darc profile work_* --time 1s", "continue", f"with-app {tmp_path / 'used.py'}"]
    commands = [TOOLS, "tbreak dispatch", "run", *profile * 3, "kill"]
    done = debug(tmp_path, build("dispatch"), ("2000000000",), commands)
    first, *others = [int(used) for used in re.findall(r"^used (\d+)$", done.gdb, re.M)]
    assert first >= 200
    assert others == [first, first], done.gdb


HELD = """
from darc.debuggee.procfs import MemoryFile, regions
from darc.pads.foothold import MARK

pid = app._target.pid
with MemoryFile(pid) as memory:
    mapped = regions(pid)
    stack = next(one for one in mapped if one.path == "[stack]")
    own = [one for one in mapped if not one.path and "x" in one.permissions]
    area = max(one.end for one in own if memory.read(one.start, len(MARK)) == MARK)
    memory.write(stack.end - 8, (area - 64).to_bytes(8, "little"))  # nobody's, and zero
"""
"""Something leads to a pad of the analysis that was, as a stale word on a stack may."""


def test_tables_that_were_another_sets_are_used_again(tmp_path: Path) -> None:
    """The analysis between them looks for copies of stacks, in which its landings' addresses are
    replaced, and has tables of its own, as it is to have more probes than the set's have room for.
    The records of a set, by which calls are known, are no such copies."""
    (tmp_path / "held.py").write_text(HELD)
    search = "darc start handle --peak last --start-ops 300 --decision-ops 30 --max-probes 2000"
    commands = [
        TOOLS,
        "darc profile handle compress_block flush --time 1s",
        "run",
        f"with-app {tmp_path / 'held.py'}",
        search,
        "continue",
        mark("again"),
        "darc profile handle compress_block flush --time 1s",
        "continue",
        REPORT,
        "kill",
    ]
    done = debug(tmp_path, build("mixture"), ("100000000",), commands)
    assert re.search(r"the memory of \d earlier anal\w+ stays", done.section("again")), done.gdb
    assert set(calls(done)) == {"handle", "compress_block", "flush"}, done.gdb
    assert min(calls(done).values()) > 0, done.gdb


def test_functions_all_of_whose_calls_are_lost(tmp_path: Path) -> None:
    """They are not said to be those that were not called."""
    (tmp_path / "fill.py").write_text(FILL)
    profile = ["darc profile work_??[0-8] main --time 1s", f"with-app {tmp_path / 'fill.py'}"]
    commands = [TOOLS, "tbreak dispatch", "run", *profile, "continue", REPORT, "kill"]
    done = debug(tmp_path, build("dispatch"), ("2000000000",), commands)
    assert done.report is not None, done.gdb
    known = done.report["set"]
    reasons = Counter(one["why"] for one in known["left_out"])
    assert reasons["no landing was left for its calls (docs/pad.md)"] in (90, 91), done.gdb
    assert [one["function"] for one in known["uncalled"]] == ["main"]
    assert len(known["functions"]) + sum(reasons.values()) == 180
    text = " ".join(done.gdb.split())
    assert "1 was not called" in text
    assert re.search(r"\d+ calls were not timed: there was no landing left for", text)


def test_threads_come_and_go(tmp_path: Path) -> None:
    done = to_the_end(tmp_path, "threads", "4000")
    assert calls(done)["handle"] == 8000


def test_children_have_no_debugger(tmp_path: Path) -> None:
    done = to_the_end(tmp_path, "forker", "200")
    assert "handle" in calls(done)


@IN_LLDB_AT_NIGHT
@pytest.mark.parametrize("mode", ["all", "read"])
def test_ends_in_time_in_a_program_that_blocks_every_signal(tmp_path: Path, mode: str) -> None:
    commands = ["darc profile handle --time 300ms", "run", mark("over"), "kill"]
    done = debug(tmp_path, build("aside"), ("4000000", mode), commands)
    assert re.search(r"calls of 1 function in", done.gdb), done.gdb


def test_of_too_many_those_that_most_call(tmp_path: Path) -> None:
    commands = ["darc profile /./ libc.so.6!* --time 10min", "run"]
    done = debug(tmp_path, build("mixture"), ("2000",), commands)
    assert re.search(r" handle$", done.gdb, re.M), done.gdb
    assert re.search(
        r"^\d+ not timed: fewer calls lead to them than to the 2,000 that can be timed at once$",
        done.gdb,
        re.M,
    )


def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("# two\nflush\n\nno_such_function\n")
    commands = [
        attempt("darc profile"),
        attempt("darc profile * --time soon"),
        attempt("darc profile * --top 0"),
        attempt("darc profile /(/"),
        attempt("darc profile @nowhere"),
        attempt("darc start 1"),
        "break main",
        "run",
        attempt("darc profile nolib.so!*"),
        attempt("darc profile _start"),
        attempt("darc profile @list"),
        "kill",
    ]
    done = debug(tmp_path, build("mixture"), ("20",), commands)
    for line in (
        "darc profile needs functions",
        "'soon' is not a time above 0",
        "'0' is not a whole number from 1",
        "is no regular expression",
        "cannot read the list of functions nowhere",
        "numbers are those of rows that 'darc profile' has shown",
        "no function is called no_such_function",
        "no function is called nolib.so!*",
        "cannot time _start: it ",
    ):
        assert line in done.gdb, (line, done.gdb)
    assert "Traceback" not in done.gdb


CALLED_OFF = """
import os, signal
from darc.collectors.set_collector import SetCollector

take = SetCollector._take

def call_off(self, *arguments):
    os.kill(os.getpid(), signal.SIGINT)
    take(self, *arguments)

SetCollector._take = call_off
"""


def test_ctrl_c_before_the_first_probe_is_made(tmp_path: Path) -> None:
    """It waits for gdb as it comes, and counts."""
    script = tmp_path / "called_off.py"
    script.write_text(CALLED_OFF)
    commands = [f"source {script}", "darc profile * --time 1s", "run", "kill"]
    done = debug(tmp_path, build("mixture"), ("4000000",), commands)
    assert "none of these functions can be timed: Ctrl-C came before" in done.gdb
    assert "received signal SIGINT" in done.gdb


@IN_LLDB_AT_NIGHT
def test_a_name_that_nothing_has_is_told_before_the_program_runs(tmp_path: Path) -> None:
    commands = [
        attempt("darc profile flush no_such_function --time 1s"),
        "darc profile flush --time 50ms",
        "run",
        mark("then"),
        "darc status",
        "kill",
    ]
    done = debug(tmp_path, build("mixture"), ("4000000",), commands)
    assert "loaded with it, is called no_such_function" in done.gdb
    assert "flush" in done.section("then"), done.gdb
    assert "Traceback" not in done.gdb


@IN_LLDB_AT_NIGHT
def test_a_pattern_that_means_nothing_is_told_and_the_others_are_profiled(tmp_path: Path) -> None:
    commands = [
        "darc profile flush no_such_function --time 50ms",
        "run",
        mark("then"),
        "darc status",
        "kill",
    ]
    done = debug(tmp_path, build("mixture"), ("4000000",), commands)
    assert "darc: no function of mixture, or of a library that is loaded" in done.gdb
    assert "flush" in done.section("then"), done.gdb
    assert "no function is called no_such_function" in done.section("then"), done.gdb


def test_all_of_a_stripped_program_are_its_own_functions(tmp_path: Path) -> None:
    """By where they are in its file, though it has no names of them: not those of its libraries
    alone, which are what '*' means where a program has no function."""
    program = build("backend", strip="all")
    commands = ["darc profile * --time 3s", "run", REPORT, "kill"]
    done = debug(tmp_path, program, ("100000000",), commands)
    called = [name for name, row in rows(done).items() if row["calls"]]
    assert any(name.startswith(f"{program.name}+0x") for name in called), done.gdb


AREAS = (
    "python print('areas', sorted({one.start for one in"
    " __import__('darc.debuggee.procfs', fromlist=['regions']).regions("
    "gdb.selected_inferior().pid) if 'x' in one.permissions and not one.path}))"
)


def test_a_search_that_follows_takes_what_the_profile_has_left(tmp_path: Path) -> None:
    """The program does not stand still while the one's memory is given back, and another's made."""
    with server(build("server")) as running:
        commands = [
            "darc profile handle step burn --time 1s",
            "continue",
            mark("first"),
            AREAS,
            "darc start 1 --start-ops 500 --peak last",
            "continue",
            mark("second"),
            AREAS,
            "darc stop",
            "detach",
        ]
        done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
        first, second = (
            set(re.findall(r"\d+", done.section(name).partition("areas")[2].splitlines()[0]))
            for name in ("first", "second")
        )
        assert len(first) > 0, done.gdb
        assert first <= second, done.gdb
        assert "root cause" in done.section("first"), done.gdb
        assert running.finish() == 0
