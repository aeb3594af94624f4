"""The code of every module is the file's own again, byte for byte, once darc is done."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.build import build, find
from tests.debugger import EXIT, ROOT, Done, debug, mark, undisturbed

TOOLS = f"source {ROOT / 'tests' / 'inside_gdb.py'}"


def altered(done: Done, section: str) -> int:
    found = re.search(r"^code: (\d+) bytes compared, (\d+) altered", done.section(section), re.M)
    assert found is not None, done.gdb
    assert int(found[1]) > 1 << 20, "libc was not compared"
    return int(found[2])


def told(name: str) -> list[str]:
    return [mark(name), "tell-code"]


@pytest.mark.parametrize("name", ["exceptions", "indirect", "mixture", "plt", "tail", "threads"])
def test_after_the_result(name: str, tmp_path: Path) -> None:
    fixture, program = find(name), build(name)
    args = ("32000",) if name == "threads" else fixture.args
    commands = [
        TOOLS,
        "break main",
        "run",
        *told("before"),
        f"darc start {fixture.function} --peak >150us",
        *told("during"),
        "continue",
        *told("after"),
        mark("end"),
        "continue",
        EXIT,
    ]
    done = debug(tmp_path, program, args, commands)
    assert altered(done, "before") == 0
    assert altered(done, "during") > 0
    assert "root cause of" in done.section("during")
    assert altered(done, "after") == 0
    assert (done.program_status, done.output) == undisturbed(program, args)


@pytest.mark.parametrize("moment", ["profiling", "choice", "descent"])
def test_after_darc_stop(moment: str, tmp_path: Path) -> None:
    program, args = build("mixture"), find("mixture").args
    start = "darc start handle --start-ops 2000"
    steps = {
        "profiling": ["break main", "run", start, "tbreak handle", "continue"],
        "choice": [start, "run"],
        "descent": [start, "run", "darc peak >1ms", "tbreak write_out", "continue"],
    }
    commands = [
        TOOLS,
        *steps[moment],
        *told("during"),
        "darc stop",
        *told("after"),
        "continue",
        "continue",
        EXIT,
    ]
    done = debug(tmp_path, program, args, commands)
    assert altered(done, "during") > 0
    assert altered(done, "after") == 0
    assert (done.program_status, done.output) == undisturbed(program, args)


def test_code_of_a_library_that_was_loaded_again(tmp_path: Path) -> None:
    program, args = build("farlib"), ("4000", "reload")
    commands = [
        TOOLS,
        "darc start far_handle --start-ops 1000000",
        "tbreak dlclose",
        "run",
        *told("first"),
        "tbreak far_handle",
        "continue",
        *told("second"),
        "darc stop",
        *told("after"),
        "continue",
        EXIT,
    ]
    done = debug(tmp_path, program, args, commands)
    assert altered(done, "first") > 0
    assert altered(done, "after") == 0
    assert (done.program_status, done.output) == undisturbed(program, args)
