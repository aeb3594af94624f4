"""Analyses of a kernel: how one is begun, and that the machine has come to no harm."""

from __future__ import annotations

import re
from pathlib import Path

from kgdb.vm import guest
from kgdb.vm.machine import Machine
from tests import debugger
from tests.kernel import machines
from tests.kernel.machines import (
    PATIENT,
)

START = "darc start do_iter_write --task syncwrite --start-ops 300 --peak last"


COMMIT = ("do_iter_write", "do_iter_readv_writev", "ext4_file_write_iter")
"""What every write that has to be on the disk goes through first."""


def goes_by_commit(done: debugger.Done) -> bool:
    """Whether a root cause lies there. On one processor it may be that the journal's thread has
    it."""
    assert done.report is not None, done.gdb
    return any(tuple(p["functions"][:3]) == COMMIT for p in done.report["root_cause_paths"])


TEXT = "dump binary memory {} &_stext &_etext"


TROUBLE = re.compile(
    r"BUG:|Oops|general protection|WARNING:|stack-protector|soft lockup|rcu.*stall"
)


def connected(
    machine: Machine, folder: Path, *commands: str, symbols: Path | None = None
) -> debugger.Done:
    """Runs darc-gdb in batch on the machine; a command that fails ends nothing."""
    assert machine.alive, machine.last_words()
    connect = f"target remote {machine.target}"
    options = [*PATIENT, str(symbols or machine.symbols)]
    try:
        return debugger.debug(folder, None, (), [connect, *commands], options=options)
    except debugger.HangError as error:
        error.add_note(machine.last_words())
        raise


def assert_unharmed(machine: Machine) -> None:
    """The kernel has nothing to complain about, and the program goes on."""
    assert machine.alive, machine.last_words()
    assert not TROUBLE.search(machine.console), machine.last_words(60)
    assert guest.ENDED not in machine.messages, machine.messages


AT_WORK = """
import os, socket, threading, time
from pathlib import Path
from kgdb.vm import qmp

def happen():
    while not qmp.execute(Path('{monitor}'), 'query-status')['running']:
        time.sleep(0.02)
    {what}

{when}
"""
"""Something happens when the machine runs again after gdb has put in call sites' probes."""


def at_work(started: Machine, folder: Path, what: str) -> str:
    """A command that lets ``what``, Python in gdb, happen in the middle of a descent, while the
    machine runs."""
    file = folder / "at_work.py"
    when = machines.at_patch(3, "threading.Thread(target=happen, daemon=True).start()")
    file.write_text(AT_WORK.format(monitor=started.monitor_socket, what=what, when=when))
    return f"source {file}"
