"""What could hurt a program that is patched while it runs: one test for each hazard.

Each test fails when the hazard is mishandled: the program crashes, prints something else, or the
answer is a wrong one. docs/safety.md lists them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fixtures.build import build, build_backtraces, build_hazard, find
from tests.debugger import (
    EXIT,
    GDB,
    IN_BOTH,
    IN_LLDB_AT_NIGHT,
    LLDB,
    REPORT,
    ROOT,
    Done,
    Server,
    attempt,
    current,
    debug,
    gdb_alone,
    let_go,
    mark,
    server,
    undisturbed,
)
from tests.kills.programs import LeftStoppedError, running, wait_until_let_go

pytestmark = IN_LLDB_AT_NIGHT

TOOLS = f"source {ROOT / 'tests' / 'inside_gdb.py'}"
PEAK = "--peak >150us"
START = f"darc start handle {PEAK}"
ENDLESS = "darc start handle --start-ops 1000000000"
"""All calls are counted, up to the program's end."""

WORK = ("handle", "work", "burn")
DISPATCHED = (
    "the program has system calls that it does not know come to itself "
    "(PR_SET_SYSCALL_USER_DISPATCH, as Wine does, or seccomp)"
)


def run(folder: Path, program: Path, args: tuple[str, ...], *commands: str) -> Done:
    """Runs gdb; the program's output and status are those of a run without it."""
    done = debug(folder, program, args, [*commands, EXIT])
    assert "Traceback" not in done.gdb
    assert "internal error" not in done.gdb
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb
    return done


def analysed(folder: Path, program: Path, args: tuple[str, ...], start: str = START) -> Done:
    done = run(folder, program, args, start, "run", REPORT, "continue")
    assert done.report is not None, done.gdb
    return done


# ------------------------------------------------------------------- code that is patched


@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_short_call_in_the_first_bytes(cc: str, tmp_path: Path) -> None:
    """Timed or refused in words: what it calls comes back to code that is there."""
    program = build("shortcall", cc=cc, opt="-Os")
    done = run(tmp_path, program, ("4000",), START, REPORT, "run", REPORT, "continue")
    if done.report is None or done.report["status"] != "root cause found":
        assert re.search(r"cannot time handle|handle is not timed|not possible", done.gdb), done.gdb
    else:
        assert done.paths == [WORK]


@pytest.mark.parametrize("pie", [True, False])
@pytest.mark.parametrize("function", ["handle", "labels!step"])
def test_table_of_labels_among_displaced_instructions(
    function: str, pie: bool, tmp_path: Path
) -> None:
    program = build("labels", pie=pie)
    peak = PEAK if function == "handle" else "--peak >1ns"
    done = analysed(tmp_path, program, ("4000",), f"darc start {function} {peak}")
    assert done.report is not None
    if function == "handle":
        assert done.paths == [WORK]
    assert done.report["status"] == "root cause found"


def test_function_reached_from_program_and_library(tmp_path: Path) -> None:
    """Its calls are timed on both paths, though its callers' pads are in different places."""
    ahead = f"darc start handle {PEAK} --lookahead 200"  # whatever time that takes
    done = analysed(tmp_path, build("twosides"), ("4000",), ahead)
    assert done.paths == [("handle", "shared", "burn")]
    assert done.report is not None
    seen = {}
    for child in done.report["ftree"]["children"]:
        seen[child["function"]] = {c["function"] for c in child["children"]}
    assert seen["shared"] == {"burn"}
    assert "shared" in seen["detour"]


def test_more_targets_than_are_told_apart(tmp_path: Path) -> None:
    """The slow one is found all the same, or the report says that it may be among the others."""
    done = analysed(tmp_path, build("targets"), ("20000", "late"))
    if done.paths != [("handle", "dispatch", "slow", "burn")]:
        assert UNTOLD in str(done.report), done.gdb


UNTOLD = "than could be told apart"
OTHERS = re.compile(r"other targets of (dispatch|forward)\+0x[0-9a-f]+")


@pytest.mark.parametrize(
    ("mode", "caller", "every", "ops"),
    [
        ("few", "dispatch", 50, "300000"),
        ("tail", "forward", 50, "300000"),
        ("many", "dispatch", 5, "50000"),
    ],
)
def test_few_of_very_many_targets_are_slow_and_seldom(
    mode: str, caller: str, every: int, *, ops: str, tmp_path: Path
) -> None:
    """Whatever is named is one of them, or said to be one of those that could not be told apart: no
    time of theirs is that of who calls them. Of a few some are named."""
    start = "darc start handle --peak >1500us"
    done = analysed(tmp_path, build("plugins"), (ops, mode), start)
    assert done.report is not None
    assert done.report["root_cause_paths"]
    for path in done.report["root_cause_paths"]:
        if path["cause"] == "preemption":
            continue  # on a busy machine
        assert path["functions"][:2] == ["handle", caller], done.gdb
        callee, *rest = path["functions"][2:]
        if OTHERS.fullmatch(callee):
            assert path["cause"] == "untold"
            place = rf"in one of more targets of the call at {caller}\+0x\w+"
            assert re.fullmatch(rf"{place} {UNTOLD}", path["note"])
            assert path["note"] in done.gdb
        else:
            assert int(callee.removeprefix("plugin")) % every == 137 % every
            assert rest[0] == "nap"
    if mode != "many":
        assert any("nap" in path for path in done.paths), done.gdb


