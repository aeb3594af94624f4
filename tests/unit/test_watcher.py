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

    def resumed(self) -> None:
        """Nothing."""

    def stands(self) -> bool:
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
