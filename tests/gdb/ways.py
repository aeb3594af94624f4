"""A program that looks at its own code when it ends in one way or another, and when it may."""

from __future__ import annotations

import subprocess
from pathlib import Path

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