def test_what_calls_very_many_targets_is_slow_itself(tmp_path: Path) -> None:
    """What its calls take is known all the same, and is not its own."""
    done = analysed(tmp_path, build("plugins"), ("400000", "own"))
    assert done.report is not None
    found = done.report["root_cause_paths"]
    paths = [path for path in found if path["cause"] != "preemption"]
    assert [(path["functions"], path["cause"]) for path in paths] == [
        (["handle", "dispatch"], "function")
    ]
    told = r"other targets of dispatch\+0x\w+, more than could be told apart, won in 0 of \d+ calls"
    assert re.search(told, paths[0]["note"])


def test_function_that_jumps_to_dlsym(tmp_path: Path) -> None:
    done = analysed(tmp_path, build("wrapper"), ("4000",))
    assert done.paths == [WORK]


LOOK = ("leaf", "framed", "seldom", "inline_data", "dl_iterate_phdr", "jumps_on")


@pytest.mark.parametrize("opt", ["-O2", "-Os"])
def test_functions_that_look_at_their_return_address(opt: str, tmp_path: Path) -> None:
    """Itself, in a part that was split off, at the end of another one, or to find data there: the
    fixture's output tells whether each has found the program's."""
    start = f"{START} --lookahead 200"  # all of them are met
    commands = (start, "run", REPORT, mark("sites"), "darc report", mark("end"), "continue")
    done = run(tmp_path, build("callers", opt=opt), ("20000",), *commands)
    assert done.paths == [WORK]
    left = re.findall(r" → (\w+) at \w+: not possible: (.*)", done.section("sites"))
    assert dict(left) == dict.fromkeys(LOOK, "it looks at its own return address")


COPIES = ("copied", "taken", "twice", "below", "handed", "pushed", "indexed", "by_frame", "by_cfa")


@pytest.mark.parametrize(("cc", "opt"), [("gcc", "-O0"), ("clang", "-O0"), ("gcc", "-O2")])
def test_functions_that_look_through_a_copy_of_the_stack_pointer(
    cc: str, opt: str, tmp_path: Path
) -> None:
    """Those that find data there end by SIGSEGV, where they find another address. What takes the
    address of a local variable is timed."""
    start = f"{START} --lookahead 200"  # all of them are met
    commands = (start, "run", REPORT, mark("sites"), "darc report", mark("end"), "continue")
    done = run(tmp_path, build("copies", cc=cc, opt=opt), ("20000",), *commands)
    assert done.paths == [WORK]
    left = re.findall(r" → (\w+) at \w+: not possible: (.*)", done.section("sites"))
    assert dict(left) == dict.fromkeys(COPIES, "it looks at its own return address")


def test_a_learned_function_that_looks_at_its_return_address(tmp_path: Path) -> None:
    """What a pointer leads to is known when it was called: it is left alone from then on, and what
    else is called there is timed."""
    start = f"{START} --start-ops 1000 --decision-ops 300"
    done = analysed(tmp_path, build("callers"), ("40000", "indirect"), start)
    assert done.paths == [("handle", "busy", "burn")]
    assert "it calls counting: it looks at its own return address" in str(done.report)


def test_f0_that_looks_at_its_return_address(tmp_path: Path) -> None:
    done = run(tmp_path, build("callers"), ("4000",), "darc start leaf", "run")
    assert "darc: cannot time leaf: it looks at its own return address" in done.gdb


# ---------------------------------------------------------------------- stacks and jumps


@IN_BOTH
def test_coroutines_throw_through_timed_frames(tmp_path: Path) -> None:
    program = build("yielding")
    done = analysed(tmp_path, program, ("4000",))
    assert done.paths == [("handle", "fetch", "burn")]
    run(tmp_path, program, ("20000",), ENDLESS, "run")


def test_jump_that_leaves_nothing_that_is_timed(tmp_path: Path) -> None:
    """No call takes longer than the program ran, and the jump is not taken for a cause."""
    start = f"{START} --lookahead 1"
    done = analysed(tmp_path, build("retry"), ("8000",), start)
    assert done.paths == [WORK]
    assert done.report is not None
    nodes, longest = [done.report["ftree"]], 0.0
    while nodes:
        node = nodes.pop()
        nodes += node["children"]
        longest = max(longest, node["mean_cycles"] or 0)
    assert longest < 100 * done.report["profile"]["hz"]


def test_two_threads_throw_for_some_seconds(tmp_path: Path) -> None:
    """Long enough for the debugger to look at them several times as they run."""
    done = run(tmp_path, build("throwing"), ("400000", "2"), ENDLESS, "run", REPORT)
    assert done.report is not None
    assert done.report["profile"]["count"] > 600000


def test_exceptions_while_memory_comes_and_goes(tmp_path: Path) -> None:
    """Where a stack was, on which calls were timed once, another thread maps one and unmaps it."""
    done = run(tmp_path, build("spawning"), ("400000",), "darc profile * --time 600s", "run")
    assert re.search(r"\d{5,} calls of \d+ functions", done.gdb), done.gdb


