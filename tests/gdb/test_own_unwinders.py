"""Plugins that have an unwinder of their own, linked in statically, and come and go: their
exceptions go through calls that are timed, and find no pad on the stack."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import debugger

PLUGIN = """
#include <unistd.h>
struct Thrown { int value; };
static volatile unsigned long sum;
__attribute__((noinline)) static int innermost(int op)
{
    for (int i = 0; i < 200; i++)
        sum += i;
    if (op % 7 == 3)
        throw Thrown{op};
    return op;
}
__attribute__((noinline)) static int inner(int op)
{
    int got = innermost(op);
    sum += got;
    return got;
}
__attribute__((noinline)) static void rest(int op) { if (op % 50 == 0) usleep(2000); sum += op; }
extern "C" int work(int op)
{
    int got;
    try {
        got = inner(op);
    } catch (Thrown &thrown) {
        got = -thrown.value;
    }
    rest(op);
    return got;
}
"""

PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
typedef int (*function)(int);
static volatile unsigned long sum;
static void *file;
static function work;
static void load(const char *name)
{
    file = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!file || !(work = (function)dlsym(file, "work")))
        abort();
}
NOINLINE int handle(int op) { int got = work(op); sum += got; return got; }
int main(int argc, char **argv)
{
    int wrong = 0, ops = atoi(argv[2]);
    load(argv[1]);
    for (int op = 1; op <= ops; op++) {
        wrong += handle(op) != (op % 7 == 3 ? -op : op);
        if (op % 400 == 0 || op % 400 == 10) {
            dlclose(file);
            load(argv[1]);
        }
    }
    printf("%d wrong, %d\\n", wrong, argc);
    return wrong != 0;
}
"""


@pytest.fixture
def program(tmp_path: Path) -> tuple[Path, Path]:
    """A program, and its plugin."""
    (tmp_path / "plugin.cpp").write_text(PLUGIN)
    (tmp_path / "program.c").write_text(PROGRAM)
    own = ["-static-libgcc", "-static-libstdc++", "-shared", "-fPIC"]
    for command in (
        ["g++", "-O1", "-g", *own, "plugin.cpp", "-o", "plugin.so"],
        ["gcc", "-O1", "-g", "program.c", "-o", "program"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    return tmp_path / "program", tmp_path / "plugin.so"


@debugger.IN_BOTH
@pytest.mark.parametrize(
    "command",
    ["darc start handle --start-ops 300 --peak last --decision-ops 40", "darc why --time 4s"],
    ids=["start", "why"],
)
def test_a_plugin_that_comes_and_goes(
    program: tuple[Path, Path], command: str, tmp_path: Path
) -> None:
    path, plugin = program
    commands = [command, "run", "continue"]
    done = debugger.debug(tmp_path, path, (str(plugin), "6000"), commands)
    assert b"0 wrong" in done.output, done.gdb
    assert "SIGABRT" not in done.gdb, done.gdb
    assert "internal error" not in done.gdb, done.gdb
