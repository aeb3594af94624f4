"""What 'make soak' takes for a difference, and what it adds up."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.soak import run
from benchmarks.soak.events import Event
from benchmarks.soak.programs import counted, lines, without
from benchmarks.soak.run import Result, read_log

OUTPUT = "test 1 : ok (12 ms)\nserver ready\ntest 2 : ok (7 ms)\n"


def test_same_results_do_not_differ() -> None:
    one = Result(0, "a\nb\n", {"file": b"x"})
    assert one.difference(Result(0, "a\nb\n", {"file": b"x"})) == ""


def test_every_part_of_a_result_counts() -> None:
    one = Result(0, "a\nb\n", {"file": b"x"})
    assert "status 0, not 1" in one.difference(Result(1, "a\nb\n", {"file": b"x"}))
    assert "status 0, not None" in one.difference(Result(None, "a\nb\n", {"file": b"x"}))
    assert "-c" in one.difference(Result(0, "a\nc\n", {"file": b"x"}))
    assert one.difference(Result(0, "a\nb\n", {"file": b"y"})) == "file differs"


def test_what_differs_from_run_to_run_is_cleaned_away() -> None:
    assert lines(r"^(test \d+ : \w+)")(OUTPUT) == "test 1 : ok\ntest 2 : ok"
    assert lines(r"^test (\d)", ordered=False)("test 2\ntest 1\n") == "1\n2"
    assert without(r" \(\d+ ms\)")(OUTPUT) == "test 1 : ok\nserver ready\ntest 2 : ok\n"
    assert counted(r"ok")(OUTPUT) == 2


def test_figures_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    analysis = {"event": "analysis", "f0": "p!f", "calls": 10, "below": 5, "sites": 2}
    entries: list[dict[str, object]] = [
        {"event": "begin", "program": "p"},
        analysis,
        analysis,
        {"event": "refused", "f0": "p!g", "why": "darc: cannot time p!g: it is too short"},
        {"event": "gdb", "status": 0},
    ]
    log.write_text("".join(json.dumps({"pid": 1, **entry}) + "\n" for entry in entries))
    figures = read_log(log)
    assert (figures.processes, figures.analyses, figures.functions) == (1, 2, {"p!f"})
    assert (figures.calls, figures.below, figures.sites) == (20, 10, 4)
    assert figures.reasons == {"it is too short": 1}
    assert figures.trouble == []


def test_what_must_not_be_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    entries: list[dict[str, object]] = [
        {"event": "refused", "f0": "f", "why": "darc: internal error: KeyError(1)"},
        {"event": "altered", "f0": "f", "places": ["libc.so.6+0x10"]},
        {"event": "trouble", "error": "gdb says no"},
        {"event": "gdb", "status": -11, "words": "last words"},
    ]
    log.write_text("".join(json.dumps({"pid": 1, **entry}) + "\n" for entry in entries))
    assert len(read_log(log).trouble) == 4


def test_what_imports_nothing_writes_an_event_that_there_is() -> None:
    written = re.findall(r'"event": "(\w+)"', (run.HERE / "attend.py").read_text())
    assert [Event(word) for word in written] == [Event.GDB]


def test_no_log_at_all(tmp_path: Path) -> None:
    assert read_log(tmp_path / "log").analyses == 0
