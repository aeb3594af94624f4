"""Loops of many calls: what they call, also where a busy machine preempts calls."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.build import build, find
from tests import debugger

WALK = find("manycalls").paths[0]


@pytest.fixture
def busy() -> Iterator[None]:
    """Two processes that take whatever time the machine has."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for other in others:
        other.kill()
        other.wait()


@debugger.IN_LLDB_AT_NIGHT
@pytest.mark.usefixtures("busy")
def test_a_preempted_call_of_a_loop_is_no_cause(tmp_path: Path) -> None:
    """On such a machine the longest of a loop's calls is the one that was preempted, whichever
    that is."""
    commands = ["darc start handle --peak '>1ms'", "run", debugger.REPORT, "darc tree", "kill"]
    done = debugger.debug(tmp_path, build("manycalls"), ("2000000",), commands)
    assert done.report is not None, done.gdb
    found = {tuple(one["functions"]) for one in done.report["root_cause_paths"]}
    # Where others have the processor for most of the time, it is they that take it in handle.
    assert found - {WALK[:1]} == {WALK}, done.gdb
    step = done.report["ftree"]["children"][0]["children"][0]
    assert (step["function"], step["calls"] > 1000 * 20) == ("step", True)


@debugger.IN_LLDB_AT_NIGHT
def test_the_papers_rule_ends_at_the_loop(tmp_path: Path) -> None:
    options = "--loops paper --peak 18-20 --maxcount-percentage 0.9 --decision-ops 40"
    commands = [f"darc start handle {options}", "run", debugger.REPORT, "kill"]
    done = debugger.debug(tmp_path, build("loop"), ("2000000",), commands)
    assert done.report is not None, done.gdb
    (path,) = done.root_causes
    assert tuple(path["functions"]) == find("loop").paths[0]
    assert (path["cause"], path["loop"]["function"]) == ("loop", "compare")
