"""What ``darc contexts --import`` makes of a delay in Debian's mod_deflate (IntroPerf, 4.3).

``python -m benchmarks.why.apache [RUNS]`` prints it, as root: apache2, one process, serves a file
of 256 KiB, compressed, under perf: once as it is, the base, and once with a preloaded library that
makes each call of libz's ``deflate`` 300 µs slower. Told is the best rank of a path on which
that is, or mod_deflate's function that calls it, and how far these are from its hottest function.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.measure import BIN, MeasurementError
from benchmarks.why.programs import slow
from darc.debuggee.clock import tsc_hz

REQUESTS = 20
SIZE = 1 << 18
DELAY_US = 300
_MODULES = Path("/usr/lib/apache2/modules")
_PATIENCE = 120.0
_CONFIGURATION = """
ServerRoot {folder}
PidFile {folder}/pid
ServerName localhost
Listen 127.0.0.1:{port}
ErrorLog {folder}/error.log
LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule filter_module {modules}/mod_filter.so
LoadModule deflate_module {modules}/mod_deflate.so
DocumentRoot {folder}/www
SetOutputFilter DEFLATE
EnableMMAP off
EnableSendfile off
"""
_RECORD = (
    *("perf", "record", "-m", "128M", "-c", "1", "--switch-events", "-k", "CLOCK_MONOTONIC_RAW"),
    *("-e", "raw_syscalls:sys_enter", "-e", "raw_syscalls:sys_exit", "-e", "context-switches"),
    *("--call-graph", "dwarf,16384"),
)


def _ask(port: int) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/file")
    request.add_header("Accept-Encoding", "gzip")
    with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
        if answer.headers.get("Content-Encoding") != "gzip":
            raise MeasurementError("apache2 does not compress")
        answer.read()


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def record(folder: Path, name: str, is_slow: bool) -> Path:
    """What perf tells of the requests."""
    port = _port()
    (folder / "conf").write_text(_CONFIGURATION.format(folder=folder, port=port, modules=_MODULES))
    environment = dict(os.environ)
    if is_slow:
        environment |= {
            "LD_PRELOAD": str(slow("deflate")), "SLOW_ONE_IN": "1", "SLOW_US": str(DELAY_US),
            "SLOW_MHZ": str(round(tsc_hz() / 1e6)),
        }  # fmt: skip
    with (folder / "output").open("ab") as output:
        server = subprocess.Popen(
            ["/usr/sbin/apache2", "-X", "-f", str(folder / "conf")], env=environment,
            stdout=output, stderr=output,
        )  # fmt: skip
    data = folder / f"{name}.data"
    try:
        for _ in range(500):
            try:
                _ask(port)
                break
            except OSError:
                time.sleep(0.02)
        else:
            raise MeasurementError((folder / "output").read_text()[-500:])
        perf = subprocess.Popen(
            [*_RECORD, "-o", str(data), "-p", str(server.pid)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(1.0)
        for _ in range(REQUESTS):
            _ask(port)
        perf.send_signal(signal.SIGINT)
        perf.wait(_PATIENCE)
    finally:
        server.kill()
        server.wait()
    text = folder / f"{name}.txt"
    options = ("--ns", "--no-inline", "--no-demangle", "--show-lost-events")
    with text.open("wb") as output:
        command = ["perf", "script", *options, "-i", str(data)]
        subprocess.run(command, stdout=output, stderr=subprocess.DEVNULL, check=True)
    data.unlink()
    return text


def trial() -> str:
    """One pair of runs, in a line."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "www").mkdir(mode=0o755)
        chance = random.Random(1)
        words = " ".join(f"{chance.randrange(10**6)}" for _ in range(SIZE // 7))
        (folder / "www" / "file").write_text(words)
        base, now = record(folder, "base", is_slow=False), record(folder, "now", is_slow=True)
        found = folder / "made.json"
        command = f"darc contexts --import {now} --base {base} --top 20 -o {found}"
        words_of = [str(BIN / "darc-gdb"), "-nx", "-q", "-batch", "-ex", command]
        said = subprocess.run(words_of, capture_output=True, text=True, check=False)
        if not found.exists():
            raise MeasurementError(said.stdout[-1000:] + said.stderr[-1000:])
        return _told(json.loads(found.read_text()), said.stdout)


def _told(found: dict[str, Any], said: str) -> str:
    events = next((line.strip() for line in said.splitlines() if "inferred: by" in line), "")
    for rank, path in enumerate(found["paths"], 1):
        names = path["functions"]
        own = [n for n, name in enumerate(names) if _is_own(names, n)]
        if own:
            distance = min(abs(n - path["hottest"]) for n in own)
            line = f"rank {rank} of {len(found['paths'])}, distance {distance}"
            near = names[max(0, own[0] - 1) : own[-1] + 2]
            return f"{line}: … → {' → '.join(near)} …; {events}"
    return f"not among {len(found['paths'])} paths; {events}"


def _is_own(names: list[str], number: int) -> bool:
    """Whether it is libz's function, or mod_deflate's that calls it, which has no name."""
    following = names[number + 1] if number + 1 < len(names) else ""
    return "deflate" in names[number] or "deflate" in following


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{REQUESTS} requests of {SIZE >> 10} KiB, {DELAY_US} µs in each call of deflate")
    for _ in range(runs):
        print(trial(), flush=True)


if __name__ == "__main__":
    main()
