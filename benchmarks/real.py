"""Real programs at full load, three times each: alone, with a bare gdb attached, and analysed.

Servers are loaded by clients in this process; what is told of them is the clients' latency. Of the
others it is how long they take. Evidence for each path is in the program itself: what makes some of
its calls slow is put in by the workload. Writes ``docs/benchmarks-real.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import BIN, ROOT, MeasurementError, gdb_version, stops_in
from darc.debuggee.clock import tsc_hz
from fixtures.build import build

PAGE = ROOT / "docs" / "benchmarks-real.md"
_SECONDS = 10.0
"""For how long a server is loaded alone and beside a bare gdb."""
_PATIENCE = 120.0
_CLIENTS = 2
_OBSERVER = Path(__file__).with_name("stops.py")

Ask = Callable[[int], None]
"""Makes the n-th request of a client and waits for its answer."""


@dataclass(frozen=True)
class RealProgram:
    """A program, f0, and what its slow calls go through (one of ``truth`` is on the right path).
    ``start`` starts it, in a folder of its own; ``connect`` makes a client of it, none where it
    works by itself."""

    name: str
    function: str
    options: str
    truth: tuple[str, ...]
    why: str
    start: Callable[[Path], subprocess.Popen[bytes]]
    connect: Callable[[Path], contextlib.AbstractContextManager[Ask]] | None = None


@dataclass(frozen=True)
class Trial:
    """Latencies of the clients' requests in seconds; of a program without clients how long it
    took. ``path``, ``stops`` (seconds each, but for the last), ``own`` (seconds of a processor's
    that darc took for each of these), ``stopped`` (seconds in all) and
    ``answer`` (seconds from gdb's start to its end) are darc's."""

    latencies: tuple[float, ...]
    path: str = ""
    right: bool = False
    stops: tuple[float, ...] = ()
    own: tuple[float, ...] = ()
    stopped: float = 0.0
    answer: float = 0.0

    def percentile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


@dataclass
class _Load:
    """Clients that ask as fast as they are answered."""

    connect: Callable[[Path], contextlib.AbstractContextManager[Ask]] | None
    folder: Path
    latencies: list[float] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        threads = [
            threading.Thread(target=self._work) for _ in range(_CLIENTS) if self.connect is not None
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _work(self) -> None:
        assert self.connect is not None
        with self.connect(self.folder) as ask:
            number = 0
            while not self._over.is_set():
                begin = time.monotonic()
                ask(number)
                self.latencies.append(time.monotonic() - begin)
                number += 1


# ------------------------------------------------------------------- the programs


def _popen(folder: Path, *command: str | Path) -> subprocess.Popen[bytes]:
    program = shutil.which(command[0], path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if program is None:
        raise MeasurementError(f"{command[0]} is not installed")
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            [program, *map(str, command[1:])], cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
            stderr=output, start_new_session=True,
        )  # fmt: skip


def _wait_for_socket(path: Path) -> socket.socket:
    for _ in range(1000):
        with contextlib.suppress(OSError):
            made = socket.socket(socket.AF_UNIX)
            made.connect(str(path))
            return made
        time.sleep(0.01)
    raise MeasurementError(f"nobody listens at {path}")


def _redis(folder: Path) -> subprocess.Popen[bytes]:
    options = ("--port", "0", "--unixsocket", "socket", "--save", "", "--io-threads", "2")
    made = _popen(folder, "redis-server", *options)
    with contextlib.closing(_wait_for_socket(folder / "socket")) as client:
        for number in range(0, 50_000, 100):
            client.sendall(b"".join(b"SET key:%d x\r\n" % n for n in range(number, number + 100)))
            _read(client, b"+OK\r\n", 100)
    return made


def _read(client: socket.socket, end: bytes, count: int = 1) -> None:
    seen = 0
    tail = b""
    while seen < count:
        data = client.recv(1 << 20)
        if not data:
            raise MeasurementError("the server has closed the connection")
        seen += (tail + data).count(end) - tail.count(end)
        tail = data[-len(end) + 1 :] if len(end) > 1 else b""


@contextlib.contextmanager
def _redis_client(folder: Path) -> Iterator[Ask]:
    with contextlib.closing(_wait_for_socket(folder / "socket")) as client:

        def ask(number: int) -> None:
            slow = number % 200 == 199
            client.sendall(b"KEYS nothing*\r\n" if slow else b"GET key:%d\r\n" % (number % 50_000))
            _read(client, b"*0\r\n" if slow else b"$1\r\nx\r\n")

        yield ask


_NGINX = """
daemon off; pid nginx.pid; error_log error.log; worker_processes 1; master_process off;
events { }
http {
    access_log off; gzip on; gzip_comp_level 9; gzip_types *; gzip_min_length 100000;
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4;
    scgi_temp_path t5; output_buffers 1 2m;
    server { listen unix:socket; root www; keepalive_requests 100000000; }
}
"""


def _nginx(folder: Path) -> subprocess.Popen[bytes]:
    (folder / "www").mkdir()
    (folder / "www" / "small").write_bytes(b"x" * 100)
    (folder / "www" / "large").write_bytes(bytes(i * i % 251 for i in range(1 << 20)))
    (folder / "nginx.conf").write_text(_NGINX)
    made = _popen(folder, "nginx", "-p", folder, "-c", folder / "nginx.conf")
    _wait_for_socket(folder / "socket").close()
    return made


@contextlib.contextmanager
def _nginx_client(folder: Path) -> Iterator[Ask]:
    with contextlib.closing(_wait_for_socket(folder / "socket")) as client:

        def ask(number: int) -> None:
            slow = number % 100 == 99
            path = b"large" if slow else b"small"
            head = b"GET /%s HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n" % path
            client.sendall(head)
            _read(client, b"\r\n0\r\n\r\n" if slow else b"x" * 100)

        yield ask


def _ffmpeg(folder: Path) -> subprocess.Popen[bytes]:
    source = "testsrc2=size=640x360:rate=30:duration=40"
    return _popen(
        folder, "ffmpeg", "-nostdin", "-f", "lavfi", "-i", source, "-c:v", "libx264", "-g", "100",
        "-f", "null", "-",
    )  # fmt: skip


def _clang(folder: Path) -> subprocess.Popen[bytes]:
    """Every fortieth function is a hundred times as long as the others."""
    lines = []
    for number in range(400):
        body = "".join(
            f"x = x * {n + 3} + (x >> {n % 31 + 1}); if (x % {n + 7} == 1) x += g({n});\n"
            for n in range(600 if number % 40 == 39 else 6)
        )
        lines.append(f"unsigned f{number}(unsigned x) {{ {body} return x; }}")
    (folder / "large.c").write_text("unsigned g(unsigned);\n" + "\n".join(lines))
    options = ("-cc1", "-triple", "x86_64-linux-gnu", "-emit-obj", "-O2", "-o", "large.o")
    return _popen(folder, "clang", *options, "large.c")


def _crowd(folder: Path) -> subprocess.Popen[bytes]:
    return _popen(folder, build("crowd"), "100000", "80")


SUBJECTS = (
    RealProgram(
        "redis", "call", "--start-ops 5000", ("keysCommand",),
        "one command of 200 is KEYS, on 50,000 keys", _redis, _redis_client,
    ),
    RealProgram(
        "nginx", "ngx_http_handler", "--start-ops 2000", ("deflate",),
        "one request of 100 is for a file that is compressed", _nginx, _nginx_client,
    ),
    RealProgram(
        "ffmpeg", "avcodec_send_frame", "--start-ops 200 --decision-ops 5", (),
        "libx264, 640 × 360", _ffmpeg,
    ),
    RealProgram(
        "clang", "llvm::FPPassManager::runOnFunction", "--start-ops 200 --decision-ops 5", (),
        "of 40 functions one is a hundred times as long as the others", _clang,
    ),
    RealProgram(
        "80 threads", "handle", "--start-ops 6400", ("clock_nanosleep",),
        "every sixteenth call sleeps for 1.5 ms", _crowd,
    ),
)  # fmt: skip


# --------------------------------------------------------------------- the trials


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _gdb(folder: Path, pid: int, commands: Sequence[str], program: str) -> subprocess.Popen[bytes]:
    words = [item for command in commands for item in ("-ex", command)]
    return _popen(folder, program, "-nx", "-q", "-batch", "-p", str(pid), *words)


def _finish(process: subprocess.Popen[bytes], what: str) -> None:
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"{what} takes longer than {_PATIENCE:.0f} s") from None


def _trial(subject: RealProgram, folder: Path, beside: Callable[[int], None] | None) -> Trial:
    """The program under load, and what is done ``beside`` it."""
    own = folder / "program"
    own.mkdir()
    begin = time.monotonic()
    process = subject.start(own)
    load = _Load(subject.connect, own)
    try:
        with load.running():
            if beside is not None:
                beside(process.pid)
            elif subject.connect is not None:
                time.sleep(_SECONDS)
        if subject.connect is None:
            _finish(process, subject.name)
            if process.returncode:
                raise MeasurementError(f"{subject.name}: {(own / 'output').read_text()[-400:]}")
            load.latencies.append(time.monotonic() - begin)
        return Trial(tuple(load.latencies))
    finally:
        _end(process)


def _alone(subject: RealProgram) -> Trial:
    with tempfile.TemporaryDirectory() as name:
        return _trial(subject, Path(name), None)


def _attached(subject: RealProgram) -> Trial:
    """A bare gdb is there, and lets it go."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def beside(pid: int) -> None:
            gdb = _gdb(folder, pid, ["continue", "detach"], "gdb")
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    gdb.wait(_SECONDS if subject.connect else _PATIENCE)
            finally:
                if gdb.poll() is None:
                    os.kill(pid, signal.SIGINT)  # gdb stops it, and goes on to its next command
                    _finish(gdb, "gdb")

        return _trial(subject, folder, beside)


def _analysed(subject: RealProgram) -> Trial:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started: list[float] = []

        def beside(pid: int) -> None:
            begin = time.monotonic()
            commands = [
                f"source {_OBSERVER}",
                f"darc start {subject.function} --peak last --max-time 60s {subject.options}",
                "continue",
                f"darc report --format json -o {folder / 'report.json'}",
                "python report()",
                "detach",
            ]
            gdb = _gdb(folder, pid, commands, str(BIN / "darc-gdb"))
            try:
                _finish(gdb, "darc")
            finally:
                _end(gdb)
            started.append(time.monotonic() - begin)

        trial = _trial(subject, folder, beside)
        said = (folder / "output").read_text(errors="replace")
        try:
            report = json.loads((folder / "report.json").read_text())
        except OSError:
            raise MeasurementError(f"{subject.name}: {said[-1000:]}") from None
        paths = [path["functions"] for path in report["root_cause_paths"]]
        shown = "; ".join(" → ".join(path) for path in paths) or report["status"]
        right = any(set(subject.truth) & set(path) for path in paths)
        # The last one lasts until the user lets the program go on.
        both = zip(stops_in(said, tsc_hz()), stops_in(said, tsc_hz(), "processor"), strict=True)
        known = [(stop, on) for stop, on in both if stop > 0]
        stops, own = tuple(stop for stop, _ in known), tuple(on for _, on in known)
        in_all = report["program"]["stopped_seconds"]
        is_right = right or not subject.truth
        return Trial(trial.latencies, shown, is_right, stops, own, in_all, started[0])


# ----------------------------------------------------------------------- the page


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _section(subject: RealProgram, alone: Trial, attached: Trial, analysed: Trial) -> list[str]:
    stops, on = sorted(analysed.stops), sorted(analysed.own) or [0.0]
    lines = [f"## {subject.name}", "", f"`darc start {subject.function} {subject.options}`; "]
    lines[-1] += f"{subject.why}."
    lines += ["", f"> {analysed.path}", ""]
    if subject.truth:
        verdict = "goes" if analysed.right else "does **not** go"
        lines += [f"The path {verdict} through `{subject.truth[0]}`, as it must.", ""]
    middle, most = (stops[len(stops) // 2], stops[-1]) if stops else (0.0, 0.0)
    lines += [
        f"Answer after {_ms(analysed.answer)}, gdb's start and attach with it; decisions "
        f"stopped it {len(stops)} times: median {_ms(middle)}, longest {_ms(most)}; of that darc "
        f"was on a processor for {_ms(on[len(on) // 2])}, at most {_ms(on[-1])}. "
        f"{_ms(analysed.stopped)} in all, with the end of the search.",
        "",
    ]
    if subject.connect is None:
        lines += ["|  | took |", "| --- | ---: |"]
        for name, trial in (("alone", alone), ("gdb", attached), ("darc", analysed)):
            lines.append(f"| {name} | {_ms(trial.latencies[0])} |")
        return [*lines, ""]
    lines += ["| requests | number | median | p99 | p99.9 |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, trial in (("alone", alone), ("gdb", attached), ("darc", analysed)):
        figures = (_ms(trial.percentile(share)) for share in (0.5, 0.99, 0.999))
        lines.append(f"| {name} | {len(trial.latencies)} | {' | '.join(figures)} |")
    return [*lines, ""]


_HEAD = """# Real programs

`make bench-real` measures all of this in one run and writes this page: each program alone, with a
bare gdb that is attached and lets it run (*gdb*), and while darc analyses it in gdb (*darc*), with
as much load as {clients} clients make that ask as fast as they are answered.

- {cores} processors, shared by program, clients and debugger; time-stamp counter at {ghz:.2f} GHz
- kernel: {kernel}; gdb: {gdb}
- load when it began: {load:.1f}
"""


def main() -> None:
    """All programs, or those that are named; the page is written where all were measured."""
    names = [subject.name for subject in SUBJECTS]
    parser = argparse.ArgumentParser(prog="make bench-real")
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    chosen = parser.parse_args().only
    head = _HEAD.format(
        clients=_CLIENTS, cores=os.cpu_count(), ghz=tsc_hz() / 1e9, load=os.getloadavg()[0],
        kernel=f"Linux {os.uname().release}", gdb=gdb_version(),
    )  # fmt: skip
    lines = [*head.splitlines(), ""]
    for subject in SUBJECTS:
        if subject.name not in chosen:
            continue
        print(f"bench-real: {subject.name}", file=sys.stderr)
        try:
            section = _section(subject, _alone(subject), _attached(subject), _analysed(subject))
        except MeasurementError as error:
            sys.exit(f"bench-real: {error}")
        print("\n".join(section))
        lines += section
    if chosen == names:
        PAGE.write_text("\n".join(lines).rstrip() + "\n")
        print(f"bench-real: all figures are in {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
