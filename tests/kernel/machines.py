"""Machines for tests: in a runtime folder of their own, gone at the end, last words told."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kgdb.vm import guest, kernels, machine, workloads
from tests.debugger import DARC_GDB

WATCHDOG_SECONDS = 400
"""For hangs alone; under emulation, on a busy machine, a boot was seen to take a minute."""

PATIENT = ("-l", "60")
"""Of gdb: its own commands wait for answers as long as those of darc."""

DARC_VM = (sys.executable, "-c", "import sys; from kgdb.vm.cli import main; sys.exit(main())")


@contextlib.contextmanager
def runtime() -> Iterator[Path]:
    """A runtime folder for machines; whatever runs in it at the end is killed.

    Its path is short, as those of sockets have to be.
    """
    before = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(tempfile.mkdtemp(prefix="vm"))
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    try:
        yield folder
    except BaseException as error:
        for one in machine.machines():
            error.add_note(f"{one.name}:\n{one.last_words()}")
        raise
    finally:
        for one in machine.machines():
            one.stop()
        shutil.rmtree(folder, ignore_errors=True)
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before


@contextlib.contextmanager
def workload(
    name: str, *arguments: str, kernel: str = "debian", **setup: Any
) -> Iterator[machine.Machine]:
    """A machine that runs a workload, which is ready; ``setup`` are fields of `machine.Setup`."""
    with runtime():
        wanted = machine.Setup(
            kernels.find(kernel),
            workloads.built(name, arguments),
            **setup,
        )
        started = machine.start(wanted, name, WATCHDOG_SECONDS)
        started.wait_for(guest.READY, WATCHDOG_SECONDS)
        yield started


def shared(name: str, *arguments: str, **setup: Any) -> Callable[..., Any]:
    """A fixture: the machine that :func:`workload` starts, which the tests of a module share. Where
    one of them has ended it, the next begins with another one, and a warning has its last words."""
    kept: list[tuple[machine.Machine, contextlib.ExitStack]] = []  # one at most

    def end() -> None:
        while kept:
            kept.pop()[1].close()

    def give(request: pytest.FixtureRequest) -> machine.Machine:
        if kept and not kept[0][0].alive:
            warnings.warn(f"the machine died:\n{kept[0][0].last_words()}", stacklevel=1)
            end()
        if not kept:
            stack = contextlib.ExitStack()
            kept.append((stack.enter_context(workload(name, *arguments, **setup)), stack))
            module = request.node.getparent(pytest.Module)
            assert module is not None
            module.addfinalizer(end)
        return kept[0][0]

    return pytest.fixture(give)


def assert_goes_on(started: machine.Machine) -> None:
    """The program in it does more than it had done."""
    before = started.messages.count("mean ")
    wait_until(started, lambda: started.messages.count("mean ") > before + 1)


def debug(
    started: machine.Machine,
    *commands: str,
    gdb: Sequence[str] = DARC_GDB,
    symbols: Path | None = None,
    target: Path | None = None,
) -> str:
    """What ``darc-gdb`` says in batch, connected to the machine (to another of its sockets by
    ``target``); it may end with an error."""
    more = [word for one in commands for word in ("-ex", one)]
    command = [*gdb, "-nx", "-q", "-batch", *PATIENT, str(symbols or started.symbols)]
    return subprocess.run(
        [*command, "-ex", f"target remote {target or started.target}", *more],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=WATCHDOG_SECONDS,
        check=False,
    ).stdout


def typed(started: machine.Machine, command: str) -> str:
    """What a shell in the guest says to a command."""
    before = len(started.console)
    with socket.socket(socket.AF_UNIX) as console:
        console.connect(str(started.console_socket))
        console.sendall(f"{command}; echo do''ne\n".encode())
        wait_until(
            started, lambda: re.search(r"^done$", started.console[before:], re.M) is not None
        )
    return started.console[before:]


@contextlib.contextmanager
def paused(started: machine.Machine, name: str) -> Iterator[None]:
    """Meanwhile the guest's processes of that name do nothing."""
    stopped = typed(started, f"killall -STOP {name} && echo stop''ped")
    assert "stopped" in stopped, stopped
    try:
        yield
    finally:
        typed(started, f"killall -CONT {name}")


def wait_until(started: machine.Machine, holds: Callable[[], bool]) -> None:
    """Returns when something holds; fails where the machine is dead, or after the watchdog."""
    deadline = time.monotonic() + WATCHDOG_SECONDS
    while not holds():
        assert started.alive, started.last_words()
        assert time.monotonic() < deadline, started.last_words()
        time.sleep(0.05)


@contextlib.contextmanager
def at_work(started: machine.Machine, *commands: str) -> Iterator[subprocess.Popen[str]]:
    """``darc-gdb`` in batch, connected to the machine, while it works; killed in the end."""
    words = [
        word for one in (f"target remote {started.target}", *commands) for word in ("-ex", one)
    ]
    with subprocess.Popen(
        [*DARC_GDB, "-nx", "-q", "-batch", started.symbols, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as gdb:
        try:
            yield gdb
        finally:
            gdb.kill()


def at_patch(number: int, what: str) -> str:
    """Python for gdb: ``what`` happens once it has written so often into the kernel's code."""
    return (
        "import itertools; patches = itertools.count(1); "
        "text = [int(gdb.parse_and_eval(f'(long) &{one}')) for one in ('_stext', '_etext')]; "
        "is_patch = lambda event: text[0] <= event.address - (1 << 64) < text[1]; "
        "gdb.events.memory_changed.connect("
        f"lambda event: {what} if is_patch(event) and next(patches) == {number} else None)"
    )


def darc_vm(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs ``darc-vm`` as a person would."""
    return subprocess.run(
        [*DARC_VM, *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WATCHDOG_SECONDS,
        check=False,
    )
