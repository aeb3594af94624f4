"""The code of every module is the file's own again, byte for byte, once darc is done."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.build import build, find
from tests.debugger import (
    EVERYWHERE,
    EXIT,
    IN_BOTH,
    IN_LLDB_AT_NIGHT,
    REPORT,
    ROOT,
    Done,
    debug,
    gdb_alone,
    mark,
    undisturbed,
)

pytestmark = IN_LLDB_AT_NIGHT

TOOLS = f"source {ROOT / 'tests' / 'inside_gdb.py'}"


def altered(done: Done, section: str) -> int:
    found = re.search(r"^code: (\d+) bytes compared, (\d+) altered", done.section(section), re.M)
    assert found is not None, done.gdb
    assert int(found[1]) > 1 << 20, "libc was not compared"
    return int(found[2])


def watched(done: Done) -> int:
    """How many bytes of code were not the file's at some moment: that darc was there at all."""
    found = re.findall(r"^watched: (\d+) altered", done.gdb, re.M)
    assert found, done.gdb
    return int(found[-1])


def told(name: str) -> list[str]:
    return [mark(name), "tell-code"]


WITHIN = {
    "exceptions": "guard",
    "indirect": "do_get",
    "mixture": "lookup",
    "plt": "lib_process",
    "tail": "skip",
    "threads": "lookup",
}
"""A function that f0 calls, in which the code is looked at while the program is under way."""


@pytest.mark.parametrize("name", WITHIN)
def test_after_the_result(name: str, tmp_path: Path) -> None:
    fixture, program = find(name), build(name)
    args = ("32000",) if name == "threads" else fixture.args
    commands = [
        TOOLS,
        "break main",
        "run",
        *told("before"),
        f"darc start {fixture.function} --peak >150us",
        *told("prompt"),
        f"watch-code {WITHIN[name]}",
        "continue",
        *told("after"),
        mark("end"),
        "tell-watched",
        "continue",
        EXIT,
    ]
    done = debug(tmp_path, program, args, commands)
    assert altered(done, "before") == 0
    assert altered(done, "prompt") == 0
    assert "root cause of" in done.section("prompt")
    assert altered(done, "after") == 0
    assert watched(done) > 0
    assert (done.program_status, done.output) == undisturbed(program, args)


@EVERYWHERE
@pytest.mark.parametrize("moment", ["profiling", "choice", "descent"])
def test_after_darc_stop(moment: str, tmp_path: Path) -> None:
    program, args = build("mixture"), find("mixture").args
    start = "darc start handle --start-ops 2000"
    steps = {
        "profiling": ["break main", "run", start, "tbreak compress_block", "continue"],
        "choice": [start, "run"],
        "descent": [start, "run", "darc peak >1ms", "tbreak write_out", "continue"],
    }
    commands = [
        TOOLS,
        f"watch-code {'flush' if moment == 'descent' else 'compress_block'}",
        *steps[moment],
        *told("prompt"),
        "tell-watched",
        "darc stop",
        *told("after"),
        "continue",
        "continue",
        EXIT,
    ]
    done = debug(tmp_path, program, args, commands)
    assert altered(done, "prompt") == 0
    assert watched(done) > 0
    assert altered(done, "after") == 0
    assert (done.program_status, done.output) == undisturbed(program, args)


@gdb_alone("lldb itself loses its breakpoints in a library that is loaded again")
def test_code_of_a_library_that_was_loaded_again(tmp_path: Path) -> None:
    program, args = build("farlib"), ("4000", "reload")
    commands = [
        TOOLS,
        "darc start far_handle --start-ops 1000000",
        "set breakpoint pending on",
        "watch-code far_store",
        "tbreak dlclose",
        "run",
        *told("first"),
        "tbreak far_handle",
        "continue",
        *told("second"),
        "tell-watched",
        "darc stop",
        *told("after"),
        "continue",
        EXIT,
    ]
    done = debug(tmp_path, program, args, commands)
    for section in ("first", "second", "after"):
        assert altered(done, section) == 0
    assert watched(done) > 0
    assert (done.program_status, done.output) == undisturbed(program, args)


@IN_BOTH
def test_code_that_the_program_has_moved(tmp_path: Path) -> None:
    """No mapping of the file has code then; the names are the file's all the same."""
    program, fixture = build("moved"), find("moved")
    start = f"darc start {fixture.function} --peak >150us"
    commands = ["break has_moved", "run", start, "continue", REPORT, "continue", EXIT]
    done = debug(tmp_path, program, fixture.args, commands)
    assert (done.program_status, done.output) == undisturbed(program, fixture.args), done.gdb
    assert ("handle", "step", "burn") in done.paths, done.gdb
