"""When the threads of a program were off their processors, as a debugger's user is told it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from darc.debuggee import procfs
from darc.debuggee.whoran import WhoRan
from fixtures.build import build
from tests import debugger
from tests.permission import needs_permission

INSIDE = Path(__file__).parents[1] / "inside_gdb.py"
WITHOUT_PERF = Path(__file__).parents[1] / "without_perf.py"

TELL = """
import json
from pathlib import Path

from darc.analyses.offvotes import Rules, conclude
from darc.model.ops import OpClass

shown = app.session.analysis.snapshot(False)
kept = shown.ops
found = conclude(shown.paths, shown.ftree, kept.sample(OpClass.IN_PEAK), rules=Rules())
ops = [
    {
        "class": op.kept_as.value,
        "latency": op.latency,
        "watched": op.off is not None,
        "slowest": op.is_slowest,
        "by": {off.reason.value: op.off_time(off.reason) for off in op.off or ()},
    }
    for op in kept.ops
]
Path("ops.json").write_text(
    json.dumps(
        {
            "ops": ops,
            "notes": app.session.notes,
            "voted": found.voted.ops,
            "preemption": found.beside and found.beside.maxcount,
            "endings": {n.function.name: e.cause.value for n, e in found.endings.items()},
            "disputed": [node.function.name for node in found.disputed],
            "paths": [[node.function.name for node in path.nodes] for path in shown.paths],
        }
    )
)
"""


def analysed(
    folder: Path,
    program: str,
    args: tuple[str, ...],
    peak: str,
    *before: str,
    denied: bool = False,
) -> tuple[debugger.Done, dict[str, Any]]:
    (folder / "tell.py").write_text(TELL)
    wrapper = (sys.executable, str(WITHOUT_PERF)) if denied else ()
    done = debugger.debug(
        folder,
        build(program),
        args,
        [
            f"source {INSIDE}",
            *before,
            f"darc start handle --peak '{peak}'",
            debugger.mark("result"),
            "continue" if before else "run",
            debugger.REPORT,
            "darc report",
            debugger.mark("waits"),
            "darc waits",
            debugger.mark("ops"),
            "darc ops",
            debugger.mark("compare"),
            debugger.attempt("darc compare"),
            debugger.mark("end"),
            "with-app tell.py",
            "kill",
        ],
        gdb=(*wrapper, *debugger.DARC_GDB),
    )
    assert (folder / "ops.json").exists(), done.gdb
    return done, json.loads((folder / "ops.json").read_text())


def in_peak(told: dict[str, Any]) -> list[dict[str, Any]]:
    found = [op for op in told["ops"] if op["class"] == "in peak"]
    assert found
    return found


@needs_permission
@debugger.IN_BOTH
@pytest.mark.parametrize(("program", "args"), [("asleep", ("40000",)), ("threads", ("64000",))])
def test_asleep_it_was_blocked(tmp_path: Path, program: str, args: tuple[str, ...]) -> None:
    _, told = analysed(tmp_path, program, args, ">700us")
    ops = in_peak(told)
    assert all(op["watched"] for op in ops)
    # On a busy machine some were preempted, and did not sleep.
    slept = [op for op in ops if op["by"].get("blocked", 0) > 0.5 * op["latency"]]
    assert 2 * len(slept) > len(ops), ops
    assert told["endings"][told["paths"][0][-1]] == "blocked"
    assert told["disputed"] == []


@needs_permission
@debugger.IN_LLDB_AT_NIGHT
def test_beside_a_hog_it_was_ready(tmp_path: Path) -> None:
    """Wherever it was: the callees that the other program's turns fell into are not the cause."""
    done, told = analysed(tmp_path, "preempted", ("400000",), ">1500us")
    ops = in_peak(told)
    assert told["voted"] == sum(op["watched"] for op in ops if not op["slowest"])
    assert told["preemption"] == told["voted"]
    off = sum(op["by"].get("ready", 0) for op in ops)
    assert off > 0.5 * sum(op["latency"] for op in ops), ops
    if may_see_takeovers():
        ran = who_ran(done.section("waits"))
        assert "preempted" in ran, done.gdb
        assert sum(ran.values()) > 50, done.gdb  # others' turns too, on a busy machine


def may_see_takeovers() -> bool:
    try:
        WhoRan(0).close()
    except OSError:
        return False
    return True


def who_ran(waits: str) -> dict[str, int]:
    """The part of all time, in per cent, that each process had instead, by name."""
    found = re.findall(r"(\d+) %  meanwhile ran (?:process \d+|\d+ processes) \"(.+)\"", waits)
    return {name: int(share) for share, name in found}


