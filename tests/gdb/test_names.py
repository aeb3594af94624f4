"""What FUNCTION of ``darc start`` stands for: at least what the debugger's own ``break`` finds."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.debugger import IN_BOTH, IN_LLDB_AT_NIGHT, REPORT, Done, attempt, debug, gdb_alone, mark

pytestmark = IN_LLDB_AT_NIGHT

CHOSEN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LIBRARY
__attribute__((noinline)) int one(int x) { return x / 3 + x / 5; }
static int (*choose(void))(int) { return one; }
int work(int x) __attribute__((ifunc("choose")));
#else
int work(int x);
#ifndef LINKED
__attribute__((noinline)) int one(int x) { return x / 3 + x / 5; }
static int (*choose(void))(int) { return one; }
int work(int x) __attribute__((ifunc("choose")));
#endif

int main(int argc, char **argv)
{
    int ops = argc > 1 ? atoi(argv[1]) : 0, sum = 0;
    char *from = calloc(1, 4096), *to = malloc(4096);
    for (volatile int op = 0; op < ops; op++) {
        memcpy(to, from, 1024 + op % 8);
        sum += work(op) + to[1];
    }
    printf("%d\\n", sum);
    return 0;
}
#endif
"""
"""``work`` is chosen as the program is loaded; with LINKED by a library, as it is called first."""


def compiled(folder: Path, source: str, flags: Sequence[str] = (), name: str = "program") -> Path:
    """A program of these C sources, or C++ where the name says so."""
    file, program = folder / f"{name}.c", folder / name
    file.write_text(source)
    command = [
        "gcc",
        "-O1",
        "-g",
        "-fno-builtin",
        "-falign-functions=32",
        str(file),
        "-o",
        str(program),
        *flags,
    ]
    subprocess.run(command, check=True, timeout=60)
    return program


def seen(done: Done) -> int:
    """How many calls of f0 were timed."""
    assert done.report is not None, done.gdb
    return int(done.report["profile"]["count"])


@pytest.mark.parametrize("function", ["work", "memcpy"])
@pytest.mark.parametrize("kind", ["-fPIE -pie", "-no-pie -Wl,-z,now", "-static"])
def test_a_function_that_is_chosen_as_it_is_loaded(
    function: str, kind: str, tmp_path: Path
) -> None:
    """Not the function that chooses, nor what the dynamic linker has for itself."""
    program = compiled(tmp_path, CHOSEN, kind.split())
    commands = [f"darc start {function} --peak last --start-ops 300", "run", REPORT]
    done = debug(tmp_path, program, ("20000",), commands)
    assert seen(done) >= 300, done.gdb
    (path,) = done.paths
    assert path[0] == "one" if function == "work" else path[0].startswith("__mem"), done.gdb


@IN_BOTH
def test_a_function_that_is_not_chosen_yet(tmp_path: Path) -> None:
    library = compiled(tmp_path, CHOSEN, ["-DLIBRARY", "-shared", "-fPIC"], "libchosen.so")
    flags = ["-DLINKED", str(library), f"-Wl,-rpath,{tmp_path}", "-Wl,-z,lazy"]
    program = compiled(tmp_path, CHOSEN, flags)
    commands = ["break main", "run", mark("start"), "darc start work --peak last --start-ops 300"]
    commands += [mark("on"), "continue", REPORT]
    done = debug(tmp_path, program, ("20000",), commands)
    assert "and has not yet: waits for it" in done.section("start")
    assert seen(done) >= 300, done.gdb
    assert done.paths == [("one",)]


INLINED = """
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) int inl(int x)
{
    volatile int sum = 0;
    for (int i = 0; i < x % 7; i++)
        sum += i * x;
    return sum;
}

__attribute__((noinline)) int draw(int x) { return inl(x) * 3 + inl(x + 1); }
__attribute__((noinline)) int render(int x) { return inl(x) + draw(x); }

int main(int argc, char **argv)
{
    int sum = 0;
    for (int i = 0; i < atoi(argv[argc - 1]); i++)
        sum += render(i);
    printf("%d\\n", sum);
    return 0;
}
"""


@pytest.mark.parametrize("spelling", ["inl", "program.c:inl"])
def test_a_function_that_was_inlined(spelling: str, tmp_path: Path) -> None:
    """It is not waited for."""
    program = compiled(tmp_path, INLINED)
    commands = ["break main", "run", mark("start"), attempt(f"darc start {spelling}")]
    done = debug(tmp_path, program, ("100",), commands)
    line = done.section("start").strip()
    assert line.startswith(f"darc: {spelling} was inlined into "), done.gdb
    assert set(line.split(" into ")[1].split(": analyse these")[0].split(", ")) == {
        "draw",
        "render",
    }


