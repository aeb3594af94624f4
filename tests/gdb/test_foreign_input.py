"""Names and files that somebody made to harm: symbols, saved sessions, places to write to."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from darc.views.words import printable
from fixtures.build import build, find
from tests.debugger import EXIT, IN_BOTH, REPORT, Done, attempt, debug, mark, undisturbed

pytestmark = IN_BOTH

SEARCH = "darc start handle --peak last --start-ops 2000"
ARGUMENTS = find("mixture").args

ESCAPE = b"\x1b]0;xy\x07\x9b\xe9"
"""For write_out: sets a terminal's title, and is no UTF-8."""
REVERSED = "\u202efl".encode()
"""For flush: what follows is read from right to left."""


def renamed(folder: Path, names: dict[bytes, bytes]) -> Path:
    """The fixture mixture with other names for some of its functions, wherever they stand in the
    file."""
    data = build("mixture").read_bytes()
    for old, new in names.items():
        assert len(old) == len(new)

        def renamed(_: re.Match[bytes], new: bytes = new) -> bytes:
            return b"\0" + new + b"\0"

        data, count = re.subn(rb"\0" + old + rb"\0", renamed, data)
        assert count
    program = folder / "mixture"
    program.write_bytes(data)
    program.chmod(0o755)
    return program


def lines_of_darc(done: Done, *sections: str) -> list[str]:
    """What darc said; every line is one that a terminal may show."""
    found = [line for section in sections for line in done.section(section).splitlines()]
    for line in found:
        assert printable(line) == line, f"{line!r}"
        assert len(line) < 5000
    return found


TAKES_LONG = re.compile(r" · \d+s$")
"""What is said after each second of a command, on a busy machine."""

VIEWS = (mark("status"), "darc status", mark("tree"), "darc tree", mark("report"), "darc report",
         mark("histogram"), "darc histogram", mark("json"), "darc report --format json",
         mark("end"))  # fmt: skip
SHOWN = ("status", "tree", "report", "histogram", "json")


def test_names_that_a_terminal_would_obey(tmp_path: Path) -> None:
    """The analysis goes on, all is shown in words, and files have the whole."""
    program = renamed(tmp_path, {b"write_out": ESCAPE, b"flush": REVERSED})
    done = debug(
        tmp_path, program, ARGUMENTS,
        [SEARCH, "run", *VIEWS, REPORT, "darc report -o report.txt", "darc save s.json",
         "continue", EXIT],
    )  # fmt: skip
    text = "\n".join(lines_of_darc(done, *SHOWN))
    assert r"handle → \u202efl → \x1b]0;xy\x07\x9b\xe9 → usleep" in text
    assert "internal error" not in done.gdb
    assert "Traceback" not in done.gdb
    assert done.paths[0][:3] == ("handle", REVERSED.decode(), "\x1b]0;xy\x07\\x9b\\xe9")
    written = (tmp_path / "report.txt").read_text()
    assert all(printable(line) == line for line in written.splitlines())
    raw = (tmp_path / "s.json").read_bytes()
    assert raw.isascii()
    names = [node["function"]["symbol"] for node in json.loads(raw)["ftree"]]
    assert ESCAPE.decode("utf-8", "surrogateescape") in names
    assert (done.program_status, done.output) == undisturbed(program, ARGUMENTS)


def test_a_name_of_a_hundred_kilobytes(tmp_path: Path) -> None:
    long = "f" * 100_000
    program = build("mixture", extra=[f"-Dflush={long}"])
    done = debug(
        tmp_path, program, ARGUMENTS, [SEARCH, "run", *VIEWS[:-3], mark("end"), REPORT, EXIT]
    )
    text = "\n".join(lines_of_darc(done, *SHOWN[:-1]))
    assert "f…f" in text
    assert done.paths[0][:2] == ("handle", long)


def test_sessions_made_to_harm(tmp_path: Path) -> None:
    program = build("mixture")
    done = debug(tmp_path, program, ARGUMENTS, [SEARCH, "run", REPORT, "darc save s.json"])
    assert done.report is not None
    good = json.loads((tmp_path / "s.json").read_text())

    def write(name: str, **values: object) -> None:
        (tmp_path / name).write_text(json.dumps({**good, **values}))

    first = dict(good["ftree"][0]["function"])
    hostile = [{**good["ftree"][0], "function": {**first, "name": "\x1b[2J\u202ex"}}]
    noted = [
        {**node, "end": node["end"] and {**node["end"], "note": "\x1b[31m\u2066"}}
        for node in good["ftree"]
    ]
    nowhere = [{**good["ftree"][0], "function": {**first, "symbol": "no", "module": "no"}}]
    write("nul.json", function="han\0dle")
    for name, function in (
        ("escape", "\x1b]52;c;eA==\x07handle\u202e"),
        ("long", "x" * 1_000_000),
        ("expression", '*$_shell("touch harmed").c:f'),
        ("linespec", '-function $_shell("touch harmed").c:f'),
    ):
        write(f"{name}.json", function=function, ftree=nowhere, contests=[])
    write("name.json", ftree=hostile, contests=[])
    write("note.json", ftree=noted, contests=[])
    (tmp_path / "deep.json").write_text('{"format": "darc session", "ftree":' + "[" * 100_000)
    os.mkfifo(tmp_path / "fifo.json")
    (tmp_path / "loop.json").symlink_to("loop.json")
    files = ("nul", "escape", "long", "expression", "linespec", "deep", "fifo", "loop")
    commands = ["set breakpoint pending off", "break handle", "run"]
    for name in files:
        commands += [mark(name), attempt(f"darc resume {name}.json")]
    commands += [mark("directory"), attempt("darc resume ."), mark("name"), "darc resume name.json"]
    commands += ["darc status", "darc tree", "darc stop"]
    commands += [mark("note"), "darc resume note.json", "darc status", "darc report", mark("end")]
    done = debug(tmp_path, program, ARGUMENTS, commands)
    for name in (*files, "directory"):
        lines = (line for line in lines_of_darc(done, name) if "darc: " in line)
        said = [line for line in lines if not TAKES_LONG.search(line)]
        assert len(said) == 1, (name, done.gdb)
    lines_of_darc(done, "name", "note")
    assert "internal error" not in done.gdb
    assert "Traceback" not in done.gdb
    assert "NUL" in done.section("nul")
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize("command", ["darc report -o {}", "darc save {}"])
def test_places_that_nothing_can_be_written_to(command: str, tmp_path: Path) -> None:
    """One line tells why, what was there before stays, and no other file is left behind."""
    program = build("mixture")
    folder = tmp_path / "there"
    folder.mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to("loop")
    (folder / "old.json").write_text("old")
    places = {
        "full": "/dev/full",
        "fifo": "there/fifo",
        "directory": "there",
        "missing": "there/no/such.json",
        "below": "there/old.json/x.json",
        "long": f"there/{'x' * 300}.json",
        "kernel": "/proc/self/report.json",
    }
    commands = [SEARCH, "run"]
    for name, place in places.items():
        commands += [mark(name), attempt(command.format(place))]
    commands += [mark("good"), command.format("there/old.json"), mark("end")]
    done = debug(tmp_path, program, ARGUMENTS, commands)
    for name in places:
        said = [line for line in lines_of_darc(done, name) if "darc: " in line]
        assert len(said) == 1, (name, done.gdb)
    assert "written" in done.section("good") or "saved" in done.section("good")
    assert "internal error" not in done.gdb
    assert sorted(p.name for p in folder.iterdir()) == ["fifo", "loop", "old.json"]
    assert json.loads((folder / "old.json").read_text())