@contextmanager
def rationed() -> Iterator[Path]:
    """A control group whose processes get a fifth of a processor; the file that takes them in."""
    for mount, _ in procfs.cgroup_mounts("") + procfs.cgroup_mounts("cpu"):
        group = mount / f"darc-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / "cpu.max").exists():
                (group / "cpu.max").write_text("20000 100000")
            elif (group / "cpu.cfs_quota_us").exists():
                (group / "cpu.cfs_quota_us").write_text("20000")
            else:
                continue
            yield group / "cgroup.procs"
            return
        finally:
            group.rmdir()
    pytest.skip("no control group can be made here")


@needs_permission
@debugger.IN_LLDB_AT_NIGHT
def test_out_of_quota_it_was_ready(tmp_path: Path) -> None:
    with rationed() as door:
        (tmp_path / "enter.py").write_text(f"open({str(door)!r}, 'w').write(str(tid))\n")
        args = ("400000", "alone")
        done, told = analysed(
            *(tmp_path, "preempted", args, ">20ms"),
            *("break main", "run", "with-app enter.py"),
        )
    assert told["preemption"] == told["voted"] > 0
    (note,) = (note for note in told["notes"] if "CPU quota" in note)
    share = int(re.findall(r"up to (\d+) %", note)[0])
    assert 50 < share <= 100
    quota = f"its CPU quota took up to {share} % of the time without a processor"
    for command in ("result", "waits", "ops", "compare"):
        assert quota in " ".join(done.section(command).split()), done.gdb


@needs_permission
@debugger.IN_LLDB_AT_NIGHT
@pytest.mark.parametrize(("program", "args"), [("passedon", ("20000",)), ("signals", ("40000",))])
def test_signals_that_gdb_passes_on_are_no_waits_of_the_programs(
    tmp_path: Path, program: str, args: tuple[str, ...]
) -> None:
    """A timer's, one and three thousand a second, into a function that computes: gdb does not tell
    of them."""
    _, told = analysed(tmp_path, program, args, ">150us")
    ops = in_peak(told)
    assert told["endings"] == {"burn": "function"}
    total = sum(op["latency"] for op in ops)
    assert sum(op["by"].get("stopped", 0) for op in ops) > 0
    assert sum(op["by"].get("blocked", 0) for op in ops) < 0.01 * total, ops


def test_without_permission_one_line_and_the_same_answer(tmp_path: Path) -> None:
    done, told = analysed(tmp_path, "threads", ("64000",), ">700us", denied=True)
    notes = [note for note in told["notes"] if "running from waiting" in note]
    assert len(notes) == 1
    assert "\n" not in notes[0]
    assert f"note: {notes[0]}" in " ".join(done.gdb.split())
    assert all(not op["watched"] for op in told["ops"])
    assert done.paths == [
        ("handle", "store", "usleep", "nanosleep", "clock_nanosleep"),
    ]


@pytest.mark.parametrize("program", ["threads"])
@needs_permission
def test_nothing_is_left_in_the_debugger(tmp_path: Path, program: str) -> None:
    """When the search is over, no event is open any more: they end beside it."""
    (tmp_path / "look.py").write_text(
        "import os\n"
        "from darc.debuggee.eventends import wait_for_ends\n"
        "wait_for_ends()\n"
        "links = [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')"
        " if os.path.lexists(f'/proc/self/fd/{n}')]\n"
        "print('events:', sum('perf_event' in one for one in links))\n"
    )
    done = debugger.debug(
        tmp_path,
        build(program),
        ("64000",),
        [
            f"source {INSIDE}",
            "darc start handle --peak '>700us'",
            "run",
            "with-app look.py",
            "darc stop",
            "kill",
        ],
    )
    assert "events: 0" in done.gdb


@debugger.IN_LLDB_AT_NIGHT
def test_a_walk_tells_of_the_quota(tmp_path: Path) -> None:
    """Of its threads' time without a processor, beside the share that they were ready."""
    with rationed() as door:
        (tmp_path / "enter.py").write_text(f"open({str(door)!r}, 'w').write(str(tid))\n")
        commands = [
            f"source {INSIDE}",
            *("break main", "run", "with-app enter.py"),
            *("darc walk --window 1s", "continue", debugger.REPORT, "kill"),
        ]
        done = debugger.debug(tmp_path, build("preempted"), ("400000", "alone"), commands)
        told = procfs.fields(door.parent / "cpu.stat", " ")
    assert done.report is not None, done.gdb
    share = done.report["walk"]["by_quota"]
    line = f"its CPU quota took up to {100 * share:.0f} % of the time without a processor"
    assert (line in done.gdb) == (share >= 0.01), done.gdb
    # On a busy machine others have the processor as well, and the quota lasts.
    if 2 * int(told["nr_throttled"]) > int(told["nr_periods"]):
        assert share > 0.1, done.gdb
