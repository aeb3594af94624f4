"""What lldb's watcher sees of a process by the kernel alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from darc.debuggee.procfs import status
from darc_lldb.watcher import Watcher
from tests.debugger import WATCHDOG_SECONDS

ALONE = "import time; time.sleep(1000)"
OTHERS = """
import ctypes
import threading
import time
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).syscall(60, 0)  # of the main thread alone
"""


class Silent:
    """Nobody is told."""

    def went_on(self) -> None:
        """Nothing."""

    def hears_stand(self) -> bool:
        return True

    def stuck(self, pid: int) -> None:
        """Nothing."""

    def ended(self, pid: int) -> None:
        """Nothing."""


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + WATCHDOG_SECONDS
    while not condition():
        assert time.monotonic() < until


@pytest.mark.parametrize("program", [ALONE, OTHERS], ids=["main thread", "others"])
def test_whether_the_program_stands(program: str) -> None:
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        watcher = Watcher(process.pid, Silent())
        try:
            first = "S" if program == ALONE else "Z"
            wait_until(lambda: status(process.pid, process.pid).get("State", "").startswith(first))
            assert not watcher.program_stands()
            os.kill(process.pid, signal.SIGSTOP)
            wait_until(watcher.program_stands)
            os.kill(process.pid, signal.SIGCONT)
            wait_until(lambda: not watcher.program_stands())
        finally:
            watcher.close()
            process.kill()


class Heard(Silent):
    """What of a helper that waits for ever."""

    def __init__(self) -> None:
        self.stuck_at: list[int] = []

    def stuck(self, pid: int) -> None:
        self.stuck_at.append(pid)


@pytest.mark.parametrize("waits", ["wait_for_resume", "wait_for_stop"])
def test_a_helper_that_waits_for_the_first_thread_is_noticed(waits: str) -> None:
    """Also where the program ran for so short a time that nobody saw it run."""
    with subprocess.Popen([sys.executable, "-c", OTHERS]) as process:
        wait_until(lambda: status(process.pid, process.pid).get("State", "").startswith("Z"))
        os.kill(process.pid, signal.SIGSTOP)
        heard = Heard()
        watcher = Watcher(process.pid, heard)
        try:
            wait_until(watcher.program_stands)
            getattr(watcher, waits)()
            wait_until(lambda: bool(heard.stuck_at))
            assert heard.stuck_at == [process.pid]
        finally:
            watcher.close()
            process.kill()
