"""Sessions that are saved and go on in another run of the program, or in another build of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.build import build, find
from tests import sessions
from tests.debugger import (
    EXIT,
    IN_BOTH,
    IN_LLDB_AT_NIGHT,
    REPORT,
    Done,
    attempt,
    debug,
    gdb_alone,
    mark,
    server,
    undisturbed,
)

pytestmark = IN_LLDB_AT_NIGHT

MOVED = "set disable-randomization off"
"""gdb's own default would put the program to the same addresses each time."""

SAVE = "darc save s.json"
DEEP = find("deep").paths[0]
PEAK = "--peak >150us"


def run(folder: Path, program: Path, operations: int, *commands: str) -> Done:
    return debug(folder, program, (str(operations),), [MOVED, *commands])


def search(options: str, function: str = "handle") -> list[str]:
    return [f"darc start {function} {options}", "run", REPORT, SAVE]


def resume(options: str = "") -> list[str]:
    return [f"darc resume s.json {options}", "run", REPORT]


def notes(done: Done) -> str:
    """What is told in words at the end of a run."""
    return done.section("status")


@IN_BOTH
def test_a_larger_depth_goes_on_where_the_paths_were_cut_off(tmp_path: Path) -> None:
    program = build("deep")
    first = run(tmp_path, program, 4000, *search(f"{PEAK} --max-depth 2"))
    assert first.report is not None
    assert first.report["status"] == "maximum depth reached"
    assert first.paths == [DEEP[:2]]
    done = run(
        tmp_path, program, 4000, *resume("--max-depth 32"), mark("status"), "darc status",
        mark("end"), "continue", EXIT,
    )  # fmt: skip
    assert done.report is not None
    assert done.paths == [DEEP], done.gdb
    assert done.report["status"] == "root cause found"
    level_1 = done.report["ftree"]["children"][0]
    assert (level_1["function"], level_1["maxcount"]) == ("level_1", 20)
    assert done.report["peak"] == first.report["peak"]
    # Those of both runs: 20 for each decision, of which a slow machine takes more.
    calls = done.report["program"]["in_peak_calls"]
    assert first.report["program"]["in_peak_calls"] < calls
    assert calls % 20 == 0
    assert "not fit" not in notes(done)
    status, output = undisturbed(program, ("4000",))
    assert (done.program_status, done.output) == (status, output)


def test_what_was_found_is_not_searched_again(tmp_path: Path) -> None:
    program = build("deep")
    first = run(tmp_path, program, 4000, *search(PEAK), "kill")
    assert first.paths == [DEEP]
    done = run(tmp_path, program, 4000, *resume())
    assert done.report is not None
    assert done.paths == [DEEP]
    assert done.report["status"] == "root cause found"
    assert [one["cause"] for one in done.root_causes] == [one["cause"] for one in first.root_causes]
    assert "is not known" not in done.gdb
    assert first.report is not None
    calls = first.report["program"]["in_peak_calls"]
    assert done.report["program"]["in_peak_calls"] == calls
    assert done.report["program"]["stops"] <= 2  # where it begins, and one look


@pytest.mark.parametrize("version", sessions.VERSIONS)
def test_a_session_of_an_earlier_release_goes_on(version: int, tmp_path: Path) -> None:
    """As that release has written it, of a build of its own: what it had found is the answer here,
    by what was counted then, and nothing is searched anew."""
    (tmp_path / "s.json").write_bytes(sessions.session(version))
    then = sessions.report(version)
    done = run(tmp_path, build("mixture"), 20000, *resume())
    assert done.report is not None, done.gdb
    assert done.report["status"] == "root cause found"
    assert tuple(then["root_cause_paths"][0]["functions"]) in done.paths
    assert done.report["program"]["in_peak_calls"] == then["program"]["in_peak_calls"]
    assert done.report["peak"] == then["peak"]
    assert counted(done.report["ftree"]) == counted(then["ftree"])


def counted(node: dict[str, Any]) -> list[tuple[str, int, bool]]:
    """The functions of a report's tree that are root causes or are not, by their votes."""
    own = [(node["function"], node["maxcount"], node["root_cause"])]
    return own + [one for child in node["children"] for one in counted(child)]


def test_a_search_that_was_ended_before_its_last_round_holds_it(tmp_path: Path) -> None:
    program = build("deep")
    first = run(tmp_path, program, 4000, *search(PEAK), "kill")
    assert first.paths == [DEEP]
    session = json.loads((tmp_path / "s.json").read_text())
    del session["parts"]["ops"]  # which are of that round
    (tmp_path / "s.json").write_text(json.dumps(session))
    done = run(tmp_path, program, 4000, *resume())
    assert done.paths == [DEEP]
    (cause,) = done.root_causes
    assert cause["share"] is not None, done.gdb


