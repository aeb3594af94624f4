"""Runs a debugger on a machine, for what measures it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from kgdb.vm.machine import Machine

_SECONDS = 600


def run(program: str | Path, machine: Machine, *commands: str, options: Sequence[str] = ()) -> str:
    """What gdb says to the commands in batch, connected to the machine."""
    command = [str(program), "-nx", "-q", "-batch", *options, str(machine.symbols)]
    for one in (f"target remote {machine.target}", *commands):
        command += ["-ex", one]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    return done.stdout
