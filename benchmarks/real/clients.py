"""What loads a server: clients that ask as fast as they are answered."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import MeasurementError

Ask = Callable[[int], bool]
"""Makes the n-th request of a client and waits for its answer; is it one that is to be slow?"""
Connect = Callable[[Path], contextlib.AbstractContextManager[Ask]]


@dataclass
class Load:
    """``count`` clients of the program in ``folder``. Latencies are in seconds; ``slow`` are those
    of the requests that are to be slow."""

    connect: Connect | None
    count: int
    folder: Path
    latencies: list[float] = field(default_factory=list)
    slow: list[float] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _broken: list[Exception] = field(default_factory=list)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Raises MeasurementError where a client was not answered."""
        threads = [threading.Thread(target=self._work) for _ in range(self.count) if self.connect]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        if self._broken:
            raise MeasurementError(f"a client was not answered: {self._broken[0]}")

    def _work(self) -> None:
        assert self.connect is not None
        try:
            with self.connect(self.folder) as ask:
                number = 0
                while not self._over.is_set():
                    begin = time.monotonic()
                    is_slow = ask(number)
                    took = time.monotonic() - begin
                    self.latencies.append(took)
                    if is_slow:
                        self.slow.append(took)
                    number += 1
        except (OSError, MeasurementError) as error:
            self._broken.append(error)


def wait_for_socket(path: Path) -> socket.socket:
    """A connection to the server that listens there, or will do so in a moment."""
    for _ in range(3000):
        made = socket.socket(socket.AF_UNIX)
        try:
            made.connect(str(path))
            return made
        except OSError:
            made.close()
        time.sleep(0.01)
    raise MeasurementError(f"nobody listens at {path}")


def read(client: socket.socket, end: bytes, count: int = 1) -> None:
    """Reads until ``end`` was there ``count`` times."""
    seen = 0
    tail = b""
    while seen < count:
        data = client.recv(1 << 20)
        if not data:
            raise MeasurementError("the server has closed the connection")
        seen += (tail + data).count(end) - tail.count(end)
        tail = data[-len(end) + 1 :] if len(end) > 1 else b""


@contextlib.contextmanager
def redis(folder: Path) -> Iterator[Ask]:
    with contextlib.closing(wait_for_socket(folder / "socket")) as client:

        def ask(number: int) -> bool:
            slow = number % 200 == 199
            client.sendall(b"KEYS nothing*\r\n" if slow else b"GET key:%d\r\n" % (number % 50_000))
            read(client, b"*0\r\n" if slow else b"$1\r\nx\r\n")
            return slow

        yield ask


@contextlib.contextmanager
def nginx(folder: Path) -> Iterator[Ask]:
    with contextlib.closing(wait_for_socket(folder / "socket")) as client:

        def ask(number: int) -> bool:
            slow = number % 100 == 99
            path = b"large" if slow else b"small"
            head = b"GET /%s HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n" % path
            client.sendall(head)
            read(client, b"\r\n0\r\n\r\n" if slow else b"x" * 100)
            return slow

        yield ask


@contextlib.contextmanager
def store(folder: Path) -> Iterator[Ask]:
    """Of the server in Rust."""
    with contextlib.closing(wait_for_socket(folder / "socket")) as client:

        def ask(number: int) -> bool:
            slow = number % 100 == 99
            client.sendall(b"key:%d%s\n" % (number % 1000, b" x" * slow))
            read(client, b"\n")
            return slow

        yield ask


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[Ask]:
    """Writes into ``backend`` which process serves it."""
    with contextlib.closing(wait_for_socket(folder / ".s.PGSQL.5432")) as client:
        words = b"user\0postgres\0database\0postgres\0\0"
        client.sendall(struct.pack("!ii", 8 + len(words), 196608) + words)
        said = _messages(client)
        (folder / "backend.new").write_text(str(struct.unpack("!i", said[b"K"][:4])[0]))

        def query(text: str) -> None:
            raw = text.encode() + b"\0"
            client.sendall(b"Q" + struct.pack("!i", 4 + len(raw)) + raw)
            _messages(client)

        query("CREATE TABLE entry (key int PRIMARY KEY, value int)")
        query("INSERT INTO entry SELECT n, n FROM generate_series(0, 9999) n; CHECKPOINT")
        (folder / "backend.new").rename(folder / "backend")

        def ask(number: int) -> bool:
            slow, key = number % 50 == 49, number % 10_000
            query(
                f"UPDATE entry SET value = value + 1 WHERE key = {key}"
                if slow
                else f"SELECT value FROM entry WHERE key = {key}"
            )
            return slow

        yield ask


def _messages(client: socket.socket) -> dict[bytes, bytes]:
    """PostgreSQL's messages until it is ready for a query, the last one of each kind."""
    found: dict[bytes, bytes] = {}
    raw = b""
    while True:
        while len(raw) >= 5 and len(raw) > (size := struct.unpack("!i", raw[1:5])[0]):
            found[raw[:1]] = raw[5 : size + 1]
            raw = raw[size + 1 :]
        if b"E" in found:
            raise MeasurementError(f"PostgreSQL says {found[b'E']!r}")
        if b"Z" in found and not raw:
            return found
        data = client.recv(1 << 16)
        if not data:
            raise MeasurementError("PostgreSQL has closed the connection")
        raw += data