def test_what_was_found_is_as_sure_as_it_was(tmp_path: Path) -> None:
    """What causes explain of the peak, and what was told beside them, are those of the first run,
    as is said."""
    program = build("deep")
    first = run(tmp_path, program, 4000, *search(PEAK), "kill")
    session = json.loads((tmp_path / "s.json").read_text())
    session["parts"]["doubts"] = ["most of it has other causes"]
    (tmp_path / "s.json").write_text(json.dumps(session))
    done = run(tmp_path, program, 4000, *resume(), mark("status"), "darc status", SAVE)
    (before,), (now,) = first.root_causes, done.root_causes
    assert before["share"] is not None
    assert (now["share"], now["kept_ops"]) == (before["share"], before["kept_ops"])
    told = notes(done)
    assert f"{100 * now['share']:.0f} % of " in told
    assert "most of it has other causes" in told
    assert "that of the run that was saved" in told
    again = json.loads((tmp_path / "s.json").read_text())
    assert again["parts"]["doubts"] == ["most of it has other causes"]


def test_a_program_that_ends_too_early_is_run_again_and_again(tmp_path: Path) -> None:
    """Three decisions of ten calls, and some 9 calls a run after the profile: none is lost."""
    program = build("deep")
    options = f"{PEAK} --decision-ops 10 --lookahead 3"
    done = run(tmp_path, program, 400, *search(options))
    counted = []
    while not done.report or done.report["status"] == "program ended":
        assert done.output == undisturbed(program, ("400",))[1]
        assert done.report is not None, done.gdb
        counted.append(json.loads((tmp_path / "s.json").read_text())["in_peak_calls"])
        assert len(counted) < 8
        done = run(tmp_path, program, 400, *resume(), SAVE)
    assert done.paths == [DEEP]
    assert done.report["program"]["in_peak_calls"] == 30
    assert counted == sorted(set(counted))
    assert 2 <= len(counted) <= 4


def test_a_run_that_ends_before_its_profile_loses_nothing(tmp_path: Path) -> None:
    program = build("deep")
    run(tmp_path, program, 4000, *search(f"{PEAK} --max-depth 2"))
    before = json.loads((tmp_path / "s.json").read_text())
    done = run(tmp_path, program, 20, *resume("--max-depth 7"), SAVE)
    assert done.report is not None
    assert done.report["status"] == "program ended"
    assert done.paths == [DEEP[:2]]
    after = json.loads((tmp_path / "s.json").read_text())
    assert after["parameters"] == {**before["parameters"], "max-depth": "7"}
    assert after["ftree"] == before["ftree"]
    assert after["profile"] == before["profile"]


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_indirect_callees_are_known_again(depth: int, tmp_path: Path) -> None:
    program = build("indirect")
    expected = find("indirect").paths[0]
    first = run(tmp_path, program, 4000, *search(f"--peak >500us --max-depth {depth}"))
    assert first.paths == [expected[:depth]]
    done = run(
        tmp_path, program, 4000, *resume("--max-depth 32"), mark("status"), "darc status",
        mark("end"), "continue", EXIT,
    )  # fmt: skip
    assert done.paths == [expected], done.gdb
    assert "not fit" not in notes(done)
    assert done.output == undisturbed(program, ("4000",))[1]
    assert done.report is not None
    (callee,) = (c for c in done.report["ftree"]["children"] if c["root_cause"])
    assert callee["maxcount"] == 20  # others are called by fast ops alone


def test_in_the_same_process(tmp_path: Path) -> None:
    program = build("deep")
    done = run(
        tmp_path, program, 8000, *search(f"{PEAK} --max-depth 4"), "darc stop",
        "darc resume s.json --max-depth 32", "continue", REPORT, "continue", EXIT,
    )  # fmt: skip
    assert done.paths == [DEEP], done.gdb
    assert done.output == undisturbed(program, ("8000",))[1]


def test_in_a_program_that_runs_already(tmp_path: Path) -> None:
    program = build("server")
    for commands in (
        ["darc start handle --peak >400us --max-depth 2", "continue", SAVE],
        ["darc resume s.json --max-depth 9", "continue", REPORT],
    ):
        with server(program) as running:
            options = ["-p", str(running.pid)]
            done = debug(tmp_path, None, (), [*commands, "detach"], options=options)
            assert running.finish() == 0
    assert done.paths == [("handle", "lookup", "burn")], done.gdb


def test_a_session_without_a_peak(tmp_path: Path) -> None:
    program = build("deep")
    first = run(tmp_path, program, 4000, *search("--start-ops 200"))
    assert first.report is not None
    assert first.report["status"] == "peak not chosen"
    done = run(tmp_path, program, 4000, *resume(PEAK))
    assert done.paths == [DEEP]
    done = run(tmp_path, program, 4000, "darc resume s.json", "run", "darc peak >150us", "continue",
               REPORT)  # fmt: skip
    assert done.paths == [DEEP]


