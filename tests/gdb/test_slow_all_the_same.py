"""What makes slow calls slow where the fast ones, other causes or other programs are in the way."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import debugger
from tests.gdb.programs import compiled
from tests.permission import needs_permission

TAIL = """
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sum;
NOINLINE void spin(unsigned n) { for (unsigned i = 0; i < n; i++) sum += i; }
NOINLINE void usual(unsigned n) { spin(n); sum++; }
NOINLINE void rehash(unsigned n) { spin(n); sum++; }
NOINLINE void handle(unsigned op)
{
    static const unsigned calls[] = {100, 160, 196, 218, 231, 239, 244};
    unsigned turn = (op * 2654435761u >> 16) % 244, level = 0;

    while (turn >= calls[level])
        level++;
    if (level < 4)
        usual(350000u << level);
    else
        rehash(350000u << level);
    sum++;
}
int main(void) { for (unsigned op = 1; op < 400000; op++) handle(op); }
"""
"""Of its calls, each octave of latencies has some two thirds as many as the one below."""

SCAN = """
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sum;
NOINLINE void look_up(unsigned n) { for (unsigned i = 0; i < n; i++) sum += i; }
NOINLINE void scan(unsigned n) { for (unsigned i = 0; i < n; i++) sum += i; }
NOINLINE void handle(unsigned op)
{
    look_up(3000);
    if (op % 20 == 0)
        scan(20000000);
    sum++;
}
int main(void) { for (unsigned op = 0; op < 100000; op++) { handle(op); usleep(100); } }
"""

TWO = """
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int child[2], holder[2], zero;
static void *hold(void *unused)
{
    char c;

    while (read(holder[0], &c, 1) == 1) {
        pthread_mutex_lock(&lock);
        if (write(holder[0], &c, 1) != 1)
            abort();
        usleep(5000);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
NOINLINE void compute(unsigned n) { for (unsigned i = 0; i < n; i++) sum += i; }
NOINLINE void fetch(int from) { char c; if (read(from, &c, 1) != 1) abort(); sum += c; }
NOINLINE void guarded(void)
{
    pthread_mutex_lock(&lock);
    sum++;
    pthread_mutex_unlock(&lock);
}
NOINLINE void handle(int from)
{
    compute(2000);
    guarded();
    fetch(from);
    sum++;
}
int main(void)
{
    char c = 0;
    pthread_t thread;

    zero = open("/dev/zero", O_RDONLY);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, child) || socketpair(AF_UNIX, SOCK_STREAM, 0, holder))
        abort();
    if (!fork()) {
        close(child[0]);
        while (read(child[1], &c, 1) == 1) {
            usleep(5000);
            if (write(child[1], &c, 1) != 1)
                break;
        }
        _exit(0);
    }
    pthread_create(&thread, NULL, hold, NULL);
    for (unsigned op = 0; op < 400000; op++) {
        unsigned turn = op % 200;
        int is_slow = turn == 20 || turn == 120;

        if ((turn == 0 || turn == 60 || turn == 160) &&
            (write(holder[1], &c, 1) != 1 || read(holder[1], &c, 1) != 1))
            abort();
        if (is_slow && write(child[0], &c, 1) != 1)
            abort();
        handle(is_slow ? child[0] : zero);
    }
}
"""
"""Three of five slow calls wait for a lock and read in no time; two read for long."""

MANY = """
#include <stdlib.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
#define OTHER(n) NOINLINE void other##n(unsigned us) { usleep(us); sum += n; }
#define FIVE(n, a, b, c, d, e, what) what(n##a) what(n##b) what(n##c) what(n##d) what(n##e)
#define TEN(n, what) FIVE(n, 0, 1, 2, 3, 4, what) FIVE(n, 5, 6, 7, 8, 9, what)
#define CALL(n) case n - 10: other##n(us); break;
static volatile unsigned long sum;
static unsigned slow;
TEN(1, OTHER) TEN(2, OTHER)
NOINLINE void rest(unsigned us) { usleep(us); sum++; }
NOINLINE void handle(unsigned op, unsigned us)
{
    sum++;
    if (op % 20)
        return;
    if (op / 20 % 7 < 2) {
        rest(1000);
        return;
    }
    switch (slow++ % 20) {
        TEN(1, CALL) TEN(2, CALL)
    }
}
int main(int argc, char **argv)
{
    for (unsigned op = 0; op < 400000 && argc > 1; op++)
        handle(op, atoi(argv[1]));
}
"""
"""Of seven slow calls two rest, and each of the others sleeps in another one of 20 functions."""

SIGNALS = """
#include <signal.h>
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sum;
static void noticed(int signal) { sum += signal; }
NOINLINE void usual(unsigned n) { for (unsigned i = 0; i < n; i++) sum += i; }
NOINLINE void notify(unsigned n) { for (; n; n--) raise(SIGUSR1); sum++; }
NOINLINE void handle(unsigned op)
{
    usual(800000);
    if (op % 8 == 0)
        notify(16);
    sum++;
}
int main(void)
{
    signal(SIGUSR1, noticed);
    for (unsigned op = 0; op < 400000; op++)
        handle(op);
}
"""
"""Its signals cost far less than what a call computes, and gdb's stops at them far more."""


