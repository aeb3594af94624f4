"""Runs darc-lldb in batch and watches over it, as :mod:`tests.debugger` does with gdb."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from darc_lldb import launcher
from tests import debugger

DARC_LLDB = (sys.executable, str(debugger.ROOT / "darc_lldb" / "launcher.py"))
LOAD = debugger.ROOT / "darc_lldb" / "load.py"

EXIT = "process status"
"""A command for :func:`debug`: its result is in :attr:`Done.program_status`."""


@dataclass(frozen=True)
class Done(debugger.Done):
    """A batch run of lldb that has ended; ``gdb`` is what lldb wrote."""

    @property
    def program_status(self) -> int:
        """What the program ended with, below 0 for the signal that killed it."""
        found = re.findall(r"^Process \d+ exited with status = (-?\d+)", self.gdb, re.M)
        assert found, self.gdb
        return int(found[-1])


def mark(name: str) -> str:
    """A command that begins a :meth:`Done.section`."""
    return f"script print('<{name}>')"


def debug(
    folder: Path,
    program: Path | None,
    args: Sequence[str],
    commands: Sequence[str],
    *,
    options: Sequence[str] = (),
    plain: bool = False,
) -> Done:
    """Runs lldb in batch, in ``folder``, on ``program``, whose output goes to files of its own.
    ``plain`` is lldb without darc, which :data:`LOAD` loads.

    Raises:
        HangError: it did not end.
    """
    lldb, variables = plain_lldb() if plain else (DARC_LLDB, {})
    command = [*lldb, "-x", "-b", *options]
    if program is not None:
        for name, file in (("output", "program.out"), ("error", "program.err")):
            command += ["-o", f"settings set target.{name}-path {folder / file}"]
    for one in commands:
        command += ["-o", one]
    if program is not None:
        command += ["--", str(program), *args]
    log = folder / "lldb.out"
    for stale in ("program.out", "program.err", "report.json"):
        (folder / stale).unlink(missing_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**debugger.environment(), **variables, **chosen_lldb()},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        status = process.wait(debugger.WATCHDOG_SECONDS)
    except subprocess.TimeoutExpired:
        words = debugger.last_words(process.pid, log, folder / "program.out")
        raise debugger.HangError(f"{shlex.join(command)}\n{words}") from None
    finally:
        debugger.end_session(process)
    report = folder / "report.json"
    return Done(
        status,
        log.read_text(errors="replace"),
        _bytes(folder / "program.out"),
        _bytes(folder / "program.err"),
        json.loads(report.read_text()) if report.exists() else None,
    )


def _bytes(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""


def chosen_lldb() -> dict[str, str]:
    """The lldb that the tests are to run with, where the environment of pytest names one."""
    wanted = os.environ.get(launcher.LLDB)
    return {launcher.LLDB: wanted} if wanted else {}


@functools.cache
def plain_lldb() -> tuple[tuple[str, ...], dict[str, str]]:
    """lldb alone, and the environment in which its Python works."""
    lldb = launcher.find_lldb()
    assert lldb is not None, "lldb is not installed"
    chosen = launcher.choose(lldb)
    assert not isinstance(chosen, str), chosen
    return (lldb,), chosen