# -- another build ----------------------------------------------------------------------------


def rebuild(folder: Path, name: str, edit: Callable[[str], str]) -> Path:
    """The fixture with its source edited, under the name that it always had."""
    fixture = find(name)
    source = fixture.source.read_text()
    changed = edit(source)
    assert changed != source
    (folder / f"{name}.c").write_text(changed)
    program = folder / name
    flags = ["-O2", "-g", "-fPIE", "-pie", *fixture.flags]
    command = ["gcc", *flags, f"{name}.c", "-o", name, *fixture.libs]
    subprocess.run(command, cwd=folder, check=True)
    return program


def with_an_audit(source: str) -> str:
    """A function in front of all others, so that every offset moves, and a call of it."""
    audit = (
        "NOINLINE uint64_t audit(uint64_t x)\n"
        "{\n"
        "    for (int i = 0; i < 3; i++)\n"
        "        x ^= x >> 7 | 1;\n"
        "    return x;\n"
        "}\n\n"
    )
    begin = "NOINLINE uint64_t touch"
    return source.replace(begin, audit + begin, 1)


def test_a_program_that_was_built_anew(tmp_path: Path) -> None:
    run(tmp_path, build("deep"), 4000, *search(f"{PEAK} --max-depth 4"))
    program = rebuild(
        tmp_path,
        "deep",
        lambda s: with_an_audit(s).replace(
            "uint64_t x = level_1(op,", "uint64_t x = level_1(audit(op),"
        ),
    )
    done = run(
        tmp_path, program, 4000, *resume("--max-depth 32"), mark("status"), "darc status",
        mark("end"), "continue", EXIT,
    )  # fmt: skip
    assert done.paths == [DEEP], done.gdb
    assert "1 handle has a call that was not there before and not compared" in notes(done)
    assert "does not fit" not in notes(done)
    assert done.output == undisturbed(program, ("4000",))[1]
    assert done.report is not None
    (level_1,) = (c for c in done.report["ftree"]["children"] if c["root_cause"])
    assert level_1["maxcount"] == 20


def test_what_does_not_fit_any_more_is_told(tmp_path: Path) -> None:
    """handle does not call level_1 now: what was known below is dropped, and searched anew."""
    run(tmp_path, build("deep"), 4000, *search(f"{PEAK} --max-depth 4"))
    program = rebuild(tmp_path, "deep", lambda s: s.replace("level_1(op,", "level_2(op,"))
    done = run(tmp_path, program, 4000, *resume("--max-depth 32"), mark("status"), "darc status")
    assert "1.1 handle → level_1, called at deep+0x" in notes(done)
    assert "does not fit the program now, dropped with" in notes(done)
    assert done.paths == [("handle", *DEEP[2:])]


def test_a_changed_distribution_is_told(tmp_path: Path) -> None:
    run(tmp_path, build("deep"), 4000, *search(f"{PEAK} --max-depth 2"))
    program = rebuild(tmp_path, "deep", lambda s: s.replace("300000 : 4", "300000 : 9000"))
    done = run(tmp_path, program, 4000, *resume("--max-depth 32"), mark("status"), "darc status")
    assert "the distribution has changed (EMD " in notes(done)
    assert done.paths == [DEEP]


def test_what_was_found_is_measured_anew_where_calls_take_longer(tmp_path: Path) -> None:
    """It is said at the stop; what causes explain is of calls of this run, which can be compared
    with those that were saved."""
    enough = f"{PEAK} --start-ops 1000"
    first = run(tmp_path, build("deep"), 4000, *search(enough), "kill")
    assert first.paths == [DEEP]
    program = rebuild(tmp_path, "deep", lambda s: s.replace("300000 : 4", "1500000 : 4"))
    done = run(
        tmp_path, program, 4000, "darc resume s.json", "run", mark("compared"),
        "darc compare s.json --format json -o c.json", REPORT,
    )  # fmt: skip
    assert done.paths == [DEEP], done.gdb
    told = done.gdb.partition("<compared>")[0]
    assert "the distribution has changed (EMD " in told
    assert "the run that was saved" not in told
    compared = json.loads((tmp_path / "c.json").read_text())
    assert compared["first"]["cycles"] > 2 * compared["second"]["cycles"]


