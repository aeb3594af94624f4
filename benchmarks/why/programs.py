"""The programs, their clients, and what makes them slow now and then, from outside."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from benchmarks.measure import BUILT, MeasurementError
from darc.debuggee.clock import tsc_hz

HERE = Path(__file__).resolve().parent
_SHM = Path("/dev/shm")

_PATIENCE = 60.0

Ask = Callable[[str], None]
"""Sends one request and waits for its answer."""


class Kind(Enum):
    """What is injected."""

    COMMAND = "slow command"
    CALL = "slow call"
    LOCK = "lock"
    FAULTS = "page faults"
    DISK = "full disk"
    HOG = "hog"


@dataclass(frozen=True)
class Cause:
    """What makes a program slow. ``truth`` are the functions of which one is right, ``request`` is
    what clients ask for one time in ``one_in``; ``call`` is preloaded; ``aside`` asks for the same
    again and again by a connection of its own, every so many seconds."""

    kind: Kind
    name: str
    truth: tuple[str, ...] = ()
    request: str | None = None
    call: str | None = None
    files: bool = False
    one_in: tuple[int, int] = (25, 60)
    aside: tuple[str, float] | None = None


@dataclass(frozen=True)
class Injection:
    """A cause with what the seed made of it."""

    cause: Cause | None
    one_in: int = 0
    us: int = 0
    burns: bool = False

    def __str__(self) -> str:
        if self.cause is None:
            return "nothing"
        how = self.cause.name
        if self.cause.kind is Kind.CALL:
            doing = "computes" if self.burns else "sleeps"
            return f"{how} {doing} for {self.us / 1e3:.0f} ms, 1 in {self.one_in}"
        if self.cause.request is not None:
            return f"{how}, 1 in {self.one_in}"
        return how

    @property
    def environment(self) -> dict[str, str]:
        """What the program is started with."""
        if self.cause is None or self.cause.call is None:
            return {}
        found = {
            "LD_PRELOAD": str(slow(self.cause.call)),
            "SLOW_ONE_IN": str(self.one_in),
            "SLOW_US": str(self.us),
        }
        if self.burns:
            found["SLOW_MHZ"] = str(round(tsc_hz() / 1e6))
        if self.cause.files:
            found["SLOW_FILES"] = "1"
        return found


@dataclass(frozen=True, kw_only=True)
class Program:
    """A server. ``start`` starts it in a folder, with more in its environment, and ``connect``
    makes a client of it, with the process that serves that one, where it is another one.
    ``usual`` are the requests, and ``longer`` ones that keep it at work, for somebody to take the
    processor from it; ``pace`` is how long a client waits before each, in seconds."""

    name: str
    start: Callable[[Path, dict[str, str]], subprocess.Popen[bytes]]
    connect: Callable[[Path], tuple[socket.socket, Ask, int | None]]
    usual: Callable[[int], str]
    longer: Callable[[int], str]
    causes: tuple[Cause, ...]
    module: str
    clients: int = 2
    pace: float = 0.001
    is_deep: bool = False
    """Whether a path may go on below a cause's function, by many calls."""


def injection(program: Program, seed: int, run: int) -> Injection:
    """What ``seed`` makes of this run: each cause comes before one comes again, in an order of the
    seed's."""
    chance = random.Random(f"{program.name} {seed}")
    order: list[Cause] = []
    while len(order) <= run:
        more = list(program.causes)
        chance.shuffle(more)
        order += more
    cause = order[run]
    own = random.Random(f"{program.name} {seed} {run}")
    us = own.choice([8000, 12000, 16000, 24000])
    one_in = own.randint(*cause.one_in)
    return Injection(cause, one_in=one_in, us=us, burns=own.random() < 0.4)


# ------------------------------------------------------------------ what is built


def _compile(made: Path, sources: Sequence[Path], command: Sequence[str]) -> Path:
    newest = max(source.stat().st_mtime for source in sources)
    if not made.exists() or made.stat().st_mtime < newest:
        made.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise MeasurementError(f"{made.name}: {done.stderr[-500:]}")
    return made


def slow(call: str) -> Path:
    """The library to preload that makes this function of the C library slow."""
    source, made = HERE / "slow.c", BUILT / f"slow-{call}.so"
    command = ["gcc", "-O2", "-g", "-fno-builtin", "-shared", "-fPIC", f"-DCALL={call}"]
    command += [f'-DNAME="{call}"', "-o", str(made), str(source)]
    return _compile(made, [source], command)


def _hog() -> Path:
    source, made = HERE / "hog.c", BUILT / "hog"
    return _compile(made, [source], ["gcc", "-O2", "-o", str(made), str(source)])


