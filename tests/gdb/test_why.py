"""``darc why``: no function to begin with, in programs of which it is known what is slow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fixtures.build import build, build_feeding
from tests.debugger import (
    DARC_GDB,
    EXIT,
    IN_BOTH,
    IN_LLDB_AT_NIGHT,
    REPORT,
    Done,
    attempt,
    debug,
    let_go,
    mark,
    server,
    undisturbed,
    watched,
)

MOST = "darc why --time 90s"
"""More than it takes on a busy machine; it ends when it knows."""


def why(done: Done) -> dict[str, Any]:
    """The answer in the report."""
    assert done.report is not None, done.gdb
    assert "Traceback" not in done.gdb
    found = done.report["why"]
    assert isinstance(found, dict)
    return found


def paths(answer: dict[str, Any]) -> list[list[str]]:
    """Its root cause paths, but those of preemption, which a busy machine adds."""
    found = answer["root_cause_paths"]
    return [path["functions"] for path in found if path["cause"] != "preemption"]


@IN_LLDB_AT_NIGHT
def test_the_slow_function_and_its_cause(tmp_path: Path) -> None:
    """By itself, from profiles to the root cause; then the program goes on as it would have."""
    args = ("600000", "1")
    program = build("regressed")
    commands = [
        MOST,
        "run",
        REPORT,
        mark("tree"),
        "darc tree",
        mark("status"),
        "darc status",
        "darc report --require answer -o answer.txt",
        mark("end"),
        "continue",
        EXIT,
    ]
    done = debug(tmp_path, program, args, commands)
    found = why(done)
    assert found["verdict"] == "found", done.gdb
    first = found["answers"][0]
    assert first["function"] == "parse"
    assert ["parse", "reload", "usleep"] in [path[:3] for path in paths(first)], done.gdb
    assert re.search(r"^darc: why: found, (not )?sure$", done.gdb, re.M)
    stood = r"^  the program stood still for \S+ in \d+ stops(, the longest \S+)?; "
    assert re.search(stood, done.gdb, re.M)
    assert done.report is not None
    assert done.report["program"]["stops"] == found["stops"] > 1
    assert found["stopped_seconds"] > 0 < found["setup_seconds"]
    assert "root cause: parse → reload → usleep" in done.section("status")
    assert "reload" in done.section("tree")
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb


@IN_LLDB_AT_NIGHT
def test_a_long_tail_comes_before_a_slow_peak_that_nobody_waits_for(tmp_path: Path) -> None:
    """A few large requests take half of the time, without a valley before them."""
    done = debug(tmp_path, build("spread"), ("4000000",), [MOST, "run", REPORT, "kill", EXIT])
    found = why(done)
    assert found["verdict"] == "found", done.gdb
    first = found["answers"][0]
    assert first["function"] in ("serve", "compress"), done.gdb
    assert first["last_bin"] is None
    assert all(path[-1] == "compress" for path in paths(first)), done.gdb


@IN_LLDB_AT_NIGHT
def test_a_program_that_works_in_a_library(tmp_path: Path) -> None:
    """None of its own functions is called again: the library's are timed that it is found in."""
    program, args = build("abroad"), ("4000000",)
    done = debug(tmp_path, program, args, [MOST, "run", REPORT, "kill", EXIT])
    found = why(done)
    assert found["verdict"] == "found", done.gdb
    first = found["answers"][0]
    assert first["function"] in ("abroad_serve", "abroad_lookup")
    assert [path[-2:] for path in paths(first)] == [["abroad_lookup", "abroad_rebuild"]], done.gdb


@IN_LLDB_AT_NIGHT
def test_a_program_that_sleeps_in_a_library_between_what_it_does_there(tmp_path: Path) -> None:
    """As an interpreter may, for most of the time: the machine can be busier than the program."""
    done = debug(tmp_path, build("abroad"), ("4000000", "50000"), [MOST, "run", REPORT, "kill"])
    found = why(done)
    assert found["verdict"] != "cannot tell", done.gdb
    assert found["calls"] > 0, done.gdb
    assert all(one["function"].startswith("abroad_") for one in found["answers"]), done.gdb


