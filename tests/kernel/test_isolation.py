"""Page-table isolation: a processor in user mode sees nearly nothing of the kernel, and no pad."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kgdb.vm import workloads
from kgdb.vm.machine import Machine
from tests import debugger
from tests.kernel import machines
from tests.kernel.analyses import START, TEXT, assert_unharmed, connected, goes_by_commit
from tests.kernel.machines import WATCHDOG_SECONDS

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(2 * WATCHDOG_SECONDS)]

LOOK = "x/i do_iter_write"
DIE_AT_WORK = (
    "import os; gdb.events.memory_changed.connect("
    "lambda event: event.address >> 63 or os.kill(os.getpid(), 9))"
)
"""Kills gdb when it has written memory by a physical address."""

HIDDEN = r"Cannot access memory at address 0xffffffff[0-9a-f]{8}"


machine = machines.shared("syncwrite", icount=True, parameters="pti=on")


@pytest.fixture(scope="module")
def user_code() -> str:
    """Where the program stands before each of its system calls."""
    with workloads.built("syncwrite").file.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(symbols, SymbolTableSection)
        found = symbols.get_symbol_by_name("pwritev2")
        assert found is not None
        return f"*{found[0]['st_value']:#x}"


def test_stops_in_user_mode(machine: Machine, user_code: str, tmp_path: Path) -> None:
    """darc begins there, takes its probes out for the prompt there, and goes on; and everything is
    as it was."""
    done = connected(
        machine,
        tmp_path,
        "tbreak do_iter_write",
        "continue",
        TEXT.format("before"),
        f"tbreak {user_code}",
        "continue",
        LOOK,
        START,
        f"tbreak {user_code}",
        "continue",
        LOOK,
        "darc status",
        "continue",
        debugger.REPORT,
        TEXT.format("after"),
    )
    assert len(re.findall(HIDDEN, done.gdb)) == 2, done.gdb
    assert "do_iter_write: profiling" in done.gdb
    assert goes_by_commit(done), done.gdb
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert_unharmed(machine)


def test_the_end_in_user_mode(machine: Machine, user_code: str, tmp_path: Path) -> None:
    """'darc stop' there; and a debugger that is killed there, in the middle of that."""
    connected(machine, tmp_path, "tbreak do_iter_write", "continue", TEXT.format("before"))
    in_user_mode = (f"tbreak {user_code}", "continue", LOOK)
    done = connected(machine, tmp_path, START, *in_user_mode, "darc stop")
    assert re.search(HIDDEN, done.gdb), done.gdb
    assert "darc: every probe is out" in done.gdb
    killed = connected(machine, tmp_path, START, f"python {DIE_AT_WORK}", *in_user_mode)
    assert killed.status == -signal.SIGKILL, killed.gdb
    done = connected(machine, tmp_path, "darc stop")
    assert re.search(r"had left [1-9]\d* probes? in the kernel", done.gdb), done.gdb
    connected(machine, tmp_path, "tbreak do_iter_write", "continue", TEXT.format("after"))
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert_unharmed(machine)
