"""The programs, what is slow in them, and what another tool sees of that."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import ROOT, MeasurementError
from benchmarks.real import clients, evidence
from benchmarks.real.clients import Connect, read, wait_for_socket
from benchmarks.real.evidence import Look
from fixtures.build import build

_SOURCES = Path(__file__).with_name("sources")
_BUILT = ROOT / "build" / "benchmarks" / "real"


@dataclass(frozen=True, kw_only=True)
class RealProgram:
    """A program, f0, and what its slow calls go through (one of ``truth`` is on the right path).
    ``start`` starts it, in a folder of its own; ``connect`` makes a client of it, none where it
    works by itself; ``look`` asks another tool, or what the program says at its end
    (``says``). ``process`` finds which process is analysed, by that of the one that was started."""

    name: str
    function: str
    options: str
    truth: tuple[str, ...]
    why: str
    start: Callable[[Path], subprocess.Popen[bytes]]
    connect: Connect | None = None
    clients: int = 2
    look: Look | None = None
    says: Callable[[str], str] | None = None
    process: Callable[[Path, int], int] = lambda _folder, pid: pid
    before: tuple[str, ...] = ()
    """What a debugger must be told before the program goes on, darc or not."""


def popen(folder: Path, *command: str | Path, user: str | None = None) -> subprocess.Popen[bytes]:
    """Starts a program in its folder, with what it writes in the file ``output`` there."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
    program = shutil.which(command[0], path=path)
    if program is None:
        raise MeasurementError(f"{Path(command[0]).name} is not installed")
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(
            [program, *map(str, command[1:])], cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
            stderr=output, start_new_session=True, user=user, group=user,
        )  # fmt: skip


def _compiled(source: str, *command: str | Path) -> Path:
    """What a compiler makes of one of the sources, once for each of its versions."""
    made = _BUILT / Path(source).stem
    text = _SOURCES / source
    if not made.exists() or made.stat().st_mtime < text.stat().st_mtime:
        if shutil.which(command[0]) is None:
            raise MeasurementError(f"{command[0]} is not installed")
        _BUILT.mkdir(parents=True, exist_ok=True)
        words = [str(made if word == "OUT" else text if word == "IN" else word) for word in command]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise MeasurementError(f"{source} cannot be built: {done.stderr[-400:]}")
    return made


def _redis(folder: Path) -> subprocess.Popen[bytes]:
    options = ("--port", "0", "--unixsocket", "socket", "--save", "", "--io-threads", "2")
    made = popen(folder, "redis-server", *options)
    with contextlib.closing(wait_for_socket(folder / "socket")) as client:
        for number in range(0, 50_000, 100):
            client.sendall(b"".join(b"SET key:%d x\r\n" % n for n in range(number, number + 100)))
            read(client, b"+OK\r\n", 100)
    return made


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
    made = popen(folder, "nginx", "-p", folder, "-c", folder / "nginx.conf")
    wait_for_socket(folder / "socket").close()
    return made


def _leveldb(folder: Path) -> subprocess.Popen[bytes]:
    flags = ("-O2", "-g", "-Wall", "-Wextra", "-Werror", "IN", "-o", "OUT", "-lleveldb")
    return popen(folder, _compiled("leveldb.c", "gcc", *flags), "db", "600000")


def _postgresql(folder: Path) -> subprocess.Popen[bytes]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        raise MeasurementError("postgres is not installed")
    user = None
    if os.getuid() == 0:  # as whom it does not run
        user = "postgres"
        shutil.chown(folder, user, user)
        folder.parent.chmod(0o711)
    initdb = popen(
        folder, found[-1].with_name("initdb"), "-D", folder / "db", "-A", "trust", "-U", "postgres",
        "--no-sync", user=user,
    )  # fmt: skip
    if initdb.wait():
        raise MeasurementError(f"initdb: {(folder / 'output').read_text()[-400:]}")
    options = ("-D", folder / "db", "-k", folder, "-h", "", "-c", "jit=off", "-c", "autovacuum=off")
    made = popen(folder, found[-1], *options, user=user)
    for _ in range(600):
        if not popen(folder, found[-1].with_name("pg_isready"), "-q", "-h", folder).wait():
            return made
        time.sleep(0.1)
    made.kill()
    raise MeasurementError(f"PostgreSQL does not begin: {(folder / 'output').read_text()[-400:]}")


def _backend(folder: Path, _pid: int) -> int:
    """The process that serves the client."""
    for _ in range(6000):
        with contextlib.suppress(FileNotFoundError):
            return int((folder / "backend").read_text())
        time.sleep(0.01)
    raise MeasurementError("PostgreSQL serves nobody")


def _ffmpeg(folder: Path) -> subprocess.Popen[bytes]:
    source = "testsrc2=size=640x360:rate=30:duration=40"
    return popen(
        folder, "ffmpeg", "-nostdin", "-f", "lavfi", "-i", source, "-c:v", "libx264", "-g", "100",
        "-f", "null", "-",
    )  # fmt: skip


