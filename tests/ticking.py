"""A program whose long operations call ``tick`` every 10 ms: breakpoints that the debugger itself
goes on from stand there, and are hit several times within each operation."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = """
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

static uint64_t checksum;
static volatile unsigned ticks;
static int raises;

NOINLINE uint64_t compute(uint64_t x, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        x = x * 2862933555777941757u + 3037000493u;
    return x;
}

NOINLINE void tick(unsigned op)
{
    ticks++;
    checksum += op;
    if (raises)
        raise(SIGUSR1);
}

NOINLINE void piece(unsigned op)
{
    tick(op);
    checksum = compute(checksum, 8000000);
}

NOINLINE void fetch(unsigned op)
{
    for (int i = 0; i < 5; i++)
        piece(op);
}

NOINLINE void serve(unsigned op)
{
    checksum = compute(checksum, 800000);
    if (op % 8)
        fetch(op);
}

static void heard(int number)
{
    checksum += number;
}

int main(int argc, char **argv)
{
    unsigned ops = strtoul(argv[1], NULL, 0);

    raises = argc > 2;
    signal(SIGUSR1, heard);
    for (unsigned op = 0; op < ops; op++)
        serve(op);
    printf("%u operations, %u ticks, checksum %llx\\n", ops, ticks, (unsigned long long)checksum);
    return 0;
}
"""

PATH = ("serve", "fetch", "piece", "compute")
"""What makes an operation long."""

START = "darc start serve --peak '>20ms' --start-ops 8 --decision-ops 6"
OPERATIONS = "80"
"""Twice as many as the search takes. Few of them are short, as a busy machine makes those long."""


def build(folder: Path) -> Path:
    """The program."""
    source, program = folder / "ticking.c", folder / "ticking"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-o", program, source], check=True)
    return program
