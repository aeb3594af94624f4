"""Every way out of a program leaves it as it was: it looks at its own code, and tells.

The program here prints a checksum of its code (and of libc's) at its end: the output is that of an
undisturbed run only if every byte was restored. Cores and forks are looked at with gdb's own
commands; tests/lldb/test_ways_out.py has what lldb can do.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.debugger import EXIT, PLAIN_GDB, Done, debug, mark, undisturbed
from tests.gdb.test_transcripts import same

SOURCE = r"""
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))

static const char *what = "";
static unsigned at = 2000;
static uint64_t checksum;
static volatile unsigned nothing;

static int add_code(struct dl_phdr_info *info, size_t size, void *sum)
{
    (void)size;
    if (strstr(info->dlpi_name, "vdso") || strstr(info->dlpi_name, "ld-linux"))
        return 0; /* a debugger has a breakpoint of its own in the loader */
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X) {
            const unsigned char *code = (void *)(info->dlpi_addr + segment->p_vaddr);
            for (size_t at = 0; at < segment->p_filesz; at++)
                *(uint64_t *)sum = *(uint64_t *)sum * 31 + code[at];
        }
    }
    return 0;
}

/* The code, and what the stack says of who calls. */
static NOINLINE void tell(const char *who)
{
    uint64_t sum = 0;
    dl_iterate_phdr(add_code, &sum);
    printf("%s: code %llx, checksum %llx\n", who, (unsigned long long)sum,
           (unsigned long long)checksum);
    fflush(stdout);
}

static void on_signal(int number)
{
    tell("handler");
    signal(number, SIG_DFL);
    raise(number);
}