@pytest.mark.parametrize(
    "command",
    [
        *("darc start inl", "darc catch inl --above 5ms", "darc start inl --probes breakpoint"),
        *("darc start no_such_function", "darc why", "darc walk"),
    ],
)
def test_in_a_program_that_is_refused_nothing_is_looked_for(command: str, tmp_path: Path) -> None:
    """Nor is anything told to be analysed that would be refused in its turn."""
    go = '__asm__(".section .gopclntab,\\"a\\"\\n.quad 1\\n.text");'
    program = compiled(tmp_path, go + INLINED)
    done = debug(
        tmp_path, program, ("100",), ["break main", "run", mark("asked"), attempt(command)]
    )
    assert "program is a Go program, whose runtime moves stacks" in done.section("asked")
    assert "inlined" not in done.gdb, done.gdb
    assert "looks for" not in done.gdb, done.gdb


def test_a_function_that_was_inlined_is_told_before_it_runs(tmp_path: Path) -> None:
    program = compiled(tmp_path, INLINED)
    done = debug(tmp_path, program, ("100",), ["darc start inl"])
    assert "darc: inl was inlined into " in done.gdb
    assert "waits" not in done.gdb
    assert done.status == 1


def test_a_name_that_no_library_has_is_told_as_the_program_begins(tmp_path: Path) -> None:
    program = compiled(tmp_path, INLINED)
    commands = ["darc start zqxjk", "break main", mark("run"), "run", mark("on")]
    done = debug(tmp_path, program, ("100",), [*commands, "continue"])
    told = "darc: no function is called zqxjk: waits for a library that has it"
    assert done.section("run").count(told) == 1, done.gdb
    assert "darc: no function is called zqxjk\n" in done.section("on")


def test_a_function_that_cannot_be_analysed_is_told_as_the_program_begins(tmp_path: Path) -> None:
    program = compiled(tmp_path, INLINED)
    commands = ["darc start dlsym", "break main", mark("run"), "run", mark("on"), "continue"]
    done = debug(tmp_path, program, ("100",), commands)
    assert done.section("run").count("darc: cannot time dlsym: ") == 1, done.gdb
    assert "darc:" not in done.section("on")


def test_an_inlined_function_of_a_library_is_told_as_the_program_begins(tmp_path: Path) -> None:
    source = INLINED.partition("int main")
    library = compiled(tmp_path, source[0], ["-shared", "-fPIC"], "libdraw.so")
    flags = [str(library), f"-Wl,-rpath,{tmp_path}"]
    main = f"#include <stdio.h>\n#include <stdlib.h>\nint render(int);\nint main{source[2]}"
    program = compiled(tmp_path, main, flags)
    commands = ["darc start inl", "break main", "run", mark("on"), "continue"]
    done = debug(tmp_path, program, ("100",), commands)
    # lldb knows libraries before the program runs, and ends there.
    before, _, on = done.gdb.partition("<on>")
    assert before.count("darc: inl was inlined into ") == 1, done.gdb
    assert "darc:" not in on


RUST = """
#include <stdlib.h>
#define NOINLINE __attribute__((noinline))

NOINLINE int u32(int x) __asm__("_RINvMNtCsbFYJioi4cCO_2rs2rsINtB3_5StoreyE3putmEB5_");
NOINLINE int f32(int x) __asm__("_RINvMNtCsbFYJioi4cCO_2rs2rsINtB3_5StoredE3putfEB5_");
NOINLINE int old(int x) __asm__("_ZN2rs2rs14Store$LT$T$GT$4take17h97f691b5e4358b6dE");
NOINLINE int new(int x) __asm__("_ZN2rs2rs14Store$LT$T$GT$4take17h9cd99c00ce52d50eE");

volatile int sink;
int u32(int x) { return sink += x / 3; }
int f32(int x) { return sink += x / 5; }
int old(int x) { return sink += x / 7; }
int new(int x) { return sink += x / 9; }

int main(int argc, char **argv)
{
    for (int i = 0; i < atoi(argv[argc - 1]); i++)
        sink += u32(i) + f32(i) + (i % 2 ? old(i) : new(i));
    return 0;
}
"""
"""Functions that are called as rustc would call them."""


