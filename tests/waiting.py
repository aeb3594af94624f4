"""Waiting for what another process does, without a time that it takes."""

from __future__ import annotations

import re
import time
from pathlib import Path

from tests.code import altered_code
from tests.debugger import WATCHDOG_SECONDS


def wait_for_changes(pid: int) -> None:
    """Until there is something of darc's in the code."""
    while all(place.startswith("ld-") for place in altered_code(pid)[2]):
        time.sleep(0.01)


def wait_until_it_runs(pid: int) -> None:
    """Until it has waited some times by itself."""
    status = Path(f"/proc/{pid}/status")

    def waits() -> int:
        return int(re.findall(r"^voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.M)[0])

    before = waits()
    while waits() < before + 100:
        time.sleep(0.01)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def guardians(pid: int) -> list[int]:
    """The shells that watch over a process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[3:5] == [b"darc-guardian", str(pid).encode()]:
            found.append(int(folder.name))
    return found


def wait_until(condition: object) -> None:
    assert callable(condition)
    until = time.monotonic() + WATCHDOG_SECONDS
    while not condition():
        assert time.monotonic() < until
