"""Several inferiors in one gdb: what is analysed is of the one that the user has selected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import Server, Terminal, server, terminal

RUN = "run 20000 > program.out"
START = "darc start handle --peak last --start-ops 1000"


@pytest.fixture
def running() -> Iterator[Server]:
    with server(build("server")) as made:
        yield made


def stands_in_the_first(gdb: Terminal) -> None:
    """Something was analysed in inferior 1, which stands still and lives."""
    gdb.command(START)
    assert "root cause of" in gdb.command(RUN)


def to_another(gdb: Terminal) -> None:
    gdb.command(f"add-inferior -exec {build('mixture')}")
    gdb.command("inferior 2")


def inferior(gdb: Terminal) -> str:
    found = re.search(r"Current inferior is (\d)", gdb.command("inferior"))
    assert found
    return found[1]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (START, "root cause of .*write_out → usleep"),
        ("darc why", "handle: .* calls take about"),
        ("darc profile mixture!* --time 100ms", "handle"),
    ],
)
def test_a_second_program_is_waited_for(command: str, found: str, tmp_path: Path) -> None:
    with terminal(tmp_path, str(build("mixture"))) as gdb:
        stands_in_the_first(gdb)
        to_another(gdb)
        gdb.command(command)
        shown = gdb.command(RUN)
        assert re.search(found, shown, re.S), shown
        assert inferior(gdb) == "2"
        assert gdb.quit() == 0


def test_where_an_analysis_goes_on_is_told(tmp_path: Path) -> None:
    with terminal(tmp_path, str(build("mixture"))) as gdb:
        gdb.command("darc start handle --start-ops 1000000000")
        gdb.command("tbreak flush")
        gdb.command(RUN)
        to_another(gdb)
        told = "handle is being analysed in the program that was selected before"
        assert told in gdb.command(START)
        assert inferior(gdb) == "2"
        assert gdb.quit() == 0


def test_an_analysis_that_goes_on_in_a_second_program(tmp_path: Path) -> None:
    with terminal(tmp_path, str(build("mixture"))) as gdb:
        stands_in_the_first(gdb)
        gdb.command("darc save kept.darc")
        to_another(gdb)
        gdb.command("darc resume kept.darc")
        assert "root cause of" in gdb.command(RUN)
        assert inferior(gdb) == "2"
        assert gdb.quit() == 0


def test_a_second_program_that_was_attached_to(running: Server, tmp_path: Path) -> None:
    with terminal(tmp_path, str(build("mixture"))) as gdb:
        stands_in_the_first(gdb)
        gdb.command("add-inferior")
        gdb.command("inferior 2")
        gdb.command(f"attach {running.pid}")
        shown = gdb.command("darc start handle --start-ops 1000 --peak >400us")
        assert "analyses handle" in shown, shown
        assert "root cause of bins" in gdb.command("continue")
        gdb.command("detach")
        assert gdb.quit() == 0
    assert running.finish() == 0


def test_a_start_in_a_second_program_ends_what_was_found_in_the_first(tmp_path: Path) -> None:
    """And is not of the first one, in which darc takes its probes out."""
    with terminal(tmp_path, str(build("mixture"))) as gdb:
        gdb.command("darc profile mixture!*")  # until it is stopped
        gdb.command("tbreak write_out")
        gdb.command(RUN)
        to_another(gdb)
        shown = gdb.command(START)
        assert "'darc stop' before" in shown, shown
        gdb.command("darc stop")
        assert inferior(gdb) == "2"
        assert "waits for handle: type 'run'" in gdb.command(START)
        assert "root cause of" in gdb.command(RUN)
        assert gdb.quit() == 0


def test_a_file_of_the_first_program_is_no_file_of_the_second(tmp_path: Path) -> None:
    """What is waited for in inferior 2 begins there, whatever inferior 1 loads meanwhile."""
    with terminal(tmp_path, str(build("mixture"))) as gdb:
        gdb.command("starti 20000 > program.out")
        to_another(gdb)
        gdb.command(START)
        gdb.command("inferior 1")
        assert "exited normally" in gdb.command("continue")
        assert "pending" in gdb.command("darc status")
        gdb.command("inferior 2")
        assert "root cause of" in gdb.command(RUN)
        assert gdb.quit() == 0
