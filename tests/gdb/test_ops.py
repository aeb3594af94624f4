"""Kept ops on the screen, in files and behind the end: ``darc ops`` and ``darc compare``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import EXIT, IN_BOTH, IN_LLDB_AT_NIGHT, REPORT, attempt, debug, mark

pytestmark = IN_LLDB_AT_NIGHT

START = "darc start handle --peak last --start-ops 2000"
PATH = ["flush", "write_out", "usleep", "nanosleep", "clock_nanosleep"]


@pytest.fixture(scope="module")
def program() -> Path:
    return build("mixture")


@IN_BOTH
def test_few_calls_decide_and_enough_are_kept(program: Path, tmp_path: Path) -> None:
    """What the causes explain is known however few calls a level takes."""
    done = debug(tmp_path, program, ("100000",), [f"{START} --decision-ops 3", "run", REPORT])
    assert done.report is not None, done.gdb
    assert [path["kept_ops"] >= 8 for path in done.report["root_cause_paths"]] == [True], done.gdb


def test_ops_are_listed_drawn_and_compared(program: Path, tmp_path: Path) -> None:
    commands = [START, mark("found"), "run", mark("list"), "darc ops", mark("one"), "darc ops 1"]
    commands += [mark("compared"), "darc compare", REPORT, mark("wrong"), attempt("darc ops 1000")]
    commands += [mark("other"), attempt("darc compare 2 1"), mark("end"), "continue", EXIT]
    commands += [mark("again"), "darc ops 1", "darc ops --format json -o ops.json"]
    done = debug(tmp_path, program, ("100000",), commands)
    assert done.program_status == 0, done.gdb
    assert re.search(r"^  \d+ % of peak \d's time, over \d+ calls", done.section("found"), re.M)
    listed = done.section("list").splitlines()
    assert listed[0].split() == ["op", "latency", "thread", "when", "peak"]
    assert sum("● the slowest" in line for line in listed) == 2
    kept = r"^\d+ of \d+ ops of peak \d are kept; the slowest is in no average$"
    assert re.search(kept, done.section("list"), re.M)
    head, columns, *rows = done.section("one").splitlines()
    assert head.startswith("darc: op 1 of handle: ")
    assert columns.split() == ["share", "time", "itself"]
    called = [row for row in rows if re.search("[█░▒▓]$", row)]
    assert [row.split()[0] for row in called] == ["handle", *PATH]
    indents = [len(row) - len(row.lstrip()) for row in called]
    assert indents == [2 * depth for depth in range(len(PATH) + 1)]
    assert re.search(r"^  1 call of lookup, .* in all$", done.section("one"), re.M)
    assert re.search(r"blocked|not watched$", done.section("one").splitlines()[-1])
    assert done.section("again").startswith(done.section("one"))  # the program has ended
    differences = done.section("compared").splitlines()[2:]
    slept = next(line.split() for line in differences if "clock_nanosleep ←" in line)
    assert slept[0].startswith("+")
    assert slept[2].startswith("×")
    assert slept[3] == "–"  # none in the fast ones
    assert "there is no op 1000: 'darc ops' lists 1 to " in done.section("wrong")
    assert "no op of peak 2 is kept" in done.section("other")
    assert done.report is not None
    (path,) = done.report["root_cause_paths"]
    assert path["kept_ops"] >= 8
    assert 0.5 < path["share"] <= 1
    if path["cause"] == "blocked":
        assert path["without"]["last_bin"] < done.report["peak"]["first_bin"]
    else:  # the kernel does not let darc watch when threads wait
        assert path["without"] is None
    kept = done.report["ops"]
    assert kept == json.loads((tmp_path / "ops.json").read_text())
    for op in kept["kept"]:
        assert op["start"] + op["latency"] <= op["end"]
        whole = sum(one["sum"] for one in op["sums"] if one["id"].count(".") == 1)
        assert whole <= op["latency"] + 1000
    assert len({op["thread"] for op in kept["kept"]}) == 1


def test_ops_outlive_stop_save_and_resume(program: Path, tmp_path: Path) -> None:
    commands = [START, "run", mark("before"), "darc ops 2", mark("stop"), "darc stop"]
    commands += [mark("stopped"), "darc ops 2", "darc save a.json"]
    commands += [mark("same"), "darc compare a.json a.json"]
    done = debug(tmp_path, program, ("100000",), commands)
    assert done.section("stopped").startswith(done.section("before"))
    assert "clock_nanosleep" in done.section("same")
    content = json.loads((tmp_path / "a.json").read_text())
    assert len(content["parts"]["ops"]["ops"]) > 8
    other = [mark("resumed"), "darc resume a.json", "break write_out", "run", "darc ops 2"]
    other += [mark("saved"), "darc save b.json"]
    other += [mark("broken"), attempt("darc compare c.json b.json"), mark("end")]
    content["parts"]["ops"]["ops"][0]["spans"][0][0] = 99
    (tmp_path / "c.json").write_text(json.dumps(content))
    done = debug(tmp_path, program, ("100000",), other)
    drawn = re.findall("^.*[█░▒▓]$", done.section("resumed"), re.M)
    assert [row.split()[0] for row in drawn] == ["handle", *PATH], done.gdb
    again = json.loads((tmp_path / "b.json").read_text())
    content["parts"]["ops"]["ops"][0]["spans"][0][0] = 2
    assert len(again["parts"]["ops"]["ops"]) == len(content["parts"]["ops"]["ops"])
    broken = done.section("broken")
    assert "c.json is damaged: parts.ops.ops[0].spans[0] is not a whole number" in broken
    assert len(broken.strip().splitlines()) == 1


def test_a_loop_is_left_out(tmp_path: Path) -> None:
    """Of a loop it is told where the calls would lie without it."""
    options = "--loops paper --peak 14-20 --maxcount-percentage 0.9 --decision-ops 40"
    commands = [f"darc start handle {options}", mark("found"), "run", REPORT]
    done = debug(tmp_path, build("loop"), ("2000000",), commands)
    assert done.report is not None
    (path,) = done.root_causes
    assert path["cause"] == "loop"
    assert path["kept_ops"] >= 8
    assert 0 < path["share"] <= 1
    assert path["without"]["first_bin"] <= path["without"]["last_bin"] <= 20
    assert "; without it these would lie in bin" in done.section("found")