def test_threads_leave_on_stacks_that_go_at_once(tmp_path: Path) -> None:
    """By pthread_exit and by a cancellation, from within timed calls: no other thread shows
    what they have hidden."""
    with running("departing", tmp_path) as program:
        commands = ["darc profile * --time 4s", "continue", "darc stop"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
        wait_until_let_go(program.pid)
        assert re.search(r"\d{4,} calls of \d+ functions", done.gdb), done.gdb
        program.check()
        assert not program.altered()
        program.finish()


def test_exceptions_of_a_stripped_static_program(tmp_path: Path) -> None:
    """Nothing tells where its unwinder is: followed all the same, or refused in words."""
    linked = build("throwing", pie=False, static=True)
    program = build("throwing", pie=False, static=True, strip="all")
    names = subprocess.run(["nm", linked], capture_output=True, text=True, check=True).stdout
    handle = re.search(r"^(\w+) T handle$", names, re.M)
    assert handle is not None
    start = f"darc start *0x{handle[1]} {PEAK}"
    done = run(tmp_path, program, ("8000",), start, "run", REPORT, "continue")
    if "exceptions" not in done.gdb:
        assert done.report is not None, done.gdb
        assert done.report["profile"]["count"] >= 100


@gdb_alone("the breakpoint's ignore count is set by gdb's Python")
def test_breakpoint_in_an_unwinders_first_bytes(tmp_path: Path) -> None:
    """A guard stands there: it goes another way, or f0 is timed no more."""
    commands = [ENDLESS, "tbreak burn", "run", "break *(_Unwind_RaiseException+4)"]
    hits = "python gdb.breakpoints()[-1].ignore_count = 1000000"
    done = run(tmp_path, build("throwing"), ("400",), *commands, hits, "continue")
    assert "terminate called" not in done.errors.decode()


def test_slow_calls_that_make_a_backtrace(tmp_path: Path) -> None:
    """They, of all calls, must stay in the profile."""
    done = traced(tmp_path, ENDLESS, "run", REPORT)
    assert done.report is not None, done.gdb
    assert done.report["profile"]["count"] >= 3990


def test_search_among_calls_that_make_a_backtrace(tmp_path: Path) -> None:
    done = traced(tmp_path, START, "run", REPORT, "continue")
    assert done.paths == [WORK], done.gdb


def test_what_a_backtrace_finds(tmp_path: Path) -> None:
    """As many frames as there are; operations that are not measured for it are told."""
    done = traced(tmp_path, ENDLESS, "run", REPORT, "darc report")
    assert done.output == undisturbed(build("tracing"), TRACING)[1]
    assert done.report is not None
    if done.report["profile"]["count"] < 3900:
        assert "calls were not measured" in done.gdb


TRACING = ("4000", "trace")


def traced(folder: Path, *commands: str) -> Done:
    done = debug(folder, build("tracing"), TRACING, [*commands, EXIT])
    assert done.program_status == 0
    assert b"4000 operations, 127 traces" in done.output
    return done


# ------------------------------------------------------------------ what the program does


CLONED = """
#include <stdio.h>
static volatile int yes = 1;
static __attribute__((noinline)) long handle(long i, long fast)
{
    return fast ? i : i / yes;
}
int main(void)
{
    long sum = 0;
    for (long i = 0; i < 100; i++)
        sum += handle(i, 1) + handle(i, 2);
    printf("%ld\\n", sum);
    return 0;
}
__attribute__((noinline)) static long (*volatile table[])(long, long) = {handle};
"""


def test_function_that_is_called_as_a_clone_alone(tmp_path: Path) -> None:
    """The compiler made a copy of it for these calls: the error names it."""
    program, source = tmp_path / "cloned", tmp_path / "cloned.c"
    source.write_text(CLONED.replace("__attribute__((noinline)) static long", "static long"))
    options = ["-O3", "-g", "-fno-inline", "-fipa-cp-clone", "-Wno-unused"]
    subprocess.run(["gcc", *options, "-o", program, source], check=True)
    names = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    clones = re.findall(r"\bhandle\.(?!cold)\S+", names)
    assert re.search(r"\bhandle$", names, re.M), names
    assert clones, names
    done = debug(tmp_path, program, (), ["darc start handle", "run", "darc report"])
    starts = " or ".join(f"'darc start {clone}'" for clone in sorted(clones))
    assert f"its callers may call a copy of it that is private to them: {starts}" in done.gdb


@pytest.mark.parametrize("begin", ["10", "300"])
def test_sandbox_that_is_entered_later(begin: str, tmp_path: Path) -> None:
    """No system call is the agent's own from then on: the kernel would kill the program."""
    program = build("sandbox")
    done = run(tmp_path, program, ("400000", begin), START, "run", REPORT, "continue")
    assert "SIGSYS" not in done.gdb
    assert done.report is not None
    assert done.paths == [WORK], done.gdb


def test_the_end_of_an_analysis_in_a_sandbox(tmp_path: Path) -> None:
    """Nothing is asked of the kernel for darc there: its memory stays."""
    done = run(tmp_path, build("sandbox"), ("400000", "10"), START, "run", "darc stop", "continue")
    assert "SIGSYS" not in done.gdb
    assert "every probe is out" in done.gdb


def test_a_sandbox_that_no_name_tells_of(tmp_path: Path) -> None:
    """No name tells where a stripped static program enters it, but what its code does."""
    program = tmp_path / "sandbox"
    unnamed = [f"--strip-symbol={name}" for name in ("prctl", "__prctl", "syscall")]
    subprocess.run(["objcopy", *unnamed, build("sandbox", static=True), program], check=True)
    done = run(tmp_path, program, ("400000", "300"), START, "run", REPORT, "continue")
    assert "SIGSYS" not in done.gdb
    assert done.paths == [WORK], done.gdb


@pytest.mark.parametrize(
    ("begin", "by"),
    [
        ("10", "dispatch"),
        ("300", "syscall"),
        pytest.param("10", "syscall", marks=pytest.mark.long),
        pytest.param("300", "dispatch", marks=pytest.mark.long),
    ],
)
def test_system_calls_that_are_dispatched_later(begin: str, by: str, tmp_path: Path) -> None:
    """The program gets none of the agent's (PR_SET_SYSCALL_USER_DISPATCH, as Wine has it)."""
    args = ("400000", begin, by)
    done = run(tmp_path, build("sandbox"), args, START, "run", REPORT, "continue")
    assert "SIGSYS" not in done.gdb
    assert done.paths == [WORK], done.gdb


def test_system_calls_that_are_dispatched_before(tmp_path: Path) -> None:
    """darc can map no memory there: it says why, and what it does instead."""
    there = ["break handle if op == 300", "run", "delete", START, "continue", REPORT]
    done = run(tmp_path, build("sandbox"), ("4000", "10", "dispatch"), *there, "continue")
    assert f"by breakpoints (no pads, but breakpoints: {DISPATCHED})" in done.gdb
    assert "SIGSYS" not in done.gdb
    assert done.paths
    assert all(path == WORK[: len(path)] for path in done.paths)


def test_system_calls_that_are_dispatched_at_times(tmp_path: Path) -> None:
    """Not at the moment when darc begins, but where the agent would ring: the kernel tells gdb
    of that before a call is tried; in lldb the agent makes none."""
    there = ["break between if op == 300", "run", "delete", START, "continue", REPORT]
    is_told = current() == "gdb"
    ops = "4000" if is_told else "400000"
    done = run(tmp_path, build("sandbox"), (ops, "10", "toggle"), *there, "continue")
    assert (DISPATCHED in done.gdb) == is_told
    assert "SIGSYS" not in done.gdb
    assert done.paths
    assert all(path == WORK[: len(path)] for path in done.paths)


def test_system_calls_that_are_dispatched_while_their_signal_is_blocked(tmp_path: Path) -> None:
    """A call of darc's would take the program's handler away, where lldb cannot let it through."""
    there = ["break handle if op == 300", "run", "delete", START, "continue", REPORT]
    done = run(tmp_path, build("sandbox"), ("4000", "10", "blocked"), *there, "continue")
    why = DISPATCHED if current() == "gdb" else "every thread of the program blocks SIGSYS at this"
    assert f"by breakpoints (no pads, but breakpoints: {why}" in done.gdb


@gdb_alone("lldb does not ask the kernel")
@pytest.mark.parametrize("how", ["dispatch", "blocked"])
def test_a_refused_call_leaves_the_handler(how: str, tmp_path: Path) -> None:
    """Where the kernel does not tell (before Linux 6.4), a call of darc's is tried."""
    older = "python import darc_gdb.tracee; darc_gdb.tracee._GETDISPATCH = 0x42FF"
    there = [older, "break handle if op == 300", "run", "delete", START, "continue", REPORT]
    done = run(tmp_path, build("sandbox"), ("4000", "10", how), *there, "continue")
    assert DISPATCHED in done.gdb


def test_sandbox_while_calls_are_counted(tmp_path: Path) -> None:
    """Up to the end, where the agent would ring."""
    run(tmp_path, build("sandbox"), ("4000", "10"), ENDLESS, "run")


@pytest.mark.parametrize("moment", ["result", "profiling"])
def test_exec_of_another_file(moment: str, tmp_path: Path) -> None:
    """The program that follows in the same process can be analysed as well."""
    following = build("shortcall")
    first = [START, "run"] if moment == "result" else [ENDLESS, "catch exec", "run"]
    if moment == "result":
        first.append("catch exec")
        first.append("continue")
    args = ("4000", str(following), "4000")
    commands = [*first, mark("exec"), START, "continue", REPORT, "continue"]
    done = run(tmp_path, build("launcher"), args, *commands)
    assert done.paths == [WORK], done.gdb


@IN_BOTH
def test_exec_of_a_file_that_is_in_memory_alone(tmp_path: Path) -> None:
    """The debugger cannot open it: gdb ended by an internal error where it was asked for a frame in
    the midst of that, and the program with it. lldb stops there by itself."""
    program = build("launcher")
    commands = [START, "run", "continue", REPORT, "continue"]
    done = run(tmp_path, program, ("0", f"memory:{program}", "40000"), *commands)
    assert done.paths == [WORK], done.gdb


def test_file_that_was_replaced_while_it_runs(tmp_path: Path) -> None:
    """The old code runs: it is what is patched, or darc refuses in words."""
    program = tmp_path / "server"
    shutil.copy(build("server"), program)
    with server(program) as running:
        new = tmp_path / "new"
        shutil.copy(build("server", opt="-O0"), new)
        new.replace(program)
        start = "darc start handle --peak >400us --max-time 20s"
        done = debug_attached(tmp_path, running, [start, "continue"])
        if "replaced" not in done.gdb and "deleted" not in done.gdb:
            assert done.paths == [("handle", "lookup", "burn")], done.gdb
        assert running.finish() == 0


def test_another_file_at_its_path_in_its_mount_namespace(tmp_path: Path) -> None:
    """As in a container: the file that is mapped is what is read, or darc refuses in words."""
    here, there = tmp_path / "server", tmp_path / "there"
    shutil.copy(build("server", opt="-O0"), here)
    shutil.copy(build("server"), there)
    mount = 'mount --bind "$2" "$1" && exec "$1"'
    boxed = ("-rm", "sh", "-c", mount, "sh", str(here), str(there))
    with server(Path("/usr/bin/unshare"), *boxed) as running:
        start = "darc start handle --peak >400us --max-time 20s"
        done = debug_attached(tmp_path, running, [start, "continue"])
        assert done.paths == [("handle", "lookup", "burn")], done.gdb
        assert running.finish() == 0


def test_backtraces_by_libunwind_are_whole(tmp_path: Path) -> None:
    """Its unwinder has names of its own, and ended at the first pad."""
    with server(build_backtraces()) as running:
        start = "darc start handle --peak last --start-ops 300 --max-time 3s"
        done = debug_attached(tmp_path, running, [start, "continue"])
        assert done.report is not None, done.gdb
        assert running.finish() == 0


def test_a_page_of_a_return_address_becomes_read_only(tmp_path: Path) -> None:
    """While a callee throws: an agent that puts the program's address back there ends it."""
    with running("readonly", tmp_path) as program:
        start = "darc start handle --peak last --start-ops 300 --max-time 3s"
        commands = [start, "continue", REPORT, "darc stop"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
        wait_until_let_go(program.pid)
        program.check()
        program.finish()
        assert done.report is not None, done.gdb


def test_a_program_that_steps_itself(tmp_path: Path) -> None:
    """The debugger shows each of its traps; darc's own calls, made where one stands, take none."""
    start = "darc start handle --peak last --start-ops 500 --decision-ops 3"
    passed = {GDB: "handle SIGTRAP nostop noprint pass", LLDB: "continue"}[current()]
    with running("stepping", tmp_path) as program:
        commands = ["continue", start, "continue", "darc stop", passed, "detach"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
        wait_until_let_go(program.pid)
        program.check()
        assert not program.altered()
        program.finish()
        assert "every probe is out" in done.gdb, done.gdb


def test_a_stack_that_grows_in_pieces(tmp_path: Path) -> None:
    """__morestack takes its arguments in r10 and r11, and calls its caller: what may call it is
    refused in words, and left out of sets."""
    program = build("mixture", extra=["-fsplit-stack"])
    for command in ("darc start handle", "darc profile mixture!* --time 1s"):
        done = run(tmp_path, program, find("mixture").args, command, "run", "continue")
        assert "its stack grows in pieces (-fsplit-stack)" in done.gdb, done.gdb


def debug_attached(folder: Path, running: Server, commands: list[str]) -> Done:
    options = ["-p", str(running.pid)]
    return debug(folder, None, (), [*commands, REPORT, "detach"], options=options)


# ----------------------------------------------------------------------- what the user does


@pytest.mark.parametrize("moment", ["profiling", "descent"])
def test_user_deletes_all_breakpoints(moment: str, tmp_path: Path) -> None:
    """darc's own catchpoint among them: the search goes on."""
    program, args = build("mixture"), find("mixture").args
    start = "darc start handle --start-ops 2000"
    steps = {
        "profiling": ["break main", "run", start + " --peak >1ms"],
        "descent": [start, "run", "darc peak >1ms", "tbreak write_out", "continue"],
    }
    commands = [*steps[moment], "delete", "continue", REPORT, "continue"]
    done = run(tmp_path, program, args, *commands)
    assert done.paths == list(find("mixture").paths), done.gdb


WAITING = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void wait_long(void) { usleep(1200000); __asm__(""); }
__attribute__((noinline)) long work(long i)
{
    for (volatile long k = 0; k < (i % 16 ? 100 : 2000); k++) {}
    return i;
}
__attribute__((noinline)) long handle(long i)
{
    return work(i) + work(i + 1);
}
int main(void)
{
    long sum = 0;
    for (long i = 0; i < 3000; i++) {
        if (i == 1000)
            wait_long();
        sum += handle(i);
    }
    printf("%ld\\n", sum);
    return 0;
}
"""


@gdb_alone("'until' and 'advance' are commands of gdb's")
@pytest.mark.parametrize("command", ["until", "advance"])
def test_breakpoints_of_gdbs_own_in_f0s_first_bytes(command: str, tmp_path: Path) -> None:
    """While the program runs on for long, probes come back, but not over such a breakpoint."""
    program, source = tmp_path / "waiting", tmp_path / "waiting.c"
    source.write_text(WAITING)
    subprocess.run(["clang", "-O2", "-g", "-o", program, source], check=True)
    line = WAITING[: WAITING.index("wait_long();")].count("\n") + 1
    steps = [f"tbreak {line}", "run", mark("go"), f"{command} handle", mark("there"), "bt 1"]
    done = run(tmp_path, program, (), ENDLESS, *steps, mark("end"), "continue")
    assert "SIG" not in done.gdb
    if command == "advance":  # 'until' does not stop in what its frame calls
        assert "handle (i=" in done.section("go"), done.gdb


@gdb_alone("a script for gdb's Python")
@pytest.mark.parametrize("count", [10, pytest.param(30, marks=pytest.mark.long)])
def test_many_analyses_one_after_the_other(count: int, tmp_path: Path) -> None:
    """In one gdb and one process: nothing is used up, nothing is left behind."""
    script = tmp_path / "many.py"
    script.write_text(
        "import gdb\n"
        "found = 0\n"
        f"for _ in range({count}):\n"
        f"    gdb.execute('{START} --decision-ops 5', to_string=True)\n"
        "    text = gdb.execute('continue', to_string=True)\n"
        "    text += gdb.execute('darc report', to_string=True)\n"
        "    found += 'handle → work → burn' in text\n"
        "print('found', found)\n"
    )
    commands = [TOOLS, "break main", "run", "delete", f"source {script}", "darc stop"]
    commands += [mark("code"), "tell-code", mark("end"), "continue"]
    done = run(tmp_path, build("launcher"), ("40000",), *commands)
    assert f"found {count}\n" in done.gdb
    assert ", 0 altered" in done.section("code")


@IN_BOTH
@pytest.mark.parametrize("ends", ["prompt", "program"])
def test_code_that_takes_a_librarys_place(ends: str, tmp_path: Path) -> None:
    """f0's library is unloaded while it is timed, and the program maps code of its own there."""
    program, args = build("farlib"), ("4000", "replace")
    stop = ["break finish", "run", "darc status", "darc stop"] if ends == "prompt" else ["run"]
    commands = ["darc start far_handle --start-ops 1000000000", *stop, "continue", EXIT]
    if ends == "program":
        commands.remove("continue")
    done = debug(tmp_path, program, args, commands)
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb
    assert b"altered: 0" in done.output


@pytest.mark.parametrize("rounds", [3, pytest.param(8, marks=pytest.mark.long)])
def test_threads_come_back_behind_a_handler_when_the_analysis_is_over(
    rounds: int, tmp_path: Path
) -> None:
    """A signal's handler has interrupted them between a pad and f0: no program counter tells."""
    commands = [
        *(
            "handle SIGALRM nostop noprint pass",
            "darc start handle --peak last --start-ops 40000 --decision-ops 3",
        ),
        *("continue", "darc stop", "detach"),
    ]
    with running("resting", tmp_path) as program:
        for _ in range(rounds):
            done = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
            wait_until_let_go(program.pid)
            assert "every probe is out" in done.gdb
            try:
                program.check()
            except LeftStoppedError:  # a known limit: docs/safety.md
                program.go_on()
                program.check()
        program.finish()


def test_a_sandbox_that_a_thread_enters_which_throws(tmp_path: Path) -> None:
    """What was on stacks that are gone by then is not looked at any more: nobody can tell the agent
    what is mapped above the thread's stack."""
    there = ["break begun", "run", "delete", ENDLESS, "continue"]
    run(tmp_path, build("boxed"), ("4000",), *there)


PLUGIN = """
__asm__(".section .gopclntab,\\"a\\"\\n.quad 0\\n.text");
int plugin_work(int x) { return x + 2; }
"""

HOST = """
#include <dlfcn.h>
#include <stdio.h>
static int own_work(int x) { return x + 1; }
static int (*volatile work)(int) = own_work;
__attribute__((noinline)) int handle(int x) { return work(x) * 3; }
int main(int argc, char **argv)
{
    unsigned sum = 0;
    for (int i = 0; i < 4000; i++) {
        if (i == 1000)
            work = (int (*)(int))dlsym(dlopen(argv[1], RTLD_NOW), "plugin_work");
        sum += (unsigned)handle(i);
    }
    printf("sum %u\\n", sum);
    return argc != 2;
}
"""


def test_a_library_whose_runtime_looks_for_return_addresses_comes_later(tmp_path: Path) -> None:
    """As where it is there from the beginning: nothing is timed any more, before its code runs."""
    plugin, host = tmp_path / "plugin.so", tmp_path / "host"
    for source, target, flags in ((PLUGIN, plugin, ("-shared", "-fPIC")), (HOST, host, ("-ldl",))):
        file = target.with_suffix(".c")
        file.write_text(source)
        subprocess.run(["gcc", "-O1", file, "-o", target, *flags], check=True)
    done = debug(tmp_path, host, (str(plugin),), [ENDLESS, "run", EXIT])
    assert done.program_status == 0, done.gdb
    assert re.search(
        r"handle is not timed any more: plugin\.so is a Go program, whose runtime moves stacks",
        done.gdb,
    ), done.gdb
    assert re.search(r"\b1000 calls seen", done.gdb), done.gdb


IN_32_BITS = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
extern char begin[], end[];
__asm__(".text\\n.code32\\nbegin: mov $20000000, %ecx\\n1: dec %ecx\\njnz 1b\\nlret\\nend:\\n"
        ".code64\\n");
static char *low;
static volatile int over;
__attribute__((noinline)) int handle(int x) { return x * 3; }
static void in_32_bits(void)
{
    __asm__ volatile("mov %%rsp, %%r12\\nmov %0, %%rsp\\nlcall *(%1)\\nmov %%r12, %%rsp"
                     :: "r"(low + 65000), "r"(low + 60000)
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
                       "r14", "r15", "memory", "cc");
}
static void *thread(void *none)
{
    while (!over)
        in_32_bits();
    return none;
}
int main(int argc, char **argv)
{
    struct { uint32_t place; uint16_t segment; } __attribute__((packed)) far;
    pthread_t made;
    unsigned sum = 0;
    low = mmap(0, 65536, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    memcpy(low, begin, (size_t)(end - begin));
    far.place = (uint32_t)(uintptr_t)low;
    far.segment = 0x23;
    memcpy(low + 60000, &far, sizeof far);
    if (argc > 1)
        pthread_create(&made, 0, thread, 0);
    else
        in_32_bits();
    for (int i = 0; i < 20000; i++)
        sum += (unsigned)handle(i);
    over = 1;
    if (argc > 1)
        pthread_join(made, 0);
    printf("sum %u\\n", sum);
    return (void)argv, 0;
}
"""


@pytest.fixture
def in_32_bits(tmp_path: Path) -> Path:
    source, program = tmp_path / "wide.c", tmp_path / "wide"
    source.write_text(IN_32_BITS)
    subprocess.run(["gcc", "-O1", "-g", "-no-pie", "-pthread", source, "-o", program], check=True)
    return program


def test_a_thread_in_32_bit_code_makes_no_call(in_32_bits: Path, tmp_path: Path) -> None:
    """As with Wine: what is written for 64 bits does other things there. Another thread calls."""
    select = "thread 2" if current() == "gdb" else "thread select 2"
    to_it = ["break handle", "run", select, "delete", ENDLESS, "continue"]
    done = run(tmp_path, in_32_bits, ("thread",), *to_it)
    assert re.search(r"\b20000 calls seen of 1000000000", done.gdb), done.gdb


def test_nobody_but_threads_in_32_bit_code(in_32_bits: Path, tmp_path: Path) -> None:
    stop = "tbreak *(long) low" if current() == "gdb" else "breakpoint set -o true -a (long)low"
    there = ["break in_32_bits", "run", "delete", stop, "continue"]
    done = debug(tmp_path, in_32_bits, (), [*there, attempt(ENDLESS), "continue", EXIT])
    assert "is in 32-bit code at this moment, where darc can call nothing" in done.gdb
    assert "sum " in done.output.decode()
    assert done.program_status == 0, done.gdb


SHORT = r"""
#include <stdlib.h>
__attribute__((noinline)) unsigned handle(unsigned x) { return x * 3; }
int main(int argc, char **argv) {
    volatile unsigned sum = 0;
    for (unsigned i = 0, ops = (unsigned)atoi(argv[1]); i < ops; i++)
        sum += handle(i);
    return 0;
}
"""


def test_a_call_shorter_than_the_counters_step_is_no_peak_of_nothing(tmp_path: Path) -> None:
    """A time-stamp counter that goes by steps of 26 cycles tells it from an empty one by chance."""
    source, program = tmp_path / "short.c", tmp_path / "short"
    source.write_text(SHORT)
    subprocess.run(["gcc", "-O1", "-g", "-o", program, source], check=True)
    start = "darc start handle --start-ops 20000"
    done = debug(tmp_path, program, ("10000000",), [start, "run", REPORT, "kill"])
    assert done.report is not None, done.gdb
    bins = {int(number) for number in done.report["profile"]["bins"]}
    assert 0 not in bins or bins & {1, 2, 3}, done.gdb


@pytest.mark.parametrize("is_known", [True, False])
def test_a_stack_that_another_thread_unlocks(tmp_path: Path, is_known: bool) -> None:
    """A write to it waits for that thread, which stands still; whether that is known before, or
    the call has to be given up."""
    unknown = "python import darc_gdb.detours as d; d.has_stack = lambda *_: True"
    if current() != GDB:
        unknown = "script import darc_lldb.calls as c; c.has_stack = lambda *_: True"
    start = "darc start handle --peak last --decision-ops 5"
    commands = ["break stand", "run", *([] if is_known else [unknown]), start, "delete"]
    done = debug(tmp_path, build_hazard("paged"), (), [*commands, "continue", REPORT, "kill"])
    assert ("handle", "lookup", "burn") in done.paths, done.gdb


@gdb_alone("what is refused is the same in lldb")
def test_code_that_is_shared_with_children(tmp_path: Path) -> None:
    with running("sharedtext", tmp_path) as program:
        commands = ["darc start handle", "darc stop"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
        wait_until_let_go(program.pid)
        program.check()
        program.finish()
    assert "shared with other processes" in done.gdb


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a PID namespace")
def test_threads_in_another_pid_namespace(tmp_path: Path) -> None:
    """gdb analyses them. lldb takes its own stops for the program's signals: darc refuses there."""
    commands = ["darc start handle --peak last --start-ops 500 --decision-ops 3", "continue"]
    with running("threads", tmp_path, apart=True) as program:
        done = debug(tmp_path, None, (), [*commands, REPORT], options=["-p", str(program.pid)])
        wait_until_let_go(program.pid)
        program.check()
        assert not program.altered()
        program.finish()
    if current() == GDB:
        assert ("handle", "lookup", "burn") in done.paths, done.gdb
    else:
        assert f"lldb inside ('nsenter -t {program.pid} -p -m')" in done.gdb


TELL_THREADS = """
print("threads:", *app._target.threads.ids())
"""


def test_threads_of_io_uring_are_left_alone(tmp_path: Path) -> None:
    """The kernel's own, in which a read waits."""
    asked = tmp_path / "asked.py"
    asked.write_text(TELL_THREADS)
    start = "darc start handle --peak last --start-ops 500 --decision-ops 3"
    commands = [TOOLS, start, f"with-app {asked}", "continue", REPORT]
    with running("uring", tmp_path) as program:
        done = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
        wait_until_let_go(program.pid)
        program.check()
        assert not program.altered()
        program.finish()
    assert ("handle", "lookup", "burn") in done.paths, done.gdb
    assert f"threads: {program.pid}\n" in done.gdb


@pytest.mark.parametrize("end", ["ended", "late"])
def test_code_that_is_read_anew(end: str, tmp_path: Path) -> None:
    """The program drops the pages of its own code, and darc's jumps with them: it is as without
    darc, and the user is told why no call was seen from then on."""
    limit = "--max-time 4s" if end == "late" else ""
    ops = "40000" if end == "ended" else "400000000"
    commands = [f"darc start handle --peak >150us {limit}", "run", REPORT]
    program = build("forgotten")
    if end == "ended":
        done = run(tmp_path, program, (ops,), *commands)
    else:
        done = debug(tmp_path, program, (ops,), [*commands, "kill"])
    said = "darc's jumps in the code of handle were gone when darc looked"
    assert said in done.gdb, done.gdb
    assert done.report is not None
    assert said in str(done.report["notes"])
    assert done.report["profile"]["count"] < 100


UNHOOKED = {"saved", "moved"}
HOOKED = "the program has written over them, as whoever hooks functions does"


@IN_BOTH
@pytest.mark.parametrize("way", ["bytes", "trampoline", "turned", "saved", "moved"])
def test_the_bytes_that_a_hook_has_saved_are_written_back(way: str, tmp_path: Path) -> None:
    """They are darc's jump, which leads to pads when the debugger is gone, wherever the program has
    it meanwhile; and the user is told why no call was seen from then on."""
    endless = f"{ENDLESS} --peak last --max-time 4s"
    with server(build("hooked"), way) as running:
        options = ["-p", str(running.pid)]
        commands = [endless, "continue", REPORT, "darc stop", "detach"]
        done = debug(tmp_path, None, (), commands, options=options)
        assert done.report is not None
        told = str(done.report["notes"])
        for where in (done.gdb, told):
            assert (HOOKED in where) == (way not in UNHOOKED), done.gdb
            assert ("darc's jumps in the code of handle were gone" in where) == (
                way not in UNHOOKED
            )
        let_go(running.pid)
        assert running.operations()
        assert running.finish() == 0


@gdb_alone("lldb has no checkpoints")
def test_a_checkpoint_that_is_gone_back_to(tmp_path: Path) -> None:
    """What gdb shows then is a copy without darc's jumps: nobody can be sure that the program has
    taken them out."""
    commands = ["break handle", "run", "delete", "darc start handle --start-ops 200", "continue"]
    commands += ["darc peak last", "tbreak *handle", "continue", "checkpoint", "restart 1"]
    commands += ["continue", "darc status", "kill"]
    done = debug(tmp_path, build("mixture"), ("3000",), commands)
    assert "were gone when darc looked" in done.gdb, done.gdb
    assert "or the debugger has shown a copy of it (gdb's 'restart' of a checkpoint)" in done.gdb


@pytest.mark.parametrize("way", ["bytes", "trampoline", "turned", "saved", "moved"])
def test_the_next_debugger_leaves_what_a_hook_may_write_back(way: str, tmp_path: Path) -> None:
    """So does another analysis, which puts its pads elsewhere."""
    with server(build("hooked"), way) as running:
        options = ["-p", str(running.pid)]
        commands = [f"{ENDLESS} --peak last --max-time 4s", "continue"]
        commands += [f"darc start lookup {PEAK}", "continue", REPORT, "detach"]
        done = debug(tmp_path, None, (), commands, options=options)
        assert (HOOKED in done.gdb) == (way not in UNHOOKED), done.gdb
        assert ("lookup", "burn") in done.paths, done.gdb
        let_go(running.pid)
        done = debug(tmp_path, None, (), ["darc stop", "detach"], options=options)
        assert "internal error" not in done.gdb, done.gdb
        let_go(running.pid)
        assert running.operations()
        assert running.finish() == 0