@debugger.IN_LLDB_AT_NIGHT
def test_of_one_peak_with_a_tail_the_last_is_the_tail(tmp_path: Path) -> None:
    """Most of the time of all calls is in another function."""
    commands = ["darc start handle --peak last --start-ops 600", "run", debugger.REPORT, "kill"]
    done = debugger.debug(tmp_path, compiled(tmp_path, TAIL), (), commands)
    assert done.report is not None, done.gdb
    # On a busy machine the slowest ones are those that were preempted, or they have a peak.
    causes = [path["cause"] for path in done.report["root_cause_paths"]]
    right = {("handle", "rehash", "spin"), ("handle",)}
    assert set(done.paths) & right or causes == ["preemption"], done.gdb
    assert ("handle", "usual", "spin") not in done.paths, done.gdb
    if len(done.report["peaks"]) == 1:
        assert done.report["peak"]["number"] is None
        told = "handle has one peak, with a tail: these are the calls of the tail, from "
        assert told in done.gdb, "where the path is"
        assert any(told in note for note in done.report["notes"])


@pytest.fixture
def crowd() -> Iterator[list[str]]:
    """Four processes that compute on one processor; the command that puts others there."""
    there = ["taskset", "-c", "0"]
    loop = [*there, sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(loop) for _ in range(4)]
    yield there
    for other in others:
        other.kill()
        other.wait()


@needs_permission
def test_what_computes_for_long_is_the_cause_though_it_is_preempted(
    tmp_path: Path, crowd: list[str]
) -> None:
    """All slow calls are farther to the right than they would be alone, and so is their peak."""
    commands = ["darc start handle --peak last --start-ops 400", "run", debugger.REPORT, "kill"]
    done = debugger.debug(
        tmp_path, compiled(tmp_path, SCAN), (), commands, gdb=(*crowd, *debugger.DARC_GDB)
    )
    assert done.paths == [("handle", "scan")], done.gdb
    assert done.root_causes[0]["cause"] == "function", done.gdb
    assert "off the processor though ready for" in done.gdb, "where the path is"


@needs_permission
def test_calls_that_only_the_debugger_made_slow_have_no_cause_in_the_program(
    tmp_path: Path,
) -> None:
    """gdb stops it at each signal."""
    passed_on = "handle SIGUSR1 nostop print pass"
    commands = ["darc start handle --peak last --start-ops 400", "run", debugger.REPORT, "kill"]
    done = debugger.debug(tmp_path, compiled(tmp_path, SIGNALS), (), [passed_on, *commands])
    assert ["handle"] in [path["functions"] for path in done.root_causes], done.gdb
    assert "stopped" in {path["cause"] for path in done.root_causes}, done.gdb
    assert "the debugger's stops in handle, nothing of the program's" in done.gdb
    assert not any("notify" in path for path in done.paths), done.gdb


@needs_permission
@debugger.IN_LLDB_AT_NIGHT
def test_a_wait_is_one_where_other_slow_calls_had_nothing_to_wait_for(tmp_path: Path) -> None:
    commands = ["darc start handle --peak last --start-ops 3000", "run", debugger.REPORT, "kill"]
    done = debugger.debug(tmp_path, compiled(tmp_path, TWO), (), commands)
    causes = {path["functions"][-1]: path["cause"] for path in done.root_causes}
    assert causes.pop("handle", "preemption") == "preemption"
    assert causes.pop("read", None) == "blocked", done.gdb
    assert set(causes.values()) == {"blocked"}, done.gdb


def many(folder: Path, us: int) -> debugger.Done:
    start = "darc start handle --peak >800us --start-ops 1000 --decision-ops 20"
    commands = [start, "run", debugger.REPORT, "kill"]
    return debugger.debug(folder, compiled(folder, MANY), (str(us),), commands)


@debugger.IN_LLDB_AT_NIGHT
def test_what_explains_next_to_nothing_is_no_root_cause(tmp_path: Path) -> None:
    """It has the most votes, of calls that are short beside the others."""
    done = many(tmp_path, 20000)
    assert done.paths == [], done.gdb
    assert done.report is not None
    assert done.report["status"] == "not conclusive"
    told = re.search(
        r"rest → … → clock_nanosleep was chosen by votes, but explains (\d+) % of the peak's time",
        done.gdb,
    )
    assert told is not None, done.gdb
    assert int(told[1]) < 10


@debugger.IN_LLDB_AT_NIGHT
def test_what_explains_the_smaller_part_is_told_to(tmp_path: Path) -> None:
    done = many(tmp_path, 1000)
    assert {path[:2] for path in done.paths} == {("handle", "rest")}, done.gdb
    words = (
        r"  rest → … → clock_nanosleep explains (\d+) % of the peak's time: most of it has other"
    )
    told = re.search(words, done.gdb)
    assert told is not None, done.gdb
    assert 10 <= int(told[1]) < 50