def _cpp() -> Path:
    source, made = HERE / "server.cpp", BUILT / "why-cpp"
    return _compile(made, [source], ["g++", "-O2", "-g", "-o", str(made), str(source)])


def _rust() -> Path:
    source, made = HERE / "server.rs", BUILT / "why-rust"
    return _compile(made, [source], ["rustc", "-O", "-g", "-o", str(made), str(source)])


def _leveldb() -> Path:
    source, made = HERE / "leveldb.cpp", BUILT / "why-leveldb"
    library = next(iter(sorted(Path("/usr/lib").glob("*/libleveldb.a"))), None)
    if library is None:
        raise MeasurementError("libleveldb-dev is not installed")
    command = ["g++", "-O2", "-g", "-o", str(made), str(source), str(library), "-lsnappy"]
    return _compile(made, [source], command)


# ----------------------------------------------------------------------- starting


def _popen(
    folder: Path, command: Sequence[str | Path], more: dict[str, str], user: str | None = None
) -> subprocess.Popen[bytes]:
    program = shutil.which(command[0], path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if program is None:
        raise MeasurementError(f"{command[0]} is not installed")
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(
            [program, *map(str, command[1:])], cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
            stderr=output, start_new_session=True, env={**os.environ, **more}, user=user,
        )  # fmt: skip


def _dial(path: Path) -> socket.socket:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(_PATIENCE)
        with contextlib.suppress(OSError):
            made.connect(str(path))
            return made
        made.close()
        time.sleep(0.02)
    raise MeasurementError(f"nobody listens at {path}")


def _lines(folder: Path) -> tuple[socket.socket, Ask, int | None]:
    """A client of the servers that answer each line with a line."""
    made = _dial(folder / "socket")
    answers = made.makefile("rb")

    def ask(line: str) -> None:
        made.sendall(line.encode() + b"\n")
        if answers.readline() in (b"", b"what?\n"):
            raise MeasurementError(f"no answer to {line[:40]}")

    return made, ask, None


def _start_redis(folder: Path, more: dict[str, str]) -> subprocess.Popen[bytes]:
    options = ("--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "yes")
    made = _popen(folder, ("redis-server", *options), more)
    client, ask, _ = _redis(folder)
    for _ in range(500):
        with contextlib.suppress(MeasurementError):
            ask("PING")
            break
        time.sleep(0.01)
    for number in range(0, 40_000, 50):
        words = " ".join(f"key:{n} {n}" for n in range(number, number + 50))
        ask(f"MSET {words}")
    for number in range(0, 12_000, 50):
        ask("RPUSH list " + " ".join(str(n * 7919 % 12007) for n in range(number, number + 50)))
    client.close()
    return made


def _redis(folder: Path) -> tuple[socket.socket, Ask, int | None]:
    made = _dial(folder / "socket")
    answers = made.makefile("rb")

    def read() -> None:
        line = answers.readline()
        if line[:1] == b"$" and line != b"$-1\r\n":
            answers.read(int(line[1:]) + 2)
        elif line[:1] == b"*":
            for _ in range(int(line[1:])):
                read()
        elif line[:1] in (b"", b"-"):
            raise MeasurementError(f"redis: {line.decode()}")

    def ask(line: str) -> None:
        made.sendall(line.encode() + b"\r\n")
        read()

    return made, ask, None


_NGINX = """
daemon off; pcre_jit off; pid nginx.pid; error_log error.log; worker_processes 1;
master_process off;
events {{ }}
http {{
    access_log access.log; gzip on; gzip_comp_level 9; gzip_types *; gzip_min_length 100000;
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4;
    scgi_temp_path t5; sendfile off; output_buffers 1 2m;
    server {{
        listen unix:{socket}; root www; keepalive_requests 100000000;
        location ~ ^/(a+)+$ {{ }}
    }}
}}
"""


def _start_nginx(folder: Path, more: dict[str, str]) -> subprocess.Popen[bytes]:
    (folder / "www").mkdir()
    for number in range(20):
        (folder / "www" / f"small{number}").write_bytes(b"x" * 2000)
    for name, size in (("medium", 120_000), ("large", 1 << 19)):
        (folder / "www" / name).write_bytes(bytes(i * i % 251 for i in range(size)))
    (folder / "nginx.conf").write_text(_NGINX.format(socket=folder / "socket"))
    folder.chmod(0o755)
    return _popen(folder, ("nginx", "-p", folder, "-c", folder / "nginx.conf"), more)


def _nginx(folder: Path) -> tuple[socket.socket, Ask, int | None]:
    made = _dial(folder / "socket")
    answers = made.makefile("rb")

    def ask(path: str) -> None:
        head = f"GET /{path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"
        made.sendall(head.encode())
        length = chunked = 0
        while (line := answers.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(":")
            length = int(value) if name.lower() == "content-length" else length
            chunked = 1 if name.lower() == "transfer-encoding" else chunked
        if not line:
            raise MeasurementError("nginx has closed the connection")
        while chunked:
            length = int(answers.readline(), 16)
            answers.read(length + 2)
            chunked = length
        answers.read(length)

    return made, ask, None


def _postgres_bin() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        raise MeasurementError("postgres is not installed")
    return found[-1]


def _start_postgres(folder: Path, more: dict[str, str]) -> subprocess.Popen[bytes]:
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    where = _postgres_bin()
    options = ("-D", "db", "--no-sync", "-A", "trust", "-U", "postgres")
    if _popen(folder, (where / "initdb", *options), {}, user).wait(_PATIENCE):
        raise MeasurementError(f"initdb: {(folder / 'output').read_text()[-400:]}")
    settings = ("-c", "autovacuum=off", "-c", "max_wal_size=8GB", "-c", "deadlock_timeout=5s")
    server = (where / "postgres", "-D", "db", "-k", folder, "-h", "", *settings)
    made = _popen(folder, server, more, user)
    client, ask, _ = _postgres(folder)
    ask("CREATE TABLE accounts (id int PRIMARY KEY, n int, filler text)")
    ask("INSERT INTO accounts SELECT i, 0, md5(i::text) FROM generate_series(0, 59999) i")
    ask("ANALYZE accounts")
    client.close()
    return made


def _postgres(folder: Path) -> tuple[socket.socket, Ask, int | None]:
    """By its protocol, version 3."""
    end = time.monotonic() + _PATIENCE
    while True:
        made = _dial(folder / ".s.PGSQL.5432")
        answers = made.makefile("rb")
        words = b"user\0postgres\0database\0postgres\0\0"
        made.sendall(struct.pack("!ii", len(words) + 8, 196608) + words)
        serves: list[int] = []

        def until_ready(answers: object = answers, serves: list[int] = serves) -> bytes | None:
            """What was wrong, if anything was."""
            wrong = None
            while True:
                head = answers.read(5)  # type: ignore[attr-defined]
                if len(head) < 5:
                    return b"closed"
                kind, length = struct.unpack("!ci", head)
                body = answers.read(length - 4)  # type: ignore[attr-defined]
                if kind == b"K":
                    serves.append(struct.unpack("!i", body[:4])[0])
                if kind == b"E":
                    wrong = body
                if kind == b"Z":
                    return wrong

        wrong = until_ready()
        if wrong is None:
            break
        made.close()
        if time.monotonic() > end:
            raise MeasurementError(f"postgres: {wrong!r}")
        time.sleep(0.1)

    def ask(query: str) -> None:
        words = query.encode() + b"\0"
        made.sendall(b"Q" + struct.pack("!i", len(words) + 4) + words)
        wrong = until_ready()
        if wrong is not None:
            raise MeasurementError(f"postgres: {wrong!r}")

    return made, ask, serves[0]


def _start_cpp(folder: Path, more: dict[str, str]) -> subprocess.Popen[bytes]:
    return _popen(folder, (_cpp(), "socket", folder / "disk" / "journal"), more)


def _start_rust(folder: Path, more: dict[str, str]) -> subprocess.Popen[bytes]:
    return _popen(folder, (_rust(), "socket", folder / "disk" / "log"), more)


def _start_leveldb(folder: Path, more: dict[str, str]) -> subprocess.Popen[bytes]:
    return _popen(folder, (_leveldb(), "socket", folder / "database"), more)


# ------------------------------------------------------------------- the programs

_A_HOG = Cause(Kind.HOG, "a process of a higher priority has the processor, 8 of 50 ms")
_DISK = "16 KiB are left for the journal, which begins anew when they are full"


def _command(name: str, truth: Sequence[str], request: str) -> Cause:
    return Cause(Kind.COMMAND, name, tuple(truth), request)


def _faults(name: str, truth: Sequence[str], request: str) -> Cause:
    return Cause(Kind.FAULTS, name, tuple(truth), request)


def _lock(name: str, truth: Sequence[str], request: str) -> Cause:
    """Held by another client, eight times a second."""
    told = f"{name}, held for some 20 ms, eight times a second"
    return Cause(Kind.LOCK, told, tuple(truth), aside=(request, 0.1))


def _call(
    name: str, *by: str, files: bool = False, one_in: tuple[int, int] = Cause.one_in
) -> Cause:
    """A call that only functions ``by`` make, as far as they have names."""
    return Cause(Kind.CALL, name, (name, *by), call=name, files=files, one_in=one_in)


def _for_redis(number: int) -> str:
    key = f"key:{number % 40000}"
    return (f"GET {key}", f"INCR {key}", f"SET {key} {number}")[number % 3]


def _for_postgres(number: int) -> str:
    if number % 2:
        return f"SELECT n FROM accounts WHERE id = {number % 20000}"
    return f"UPDATE accounts SET n = n + 1 WHERE id = {number % 10}"


def _longer_for_postgres(number: int) -> str:
    first = number % 19000
    return f"SELECT sum(n) FROM accounts WHERE id BETWEEN {first} AND {first + 500}"


def _for_leveldb(number: int) -> str:
    if number % 2:
        return f"GET key:{number * 7919 % 50000}"
    return f"PUT key:{number % 50000} {'y' * 100}"


def _for_rust(number: int) -> str:
    if number % 2:
        return f"GET counter:{number * 7919 % 20000}"
    return f"INC counter:{number % 20000}"


def _for_cpp(number: int) -> str:
    if number % 2:
        return f"GET document:{number * 7919 % 10000}"
    return f"PUT document:{number % 10000} {'y' * 200}"


_SCRIPT = 'EVAL "for n=1,300000 do end" 0'
_SHORT_SCRIPT = 'EVAL "for n=1,10000 do end" 0'
_MD5 = "SELECT max(md5(repeat(filler, 150000))) FROM accounts WHERE id = 7"
_LIKE = "SELECT count(*) FROM accounts WHERE filler LIKE '%12%34%56%'"
_REPEAT = "SELECT max(octet_length(repeat(filler, 400000))) FROM accounts WHERE id = 7"
_ROWS = "UPDATE accounts SET n = n - 1 WHERE id < 10; SELECT pg_sleep(0.02)"
_TABLE = "LOCK TABLE accounts; SELECT pg_sleep(0.02)"

PROGRAMS = (
    Program(
        name="redis",
        start=_start_redis,
        connect=_redis,
        usual=_for_redis,
        longer=lambda _: _SHORT_SCRIPT,
        causes=(
            _command("KEYS", ["keysCommand"], "KEYS nothing*"),
            _command("SORT", ["sortCommand", "sortCommandGeneric"], "SORT list ALPHA LIMIT 0 1"),
            _command("a script", ["evalCommand", "evalGenericCommand"], _SCRIPT),
            _faults(
                "SETRANGE", ["setrangeCommand", "delCommand"], "SETRANGE new 8000000 x;DEL new"
            ),
            _call("write"),
            _call("read"),
            _A_HOG,
        ),
        module="redis-server",
    ),
    Program(
        name="nginx",
        start=_start_nginx,
        connect=_nginx,
        usual=lambda n: f"small{n % 20}",
        longer=lambda _: "medium",
        causes=(
            _command("a file to be compressed", ["deflate"], "large"),
            _command("an expensive regular expression", ["pcre2_match_8"], "a" * 17 + "b"),
            _call("open64"),
            _call("pread64"),
            _call("writev"),
            _call("write", files=True),
            _call("recv"),
            _A_HOG,
        ),
        module="nginx",
    ),
    Program(
        name="PostgreSQL",
        is_deep=True,
        start=_start_postgres,
        connect=_postgres,
        usual=_for_postgres,
        longer=_longer_for_postgres,
        causes=(
            _command("md5() of a long text", ["md5_text"], _MD5),
            _command(
                "a query without an index", ["ExecScan", "heap_getnextslot", "textlike"], _LIKE
            ),
            _command("pg_sleep()", ["pg_sleep"], "SELECT pg_sleep(0.015)"),
            _faults("repeat()", ["repeat"], _REPEAT),
            _lock("locks of rows", ["ProcSleep", "XactLockTableWait"], _ROWS),
            _lock("a table's lock", ["ProcSleep", "LockRelationOid"], _TABLE),
            _call("fdatasync", one_in=(20, 60)),
            _call("pwrite", one_in=(20, 60)),
            _call("send"),
            _A_HOG,
        ),
        module="postgres",
    ),
    Program(
        name="LevelDB",
        start=_start_leveldb,
        connect=_lines,
        usual=_for_leveldb,
        longer=lambda n: f"SCAN key:{n % 5} 400",
        causes=(
            _command("SCAN", ["scan"], "SCAN key:2 30000"),
            _faults("DRAFT", ["draft"], "DRAFT 8"),
            _lock("a mutex", ["pthread_mutex_lock", "statistics"], "STATISTICS 40000"),
            _call("fdatasync", one_in=(20, 60)),
            _call("write", files=True),
            _call("send"),
            _A_HOG,
        ),
        module="why-leveldb",
    ),
    Program(
        name="a Rust server",
        start=_start_rust,
        connect=_lines,
        usual=_for_rust,
        longer=lambda _: f"GET {'k' * 4000}",
        causes=(
            _command("RANKING", ["ranking"], "RANKING"),
            _faults("TABULATE", ["tabulate"], "TABULATE 48"),
            _lock("a mutex", ["lock_contended", "audit"], "AUDIT 100"),
            Cause(Kind.DISK, _DISK, ("back_off", "append")),
            _call("fdatasync", "append", one_in=(8, 20)),
            _call("pwrite64", "append"),
            _call("send"),
            _A_HOG,
        ),
        module="why-rust",
    ),
    Program(
        name="a C++ server",
        start=_start_cpp,
        connect=_lines,
        usual=_for_cpp,
        longer=lambda n: f"PUT document:{n % 10000} {'y' * 3500}",
        causes=(
            _command("INVENTORY", ["inventory"], "INVENTORY"),
            _faults("RESERVE", ["reserve"], "RESERVE 32"),
            _lock("a mutex", ["pthread_mutex_lock", "snapshot"], "SNAPSHOT 1"),
            Cause(Kind.DISK, _DISK, ("wait_for_room", "append")),
            _call("fdatasync", "append", one_in=(8, 20)),
            _call("pwrite", "append"),
            _call("send", "reply"),
            _A_HOG,
        ),
        module="why-cpp",
    ),
)


# ------------------------------------------------------------------------ the run


@dataclass
class Load:
    """Clients that ask at their pace, and what is injected beside them."""

    program: Program
    folder: Path
    injected: Injection
    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def running(self) -> Iterator[int | None]:
        """The process that serves the first client, where it is known."""
        clients = [self.program.connect(self.folder) for _ in range(self.program.clients)]
        cause = self.injected.cause
        threads = [threading.Thread(target=self._work, args=(ask,)) for _, ask, _ in clients]
        if cause is not None and cause.aside is not None:
            clients.append(self.program.connect(self.folder))
            threads.append(threading.Thread(target=self._aside, args=(clients[-1][1], cause.aside)))
        for thread in threads:
            thread.start()
        try:
            yield clients[0][2]
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
            for made, _, _ in clients:
                made.close()

    def _work(self, ask: Ask) -> None:
        cause, number = self.injected.cause, 0
        with self._told():
            while not self._over.is_set():
                number += 1
                is_at_work = cause is not None and cause.kind is Kind.HOG
                request = (self.program.longer if is_at_work else self.program.usual)(number)
                if cause is not None and cause.request and number % self.injected.one_in == 0:
                    request = cause.request
                begin = time.monotonic()
                for one in request.split(";"):
                    ask(one)
                self.latencies.append(time.monotonic() - begin)
                if not is_at_work:
                    time.sleep(self.program.pace)

    def _aside(self, ask: Ask, what: tuple[str, float]) -> None:
        with self._told():
            while not self._over.wait(what[1]):
                ask(what[0])

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (MeasurementError, OSError) as error:
            if not self._over.is_set():
                self.errors.append(str(error))


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """In memory, so that a disk's own pace is none of the causes."""
    with tempfile.TemporaryDirectory(dir=_SHM if _SHM.is_dir() else None) as name:
        (Path(name) / "disk").mkdir()
        Path(name).chmod(0o755)
        yield Path(name)


@contextlib.contextmanager
def full_disk(at: Path) -> Iterator[None]:
    """A file system that has room for a few pages only."""
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(at)]
    if subprocess.run(command, check=False).returncode:
        raise MeasurementError("a file system that is full can only be made as root")
    try:
        (at / "others").write_bytes(bytes((1 << 20) - (16 << 10)))
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=False)


@contextlib.contextmanager
def hog(pid: int) -> Iterator[None]:
    """The process on one processor, which another one has now and then."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {0})
    process = subprocess.Popen(["taskset", "-c", "0", str(_hog()), "8000", "50000"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def end(process: subprocess.Popen[bytes]) -> None:
    """Whatever the program has begun as well."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_delay(pid: int) -> float:
    """For how long threads of the process were ready without a processor, in seconds."""
    waited = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            waited += int(re.split(r"\s+", (task / "schedstat").read_text())[1])
    return waited / 1e9