@pytest.mark.parametrize(
    ("spelling", "listed"),
    [
        ("Store::put", ["rs::rs::Store<f64>::put<f32>", "rs::rs::Store<u64>::put<u32>"]),
        ("Store<T>::take", [f"rs::rs::Store<T>::take::h9{n}" for n in ("7f", "cd")]),
    ],
)
def test_instances_in_rust(spelling: str, listed: list[str], tmp_path: Path) -> None:
    """Without its arguments darc lists them, and each spelling that it lists is one of them."""
    program = compiled(tmp_path, RUST)
    done = debug(tmp_path, program, ("600",), [f"darc start '{spelling}'"])
    told = re.search(r"names 2 functions: take one of (.*)", done.gdb)
    assert told is not None, done.gdb
    instances = told[1].split(", ")
    assert all(map(str.startswith, instances, listed)), instances
    for one in instances:
        commands = [f"darc start '{one}' --peak last --start-ops 100", "run", REPORT]
        assert seen(debug(tmp_path, program, ("6000",), commands)) >= 100


def test_an_instance_by_some_of_its_arguments(tmp_path: Path) -> None:
    """As gdb spells it: the type's arguments stand behind those of its function."""
    program = compiled(tmp_path, RUST)
    for name in ("rs::rs::Store<u64>::put<u64, u32>", "Store::put<u32>", "Store<u64>::put"):
        commands = [f"darc start '{name}' --peak last --start-ops 100", "run", REPORT]
        assert seen(debug(tmp_path, program, ("6000",), commands)) >= 100


SPLIT = """
#include <stdio.h>
#include <stdlib.h>

extern int work(int x) __attribute__((visibility("default")));

int work(int x)
{
    if (!(x & 3))
        return 0;
    for (volatile int i = 0; i < 200; i++)
        x += printf("%s", x == 12345678 ? "never\\n" : "");
    for (volatile int i = 0; i < 100; i++)
        x += getenv("NOWHERE") != NULL;
    return x;
}

int main(int argc, char **argv)
{
    int ops = argc > 1 ? atoi(argv[1]) : 0, sum = 0;
    for (int op = 0; op < ops; op++)
        sum += work(op);
    printf("%d\\n", sum);
    return 0;
}
"""
"""``main`` tests for itself and calls ``work.part.0``, as ``work`` would."""


@pytest.mark.parametrize("stripped", [False, True])
def test_callers_call_a_private_copy(stripped: bool, tmp_path: Path) -> None:
    """darc names what they call, and that can be started."""
    flags = ["-O2", "-rdynamic", *(["-s"] if stripped else [])]
    program = compiled(tmp_path, SPLIT, flags)
    command = "darc start {} --peak last --start-ops 300"
    # lldb, which would end behind its last command, may not have heard of the end by then.
    commands = [command.format("work"), "run", "darc status"]
    first = debug(tmp_path, program, ("2000",), commands)
    told = re.search(
        r"ended before work was called: its callers may call a copy of it that is private to them: "
        r"'darc start (\S+)'",
        first.gdb,
    )
    assert told is not None, first.gdb
    assert told[1].startswith("*0x" if stripped else "work.part.0")
    done = debug(tmp_path, program, ("2000",), [command.format(told[1]), "run", REPORT])
    assert 300 <= seen(done) <= 2000


def test_what_a_function_ends_in_is_no_copy_of_it(tmp_path: Path) -> None:
    """It jumps to a library's, by the entry of the PLT: nobody calls that in its place."""
    code = """
    #include <stdlib.h>
    int work(const char *text) { return atoi(text); }
    int main(void) { return 0; }
    """
    program = compiled(tmp_path, code, ["-O2", "-fno-inline"])
    done = debug(tmp_path, program, (), ["darc start work --peak last", "run", "darc status"])
    assert "ended before work was called" in done.gdb
    assert "copy of it" not in done.gdb


NAMESAKE = """
#ifdef LIBRARY
#ifdef OF_CLASS
int main_of_class(int x) __asm__("_ZN4Help4mainEi");
int main_of_class(int x) { return x; }
#else
int main(void) { return 3; }
#endif
__attribute__((noinline)) int work(int x) { return x / 3 + x / 5; }
#else
int work(int x);
int main(void)
{
    volatile int sum = 0;
    for (int op = 0; op < 2000; op++)
        sum += work(op);
    return 0;
}
#endif
"""


@pytest.mark.parametrize("stripped", [False, True])
@pytest.mark.parametrize("of_class", [False, True])
@pytest.mark.parametrize("command", ["start main", "profile libsame.so!work --time 10min"])
def test_main_is_the_programs_own(
    command: str, of_class: bool, stripped: bool, tmp_path: Path
) -> None:
    """Whatever its libraries have that is called so, or whose class or namespace has."""
    flags = ["-DLIBRARY", "-shared", "-fPIC", *(["-DOF_CLASS"] if of_class else [])]
    library = compiled(tmp_path, NAMESAKE, flags, "libsame.so")
    linked = [str(library), f"-Wl,-rpath,{tmp_path}", *(["-s"] if stripped else [])]
    program = compiled(tmp_path, NAMESAKE, linked)
    done = debug(tmp_path, program, (), [f"darc {command}", "run", REPORT])
    assert seen(done) == (1 if "main" in command else 2000), done.gdb