def _clang_options(folder: Path) -> tuple[str, ...]:
    """Every eighth function is fifty times as long as the others."""
    lines = []
    for number in range(2400):
        body = "".join(
            f"x = x * {n + 3} + (x >> {n % 31 + 1}); if (x % {n + 7} == 1) x += g({n});\n"
            for n in range(300 if number % 8 == 7 else 6)
        )
        lines.append(f"unsigned f{number}(unsigned x) {{ {body} return x; }}")
    (folder / "large.c").write_text("unsigned g(unsigned);\n" + "\n".join(lines))
    return ("-cc1", "-triple", "x86_64-linux-gnu", "-emit-obj", "-O2", "-o", "large.o", "large.c")


def _clang(folder: Path) -> subprocess.Popen[bytes]:
    return popen(folder, "clang", *_clang_options(folder), "-ftime-report")


def _openjdk(folder: Path) -> subprocess.Popen[bytes]:
    javac = ("-d", _BUILT / "Journal", "IN")
    classes = _compiled("Journal.java", "javac", *javac)
    return popen(folder, "java", "-Xmx256m", "-cp", classes, "Journal", "600000")


def _rust(folder: Path) -> subprocess.Popen[bytes]:
    made = popen(folder, _compiled("server.rs", "rustc", "-O", "-g", "-o", "OUT", "IN"))
    wait_for_socket(folder / "socket").close()
    return made


def _crowd(folder: Path) -> subprocess.Popen[bytes]:
    return popen(folder, build("crowd"), "100000", "80")


def _isel_time(said: str) -> str:
    """What clang's own timers say of the passes that generate code."""
    return evidence.own_words(
        r"\( *([\d.]+%)\) +[\d.]+ \( *[\d.]+%\)  (X86 DAG->DAG Instruction Selection|"
        r"Greedy Register Allocator|X86 Assembly Printer)$",
        "`-ftime-report`, of the processor's time in passes that generate code",
    )(said)


_FDATASYNC = evidence.strace("fdatasync")

SUBJECTS = (
    RealProgram(
        name="redis",
        function="call",
        options="--start-ops 5000",
        truth=("keysCommand",),
        why="one command of 200 is KEYS, on 50,000 keys",
        start=_redis,
        connect=clients.redis,
        look=evidence.slowlog,
    ),
    RealProgram(
        name="nginx",
        function="ngx_http_handler",
        options="--start-ops 2000",
        truth=("deflate",),
        why="one request of 100 is for a file of 1 MiB that is compressed",
        start=_nginx,
        connect=clients.nginx,
        look=evidence.perf("libz.so"),
    ),
    RealProgram(
        name="LevelDB",
        function="leveldb_put",
        options="--start-ops 5000",
        truth=("fdatasync",),
        why="one put of 100 is to be on the disk before the next one",
        start=_leveldb,
        look=_FDATASYNC,
    ),
    RealProgram(
        name="PostgreSQL",
        function="CommitTransactionCommand",
        options="--start-ops 2000",
        truth=("fdatasync",),
        why=(
            "one statement of 50 is an UPDATE, the others SELECT; the process that serves the "
            "client"
        ),
        start=_postgresql,
        connect=clients.postgresql,
        clients=1,
        look=_FDATASYNC,
        process=_backend,
    ),
    RealProgram(
        name="ffmpeg",
        function="avcodec_send_frame",
        options="--start-ops 200 --decision-ops 8",
        truth=("pthread_cond_wait", "x264_8_threadpool_wait"),
        why="libx264, 640 × 360: the thread that hands frames over waits for those that encode",
        start=_ffmpeg,
        look=evidence.strace("futex", threads=False),
    ),
    RealProgram(
        name="clang",
        function="llvm::FPPassManager::runOnFunction",
        options="--start-ops 2600 --decision-ops 8",
        truth=("llvm::SelectionDAGISel::runOnMachineFunction",),
        why="of 8 functions one is fifty times as long as the others",
        start=_clang,
        says=_isel_time,
    ),
    RealProgram(
        name="OpenJDK",
        function="writeBytes",
        options="--start-ops 5000",
        truth=("write",),
        why="of 100 writes one is to a file that is opened for the disk (`rwd`)",
        start=_openjdk,
        look=evidence.strace("write", of="/journal"),
        before=("handle SIGSEGV nostop noprint pass",),
    ),
    RealProgram(
        name="Rust",
        function="server::answer",
        options="--start-ops 5000",
        truth=("fdatasync",),
        why="one request of 100 is put into a file and on the disk, under a lock",
        start=_rust,
        connect=clients.store,
        look=_FDATASYNC,
    ),
    RealProgram(
        name="80 threads",
        function="handle",
        options="--start-ops 6400",
        truth=("clock_nanosleep",),
        why="every sixteenth call sleeps for 1.5 ms",
        start=_crowd,
        look=evidence.strace("clock_nanosleep"),
    ),
)