@IN_LLDB_AT_NIGHT
def test_what_is_slow_comes_before_who_waits_for_work(tmp_path: Path) -> None:
    """Workers that wait take far more time than the one that is slow now and then."""
    again = [mark("again"), "darc start 1 --peak last", "darc stop"]
    done = debug(tmp_path, build("jobs"), ("1000000",), [MOST, "run", REPORT, *again, EXIT])
    found = why(done)
    assert found["verdict"] == "found", done.gdb
    functions = [answer["function"] for answer in found["answers"]]
    assert functions[0] == "serve", done.gdb
    assert "darc: analyses serve" in done.section("again")
    assert ["serve", "compact", "usleep"] in [p[:3] for p in paths(found["answers"][0])], done.gdb


@IN_BOTH
def test_nothing_stands_out(tmp_path: Path) -> None:
    """Each piece of work takes as long as the others; and a script hears of it."""
    commands = [
        "darc why --time 8s",
        "run",
        REPORT,
        attempt("darc report --require answer"),
        "kill",
    ]
    done = debug(tmp_path, build("pool"), (), commands)
    found = why(done)
    assert found["verdict"] in ("nothing stands out", "cannot tell"), done.gdb  # of few calls
    assert found["answers"] == []
    assert f"no answer: {found['verdict']}" in done.gdb


@IN_LLDB_AT_NIGHT
def test_a_wait_in_poll_that_only_slow_calls_come_to(tmp_path: Path) -> None:
    """An answer that a request waits for is no work that a thread waits for."""
    done = debug(tmp_path, build("backend"), ("100000000",), [MOST, "run", REPORT, "kill"])
    found = why(done)
    assert found["verdict"] == "found", done.gdb
    first = found["answers"][0]
    assert first["function"] == "request"
    path = ["request", "ask_backend", "wait_reply", "poll"]
    assert path in [one[:4] for one in paths(first)], done.gdb


def test_what_waits_for_its_work_in_all_calls_is_left_out(tmp_path: Path) -> None:
    """It is told, with what to type if it is no such wait."""
    args = ("1000000000", "loop")
    done = debug(tmp_path, build("backend"), args, ["darc why --time 30s", "run", REPORT, "kill"])
    found = why(done)
    assert found["answers"] == [], done.gdb
    assert found["verdict"] == "nothing but waits for work", done.gdb
    assert "next_event in poll" in found["idle"]
    assert "left out: next_event waits in poll, as for its next work" in done.gdb
    assert re.search(r"'darc start next_event --peak \S+' looks into it all the same", done.gdb)


def test_who_sleeps_as_long_as_it_is_told_is_not_slow(tmp_path: Path) -> None:
    """Neither the C library's functions, nor one that does nothing else."""
    for strip in (None, "all"):
        program = build("backend", strip=strip)
        commands = ["darc why --time 20s", "run", REPORT, "kill"]
        done = debug(tmp_path, program, ("1000000000", "nap"), commands)
        assert [a["function"] for a in why(done)["answers"] if paths(a)] == [], done.gdb


@pytest.mark.parametrize("exported", [(), ("compute", "ask_backend", "nap", "next_event")])
def test_functions_of_a_stripped_program(tmp_path: Path, exported: tuple[str, ...]) -> None:
    """They are called by where they are in its file, beside those that it shows to plugins."""
    shown = [f"-Wl,--export-dynamic-symbol={name}" for name in exported]
    program = build("backend", strip="all", extra=shown)
    done = debug(tmp_path, program, ("100000000",), [MOST, "run", REPORT, "kill"])
    found = why(done)
    assert found["verdict"] == "found", done.gdb
    first = found["answers"][0]
    assert first["function"].startswith(f"{program.name}+0x"), done.gdb
    assert [p[0].split("+")[0] for p in paths(first)] == [program.name]
    assert "poll" in paths(first)[0], done.gdb


def test_time_is_up_before_the_cause_is_known(tmp_path: Path) -> None:
    """What is slow is told, and how to go on; the program is at its end what it always is."""
    program, args = build("mixture"), ("100000",)
    commands = [
        "python from darc.search import inquiry; inquiry._LEAST_SECONDS = 1000.0",
        "darc why --time 6s",
        "run",
        REPORT,
        "continue",
        EXIT,
    ]
    done = debug(tmp_path, program, args, commands)
    found = why(done)
    assert found["verdict"] == "cannot tell", done.gdb
    assert [one["function"] for one in found["open"]] == ["handle"]
    assert "not looked into: 'darc start handle --peak " in done.gdb
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb


CTRL_C = (
    "python import os, signal; from darc.session.session import Session; "
    "Session.beat = lambda session: {} and os.kill(session._pid, signal.SIGINT)"
)
"""As the terminal does to the program, once something holds."""