NOINLINE uint64_t burn(uint64_t x, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static void *end_thread(void *x)
{
    pthread_exit(x);
}

NOINLINE uint64_t misfortune(unsigned op)
{
    if (!strcmp(what, "segv"))
        *(volatile int *)16 = 1;
    if (!strcmp(what, "abort"))
        abort();
    if (!strcmp(what, "illegal"))
        __builtin_trap();
    if (!strcmp(what, "divide"))
        return 100 / nothing;
    if (!strcmp(what, "exit"))
        exit(7);
    if (!strcmp(what, "_exit"))
        _exit(8);
    if (!strcmp(what, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(what, "exec")) {
        tell("before exec");
        execl("/proc/self/exe", "again", "100", "none", NULL);
    }
    if (!strcmp(what, "fork") || !strcmp(what, "vfork")) {
        int status = 0;
        pid_t child = what[0] == 'f' ? fork() : vfork();
        if (child == 0) {
            if (what[0] == 'v')
                _exit(9);
            tell("child");
            _exit(9);
        }
        waitpid(child, &status, 0);
        printf("child ended with %d\n", WEXITSTATUS(status));
    }
    if (!strcmp(what, "threads")) {
        pthread_t thread;
        pthread_create(&thread, NULL, end_thread, NULL);
        pthread_join(thread, NULL);
    }
    return op;
}

NOINLINE uint64_t work(unsigned op)
{
    uint64_t x = burn(op, op % 32 ? 20 : 300000);
    if (op == at)
        x += misfortune(op);
    return x + 1;
}

NOINLINE uint64_t handle(unsigned op)
{
    uint64_t x = work(op);
    return x ^ op;
}

int main(int argc, char **argv)
{
    unsigned ops = strtoul(argv[1], NULL, 0);

    what = argv[2];
    if (argc > 3)
        signal(SIGSEGV, on_signal), signal(SIGABRT, on_signal);
    for (unsigned op = 0; op < ops; op++)
        checksum += handle(op);
    tell("end");
    return 3;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("ways"))


def compiled(folder: Path) -> Path:
    """The program that looks at its own code."""
    (folder / "ways.c").write_text(SOURCE)
    source, made = str(folder / "ways.c"), str(folder / "ways")
    subprocess.run(["gcc", "-O2", "-g", "-pthread", "-o", made, source], check=True)
    return folder / "ways"


MOMENTS = {
    "profiling": "darc start handle --start-ops 1000000",
    "descent": "darc start handle --peak >100us --decision-ops 100000",
    "lookahead 1": "darc start handle --peak >100us --decision-ops 100000 --lookahead 1",
}
SIGNAL = 'python print("signal", gdb.convenience_variable("_exitsignal"))'


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("what", ["segv", "abort", "illegal", "divide"])
def test_crash(what: str, moment: str, program: Path, tmp_path: Path) -> None:
    """Signal, backtrace, core and end are the crash's own, as in gdb alone."""
    args = ("4000", what)
    core = tmp_path / "core"
    look = [mark("crash"), "bt", "info registers rip rsp", "x/3i work", "up", "info frame"]
    end = [mark("core"), f"gcore {core}", mark("end"), "continue", SIGNAL]
    texts = []
    for gdb, begin in (({}, [MOMENTS[moment]]), ({"gdb": PLAIN_GDB}, [])):
        done = debug(tmp_path, program, args, [*begin, "run", *look, *end], **gdb)
        in_core: list[str | Path] = [*PLAIN_GDB, "-nx", "-q", "-batch", program, core]
        for one in ("bt", "x/6i work", "x/6i handle"):
            in_core += ["-ex", one]
        text = subprocess.run(
            in_core, capture_output=True, text=True, timeout=90, check=True
        ).stdout
        ending = [line for line in done.section("end").splitlines() if "ignal" in line]
        texts.append((same(done.section("crash")), same(text[text.index("#0") :]), ending))
        core.unlink()
    assert texts[0] == texts[1]
    assert any("misfortune" in line for line in texts[0][0])


@pytest.mark.parametrize("what", ["segv", "abort"])
def test_crash_reporter(what: str, program: Path, tmp_path: Path) -> None:
    """A handler that looks at the code after the crash's stop finds the program's own."""
    args = ("4000", what, "handled")
    commands = [MOMENTS["profiling"], "run", "continue", "continue", SIGNAL]
    done = debug(tmp_path, program, args, commands)
    status, output = undisturbed(program, args)
    assert b"handler: code" in output
    assert done.output == output
    assert f"signal {-status}" in done.gdb


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("what", ["exit", "_exit", "kill", "exec", "threads", "fork", "vfork"])
def test_end_inside_a_timed_call(what: str, moment: str, program: Path, tmp_path: Path) -> None:
    """Output and status as if nobody had looked; the code is left as it was."""
    args = ("4000", what)
    start = MOMENTS[moment]
    commands = [start, "tbreak tell", "run", "darc stop", "continue", "continue", EXIT, SIGNAL]
    if what in ("fork", "vfork"):
        commands.insert(0, "tbreak waitpid")
        commands.insert(-2, "continue")
    done = debug(tmp_path, program, args, commands)
    check_end(done, program, args, of_child=what == "fork")


FOLLOW = [
    *(("fork", mode, held) for mode in ("parent", "child") for held in ("on", "off")),
    *(("vfork", mode, "on") for mode in ("parent", "child")),
]


@pytest.mark.parametrize(("what", "mode", "detach"), FOLLOW)
def test_gdb_follows_a_fork(
    what: str, mode: str, detach: str, program: Path, tmp_path: Path
) -> None:
    """Whichever it follows, and whether it keeps the other: both do what they would, and whoever is
    in gdb's hands has its own code."""
    args = ("4000", what)
    setting = [f"set follow-fork-mode {mode}", f"set detach-on-fork {detach}"]
    if detach == "off":  # else the parent would wait for a child that is held
        setting.append("set schedule-multiple on")
    script = tmp_path / "rest.py"
    script.write_text(REST)
    commands = [*setting, MOMENTS["profiling"], "tbreak tell", "run", f"source {script}"]
    done = debug(tmp_path, program, args, commands)
    check_end(done, program, args, of_child=mode == "parent" and detach == "on")


REST = """
import gdb
gdb.execute("delete")
gdb.execute("darc stop")
for _ in range(6):
    for inferior in list(gdb.inferiors()):
        if inferior.is_valid() and inferior.pid:
            gdb.execute(f"inferior {inferior.num}")
            gdb.execute("continue")
"""


def check_end(done: Done, program: Path, args: tuple[str, ...], *, of_child: bool) -> None:
    status, output = undisturbed(program, args)
    shown, wanted = done.output.splitlines(), output.splitlines()
    if of_child:  # its code is a copy with probes in it, which pass through
        shown = [line for line in shown if not line.startswith(b"child: code")]
        wanted = [line for line in wanted if not line.startswith(b"child: code")]
    assert shown == wanted, done.gdb
    assert "Traceback" not in done.gdb
    assert "internal error" not in done.gdb
    if status < 0:
        assert f"signal {-status}" in done.gdb
    elif "program exit" in done.gdb:
        assert done.program_status == status