def test_a_peak_that_is_gone_leaves_what_was_found_to_the_run_that_found_it(tmp_path: Path) -> None:
    first = run(tmp_path, build("deep"), 4000, *search(PEAK), "kill")
    assert first.paths == [DEEP]
    program = rebuild(tmp_path, "deep", lambda s: s.replace("300000 : 4", "4 : 4"))
    done = run(
        tmp_path, program, 40000, *resume("--start-ops 1000"), mark("waits"), "darc ops",
        mark("compared"), attempt("darc compare s.json"), mark("end"),
    )  # fmt: skip
    assert done.paths == [DEEP], done.gdb
    told = done.gdb.partition("<waits>")[0]
    assert "the distribution has changed (EMD " in told
    assert "that of the run that was saved" in told
    assert "all of this is of the run that was saved" in done.section("waits")
    assert "s.json is what was resumed, and no other calls were kept" in done.section("compared")


def test_a_session_holds_the_time_slices_of_its_profile(tmp_path: Path) -> None:
    options = "--start-time 300ms --peak >150us --max-depth 2"
    run(tmp_path, build("deep"), 400_000, *search(options))
    profile = json.loads((tmp_path / "s.json").read_text())["profile"]
    assert 10 <= len(profile["slices"]) <= 20
    assert sum(sum(one.values()) for one in profile["slices"]) == profile["count"]


@gdb_alone("lldb always waits for libraries, as its own breakpoints do")
def test_a_function_that_is_gone(tmp_path: Path) -> None:
    run(tmp_path, build("deep"), 4000, *search(f"{PEAK} --max-depth 2"))
    program = rebuild(tmp_path, "deep", lambda s: s.replace("handle", "serve"))
    done = run(tmp_path, program, 4000, "set breakpoint pending off", "darc resume s.json")
    assert done.gdb.splitlines()[-1].startswith("darc: no function is called handle")
    assert done.status == 1


# -- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "darc: there is no file s.json; 'darc save FILE' makes one"),
        ("", "darc: s.json is empty; save the session again with 'darc save'"),
        ("{}", "darc: s.json is not a darc session: 'darc save FILE' makes one"),
        ('{"format": "darc session", "vers', "darc: s.json is cut off or damaged: line 1: "),
        ('{"format": "darc session", "version": 9}', "darc: s.json is a session of version 9"),
        ('{"format": "darc session", "version": 1}', "darc: s.json is damaged: the file is not"),
        ("\0\0", "darc: s.json is not a darc session: line 1"),
    ],
)
def test_a_file_that_is_not_right_is_one_line(
    content: str | None, message: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "s.json").write_text(content)
    done = debug(tmp_path, build("deep"), (), [mark("resume"), "darc resume s.json"])
    (line,) = done.section("resume").splitlines()
    assert line.startswith(message)
    assert done.status == 1


def test_refusals(tmp_path: Path) -> None:
    program = build("deep")
    run(tmp_path, program, 4000, *search(f"{PEAK} --max-depth 2"))
    wrong = {
        "nothing": ("darc save t.json", "nothing is being analysed"),
        "peak": ("darc resume s.json --peak 1", "goes on with the peak that was saved"),
        "resolution": ("darc resume s.json --resolution 2", "'darc start handle --resolution …'"),
        "waits": ("darc resume s.json", "waits for handle: type 'run'"),
        "early": ("darc save t.json", "nothing was collected yet"),
        "stop": ("darc stop", "waits no more"),
    }
    commands = [
        one for name, (command, _) in wrong.items() for one in (mark(name), attempt(command))
    ]
    done = debug(tmp_path, program, (), [*commands, mark("end"), "darc save /nowhere/s.json"])
    for name, (_, words) in wrong.items():
        assert words in done.section(name)
    assert not (tmp_path / "t.json").exists()


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    done = run(tmp_path, build("deep"), 4000, *search(PEAK), "darc save /nowhere/s.json")
    assert "darc: there is no directory /nowhere; make it first" in done.gdb
    assert done.status == 1
    assert json.loads((tmp_path / "s.json").read_text())["version"] == 5


def test_saving_at_a_stop_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    """Saved again and again while votes are counted, the search comes to the same end."""
    program = build("deep")
    commands = [f"darc start handle {PEAK} --lookahead 1", "tbreak level_8 if rounds > 9", "run"]
    for _ in range(3):
        commands += ["tbreak level_8 if rounds > 9", "continue", SAVE]
    done = run(tmp_path, program, 8000, *commands, "continue", REPORT, "continue", EXIT)
    assert done.paths == [DEEP], done.gdb
    assert done.report is not None
    assert done.report["program"]["in_peak_calls"] == 20 * len(DEEP[1:])
    assert done.output == undisturbed(program, ("8000",))[1]


def test_limits_of_darcs_are_not_kept_as_the_users_wish(tmp_path: Path) -> None:
    done = run(tmp_path, build("deep"), 4000, *search(f"{PEAK} --max-probes 500"))
    assert done.paths == [DEEP]
    session = json.loads((tmp_path / "s.json").read_text())
    assert session["parameters"]["max-probes"] == "500"
    assert session["parameters"]["lookahead"] == "auto"