STRIPPED = """
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void slow(int x) { usleep(3000 + x); }
__attribute__((noinline)) void handle(int x) { if (x % 10 == 0) slow(x % 7); else getppid(); }
int main(int argc, char **argv)
{
    int ops = argc > 1 ? atoi(argv[1]) : 0;
    for (int op = 0; op < ops; op++)
        handle(op);
    return 0;
}
"""


def stripped(folder: Path) -> tuple[Path, int]:
    """A program without symbols, and the address of ``handle`` in its file."""
    program = compiled(folder, STRIPPED, ["-fPIE", "-pie"])
    listed = subprocess.run(["nm", program], check=True, capture_output=True, text=True, timeout=60)
    (offset,) = re.findall(r"^(\w+) T handle$", listed.stdout, re.M)
    subprocess.run(["strip", program], check=True, timeout=60)
    return program, int(offset, 16)


@pytest.mark.parametrize("before_run", [True, False], ids=["before", "running"])
@pytest.mark.parametrize("form", ["program+{:#x}", "*{:#x}"])
def test_a_function_without_a_name_is_meant_as_darc_calls_it(
    form: str, before_run: bool, tmp_path: Path
) -> None:
    program, offset = stripped(tmp_path)
    start = f"darc start {form.format(offset)} --peak last --start-ops 200"
    first = [start, "run"] if before_run else ["break getppid", "run", "delete", start, "continue"]
    done = debug(tmp_path, program, ("100000",), [*first, REPORT, "kill"])
    assert done.report is not None, done.gdb
    assert done.report["function"] == f"program+{offset:#x}", done.gdb
    assert done.report["root_cause_paths"], done.gdb


def test_all_that_takes_a_function_takes_one_without_a_name(tmp_path: Path) -> None:
    program, offset = stripped(tmp_path)
    name = f"program+{offset:#x}"
    commands = [
        "break getppid",
        "run",
        "delete",
        f"darc profile {name} --time 1s",
        "continue",
        mark("profile"),
        "darc status",
        f"darc walk {name} --window 1s",
        "continue",
        mark("walk"),
        "darc status",
        "darc stop",
        f"darc catch {name} --above 2ms",
        mark("catch"),
        "continue",
        "darc stop",
        mark("end"),
        attempt(f"darc start program+{offset + 1:#x}"),
        attempt("darc start program+0x0"),
        "kill",
    ]
    done = debug(tmp_path, program, ("100000000",), commands)
    assert re.search(rf" {re.escape(name)}\s", done.section("profile")), done.gdb
    assert name in done.section("walk"), done.gdb
    assert name in done.section("catch"), done.gdb
    assert "lies within" in done.section("end"), done.gdb
    assert "at program+0x0 is no code" in done.section("end"), done.gdb


@gdb_alone("lldb's 'complete' is for its own commands")
def test_names_of_functions_without_one_are_completed(tmp_path: Path) -> None:
    program, offset = stripped(tmp_path)
    name = f"program+{offset:#x}"
    done = debug(tmp_path, program, ("1",), [f"complete darc start {name[:-2]}"])
    assert f"darc start {name}" in done.gdb, done.gdb


def test_a_start_that_fails_leaves_what_was_found(tmp_path: Path) -> None:
    """Numbers of a table are good until another one is shown, whatever was started meanwhile."""
    program = compiled(tmp_path, STRIPPED)
    commands = [
        "break getppid",
        "run",
        "delete",
        "darc profile handle slow --time 1s",
        "continue",
        attempt("darc start program+0x1"),
        mark("failed"),
        "darc status",
        mark("first"),
        "darc start 1 --peak last",
        "continue",
        "darc start 2",
        "darc stop",
        mark("second"),
        "darc histogram 2",
        attempt("darc start 3"),
        "kill",
    ]
    done = debug(tmp_path, program, ("100000000",), commands)
    table = done.section("failed")
    assert "handle" in table, done.gdb
    assert "slow" in table, done.gdb
    assert done.section("first").count(": 'continue'") == 2, done.gdb
    second = done.section("second")
    assert re.search(r" (handle|slow): \S+ calls$", second, re.M), done.gdb
    assert "there is no row 3 of profiles: there are 1 to 2" in second, done.gdb
