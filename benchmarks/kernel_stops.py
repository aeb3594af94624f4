"""How long a kernel stands still at each stop of an analysis, by QEMU's own account.

QEMU tells of each stop and of its end (QMP's STOP and RESUME), so that all that gdb and darc do in
between counts. The first one is what `continue` takes to put the probes in, the last one ends when
the user has the prompt. Prints a table; `python -m benchmarks.kernel` puts it on its page.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import kernel_debugger as debugger
from benchmarks.measure import BIN, MeasurementError
from darc.model.errors import DarcError
from kgdb.vm import guest, kernels, machine, workloads

FUNCTIONS = (
    *("vfs_read", "pipe_read", "unix_stream_recvmsg", "tcp_sendmsg", "do_sys_poll"),
    *("__x64_sys_munmap", "handle_mm_fault", "kernel_clone"),
    *("ext4_file_read_iter", "ext4_sync_file", "do_sys_openat2", "vfs_statx"),
)

_SECONDS = 600
_START = "darc start {} --task medley --start-ops 300 --peak last --max-time 60"


@dataclass(frozen=True)
class Stops:
    """Of one analysis: how long each took, in seconds."""

    function: str
    seconds: tuple[float, ...]


def measure(kernel: kernels.CachedKernel) -> list[Stops]:
    """Analyses of all functions, one after the other, in one guest with two processors whose kernel
    has chosen its addresses itself."""
    setup = machine.Setup(kernel, workloads.built("medley"), cpus=2, kaslr=True)
    started = machine.start(setup, "stops", _SECONDS)
    try:
        started.wait_for(guest.READY, _SECONDS)
        return [Stops(function, tuple(_analysed(started, function))) for function in FUNCTIONS]
    finally:
        started.stop()


def section(found: Sequence[Stops]) -> list[str]:
    """What the page has of it."""
    every = [seconds for one in found for seconds in one.seconds]
    return [
        "## How long the kernel stands still",
        "",
        "By QEMU's own account (`python -m benchmarks.kernel_stops`), from each stop until the",
        "guest goes on: two processors, addresses that the kernel has chosen, and all tasks of",
        "`fixtures/kernel/medley.c` at once. Milliseconds; on a busy host they are multiples.",
        "",
        "| function | stops | median | longest |",
        "| --- | ---: | ---: | ---: |",
        *(_row(f"`{one.function}`", one.seconds) for one in found),
        _row("all", every),
        "",
    ]


def _row(name: str, seconds: Sequence[float]) -> str:
    if not seconds:
        return f"| {name} | 0 | | |"
    median, longest = 1000 * statistics.median(seconds), 1000 * max(seconds)
    return f"| {name} | {len(seconds)} | {median:.0f} | {longest:.0f} |"


def _analysed(started: machine.Machine, function: str) -> Iterator[float]:
    with tempfile.TemporaryDirectory() as folder, _events(started) as events:
        marks = Path(folder) / "marks"
        mark = f"shell date +%s.%N >> {marks}"
        commands = (_START.format(function), mark, "continue", mark, "darc status")
        said = debugger.run(BIN / "darc-gdb", started, *commands, options=("-l", "60"))
        times = [float(line) for line in marks.read_text().split()] if marks.exists() else []
        if len(times) != 2 or "calls inside the peak" not in said:
            raise MeasurementError(f"{function} was not analysed:\n{said}")
    begin: float | None = times[0]
    for stands, at in events:
        if not times[0] <= at <= times[1]:
            continue
        if not stands and begin is not None:
            yield at - begin
            begin = None
        elif stands and begin is None:
            begin = at
    if begin is not None:
        yield times[1] - begin


@contextlib.contextmanager
def _events(started: machine.Machine) -> Iterator[list[tuple[bool, float]]]:
    """Stops (true) and their ends, and when they were, on the host's clock."""
    found: list[tuple[bool, float]] = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(started.monitor_socket))
        lines = connection.makefile("rw")
        lines.readline()
        lines.write('{"execute": "qmp_capabilities"}\n')
        lines.flush()
        lines.readline()

        def listen() -> None:
            for line in lines:
                told = json.loads(line)
                if told.get("event") in ("STOP", "RESUME"):
                    time = told["timestamp"]
                    at = time["seconds"] + time["microseconds"] / 1e6
                    found.append((told["event"] == "STOP", at))

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        try:
            yield found
        finally:
            connection.shutdown(socket.SHUT_RDWR)
            listener.join()


def main() -> None:
    """Prints the section; ends with status 1 where a measurement failed."""
    try:
        kernel = kernels.find(sys.argv[1] if len(sys.argv) > 1 else "debian")
        found = measure(kernel)
    except (MeasurementError, DarcError) as error:
        sys.exit(f"benchmarks: {error}")
    print("\n".join(section(found)))
    print(f"{kernel.version}; load of the host: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
