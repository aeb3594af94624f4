"""Sessions at probes and inside timed calls, beside the same sessions in gdb alone.

What gdb says is the same, word for word, and so is what the program does then. The words are gdb's:
tests/lldb/test_stops.py looks at stops in lldb.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import EXIT, PLAIN_GDB, Done, debug, mark
from tests.gdb.transcripts import same

ARGS = ("20000",)
START = "darc start handle --decision-ops 100000"
"""The search goes on as long as the program: its end would be a stop more."""


END = [mark("end"), "delete", "continue", "continue", "continue", EXIT]

BREAK_AT_A_CALL = [
    "python frame = gdb.selected_frame()",
    "python flush = int(gdb.lookup_global_symbol('flush').value().address)",
    "python code = frame.architecture().disassemble(flush, count=20)",
    "python call = next(i['addr'] for i in code if 'call' in i['asm'])",
    "python gdb.Breakpoint(f'*{call:#x}', temporary=True)",
]

SESSIONS = {
    "code": (
        "write_out",
        ["x/12i $pc", "disassemble flush", "disassemble /r handle", "x/8xb usleep"],
    ),
    "frames": ("usleep", ["bt", "up", "info frame", "frame 2", "info locals", "down"]),
    "registers": (
        "write_out",
        ["info registers rip rsp rbp rbx", "p $_exitcode", "info symbol $pc"],
    ),
    "stepi": ("write_out", [*["stepi"] * 6, "nexti", "nexti", "x/3i $pc", "bt"]),
    "stepi from f0": ("handle", [*["stepi"] * 12, "bt"]),
    "stepi with counts": ("flush", ["stepi 40", "bt", "nexti 10", "bt"]),
    "step and next": ("flush", ["next", "next", "step", "bt", "next", "next", "next"]),
    "next over f0": ("main", ["advance 70", "next", "next", "next", "info locals"]),
    "finish": ("lookup", ["finish", "finish", "bt"]),
    "finish from the depth": ("clock_nanosleep", ["finish", "bt 3", "up", "finish", "bt"]),
    "until": ("flush", ["until 53", "until", "advance main", "bt"]),
    "return": ("write_out", ["return", "bt", "next", "info locals"]),
    "return from f0": ("handle", ["return", "bt"]),
    "jump": ("flush", ["tbreak 55", "jump 55", "bt"]),
    "call": ("write_out", ["call lookup(5)", "print compress_block(3)", "call flush(7)", "bt"]),
    "call of f0": ("write_out", ["call handle(11)", "print checksum", "bt"]),
    "call that stops": ("write_out", ["tbreak lookup", "call handle(11)", "bt 2", "finish"]),
    "watch": ("flush", ["watch flushed", "continue", "continue", "bt", "delete"]),
    "watch writes deep": ("flush", ["watch pending", "continue", "continue", "bt", "delete"]),
    "rwatch": ("flush", ["rwatch written", "continue", "continue", "bt", "delete"]),
    "awatch": ("flush", ["awatch pending", *["continue"] * 4, "bt", "delete"]),
    "watch a local": ("handle", ["watch checksum", "continue", "bt", "delete"]),
    "watch till its frame ends": (
        "main",
        ["next", "next", "watch ops", "tbreak lookup", "continue"],
    ),
    "software watch": (
        "flush",
        ["set can-use-hw-watchpoints 0", "watch pending", "continue", "continue", "bt", "delete"],
    ),
    "software watch in f0": (
        "handle",
        ["set can-use-hw-watchpoints 0", "watch checksum", "continue", "bt", "delete"],
    ),
    "tbreak": ("flush", ["tbreak usleep", "continue", "tbreak write_out", "continue", "bt"]),
    "break in the middle": ("handle", ["tbreak *flush+4", "continue", "x/2i $pc", "bt"]),
    "break at a call": ("handle", [*BREAK_AT_A_CALL, "continue", "x/2i $pc", "stepi", "bt"]),
    "catch a system call": (
        "flush",
        ["catch syscall clock_nanosleep", "continue", "bt", "continue", "bt", "delete"],
    ),
    "conditions": (
        "flush",
        ["break write_out if microseconds > 3300", "continue", "bt 2", "continue", "delete"],
    ),
    "threads": ("write_out", ["info threads", "thread apply all bt"]),
    "checkpoint of state": ("write_out", ["info inferiors", "info signals SIGURG", "info program"]),
}

AT_NIGHT = (
    *("stepi from f0", "stepi with counts", "next over f0", "finish from the depth"),
    *("return from f0", "call of f0", "watch writes deep", "awatch", "software watch in f0"),
    *("rwatch", "watch a local", "software watch", "until", "tbreak", "finish"),
)
"""Near others of these."""


@pytest.fixture(scope="module")
def program() -> Path:
    return build("mixture")


def probed(folder: Path, program: Path, place: str, commands: list[str]) -> Done:
    """In the search for the slow path: with probes in handle, flush and below."""
    begin = ["tbreak main", "run"] if place == "main" else []
    start = [f"{START} --start-ops 2000", "run", "darc peak >1ms"]
    if place == "main":
        start = [f"{START} --peak >1ms"]
    else:
        start += [f"tbreak {place}", "continue"]
    return debug(folder, program, ARGS, [*begin, *start, mark("session"), *commands, *END])


def alone(folder: Path, program: Path, place: str, commands: list[str]) -> Done:
    begin = ["tbreak main", "run"]
    if place != "main":
        begin = ["tbreak handle if op == 2000", "run"]
        # gdb stands in handle already, and would go on to the next one.
        begin += [] if place == "handle" else [f"tbreak {place}", "continue"]
    return debug(folder, program, ARGS, [*begin, mark("session"), *commands, *END], gdb=PLAIN_GDB)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in AT_NIGHT else ()) for name in SESSIONS],
)
def test_session(name: str, program: Path, tmp_path: Path) -> None:
    place, commands = SESSIONS[name]
    with_darc = probed(tmp_path, program, place, commands)
    without = alone(tmp_path, program, place, commands)
    assert same(with_darc.section("session")) == same(without.section("session"))
    assert without.section("session").count("\n") >= 1
    assert with_darc.output == without.output
    assert with_darc.program_status == without.program_status
    assert "Traceback" not in with_darc.gdb
    assert "internal error" not in with_darc.gdb


def test_core_file(program: Path, tmp_path: Path) -> None:
    """gcore inside a timed call: code and stack in it are the program's own."""
    dump = [f"gcore {tmp_path / 'core'}"]
    look = ["bt", "up", "info locals", "x/12i flush", "x/12i handle", "x/4i usleep"]
    texts = []
    for run in (probed, alone):
        run(tmp_path, program, "usleep", dump)
        command = [*PLAIN_GDB, "-nx", "-q", "-batch", str(program), str(tmp_path / "core")]
        for one in look:
            command += ["-ex", one]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        texts.append(same(done.stdout[done.stdout.index("#0") :]))
        (tmp_path / "core").unlink()
    assert texts[0] == texts[1]
    assert any("clock_nanosleep" in line or "usleep" in line for line in texts[0])
