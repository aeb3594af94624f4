"""``darc waits`` on a program that knows by itself what its calls waited for, and for whom."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from darc.debuggee.leavings import Leavings
from darc.debuggee.wakers import Wakers
from fixtures.build import build, build_contended, build_stripes, build_waiting
from tests import debugger
from tests.debugger import EVERYWHERE, IN_BOTH, IN_LLDB_AT_NIGHT, LLDB
from tests.gdb.programs import compiled
from tests.kills.programs import running, wait_until_let_go

INSIDE = Path(__file__).parents[1] / "inside_gdb.py"
TELL = Path(__file__).parents[1] / "tell_waits.py"
START = "darc start handle --start-ops 200 --decision-ops 10 --peak >1ms"

CLOSE = 0.05
"""Of a wait: what the program takes between its own clock and the C library's function."""


def may_see_wakers() -> bool:
    try:
        Wakers(os.getpid()).close()
    except OSError:
        return False
    return True


needs_privilege = pytest.mark.skipif(
    not may_see_wakers(), reason="who wakes threads is told to the privileged alone"
)


def may_see_places() -> bool:
    """Whether the kernel tells where threads leave their processors."""
    try:
        Leavings(os.getpid()).close()
    except OSError:
        return False
    return True


REFUSE_PLACES = """
from darc.debuggee import switches

def refused(pid):
    raise PermissionError(1, "as of others than root")

switches.Leavings = refused
"""


REFUSE = """
from darc.debuggee import switches

def refused(pid):
    raise PermissionError("as of others than root")

switches.Wakers = switches.WhoRan = refused
"""


def told_of(
    folder: Path, way: str, ops: int = 4000, start: str = START, *first: str
) -> tuple[debugger.Done, dict[str, Any]]:
    commands = [f"source {INSIDE}", *first, start, "run", debugger.mark("waits"), "darc waits"]
    commands += [debugger.mark("rest"), debugger.REPORT, f"with-app {TELL}", "kill"]
    done = debugger.debug(folder, build_waiting(), (way, str(ops)), commands)
    assert "Traceback" not in done.gdb, done.gdb
    assert (folder / "waits.json").exists(), done.gdb
    return done, json.loads((folder / "waits.json").read_text())


def waits_shown(folder: Path, source: str, start: str) -> debugger.Done:
    """A program of ``source``, what ``darc waits`` shows of it, and the report."""
    commands = [start, "run", debugger.mark("waits"), "darc waits", debugger.mark("rest")]
    commands += [debugger.REPORT, "kill"]
    return debugger.debug(folder, compiled(folder, source), (), commands)