def test_ctrl_c_says_what_is_known(tmp_path: Path) -> None:
    """While functions are timed, and while one is searched."""
    for when, known in (
        (
            "'set' in session.analysis.snapshot(True).parts "
            "and session.collector.counting.seen > 999",
            "open",
        ),
        ("getattr(session.analysis, 'is_searching', False)", "answers"),
    ):
        commands = [
            CTRL_C.format(when),
            "set darc decision-ops 100000",  # else a quick machine knows it by then
            "darc why --time 10min",
            "run",
            REPORT,
            mark("code"),
            "disassemble /r handle,+8",
            mark("again"),
            attempt("darc peak 1"),
            "kill",
        ]
        done = debug(tmp_path, build("mixture"), ("100000000",), commands)
        assert "SIGINT" in done.gdb
        assert why(done)["verdict"] == "cannot tell", done.gdb
        assert [one["function"] for one in why(done)[known]] == ["handle"], done.gdb
        assert "\te9 " not in done.section("code")
        assert "the analysis is over" in done.section("again") or known == "open"


BROKEN_OFF = """
from darc.app.app import App

emit = App.emit

def broken_off(app, text):
    emit(app, text)
    if text.endswith("'continue'"):
        App.emit = emit
        raise KeyboardInterrupt

App.emit = broken_off
"""


def test_ctrl_c_as_it_begins_does_not_make_a_profile_of_it(tmp_path: Path) -> None:
    """It comes when the probes are made, and before the prompt."""
    script = tmp_path / "broken_off.py"
    script.write_text(BROKEN_OFF)
    begin = 'python\ntry:\n    gdb.execute("darc why --time 3s")\nexcept gdb.error:\n    pass\nend'
    (tmp_path / "begin.gdb").write_text(begin + "\n")
    commands = ["break handle", "run", "delete", f"source {script}", f"source {tmp_path}/begin.gdb"]
    done = debug(tmp_path, build("mixture"), ("100000000",), [*commands, "darc status", "kill"])
    assert "why: " in done.gdb


@IN_BOTH
def test_the_program_ends_before(tmp_path: Path) -> None:
    program, args = build("mixture"), ("2000",)
    done = debug(tmp_path, program, args, [MOST, "run", EXIT, REPORT])
    assert why(done)["verdict"] == "cannot tell", done.gdb
    assert re.search(r"^darc: why: cannot tell$", done.gdb, re.M)
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb


def test_attached_and_let_go(tmp_path: Path) -> None:
    with server(build("server")) as running:
        command = [*DARC_GDB, "-nx", "-q", "-batch", "-p", str(running.pid)]
        for one in (MOST, "continue", REPORT, "detach"):
            command += ["-ex", one]
        _, said, _, _, report = watched(tmp_path, command)
        assert report is not None, said
        assert report["why"]["verdict"] == "found", said
        first = report["why"]["answers"][0]
        assert (first["function"], paths(first)[0][-1]) == ("handle", "burn"), said
        let_go(running.pid)
        before = running.operations()
        while running.operations() < before + 100:
            pass
        assert running.finish() == 0


def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    commands = [
        attempt("darc why handle"),
        attempt("darc why --time 10ms"),
        "break main",
        "run",
        "darc why",
        attempt("darc why"),
        attempt("darc peak 1"),
        attempt("darc report --require answer"),
        "darc stop",
        attempt("darc report --require anything"),
        "kill",
    ]
    done = debug(tmp_path, build("mixture"), (), commands)
    for line in (
        "'darc start handle' looks into that one",
        "is not a time of 1s and more as 30s",
        "is being analysed",
        "'darc peak' is for what 'darc start' has begun",
        "no answer: cannot tell",
        "'anything' is not one of root-cause, answer",
    ):
        assert line in done.gdb, (line, done.gdb)
    assert "Traceback" not in done.gdb


@pytest.mark.parametrize("flags", [(), ("-fno-plt",)])
def test_what_a_loop_that_never_returns_calls_itself(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """Nothing of the program's own is slow: its loop is never over, and all else is quick."""
    with server(build_feeding(*flags)) as running:
        commands = [MOST, "continue", REPORT, "detach"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
    found = why(done)
    assert found["verdict"] == "found", done.gdb
    assert found["answers"][0]["symbol"].strip("_") == "write", done.gdb
