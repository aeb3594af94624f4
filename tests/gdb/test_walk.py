"""``darc walk``: down the calls that hold the time, in programs of which that is known."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fixtures.build import (
    build,
    build_handing,
    build_proxy,
    build_std_threads,
    build_workers,
)
from tests.debugger import (
    DARC_GDB,
    EXIT,
    GDB,
    IN_BOTH,
    IN_LLDB_AT_NIGHT,
    REPORT,
    STOOD_STILL,
    Done,
    attempt,
    current,
    debug,
    let_go,
    mark,
    server,
    terminal,
    undisturbed,
    watched,
)
from tests.gdb.programs import compiled

WALK = "darc walk --window 500ms"


def groups(done: Done) -> dict[str, dict[str, Any]]:
    """The groups of threads by the names of their start functions."""
    assert done.report is not None, done.gdb
    return {group["start"]: group for group in done.report["walk"]["groups"]}


def chains(group: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(chain["functions"]): chain for chain in group["chains"]}


def test_a_loop_that_never_returns(tmp_path: Path) -> None:
    """It waits for events, which is idle time, and calls what it finds in a table. The program's
    code is its own again, and each chain's last function can be searched."""
    commands = [
        WALK,
        "run",
        REPORT,
        mark("code"),
        "disassemble /r handle,+8",
        mark("start"),
        "darc start 1 --peak 1 --start-ops 20 --decision-ops 5",
        "darc stop",
        "kill",
    ]
    done = debug(tmp_path, build("evloop"), (), commands)
    assert re.search(r"^darc: main: done$", done.gdb, re.M), done.gdb
    assert re.search(STOOD_STILL, done.gdb, re.M), done.gdb
    main = groups(done)["main"]
    assert [one["function"] for one in main["idle"]] == ["epoll_wait"]
    found = chains(main)
    heavy = ("main", "loop", "handle", "heavy")
    chain = next(chain for names, chain in found.items() if names[:4] == heavy)
    assert chain["shares"][:3] == pytest.approx([1, 1, 1], abs=0.3), done.gdb
    assert chain["shares"][3] > 0.6, done.gdb  # of 0.95: others have the processors as well
    assert chain["functions"][4:] in ([], ["burn"]), done.gdb
    assert "\te9 " not in done.section("code")
    assert re.search(r"^darc: analyses (burn|heavy): 'continue'$", done.section("start"), re.M)
    assert "Traceback" not in done.gdb