def slow_ops(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Without what the machine has to do besides."""
    found = [op for op in told["ops"] if op["class"] == "in peak"]
    assert len(found) >= 8, told
    for op in found:
        op["waits"] = [wait for wait in op["waits"] if wait["kind"] != "processor"]
    return found


def truths(folder: Path) -> list[tuple[int, ...]]:
    return [tuple(map(int, line.split())) for line in (folder / "truth").read_text().splitlines()]


def check_shares(folder: Path, told: dict[str, Any], kind: str) -> None:
    """Each wait is as long as the program says, and divided among them as it says."""
    compared = agreed = 0
    known = truths(folder)
    for op in slow_ops(told):
        found = [t for t in known if op["start"] <= t[0] and t[1] <= op["end"]]
        if not found:
            continue  # the program was killed before it wrote that line
        begun, over, by_long, by_short = found[-1]
        whole = over - begun
        (wait,) = (w for w in op["waits"] if w["kind"] == kind)
        shares: Counter[str] = Counter()
        for part in wait["parts"]:
            short = part["path"] and part["path"][0] in ("rotate_log", "rotate_cache")
            shares["short" if short else "long" if part["thread"] else "none"] += part["cycles"]
        assert sum(shares.values()) == wait["end"] - wait["start"]
        differences = (
            sum(shares.values()) - whole,
            shares["long"] - by_long,
            shares["short"] - by_short,
        )
        compared += 1
        agreed += all(abs(one) <= CLOSE * whole for one in differences)
    assert compared >= 8
    assert agreed > 0.7 * compared, told  # a busy machine comes between the clock and the call


def first_of(path: list[str]) -> str:
    """The innermost function but for ``futex``, which is inlined where it makes a system call."""
    return path[path[0] == "futex"]


def releasers(op: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (part["role"], first_of(part["path"]))
        for wait in op["waits"]
        for part in wait["parts"]
        if part["path"]
    }


@IN_BOTH
def test_successive_holders_have_their_own_shares(tmp_path: Path) -> None:
    """One holds it about three times as long as the other, and who owned it at the begin is not who
    released it last."""
    done, told = told_of(tmp_path, "holders")
    check_shares(tmp_path, told, "lock")
    assert all(("held", "flush_log") in releasers(op) for op in slow_ops(told))
    assert any(("held", "rotate_log") in releasers(op) for op in slow_ops(told))
    shown = done.section("waits")
    assert "waited for the lock log_lock in append ← serve_slowly ← handle" in shown
    assert "held by thread" in shown
    assert shown.index("flush_log ← help") < shown.index("rotate_log ← help")


@pytest.mark.parametrize(
    ("way", "kind", "named", "path", "role", "by"),
    [
        ("rests", "lock", "log_lock", "append", "held", "flush_and_rest"),
        ("producer", "condition", "filled", "consume", "woke", "produce"),
        ("semaphore", "semaphore", "tokens", "take_token", "woke", "post_token"),
        ("barrier", "barrier", "meeting", "meet", "woke", "arrive_late"),
        ("readers", "read-write lock", "table_lock", "change_table", "held", "read_table"),
        ("writer", "read-write lock", "table_lock", "look_up", "held", "write_table"),
        ("futex", "futex", "own_lock", "take_own", "held", "put_own"),
        ("handler", "semaphore", "tokens", "take_token", "woke", "post_in_handler"),
    ],
)
def test_each_kind_of_wait(
    *, way: str, kind: str, named: str, path: str, role: str, by: str, tmp_path: Path
) -> None:
    done, told = told_of(tmp_path, way)
    check_shares(tmp_path, told, kind)
    assert "has changed since it was read" not in json.dumps(done.report)  # by darc's own probes
    for op in slow_ops(told):
        (wait,) = (w for w in op["waits"] if w["kind"] == kind)
        assert wait["object"] == named
        assert first_of(wait["path"]) == path
        assert wait["path"][-1] == "handle"
        assert {name for _, name in releasers(op)} == {by}
        assert (role, by) in releasers(op)


def test_a_thread_that_is_joined(tmp_path: Path) -> None:
    _, told = told_of(tmp_path, "join")
    check_shares(tmp_path, told, "thread")


def test_the_lock_was_in_memory_that_is_gone(tmp_path: Path) -> None:
    _, told = told_of(tmp_path, "unmap")
    check_shares(tmp_path, told, "lock")
    assert all(("held", "hold_mapped") in releasers(op) for op in slow_ops(told))


def test_half_of_the_peak_each(tmp_path: Path) -> None:
    done, told = told_of(tmp_path, "mixed")
    check_shares(tmp_path, told, "lock")
    objects = Counter(wait["object"] for op in slow_ops(told) for wait in op["waits"])
    assert set(objects) == {"log_lock", "cache_lock"}
    held = r"(\d+ % of that )?held by thread \d+ .*\('darc waits'\)"
    first = rf"waited for the lock (log|cache)_lock, \d+ %, {held}"
    assert re.search(first, " ".join(done.gdb.split()))  # with the paths
    shown = done.section("waits")
    assert "flush_log" in shown
    assert "rotate_cache" in shown
    assert done.report is not None
    waits = done.report["waits"]["in_peak"]
    assert {one["name"] for one in waits["objects"]} == {"log_lock", "cache_lock"}
    assert waits["waited"] == sum(one["cycles"] for one in waits["objects"]) <= waits["cycles"]


def test_releases_from_one_place_are_added_up(tmp_path: Path) -> None:
    """Fifty readers' leaving in one wait: there is no room for each, and nothing is lost."""
    done, told = told_of(tmp_path, "many")
    check_shares(tmp_path, told, "read-write lock")
    assert not any(op["lost"] for op in slow_ops(told))
    assert "not noted" not in done.section("waits")


def contended(
    folder: Path, way: str, threads: int, *, f0: str, calls: int
) -> tuple[debugger.Done, dict[str, Any], list[dict[str, Any]]]:
    """With what darc tells of the in-peak calls, and its ops."""
    commands = [f"source {INSIDE}", f"darc start {f0} --peak >1ms", "run"]
    commands += [debugger.mark("waits"), "darc waits", debugger.mark("rest"), debugger.REPORT]
    commands += [f"with-app {TELL}", "kill"]
    args = (way, str(threads), str(calls))
    done = debugger.debug(folder, build_contended(), args, commands)
    assert "Traceback" not in done.gdb, done.gdb
    assert done.report is not None, done.gdb
    told = json.loads((folder / "waits.json").read_text())
    return done, done.report["waits"]["in_peak"], slow_ops(told)


def part_of(waits: dict[str, Any], kind: str) -> float:
    """Of all that was waited, but for processors: the part of the objects of that kind."""
    cycles: Counter[str] = Counter()
    for one in waits["objects"]:
        cycles[one["kind"]] += one["cycles"]
    del cycles["processor"]
    return cycles[kind] / sum(cycles.values())


@pytest.mark.parametrize("threads", [6, 64])
def test_one_lock_that_many_contend_for_is_one_object(threads: int, tmp_path: Path) -> None:
    """All waits stand under its name, and are divided as the program itself counts them, however
    often it is passed on meanwhile."""
    done, waits, ops = contended(
        tmp_path, "lock", threads=threads, f0="handle", calls=400000 // threads
    )
    assert part_of(waits, "lock") > 0.97, done.section("waits")
    assert {one["name"] for one in waits["objects"] if one["kind"] == "lock"} == {"lock"}
    assert waits["lost"] == 0
    known, by_truth, by_darc = truths(tmp_path), Counter[str](), Counter[str]()
    for op in ops:
        found = [t for t in known if op["start"] <= t[0] and t[1] <= op["end"]]
        locks = [wait for wait in op["waits"] if wait["kind"] == "lock"]
        if not found or not locks:
            continue
        by_truth += Counter(janitor=found[-1][2], workers=found[-1][3])
        for part in (part for wait in locks for part in wait["parts"] if part["path"]):
            who = "janitor" if "sweep" in part["path"] else "workers"
            assert who == "janitor" or "store" in part["path"], part
            by_darc[who] += part["cycles"]
    whole = sum(by_truth.values())
    assert whole, known
    for who in ("janitor", "workers"):
        assert abs(by_truth[who] - by_darc[who]) < 0.1 * whole, (by_truth, by_darc)


def test_a_condition_that_many_wait_for_is_one_object(tmp_path: Path) -> None:
    done, waits, _ = contended(tmp_path, "condition", threads=8, f0="serve", calls=50000)
    assert part_of(waits, "condition") > 0.97, done.section("waits")
    signals = [h for o in waits["objects"] for h in o["holders"] if h["role"] == "woke"]
    assert any(holder["path"][0] == "feed" for holder in signals), done.section("waits")
    told = sum(h["cycles"] for h in signals if h["path"] and h["path"][0] == "feed")
    assert told > 0.7 * waits["waited"], done.section("waits")


@pytest.mark.parametrize("way", ["timeout", "nothing"])
def test_who_gives_up_was_released_by_nobody(way: str, tmp_path: Path) -> None:
    done, told = told_of(tmp_path, way)
    for op in slow_ops(told):
        assert not {role for role, _ in releasers(op)} & {"held", "woke"}
        (wait,) = op["waits"]
        assert {part["role"] for part in wait["parts"]} <= {"held at the begin", "not seen"}
        shown = done.section("waits")
        assert ("held, when the wait began, by" in shown) == (way == "timeout")
        assert ("no release was seen: it gave up" in shown) == (way == "nothing")


@IN_LLDB_AT_NIGHT
@needs_privilege
@pytest.mark.parametrize(
    ("way", "kind", "role", "by", "shown"),
    [
        ("posted", "semaphore", "woke", "post_shared_token", "until the signal of process"),
        ("shared", "lock", "held", "hold_shared", "held by process"),
        ("pipe", "wake-up", "woke", "write_pipe", "woken by process"),
    ],
)
def test_another_process_is_named_with_its_path(
    way: str, kind: str, role: str, *, by: str, shown: str, tmp_path: Path
) -> None:
    """It was made by fork, so that its code is the program's."""
    done, told = told_of(tmp_path, way, 1200)
    known, compared, agreed = truths(tmp_path), 0, 0
    for op in slow_ops(told):
        found = [t for t in known if op["start"] <= t[0] and t[1] <= op["end"]]
        if not found:
            continue
        begun, over = found[-1][:2]
        waits = [w for w in op["waits"] if w["kind"] == kind]
        others = [p for w in waits for p in w["parts"] if p["outside"] and by in p["path"]]
        compared += 1
        agreed += abs(sum(p["cycles"] for p in others) - (over - begun)) <= 0.1 * (over - begun)
        assert {p["role"] for p in others} <= {role}
    assert compared >= 8
    assert agreed > 0.7 * compared, told
    lines = [line for line in done.section("waits").splitlines() if shown in line]
    assert len(lines) == 1, done.gdb
    assert '"neighbour" in ' in lines[0]
    assert f"{by} ← " in lines[0]
    assert done.report is not None
    objects = [o for o in done.report["waits"]["in_peak"]["objects"] if o["kind"] == kind]
    holders = [h for o in objects for h in o["holders"]]
    (holder,) = (h for h in holders if h.get("outside") and by in h["path"])
    assert (holder["role"], holder["thread"], len(holder["threads"])) == (role, "neighbour", 1)


FULL_PIPE = """
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sum;
static int ends[2];
NOINLINE void emit(const char *line)
{
    if (write(ends[1], line, 4096) != 4096)
        abort();
    sum++;
}
NOINLINE void handle(unsigned op)
{
    static __thread char line[4096];
    emit(line);
    sum += op;
}
NOINLINE void drain(void)
{
    static char lines[65536];
    if (read(ends[0], lines, sizeof lines) <= 0)
        abort();
    nanosleep(&(struct timespec){0, 8000000}, 0);
    sum++;
}
static void *writer(void *unused)
{
    for (unsigned op = 0;; op++) {
        handle(op);
        usleep(500);
    }
    return unused;
}
int main(void)
{
    pthread_t thread;
    if (pipe(ends))
        abort();
    for (int i = 0; i < 6; i++)
        pthread_create(&thread, 0, writer, 0);
    for (int i = 0; i < 20000; i++)
        drain();
}
"""
"""Each writer that the reader's room was left for wakes the next one."""


RECURSIVE = """
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#define NOINLINE __attribute__((noinline, noclone))
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static volatile unsigned long sum;
NOINLINE void rest(void) { nanosleep(&(struct timespec){0, 3000000}, 0); sum++; }
NOINLINE void inner(unsigned op)
{
    pthread_mutex_lock(&lock);
    if (op % 50 == 0)
        rest();
    pthread_mutex_unlock(&lock);
    sum++;
}
NOINLINE void handle(unsigned op)
{
    pthread_mutex_lock(&lock);
    inner(op);
    pthread_mutex_unlock(&lock);
    sum++;
}
int main(void) { for (unsigned op = 0; op < 400000; op++) handle(op); }
"""
"""What it does behind the second lock is not for the lock, which it has."""


@IN_LLDB_AT_NIGHT
def test_a_thread_does_not_wait_for_a_lock_that_it_has(tmp_path: Path) -> None:
    done = waits_shown(tmp_path, RECURSIVE, "darc start handle --start-ops 2000 --peak >1ms")
    assert done.report is not None, done.gdb
    assert done.paths[0][:3] == ("handle", "inner", "rest"), done.gdb
    kinds = {one["kind"] for one in done.report["waits"]["in_peak"]["objects"]}
    assert "lock" not in kinds, done.gdb
    assert "waited for the lock" not in done.gdb


TWO_LOCKS = """
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;
NOINLINE void compact(void)
{
    pthread_mutex_lock(&inner);
    nanosleep(&(struct timespec){0, 8000000}, 0);
    pthread_mutex_unlock(&inner);
    sum++;
}
NOINLINE void store(void)
{
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&outer);
    sum++;
}
NOINLINE void handle(unsigned op)
{
    pthread_mutex_lock(&outer);
    sum += op;
    pthread_mutex_unlock(&outer);
}
static void *compactor(void *unused)
{
    for (;; usleep(20000))
        compact();
    return unused;
}
static void *storer(void *unused)
{
    for (;; usleep(3000))
        store();
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, compactor, 0);
    pthread_create(&thread, 0, storer, 0);
    for (unsigned op = 0; op < 400000; op++, usleep(300))
        handle(op);
}
"""
"""Who holds the lock that calls wait for waits for another one himself."""


@IN_LLDB_AT_NIGHT
@needs_privilege
def test_whom_the_holder_of_a_lock_waits_for(tmp_path: Path) -> None:
    done = waits_shown(tmp_path, TWO_LOCKS, "darc start handle --start-ops 1000 --peak last")
    assert done.report is not None, done.gdb
    objects = done.report["waits"]["in_peak"]["objects"]
    (one,) = (o for o in objects if o["kind"] == "lock" and o["name"] == "outer")
    holders = [h for h in one["holders"] if h["path"][:1] == ["store"]]
    slept = [one for h in holders for one in h["behind"] if one["role"] == "slept"]
    behind = [who for one in slept for who in one["behind"]]
    assert sum(who["cycles"] for who in behind) > one["cycles"] / 2, done.gdb
    assert {who["path"][0] for who in behind} == {"compact"}, done.gdb
    assert re.search(r"woken by task \d+ .*in compact ← compactor: ", done.section("waits"))
    held = (
        r"in store ← storer: \d+ calls, which was blocked in __lll_lock_wait .* for \d+ % of that"
    )
    assert re.search(rf"{held}, itself woken by task .* in compact", done.gdb)


SLOW_HOLDER = """
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static pthread_mutex_t store = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;
NOINLINE void settle(void) { poll(0, 0, 6); sum++; }
NOINLINE void sync_all(void) { usleep(2000); sum++; }
NOINLINE void checkpoint(void)
{
    pthread_mutex_lock(&store);
    settle();
    sync_all();
    pthread_mutex_unlock(&store);
    sum++;
}
NOINLINE void handle(unsigned op)
{
    pthread_mutex_lock(&store);
    sum += op;
    pthread_mutex_unlock(&store);
}
static void *keeper(void *unused)
{
    for (;; usleep(20000))
        checkpoint();
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, keeper, 0);
    for (unsigned op = 0; op < 400000; op++, usleep(300))
        handle(op);
}
"""
"""Who holds the lock sleeps in two calls meanwhile, for three quarters and a quarter of it."""


@IN_LLDB_AT_NIGHT
@pytest.mark.skipif(not may_see_places(), reason="where threads sleep is told to the privileged")
def test_in_which_call_the_holder_of_a_lock_sleeps(tmp_path: Path) -> None:
    commands = ["darc start handle --start-ops 1000 --peak last", "run", debugger.mark("waits")]
    commands += ["darc waits", debugger.mark("rest"), debugger.REPORT, "kill"]
    done = debugger.debug(tmp_path, compiled(tmp_path, SLOW_HOLDER), (), commands)
    assert done.report is not None, done.gdb
    objects = done.report["waits"]["in_peak"]["objects"]
    (one,) = (o for o in objects if o["kind"] == "lock" and o["name"] == "store")
    (holder,) = (h for h in one["holders"] if h["path"][:1] == ["checkpoint"])
    slept = {
        function: sum(b["cycles"] for b in holder["behind"] if function in b["path"])
        for function in ("settle", "sync_all")
    }
    assert slept["settle"] > 1.5 * slept["sync_all"] > 0, done.gdb
    assert sum(slept.values()) > 0.6 * holder["cycles"], done.gdb
    assert re.search(r"it slept in .*poll ← settle ← checkpoint", done.section("waits")), done.gdb
    told = r"in checkpoint ← keeper: \d+ calls, which was blocked in .*poll ← settle ← checkpoint"
    assert re.search(told + r".* for \d+ % of that", done.gdb), done.gdb
    assert "in which calls they slept is not told" not in done.gdb


@IN_LLDB_AT_NIGHT
def test_that_it_is_not_told_in_which_call_the_holder_sleeps(tmp_path: Path) -> None:
    (tmp_path / "refuse.py").write_text(REFUSE_PLACES)
    commands = [f"source {INSIDE}", f"with-app {tmp_path / 'refuse.py'}"]
    commands += ["darc start handle --start-ops 1000 --peak last", "run", debugger.mark("waits")]
    commands += ["darc waits", debugger.mark("rest"), debugger.REPORT, "kill"]
    done = debugger.debug(tmp_path, compiled(tmp_path, SLOW_HOLDER), (), commands)
    shown = " ".join(done.section("waits").split())
    assert re.search(r"held by thread .* in checkpoint ← keeper", shown), done.gdb
    assert re.search(r"it slept, where is not told: \d+ calls", shown), done.gdb
    assert "in which calls they slept is not told: the kernel tells it root" in shown
    assert re.search(r"in checkpoint ← keeper: \d+ calls, which was blocked for \d+ % of", done.gdb)


@IN_LLDB_AT_NIGHT
@needs_privilege
def test_writers_of_a_full_pipe_wait_for_its_reader(tmp_path: Path) -> None:
    commands = ["darc start handle --start-ops 200 --peak last", "run", debugger.REPORT, "kill"]
    done = debugger.debug(tmp_path, compiled(tmp_path, FULL_PIPE), (), commands)
    assert done.report is not None, done.gdb
    objects = done.report["waits"]["in_peak"]["objects"]
    (one,) = (o for o in objects if o["kind"] == "wake-up" and "emit" in o["path"])
    by_reader = sum(h["cycles"] for h in one["holders"] if "drain" in h["path"])
    assert by_reader > one["cycles"] / 2, done.gdb
    assert {tuple(h["path"][:2]) for h in one["holders"] if "emit" in h["path"]} <= {
        ("emit", "handle")
    }, "a call that comes back to a probe has its name"


@IN_LLDB_AT_NIGHT
@pytest.mark.parametrize(
    ("way", "shown"),
    [
        (
            "posted",
            "no release was seen in the program: another process that shares it has released it",
        ),
        ("shared", 'held, when the wait began, by thread {} of another process, "neighbour"'),
    ],
)
def test_anybody_is_told_that_another_process_released_it(
    way: str, shown: str, tmp_path: Path
) -> None:
    """Which, and where, is told to the privileged: it is said how to see that."""
    (tmp_path / "refuse.py").write_text(REFUSE)
    done, told = told_of(tmp_path, way, 1200, START, f"with-app {tmp_path / 'refuse.py'}")
    text = " ".join(done.section("waits").split())
    assert re.search(re.escape(shown).replace(r"\{\}", r"\d+"), text), done.gdb
    assert "what other processes release is not seen from this one: the kernel tells it" in text
    assert done.report is not None
    objects = done.report["waits"]["in_peak"]["objects"]
    holders = [h for one in objects if one["kind"] != "processor" for h in one["holders"]]
    assert max(holders, key=lambda one: one["cycles"]).get("outside"), holders
    assert slow_ops(told)


@IN_LLDB_AT_NIGHT
def test_anybody_is_told_in_which_call_it_was_blocked(tmp_path: Path) -> None:
    """Who ends that is told to the privileged: here the tracepoint is refused."""
    (tmp_path / "refuse.py").write_text(REFUSE)
    first = f"with-app {tmp_path / 'refuse.py'}"
    done, told = told_of(tmp_path, "pipe", 1200, START, first)
    most = [
        w for o in slow_ops(told) for w in o["waits"] if w["end"] - w["start"] > o["latency"] / 2
    ]
    assert 2 * len(most) > len(slow_ops(told)), told  # a busy machine comes between
    assert {(wait["kind"], tuple(wait["parts"])) for wait in most} == {("call", ())}
    shown = " ".join(done.section("waits").split())
    assert re.search(r"\d+ % blocked in read ← .*read_pipe ← serve_slowly ← handle: ", shown)
    assert "who ends what calls are blocked in is not told: the kernel tells it root" in shown
    assert done.report is not None
    (one,) = (o for o in done.report["waits"]["in_peak"]["objects"] if o["kind"] == "call")
    assert one["path"][-1] == "handle"
    assert one["holders"] == []


@pytest.mark.parametrize("way", ["spin"])
def test_nothing_is_claimed_of_what_is_not_seen(way: str, tmp_path: Path) -> None:
    done, told = told_of(tmp_path, way)
    assert all(not op["waits"] for op in slow_ops(told))
    assert "waited for" not in done.section("waits").replace("waited for a processor", "")


def test_readers_do_not_hold_up_a_reader(tmp_path: Path) -> None:
    """Another one gets the lock at the same time, and may give it back first."""
    _, told = told_of(tmp_path, "along")
    ops = slow_ops(told)
    assert any(("held", "write_table") in releasers(op) for op in ops)
    for op in ops:
        assert not any(name == "read_along" for _, name in releasers(op)), op


def test_children_in_an_op(tmp_path: Path) -> None:
    """fork, vfork and clone(CLONE_VM), each of which uses locks: what the op waits for in the end
    is told of as ever."""
    _, told = told_of(tmp_path, "family", 2000)
    ops = slow_ops(told)
    assert any(("held", "flush_log") in releasers(op) for op in ops)
    for op in ops:
        assert not any("rotate" in name for _, name in releasers(op))


@pytest.mark.parametrize(
    ("way", "lock"),
    [
        ("array", "shop.stripes[2].lock"),
        ("class", "house::shelf.guard"),
        ("first", "ledger.lock"),
    ],
)
@IN_LLDB_AT_NIGHT
def test_locks_that_are_parts_of_variables(tmp_path: Path, way: str, lock: str) -> None:
    """They are named as the source has them, and so are functions that are inlined."""
    start = "darc start handle --peak last --start-ops 500 --decision-ops 5"
    done = debugger.debug(tmp_path, build_stripes(), (way,), [start, "run", "darc waits", "kill"])
    assert f"waited for the lock {lock} in take ← put ← handle" in done.gdb
    assert re.search(r"held by thread \d+.* in rest ← keep ← help", done.gdb), done.gdb


def test_a_lock_of_a_program_without_symbols(tmp_path: Path) -> None:
    """It is among the program's variables, which no file has: not on the heap."""
    stripped = tmp_path / "stripped"
    shutil.copy(build_stripes(), stripped)
    keep = ["--keep-symbol=handle", "--keep-symbol=main"]
    subprocess.run(["strip", *keep, str(stripped)], check=True)
    start = "darc start handle --peak last --start-ops 500 --decision-ops 5"
    done = debugger.debug(tmp_path, stripped, ("array",), [start, "run", "darc waits", "kill"])
    assert re.search(r"waited for the lock stripped\+0x\w+ in ", done.gdb), done.gdb


def test_a_hundred_threads_wait_for_one_lock(tmp_path: Path) -> None:
    """Each of them is told who has released it."""
    start = "darc start handle --start-ops 200 --decision-ops 64 --peak >1ms"
    done, told = told_of(tmp_path, "crowd", 1000, start)
    assert told["not_followed"] == 0
    assert "waited for the lock" in done.section("waits")


def test_ten_thousand_short_threads(tmp_path: Path) -> None:
    done = debugger.debug(
        tmp_path,
        build_waiting(),
        ("short", "500"),
        [START, "run", "darc waits", "continue", debugger.EXIT],
    )
    assert "waited for the lock log_lock in append" in done.gdb
    assert (done.program_status, done.output) == (0, b"waiting: short, 500\n")


def test_threads_are_cancelled_where_they_wait(tmp_path: Path) -> None:
    """Their calls never end, and the program goes on as ever."""
    commands = [
        "darc start handle --start-ops 100 --peak last",
        "run",
        "darc waits",
        "continue",
        debugger.EXIT,
    ]
    done = debugger.debug(tmp_path, build_waiting(), ("cancel", "300"), commands)
    assert (done.program_status, done.output) == (0, b"waiting: cancel, 300\n"), done.gdb


@EVERYWHERE
def test_locks_of_all_kinds_go_on(tmp_path: Path) -> None:
    """Signal handlers that lock and post, cancelled waits, robust and shared mutexes, fork in a
    lock, small stacks, calls that are refused with objects that are not there, and a thread that
    has no storage: all that the program knows of itself is right."""
    analyse = ["darc start handle --peak last --start-ops 2000 --decision-ops 40", "continue"]
    with running("locks", tmp_path) as program:
        options = ["-p", str(program.pid)]
        commands = [*analyse, *analyse, "darc waits", "darc stop", "detach"]
        done = debugger.debug(tmp_path, None, (), commands, options=options)
        wait_until_let_go(program.pid)
        assert "internal error" not in done.gdb
        # lldb 14 loses such a program by itself. A newer one gives up the rest of a batch where a
        # signal has come to another thread at the same moment as the stop that is shown.
        if debugger.current() != LLDB and "stop reason = signal SIGCHLD" not in done.gdb:
            assert "calls kept" in done.gdb
            assert "every probe is out" in done.gdb
        program.check()
        program.finish()


@IN_LLDB_AT_NIGHT
def test_a_program_that_ends_in_a_search_with_waits_known(tmp_path: Path) -> None:
    """lldb tells of the end on a thread that may not ask it: files have what names need."""
    start = "darc start request --peak '>150us' --decision-ops 30 --lookahead 1"
    done = debugger.debug(tmp_path, build("backend"), ("5000",), [start, "run", "darc status"])
    assert "request: program ended" in done.gdb, done.gdb
    assert "internal error" not in done.gdb, done.gdb
