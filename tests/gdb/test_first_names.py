"""What is told of a name before the program runs, or where it stops as nothing can come of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.debugger import IN_LLDB_AT_NIGHT, Done, attempt, debug, mark

pytestmark = IN_LLDB_AT_NIGHT

_GET = "__attribute__((noinline)) int get{n}(int x) {{ return x + {n}; }}"
_NAMED = 'int get{n}(int) __asm__("_ZN3n{n:02}3getEi");'
_MANY = 12

MAIN = f"""
#include <dlfcn.h>
#include <stdlib.h>
int first(int), second(int);
{"".join(_NAMED.format(n=n) + chr(10) for n in range(_MANY))}
{"".join(_GET.format(n=n) + chr(10) for n in range(_MANY))}
__attribute__((noinline)) int handle(int x) {{ return x + 1; }}
int main(int argc, char **argv)
{{
    int sum = argc;
#ifdef LINKED
    sum += first(sum);
#else
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
    int (*called)(int) = library ? (int (*)(int)) dlsym(library, "first") : abs;
    sum += called(sum);
#endif
    return handle(sum) == 7;
}}
"""

SAME = """
static __attribute__((noinline)) int helper(int x) { return x * %(factor)d + 1; }
int %(name)s(int x) { return helper(x) - 1; }
"""


def made(folder: Path, *, linked: bool = True) -> tuple[Path, Path]:
    """The program, ``main.c``, and its library of two files that have a ``helper`` each."""
    library, program, main = folder / "libtwice.so", folder / "program", folder / "main.c"
    sources = []
    for factor, name in enumerate(("first", "second"), 3):
        sources.append(folder / f"{name}.c")
        sources[-1].write_text(SAME % {"factor": factor, "name": name})
    compiler: list[str | Path] = ["gcc", "-O1", "-g", "-fno-builtin"]
    command = [*compiler, "-shared", "-fPIC", "-o", library, *sources]
    subprocess.run(command, check=True, timeout=60)
    main.write_text(MAIN)
    flags: list[str | Path] = ["-DLINKED", library, f"-Wl,-rpath,{folder}"] if linked else ["-ldl"]
    subprocess.run([*compiler, main, "-o", program, *flags], check=True, timeout=60)
    return program, library


WAITS = ": waits for a library that has it: type 'run'"

TOLD = {
    "nosuch.c:handle": "no source file of program is called nosuch.c: 'handle' is elsewhere",
    "main.c:handel": "no function is called main.c:handel (near names: handle",
    "handel": "no function is called handel (near names: handle",
    "libtwise.so!first": "no library that is loaded with program is called libtwise.so (near",
    "libtwice.so!firts": "no function is called libtwice.so!firts (near names: first",
    "sendmgs": "no function is called sendmgs (near names: sendmsg",  # nearer than 'second'
    "frist": "no function is called frist (near names: first",
}
"""What may still come with a library."""

REFUSED = {
    "get": "get names 12 functions: take one of n00::get(int), n01::get(int), ",
    "0x1139": "0x1139 is a number: 'darc start *0x1139' means the code there",
    "ge*": "ge* is a pattern, and 'darc start' takes one function: 'darc profile ge*' times all",
}


THERE = ("first", "libtwice.so!first", "main.c:handle")


def key_of(name: str) -> str:
    """The section of what is told of ``name``."""
    return re.sub(r"\W", "_", name)


@pytest.fixture(scope="module")
def told(driven_by: str, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Each name is typed before the program runs."""
    folder = tmp_path_factory.mktemp("names")
    program, _ = made(folder)
    line = 1 + next(n for n, text in enumerate(MAIN.splitlines()) if "int handle(int x)" in text)
    commands = []
    for name in (*TOLD, *REFUSED, *THERE, f"main.c:{line}"):
        key = "line" if name.endswith(str(line)) else key_of(name)
        commands += [mark(key), attempt(f"darc start {name}")]
    return debug(folder, program, (), commands)


@pytest.mark.parametrize("name", TOLD)
def test_what_is_not_there_is_told_before_it_runs(name: str, told: Done) -> None:
    (line,) = told.section(key_of(name)).splitlines()
    assert TOLD[name] in line
    assert line.endswith(WAITS)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_before_it_runs(name: str, told: Done) -> None:
    (line,) = told.section(key_of(name)).splitlines()
    assert REFUSED[name] in line
    assert "waits for" not in line


def test_of_many_functions_some_are_listed(told: Done) -> None:
    """And it is told how all of them are timed."""
    assert told.section("get").count("::get(int)") == 8
    assert " and 4 more: 'darc profile get' times them all" in told.section("get")


def test_a_line_is_no_function(told: Done) -> None:
    """The function that holds it is told."""
    assert "is a line, and darc times functions: 'main.c:handle' holds it" in told.section("line")


@pytest.mark.parametrize("name", THERE)
def test_what_a_library_has_is_waited_for(name: str, told: Done) -> None:
    assert f"darc: waits for {name}: type 'run'" in told.section(key_of(name))


@pytest.mark.parametrize("linked", [True, False], ids=["linked", "loaded-later"])
def test_a_program_stops_where_a_name_turns_out_to_mean_several(
    linked: bool, tmp_path: Path
) -> None:
    """Rather than run on without an analysis; one of those that are told can be typed there."""
    program, library = made(tmp_path, linked=linked)
    commands = ["darc start helper", mark("run"), "run", mark("again"), "darc start first"]
    commands += [mark("on"), "continue", mark("end")]
    done = debug(tmp_path, program, (str(library),), commands)
    assert done.gdb.count("darc: helper names 2 functions: take one of ") == 1, done.gdb
    assert "darc: analyses first: 'continue'" in done.gdb or "waits for first" in done.gdb
    assert "handle" not in done.section("again")
