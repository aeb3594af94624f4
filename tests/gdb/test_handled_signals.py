"""The user lets a program go on from a stop at a signal that often is a program's end, and that
this one handles, as managed runtimes and collectors do: calls are seen again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import debugger

SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))

static volatile uint64_t sink;
static char *page, own[64];
static const char *how;
static int number;
static sigjmp_buf back;
static volatile unsigned faults, changed;
NOINLINE void handle(unsigned op);

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec * 1e-9;
}
static void look(void) { changed += memcmp(own, (void *)handle, sizeof own) != 0; }
static void on_signal(int signal)
{
    (void)signal;
    faults++;
    if (!strcmp(how, "long")) {
        for (double end = now() + 2.5; now() < end; usleep(1000))
            look();
        how = "returns";
    }
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    if (!strcmp(how, "jumps"))
        siglongjmp(back, 1);
}
NOINLINE void rest(void) { for (int i = 0; i < 60; i++) sink += i; }
NOINLINE void slow(void) { for (int i = 0; i < 100000; i++) sink += i; }
NOINLINE void barrier(unsigned op)
{
    if (number == SIGSEGV) {
        mprotect(page, 4096, PROT_READ);
        if (!sigsetjmp(back, 1))
            *(volatile char *)page = op;
    } else if (!sigsetjmp(back, 1))
        raise(number);
}
NOINLINE void work(unsigned op)
{
    if (op == 1000)
        barrier(op);
    if (op % 64 == 0)
        slow();
    rest();
}
NOINLINE void handle(unsigned op)
{
    work(op);
    sink++;
}
static void *operate(void *unused)
{
    for (unsigned op = 0; op < 4000000 && !access("stay", F_OK); op++)
        handle(op);
    return unused;
}
int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal};
    pthread_t thread;

    if (argc < 3)
        return 1;
    number = atoi(argv[1]), how = argv[2];
    memcpy(own, (void *)handle, sizeof own);
    page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(number, &action, NULL);
    if (argc > 3) {
        pthread_create(&thread, NULL, operate, NULL);
        pthread_join(thread, NULL);
    } else
        operate(NULL);
    printf("%s, %u times, code was %s\n", strsignal(number), faults,
           changed ? "changed" : "its own");
    return 0;
}
"""

START = "darc start handle --peak >50us --decision-ops 200 --start-ops 60000 --max-time 40s"
PATH = ("handle", "work", "slow")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "handled.c").write_text(SOURCE)
    (tmp_path / "stay").touch()
    made = str(tmp_path / "handled")
    source = str(tmp_path / "handled.c")
    subprocess.run(["gcc", "-O2", "-g", "-pthread", "-o", made, source], check=True)
    return tmp_path / "handled"


@pytest.mark.parametrize(
    "args",
    [
        ("11", "returns"),
        ("11", "jumps"),
        ("11", "returns", "thread"),
        ("8", "returns"),
        ("6", "jumps"),
    ],
    ids=" ".join,
)
def test_calls_are_seen_behind_a_stop_at_a_signal_that_is_handled(
    args: tuple[str, ...], program: Path, tmp_path: Path
) -> None:
    """As darc says: 'continue', and with 'handle' it stops for that no more."""
    commands = [START, "run", "handle SIGSEGV SIGFPE SIGABRT nostop noprint pass", "continue"]
    done = debugger.debug(tmp_path, program, args, [*commands, debugger.REPORT])
    assert "is not done" in done.gdb, done.gdb
    assert done.paths == [PATH], done.gdb
    assert "while you step" not in done.gdb


def test_while_a_signal_is_handled_the_code_is_the_programs_own(
    program: Path, tmp_path: Path
) -> None:
    """The handler may make a report, or a core file: this one looks for longer than a program
    that was let go on otherwise runs without probes. The line that stays says why there are none,
    and nobody steps."""
    commands = [START.replace("40s", "60s"), "run", "handle SIGSEGV nostop noprint pass"]
    args = ("11", "long")
    done = debugger.debug(tmp_path, program, args, [*commands, "continue", debugger.REPORT])
    assert done.paths == [PATH], done.gdb
    (tmp_path / "stay").unlink()
    after = debugger.debug(tmp_path, program, args, [*commands, "continue", "continue"])
    assert b"code was its own" in after.output, after.gdb


def test_where_an_analysis_begins_at_such_a_stop(program: Path, tmp_path: Path) -> None:
    """Its probes come in behind the handler, as those of one that has begun before it."""
    commands = ["run", START, "handle SIGSEGV nostop noprint pass", "continue", debugger.REPORT]
    done = debugger.debug(tmp_path, program, ("11", "returns"), commands)
    assert done.paths == [PATH], done.gdb


def test_probes_come_back_where_nobody_waits_for_the_program(program: Path, tmp_path: Path) -> None:
    """'continue &' has gdb's prompt at once."""
    with debugger.terminal(tmp_path, str(program)) as shown:
        shown.command("set args 11 returns")
        shown.command(START)
        shown.command("run")
        shown.command("handle SIGSEGV nostop noprint pass")
        shown.enter("continue &")
        shown.wait_for(r"cause: slow itself")
        shown.quit()


@debugger.IN_BOTH
def test_at_a_terminal_the_same_words_lead_there(program: Path, tmp_path: Path) -> None:
    """lldb in batch ends at such a stop."""
    with debugger.terminal(tmp_path, str(program)) as shown:
        shown.command(START)
        told = " ".join(shown.command("run 11 returns").split())
        assert "the analysis of handle is not done: SIGSEGV" in told
        shown.command("handle SIGSEGV nostop noprint pass")
        assert "cause: slow itself" in shown.command("continue")
        shown.quit()
