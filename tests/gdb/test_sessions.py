"""Choosing by hand, and several analyses in one gdb."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import (
    EVERYWHERE,
    EXIT,
    IN_BOTH,
    REPORT,
    ROOT,
    attempt,
    debug,
    gdb_alone,
    mark,
    undisturbed,
)

pytestmark = IN_BOTH

TOOLS = f"source {ROOT / 'tests' / 'inside_gdb.py'}"

TWO_MODES = ("40000",)
FLUSH = ("handle", "flush", "write_out", "usleep", "nanosleep", "clock_nanosleep")


@pytest.fixture(scope="module")
def program() -> Path:
    return build("mixture")


NUMBER = """
shown = app.snapshot()
bin = {cycles}.bit_length() - 1
print(bin, shown.peaks)
number = next(p.number for p in shown.peaks if p.first_bin <= bin <= p.last_bin)
execute(f"darc peak {{number}}")
"""
"""Chooses the peak in which a latency is: noise may add peaks between."""


CHOICE = """
chosen = next(n.id for n in app.snapshot().ftree.walk() if n.function.name == "f_x")
execute(f"darc descend {chosen}")
"""


@pytest.mark.parametrize(
    ("peak", "path"),
    [
        pytest.param("int(0.0033 * shown.profile.hz)", FLUSH, id="sleep"),
        pytest.param("360000", ("handle", "compress_block"), id="compute"),
        (">1ms", FLUSH),
        ("p99.5", FLUSH),
    ],
)
def test_the_peak_is_chosen_at_the_profile(
    peak: str, path: tuple[str, ...], program: Path, tmp_path: Path
) -> None:
    script = tmp_path / "number.py"
    script.write_text(NUMBER.format(cycles=f"({peak})"))
    choice = f"darc peak {peak}" if peak[0] in ">p" else f"with-app {script}"
    commands = [
        TOOLS,
        "darc start handle --start-ops 2000",
        mark("run"),
        "run",
        mark("peak"),
        choice,
    ]
    commands += [mark("go"), "continue", REPORT, "continue", EXIT]
    done = debug(tmp_path, program, TWO_MODES, commands)
    assert "darc: choose a peak" in done.section("run")
    assert "is chosen" in done.section("peak")
    assert done.paths == [path], done.gdb
    assert (done.program_status, done.output) == undisturbed(program, TWO_MODES)


def test_a_peak_that_is_not_there(program: Path, tmp_path: Path) -> None:
    commands = ["darc start handle --start-ops 2000", "run"]
    commands += [
        mark("peak"),
        attempt("darc peak 63"),
        mark("again"),
        "darc peak >1ms",
        "continue",
        REPORT,
    ]
    done = debug(tmp_path, program, TWO_MODES, commands)
    assert re.match(r"darc: there is no peak 63", done.section("peak"))
    assert done.paths == [FLUSH]


def test_a_choice_that_is_thought_over(program: Path, tmp_path: Path) -> None:
    """As long as the program has not gone on, another peak takes the place of the first one; then
    it is searched for."""
    commands = ["darc start handle --start-ops 2000 --decision-ops 40", "run", "darc peak 1"]
    commands += [
        mark("peak"),
        "darc peak >1ms",
        "continue",
        REPORT,
        mark("late"),
        "darc status",
        attempt("darc peak 1"),
    ]
    done = debug(tmp_path, program, TWO_MODES, commands)
    assert "peak >1ms of handle is chosen" in done.section("peak")
    assert done.paths == [FLUSH], done.gdb
    assert "is chosen" not in done.section("late")


def test_without_a_choice_the_report_says_so(program: Path, tmp_path: Path) -> None:
    commands = [
        "darc start handle --start-ops 2000",
        "run",
        REPORT,
        "darc report --require root-cause",
    ]
    done = debug(tmp_path, program, TWO_MODES, commands)
    assert done.report is not None
    assert done.report["status"] == "peak not chosen"
    assert done.report["profile"]["count"] >= 2000
    assert done.report["ftree"] is None
    assert done.status == 1


def test_descending_by_hand(tmp_path: Path) -> None:
    """Of two paths that are equally slow the one that is chosen is gone down, and only it."""
    program = build("twopaths")
    script = tmp_path / "choice.py"
    script.write_text(CHOICE)
    commands = [TOOLS, "set darc auto off", "darc start handle --peak >300us --lookahead 1", "run"]
    commands += [
        mark("first"),
        "darc tree",
        f"with-app {script}",
        mark("second"),
        "continue",
        attempt("darc descend"),
        "continue",
        REPORT,
    ]
    done = debug(tmp_path, program, ("16000",), commands)
    assert "f_w" in done.section("first")
    assert "f_x" in done.section("first")
    assert done.paths == [("handle", "f_x", "f_y")], done.gdb


def test_descending_by_hand_level_by_level(program: Path, tmp_path: Path) -> None:
    levels = len(FLUSH)
    commands = ["set darc auto off", "darc start handle --peak >1ms --lookahead 1", "run"]
    for level in range(levels):
        commands += [mark(f"level{level}"), "darc status", attempt("darc descend"), "continue"]
    done = debug(tmp_path, program, ("60000",), [*commands, mark("end"), REPORT])
    assert done.paths == [FLUSH], done.gdb
    assert done.report is not None
    assert done.report["program"]["stops"] >= levels
    assert "in progress" in done.section("level0")


@pytest.mark.parametrize("words", ["1.77", "2", "1"])
def test_nodes_that_cannot_be_descended_into(words: str, tmp_path: Path) -> None:
    commands = ["set darc auto off", "darc start handle --peak >300us --lookahead 1", "run"]
    commands += [
        mark("wrong"),
        attempt(f"darc descend {words}"),
        mark("right"),
        "darc descend",
        "continue",
    ]
    done = debug(
        tmp_path,
        build("twopaths"),
        ("16000",),
        [*commands, attempt("darc descend"), "continue", REPORT],
    )
    line = done.section("wrong").strip()
    assert re.fullmatch(r"darc: .*", line), line
    assert "internal error" not in line
    assert len(done.paths) == 2, done.gdb


@EVERYWHERE
def test_another_analysis_after_the_result(program: Path, tmp_path: Path) -> None:
    commands = [
        TOOLS,
        "darc start handle --peak >1ms",
        "run",
        mark("second"),
        "darc start flush --peak >1ms --start-ops 20",
        "continue",
        REPORT,
        mark("code"),
        "tell-code",
        "continue",
        EXIT,
    ]
    done = debug(tmp_path, program, TWO_MODES, commands)
    assert done.paths == [FLUSH[1:]], done.gdb
    assert ", 0 altered" in done.section("code")
    assert (done.program_status, done.output) == undisturbed(program, TWO_MODES)


@pytest.mark.parametrize("end", ["result", "choice"])
def test_many_analyses_one_after_the_other(end: str, program: Path, tmp_path: Path) -> None:
    """Each with 'darc stop' behind it; nothing is left of the ones before."""
    peak = "--peak >1ms" if end == "result" else ""
    commands = [TOOLS, "break main", "run"]
    for i, function in enumerate(["handle", "flush", "handle", "write_out", "flush"]):
        commands += [f"darc start {function} {peak} --start-ops 20", "continue"]
        commands += [mark(f"n{i}"), "darc status", "darc stop", "tell-code"]
    done = debug(tmp_path, program, TWO_MODES, [*commands, mark("rest"), "continue", EXIT])
    for i in range(5):
        text = done.section(f"n{i}")
        assert ", 0 altered" in text
        assert ("clock_nanosleep" in text) == (end == "result"), text
    assert (done.program_status, done.output) == undisturbed(program, TWO_MODES)


@EVERYWHERE
def test_the_program_is_run_twice(program: Path, tmp_path: Path) -> None:
    """The second run, with another start before it, knows nothing of the first."""
    commands = ["set confirm off", "darc start handle --peak >1ms", "run", "continue"]
    commands += ["darc start handle --peak >1ms", "run", REPORT, "continue", EXIT]
    done = debug(tmp_path, program, TWO_MODES, commands)
    assert done.gdb.count("darc: root cause of bins") == 2
    assert done.paths == [FLUSH]
    assert done.program_status == 0


def test_run_again_in_the_middle(program: Path, tmp_path: Path) -> None:
    commands = [
        "set confirm off",
        "darc start handle --start-ops 2000",
        "run",
        mark("again"),
        "run",
    ]
    commands += [mark("status"), "darc status", "darc stop", "continue", EXIT]
    done = debug(tmp_path, program, TWO_MODES, commands)
    assert done.output == undisturbed(program, TWO_MODES)[1]
    assert "internal error" not in done.gdb
    assert "analyses handle again" in done.section("again")
    assert "peak not chosen" in done.section("status")


def test_f0_in_a_library_that_comes_late(tmp_path: Path) -> None:
    program = build("farlib")
    for spelling in ("far_handle", "libfarlib.so!far_handle"):
        commands = [f"darc start {spelling} --peak >150us", "run", REPORT, "continue", EXIT]
        done = debug(tmp_path, program, ("4000",), commands)
        assert done.paths == [("far_handle", "far_store", "far_burn")], done.gdb
        assert (done.program_status, done.output) == undisturbed(program, ("4000",))


def test_time_limit_of_a_peak_that_never_comes(tmp_path: Path) -> None:
    program = build("server")
    for option in ("--peak '>100s'", "--start-ops 1000000000", "--peak 60"):
        commands = [f"darc start handle {option} --max-time 500ms", "run", REPORT, "kill"]
        done = debug(tmp_path, program, (), commands)
        assert done.report is not None, done.gdb
        assert done.report["status"] in ("peak not chosen", "not conclusive")
        assert done.report["profile"]["count"] > 0
        assert "Traceback" not in done.gdb


@gdb_alone("lldb selects another thread, for which its breakpoint's condition does not hold")
def test_one_thread_only(tmp_path: Path) -> None:
    """That of worker 3, which meets slow operations among its 4000."""
    program = build("threads")
    script = tmp_path / "start.py"
    script.write_text("execute(f'darc start handle --thread {tid} --peak >700us')\n")
    commands = [TOOLS, "tbreak handle if number == 3", "run", f"with-app {script}", "continue"]
    done = debug(tmp_path, program, ("32000",), [*commands, REPORT])
    assert done.report is not None, done.gdb
    assert done.report["status"] == "root cause found"
    assert done.report["profile"]["count"] <= 4000
    missing = debug(
        tmp_path, program, ("32000",), ["break main", "run", "darc start handle --thread 1"]
    )
    assert "the program has no thread 1" in missing.gdb
    assert missing.status == 1
