"""What other tools see of the same workload, in a run without darc: one sentence each."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.measure import MeasurementError
from benchmarks.real.clients import read, wait_for_socket

Look = Callable[[Path, int], str]
"""Looks at the program that works in that folder, by its process id."""

_SECONDS = 4.0


def ms(seconds: float) -> str:
    """So long, for a page."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


@contextlib.contextmanager
def _tool(command: Sequence[str]) -> Iterator[None]:
    """Runs beside the program for some seconds."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except FileNotFoundError:
        raise MeasurementError(f"{command[0]} is not installed") from None
    time.sleep(_SECONDS)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    if process.returncode not in (0, -signal.SIGINT, 130):
        raise MeasurementError(f"{command[0]}: {said.decode(errors='replace')[-400:]}")
    yield


def strace(call: str, *, of: str = "", threads: bool = True) -> Look:
    """How long a system call takes; of those on files that end in ``of``, beside the others."""

    def look(folder: Path, pid: int) -> str:
        written = folder.parent / "strace"
        options = ("-f", "-y") if threads else ("-y",)
        with _tool(("strace", *options, "-qq", "-T", "-e", f"trace={call}", "-o", str(written),
                    "-p", str(pid))):  # fmt: skip
            found: list[float] = []
            others: list[float] = []
            for line in written.read_text(errors="replace").splitlines():
                took = re.search(r"<(\d+\.\d+)>$", line)
                if took is not None:
                    (found if not of or f"{of}>" in line else others).append(float(took[1]))
        if not found:
            raise MeasurementError(f"strace has seen no {call}")
        said = f"strace, for {_SECONDS:.0f} s: {len(found)} calls of `{call}`"
        if of:
            said += f" on `{of}`"
        said += f", median {ms(statistics.median(found))}, {ms(sum(found))} in all"
        if others:
            said += f"; {len(others)} on other files, median {ms(statistics.median(others))}"
        return said

    return look


def perf(file: str) -> Look:
    """How much of the processor's time the program is in functions of that file."""

    def look(folder: Path, pid: int) -> str:
        data = str(folder.parent / "perf.data")
        with _tool(("perf", "record", "-q", "-F", "499", "-o", data, "-p", str(pid))):
            pass
        said = subprocess.run(
            ("perf", "report", "-i", data, "--stdio", "-q", "--sort", "dso"),
            capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
        ).stdout  # fmt: skip
        shares = {name: share for share, name in re.findall(r"([\d.]+)% +(\S+)", said)}
        found = next((share for name, share in shares.items() if name.startswith(file)), None)
        if found is None:
            raise MeasurementError(f"perf has seen nothing of {file}: {said[-400:]}")
        return f"perf, for {_SECONDS:.0f} s: {found} % of its time on a processor is in `{file}`"

    return look


def slowlog(folder: Path, _pid: int) -> str:
    """What redis itself has logged: of each slow command how long it took."""
    with contextlib.closing(wait_for_socket(folder / "socket")) as client:
        client.sendall(b"CONFIG SET slowlog-log-slower-than 300\r\n")
        read(client, b"+OK\r\n")
        time.sleep(_SECONDS)
        client.sendall(b"SLOWLOG GET 128\r\n")
        said = b""
        while not said.endswith(b"\r\n") or said.count(b"*6\r\n") < 1:
            said += client.recv(1 << 20)
    times: dict[str, list[float]] = {}
    entry = rb"\*6\r\n:\d+\r\n:\d+\r\n:(\d+)\r\n\*\d+\r\n\$\d+\r\n(\w+)"
    for took, name in re.findall(entry, said):
        times.setdefault(name.decode().upper(), []).append(int(took) / 1e6)
    if not times:
        raise MeasurementError("redis has logged no slow command")
    return "redis' own SLOWLOG, above 0.3 ms, the last 128: " + "; ".join(
        f"{len(each)} of `{name}`, median {ms(statistics.median(each))}"
        for name, each in sorted(times.items(), key=lambda item: -len(item[1]))
    )


def own_words(pattern: str, what: str) -> Callable[[str], str]:
    """What the program itself prints at its end, with each line that matches ``pattern``."""

    def look(said: str) -> str:
        found = re.findall(pattern, said, re.M)
        if not found:
            raise MeasurementError(f"{what} is not in what it said: {said[-400:]}")
        return f"{what}: " + "; ".join(" ".join(" ".join(one).split()) for one in found)

    return look