@IN_BOTH
def test_many_idle_workers_and_a_busy_one(tmp_path: Path) -> None:
    """Only the busy one's time counts, and the waits of all are told. All are there by then: to
    make them is work."""
    once = "tbreak work" if current() == GDB else "breakpoint set -o true -n work"
    done = debug(tmp_path, build("pool"), (), [once, "run", WALK, "continue", REPORT, "kill"])
    worker = groups(done)["worker"]
    assert worker["threads"] == 65
    assert {one["function"] for one in worker["idle"]} == {
        "pthread_cond_wait",
        "pthread_cond_timedwait",
    }
    assert sum(one["share"] for one in worker["idle"]) > 64 / 65 - 0.01
    (functions,) = chains(worker)
    assert functions == ("worker", "work", "hash"), done.gdb
    assert groups(done)["main"]["chains"] == []  # it waits for the others


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("-O2",), id="O2"),
        pytest.param(("-O0",), id="O0", marks=pytest.mark.long),
        pytest.param(("-O2", "-static-libstdc++"), id="static"),
    ],
)
@IN_LLDB_AT_NIGHT
def test_threads_of_the_standard_library(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Each group begins in a function of the program's own. The waits for work are idle time, also
    with functions of the library between; a wait within an answer is not."""
    program = build_std_threads(*flags)
    once = "tbreak work" if current() == GDB else "breakpoint set -o true -n work"
    done = debug(tmp_path, program, (), [once, "run", WALK, "continue", REPORT, "kill"])
    found = groups(done)
    (asker,) = found.keys() - {"main", "worker", "compactor"}
    assert [found[name]["threads"] for name in ("worker", "compactor", asker)] == [3, 1, 1]
    waits = (("worker", "work", "pthread_cond_wait"), ("compactor", "compact", "nanosleep"))
    for name, busy, wait in waits:
        assert [one["function"] for one in found[name]["idle"]] == [wait], done.gdb
        assert (name, busy) in {functions[:2] for functions in chains(found[name])}, done.gdb
        assert not any(wait in functions for functions in chains(found[name])), done.gdb
    assert [one["function"] for one in found["main"]["idle"]] == ["nanosleep"]
    assert [one["function"] for one in found[asker]["idle"]] == ["pthread_cond_wait"]
    waiting = [names for names in chains(found[asker]) if "pthread_cond_wait" in names]
    assert waiting, done.gdb
    assert all("answer" in names for names in waiting), done.gdb


@IN_LLDB_AT_NIGHT
def test_in_batch_it_tells_how_far_it_is(tmp_path: Path) -> None:
    """Three windows take longer than what needs no word."""
    done = debug(tmp_path, build("evloop"), (), [WALK, "run", "kill"])
    told = r"^darc: main: (window \d+, looks into|look \d+ of \d+ at what) main"
    assert re.search(told, done.gdb, re.M), done.gdb


def test_at_the_prompt_progress_is_shown_behind_a_stop(tmp_path: Path) -> None:
    with terminal(tmp_path, str(build("evloop"))) as gdb:
        gdb.command("break main")
        gdb.command("run")
        gdb.command("python import darc.app.progress as told; told._SILENT_SECONDS = 0")
        assert "looks at the threads' stacks" in gdb.command("darc walk")
        assert gdb.quit() == 0


def test_from_a_function(tmp_path: Path) -> None:
    commands = ["darc walk handle --window 500ms --threshold 10%", "run", REPORT, "kill"]
    done = debug(tmp_path, build("evloop"), (), commands)
    found = chains(groups(done)["handle"])
    shares = {names[1]: chain["shares"][1] for names, chain in found.items()}
    assert shares["heavy"] > 0.6, done.gdb
    assert shares["heavy"] + shares.get("light", 0.0) < 1.001, done.gdb


HANDED_ON = {
    ("main", "handle", "choose", "store", "nap", "usleep"),
    ("main", "other", "nap", "usleep"),
    ("main", "look", "poll"),
}
"""Each of three kinds of operations takes a third of the time."""


@IN_LLDB_AT_NIGHT
def test_tail_calls_are_gone_down(tmp_path: Path) -> None:
    """Also one behind the other, and through the linkage tables; of a function that two jump to
    each has its own part."""
    commands = [f"{WALK} --threshold 15%", "run", REPORT, "kill"]
    done = debug(tmp_path, build_handing(), ("1000000",), commands)
    found = chains(groups(done)["main"])
    for wanted in HANDED_ON:
        (chain,) = (chain for names, chain in found.items() if names[: len(wanted)] == wanted)
        assert all(0.2 < share < 0.5 for share in chain["shares"][1 : len(wanted) - 1]), done.gdb
    assert len(found) == len(HANDED_ON), done.gdb


@IN_LLDB_AT_NIGHT
def test_below_a_function_that_ends_in_a_tail_call(tmp_path: Path) -> None:
    commands = ["darc walk handle --window 500ms", "run", REPORT, "kill"]
    done = debug(tmp_path, build_handing(), ("1000000",), commands)
    (chain,) = groups(done)["handle"]["chains"]
    below = ["handle", "choose", "store", "nap", "usleep"]
    assert chain["functions"][:5] == below, done.gdb
    assert min(chain["shares"][:4]) > 0.7, done.gdb


@pytest.mark.parametrize("attached", [False, True])
def test_a_loop_that_a_frame_was_handed_on_to(tmp_path: Path, attached: bool) -> None:
    """The one that has done so is not on the stack any more, and never returns."""
    if attached:
        with server(build_handing(), "loop") as running:
            command = [*DARC_GDB, "-nx", "-q", "-batch", "-p", str(running.pid)]
            for one in (WALK, "continue", REPORT, "detach"):
                command += ["-ex", one]
            _, said, _, _, report = watched(tmp_path, command)
        assert report is not None, said
        (group,) = report["walk"]["groups"]
    else:
        done = debug(tmp_path, build_handing(), ("loop",), [WALK, "run", REPORT, "kill"])
        said, group = done.gdb, groups(done)["main"]
    (chain,) = group["chains"]
    assert chain["functions"] == ["main", "begin", "forever", "burn"], said
    assert min(chain["shares"][:3]) > 0.8, said


@IN_LLDB_AT_NIGHT
def test_a_function_that_is_but_a_jump_to_what_has_much_on_its_stack(tmp_path: Path) -> None:
    """The chain goes on into what it jumps to, which runs already when it is looked into."""
    done = debug(tmp_path, build_handing(), ("jump",), [WALK, "run", REPORT, "kill"])
    (chain,) = groups(done)["main"]["chains"]
    assert chain["functions"] == ["main", "jump", "far", "heap", "burn"], done.gdb
    assert min(chain["shares"]) > 0.7, done.gdb


@pytest.mark.parametrize("name", ["mixture", "threads", "exceptions", "coroutine", "tail"])
def test_the_program_does_what_it_always_does(tmp_path: Path, name: str) -> None:
    """It ends in the middle of a window, or after some."""
    program = build(name)
    done = debug(tmp_path, program, ("4000",), ["darc walk --window 60ms", "run", EXIT])
    if "program exit: None" in done.gdb:  # the walk was over first
        done = debug(
            tmp_path, program, ("4000",), ["darc walk --window 60ms", "run", "continue", EXIT]
        )
    assert (done.program_status, done.output) == undisturbed(program, ("4000",)), done.gdb
    assert "Traceback" not in done.gdb


CTRL_C = (
    "python import os, signal; from darc.session.session import Session; "
    "Session.beat = lambda session: session.analysis._window.count > 0 and "
    "os.kill(session._pid, signal.SIGINT)"
)
"""As the terminal does to the program, once a level is known."""


TICKING = """
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned ticks;
NOINLINE void tick(void) { ticks += ticks * 3 + 1; }
NOINLINE void crunch(void) { for (;;) tick(); }
NOINLINE void serve(void) { crunch(); tick(); }
int main(void) { tick(); serve(); return 0; }
"""
"""main has called what is called far below it as well, and most of the time in probes."""


@IN_LLDB_AT_NIGHT
def test_threads_that_stand_in_probes_of_calls_that_do_not_count(tmp_path: Path) -> None:
    """Nothing tells of such a call but the stack: all that it was called by is on it."""
    commands = ["darc walk --window 200ms", "run", REPORT, "kill"]
    done = debug(tmp_path, compiled(tmp_path, TICKING), (), commands)
    (chain,) = groups(done)["main"]["chains"]
    assert chain["functions"][:3] == ["main", "serve", "crunch"], done.gdb
    assert chain["shares"][2] > 0.9


def test_ctrl_c_says_what_is_known(tmp_path: Path) -> None:
    commands = [
        CTRL_C,
        "darc walk",
        "run",
        REPORT,
        mark("code"),
        "disassemble /r epoll_wait,+8",
        "kill",
    ]
    done = debug(tmp_path, build("evloop"), (), commands)
    assert re.search(r"^darc: main: stopped$", done.gdb, re.M), done.gdb
    (chain,) = groups(done)["main"]["chains"]
    assert chain["functions"] == ["main", "loop"]
    assert chain["end"] == "the walk ended here"
    assert "\te9 " not in done.section("code")


def test_ctrl_c_before_anything_is_known(tmp_path: Path) -> None:
    windows = "session.analysis._window.count"
    at_once = CTRL_C.replace(f"{windows} > 0", f"not {windows}")
    commands = [at_once, "darc walk", "run", mark("status"), "darc status", "kill"]
    done = debug(tmp_path, build("evloop"), (), commands)
    assert "darc: main: stopped" in done.section("status")
    told = "it ended before anything was known: 'darc walk --window 200ms' begins anew"
    assert told in done.section("status")
    assert "let the program go on" not in done.gdb


def test_attached_and_let_go(tmp_path: Path) -> None:
    """A server that has run for long: its loop was entered before anybody looked."""
    with server(build("server")) as running:
        commands = ["darc walk --window 300ms", "continue", REPORT, "detach"]
        command = [*DARC_GDB, "-nx", "-q", "-batch", "-p", str(running.pid)]
        for one in commands:
            command += ["-ex", one]
        _, said, _, _, report = watched(tmp_path, command)
        assert report is not None, said
        (group,) = report["walk"]["groups"]
        (chain,) = group["chains"]
        assert chain["functions"][:3] == ["main", "handle", "lookup"], said
        let_go(running.pid)
        assert running.finish() == 0


STRIPPED_C = (
    "python from darc.code.debug_file import DebugFile; "
    "DebugFile.headers = property(lambda _: None)"
)
"""Nor does a debug file tell what begins threads."""

NO_MAIN = "python from darc.code.elf import Image; Image.unnamed_main = None"
"""As of a program that begins in a way of its own."""


@pytest.mark.parametrize(
    ("before", "static"),
    [([], False), ([STRIPPED_C], False), ([NO_MAIN], False), ([], True)],
    ids=["", "nor-c-library", "no-main", "static"],
)
def test_attached_to_a_program_without_symbols(
    tmp_path: Path, before: list[str], static: bool
) -> None:
    """Its ``main`` is told by its first code; where that does not, each thread's start will do."""
    with server(build_workers(static=static)) as running:
        commands = [*before, "darc walk --window 300ms", "continue", REPORT, "detach"]
        command = [*DARC_GDB, "-nx", "-q", "-batch", "-p", str(running.pid)]
        for one in commands:
            command += ["-ex", one]
        _, said, _, _, report = watched(tmp_path, command)
        assert report is not None, said
        found = {group["threads"]: group for group in report["walk"]["groups"]}
        assert set(found) == {1, 3, 20}, said
        assert (found[1]["start"] == "main") == (NO_MAIN not in before), said
        names = {step for chain in found[3]["chains"] for step in chain["functions"]}
        assert names
        assert all(name.startswith("workers+0x") for name in names), said
        assert all(len(chain["functions"]) == 3 for chain in found[3]["chains"]), said
        let_go(running.pid)
        assert running.finish() == 0


@IN_LLDB_AT_NIGHT
def test_a_program_without_symbols_from_its_begin(tmp_path: Path) -> None:
    done = debug(
        tmp_path, build("pool", strip="all", debug=False), (), [WALK, "run", REPORT, "kill"]
    )
    found = groups(done)
    assert found["main"]["threads"] == 1
    (worker,) = (group for group in found.values() if group["threads"] == 65)
    assert [len(functions) for functions in chains(worker)] == [3], done.gdb


def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    commands = [
        attempt("darc walk a b"),
        attempt("darc walk --threshold 0"),
        attempt("darc walk --window 1ms"),
        "break main",
        "run",
        attempt("darc walk nothing_of_that_name"),
        attempt("darc walk --window 100ms"),
        attempt("darc walk"),
        attempt("darc peak 1"),
        attempt("darc start 1"),
        "darc stop",
        "kill",
    ]
    done = debug(tmp_path, build("evloop"), (), commands)
    for line in (
        "darc walk begins with one function, not a and b",
        "'0' is not a share from 1% to 100%",
        "is not a time of 50ms and more",
        "nothing_of_that_name",
        "main is being analysed: 'darc stop' before 'darc walk'",
        "'darc peak' is for what 'darc start' has begun",
        "of chains of 'darc walk', or of answers of 'darc why', and none has shown any yet",
    ):
        assert line in done.gdb, (line, done.gdb)
    assert "Traceback" not in done.gdb


STORE = ("main", "serve_request", "store_page")


@pytest.mark.parametrize(
    ("args", "threshold", "wanted", "unwanted"),
    [
        # Of all that it takes to make a file anew no part need have a quarter.
        pytest.param(("remove",), 10, {"open", "unlink"}, set(), id="files made anew"),
        pytest.param(("truncate",), 10, set(), {"open", "unlink"}, id="files written over"),
        pytest.param(("queue", "4096"), 25, {"write"}, set(), id="a short queue"),
        pytest.param(("queue", "1048576"), 25, set(), {"write"}, id="a long queue"),
    ],
)
def test_what_the_paper_has_found(
    tmp_path: Path, args: tuple[str, ...], threshold: int, *, wanted: set[str], unwanted: set[str]
) -> None:
    """CrossWalk 5: files that are removed and made anew (which ended in ``open``, below which they
    are made; what takes longer is the file system's affair), and a queue that is too short; no
    chain ends there where that is mended."""
    walk = f"darc walk --window 1s --threshold {threshold}%"
    done = debug(tmp_path, build_proxy(), args, [walk, "run", REPORT, "kill"])
    found = chains(groups(done)["main"])
    ends = {names[-1].removesuffix("64") for names in found if names[:3] == STORE}
    assert not wanted or wanted & ends, done.gdb
    assert not unwanted & ends, done.gdb


PHASES = """
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sum;
NOINLINE void sift(void) { for (int i = 0; i < 20000; i++) sum += i; }
NOINLINE void load(void) { sift(); }
NOINLINE void settle(void) { for (int i = 0; i < 20000; i++) sum += i; }
/* Whether what load calls is timed, not by main alone: so load itself is being looked into. */
static int is_looked_into(void) { return *(volatile unsigned char *)sift == 0xe9; }
int main(void)
{
    while (!is_looked_into())
        load();
    for (;;)
        settle();
}
"""
"""What had all of the time is over as soon as the walk looks into it."""


@IN_LLDB_AT_NIGHT
def test_what_is_over_when_it_is_looked_into(tmp_path: Path) -> None:
    """It does not hold time itself that its callees had."""
    commands = ["darc walk --window 300ms", "run", REPORT, "kill"]
    done = debug(tmp_path, compiled(tmp_path, PHASES), (), commands)
    (chain,) = groups(done)["main"]["chains"]
    assert chain["functions"] == ["main", "load"], done.gdb
    assert chain["end"] == "hardly called any more while it was looked into", done.gdb
