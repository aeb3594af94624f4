"""The first thread of a program ends, and the others go on: of the process itself ``/proc`` shows
no memory and no mappings then (``fixtures/leader``).

gdb 13 ends at its own detach from such a process, lldb 14 waits for its first thread at every stop,
and neither can attach to it; all of that also without darc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from darc.target import living
from fixtures.build import build_leader
from tests.code import altered_code
from tests.debugger import (
    EVERYWHERE,
    GDB,
    LLDB,
    NEWEST,
    REPORT,
    Done,
    Server,
    current,
    debug,
    let_go,
    server,
)

PATH = ("handle", "lookup", "burn")
COMMANDS = {
    "start": ["darc start handle --peak >400us", "continue", REPORT],
    "why": ["darc why --time 1s", "continue"],
    "profile": ["darc profile '*' --time 1s", "continue"],
}
WAITS_FOR_EVER = "for which this lldb waits at every stop for ever"


@contextmanager
def running(*args: str) -> Iterator[Server]:
    with server(build_leader(), *args) as made:
        yield made


def attach(folder: Path, program: Server, commands: Sequence[str]) -> Done:
    quiet = ["maint set internal-error corefile no", "maint set internal-error quit yes"]
    return debug(
        folder,
        None,
        (),
        [*(quiet if current() == GDB else []), *commands],
        options=["-p", str(program.pid)],
    )


def is_as_it_was(program: Server) -> None:
    """It has nothing of darc's in its code, goes on, and has done nothing wrong."""
    let_go(program.pid)
    program.operations()
    compared, _, altered = altered_code(living.speaker(program.pid))
    assert compared > 0
    assert altered == []
    assert program.finish() == 0


@EVERYWHERE
@pytest.mark.parametrize(
    ("command", "how"),
    [("start", ()), ("start", ("raw",)), ("why", ()), ("profile", ())],
    ids=["start", "start, ended by the system call", "why", "profile"],
)
def test_it_ends_while_darc_is_at_work(command: str, how: tuple[str, ...], tmp_path: Path) -> None:
    with running("100", *how) as program:
        done = attach(tmp_path, program, [*COMMANDS[command], "darc stop", "detach"])
        assert program.read_line() == b"ended\n"
        assert "no such process" not in done.gdb.lower()
        if current() == LLDB and WAITS_FOR_EVER in done.gdb:  # it copes where all happens at once
            assert "nothing of darc's is in its code" in done.gdb
        else:
            assert "darc: every probe is out" in done.gdb
            assert command != "start" or done.paths == [PATH], done.gdb
        is_as_it_was(program)


@pytest.mark.debuggers(GDB, NEWEST, reason="lldb 14 cannot stop such a program")
@pytest.mark.parametrize("command", COMMANDS)
def test_it_has_ended_before_darc_begins(command: str, tmp_path: Path) -> None:
    with running("100") as program:
        begin = ["break ended", "continue"]
        done = attach(tmp_path, program, [*begin, *COMMANDS[command], "darc stop", "detach"])
        assert program.read_line() == b"ended\n"
        assert "darc: every probe is out" in done.gdb
        assert command != "start" or done.paths == [PATH], done.gdb
        is_as_it_was(program)
