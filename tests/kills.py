"""``make kills``: gdb is killed (SIGKILL) at random moments while it analyses a server.

gdb attaches to the fixture ``server`` and makes one short analysis after the other, until it is
killed. The server has to answer as before. Each fifth time another gdb then attaches and takes out
what was left: the server's code is byte for byte what it was. The other times it is left to the
next gdb, which begins with that.

``python -m tests.kills [--count N] [--seed N]`` prints a line for each kill that did harm, and a
summary.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fixtures.build import build
from tests.code import altered_code
from tests.debugger import (
    DARC_GDB,
    WATCHDOG_SECONDS,
    HangError,
    Server,
    debug,
    end_session,
    environment,
    last_words,
    server,
    tracer,
)

ANALYSES = """
import sys
import gdb
def say(word):
    print(word, flush=True)
say("attached")
while True:
    gdb.execute("darc start handle --peak >400us --start-ops 400 --decision-ops 4 --lookahead 1")
    say("started")
    gdb.execute("continue")
    say("found")
"""
"""The words tell how far gdb came before it was killed."""

WORDS = ("attached", *["started", "found"] * 3)
"""What gdb says one after the other. A kill follows one of these words (or gdb's beginning), some
part of the time later that lies between it and the next."""


CLEAN_EVERY = 5


@dataclass(frozen=True)
class Kill:
    """One kill: how many seconds after which words of gdb, and what was wrong."""

    words: int
    seconds: float
    wrong: str | None
    left: int
    """Bytes of code that were not the program's when gdb was dead."""

    @property
    def where(self) -> str:
        """What gdb had said last."""
        return f"'{WORDS[self.words - 1]}'" if self.words else "gdb's start"


class Killer:
    """Kills one gdb after the other on one server."""

    def __init__(self, running: Server, folder: Path, seed: int) -> None:
        self._running = running
        self._count = 0
        self._folder = folder
        self._random = random.Random(seed)
        self._script = folder / "analyses.py"
        self._script.write_text(ANALYSES)
        self._pauses = self._measured()

    def kill(self) -> Kill:
        """Attaches, kills, looks, cleans up, looks again."""
        words = self._random.randrange(len(self._pauses))
        seconds = self._random.uniform(0, self._pauses[words])
        process = self._attach()
        try:
            for word in WORDS[:words]:
                _hear(process, word)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            process.send_signal(signal.SIGKILL)
        finally:
            _end(process)
        return Kill(words, seconds, *self._look())

    def _look(self) -> tuple[str | None, int]:
        """What is wrong now, and how many bytes had been left behind."""
        self._count += 1
        try:
            self._answers()
            left = self._altered()
            if self._count % CLEAN_EVERY:
                return None, len(left)
            self._clean_up()
            self._answers()
        except (AssertionError, OSError) as error:
            return str(error), 0
        after = self._altered()
        return (f"left behind: {' '.join(after[:8])}" if after else None), len(left)

    def _answers(self) -> None:
        """The server is alive, nobody traces it, and what it computes is right."""
        assert tracer(self._running.pid) == 0
        before = self._running.operations()
        while self._running.operations() < before + 100:
            pass

    def _altered(self) -> list[str]:
        """Places in the code that differ from the file, but for gdb's own in the loader."""
        _, _, altered = altered_code(self._running.pid)
        return [place for place in altered if not place.startswith("ld-linux")]

    def _clean_up(self) -> None:
        done = debug(self._folder, None, (), ["darc stop"], options=self._options)
        assert "Traceback" not in done.gdb, done.gdb
        assert "internal error" not in done.gdb, done.gdb

    @property
    def _options(self) -> list[str]:
        return ["-p", str(self._running.pid)]

    def _attach(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*DARC_GDB, "-nx", "-q", "-batch", *self._options, "-ex", f"source {self._script}"],
            cwd=self._folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _measured(self) -> list[float]:
        """Seconds that gdb takes, here and now, to each of its words."""
        pauses, last = [], time.monotonic()
        process = self._attach()
        try:
            for word in WORDS:
                _hear(process, word)
                pauses.append(time.monotonic() - last)
                last += pauses[-1]
        finally:
            process.send_signal(signal.SIGTERM)
            _end(process)
        return pauses


def _hear(process: subprocess.Popen[bytes], word: str) -> None:
    """Reads until gdb says ``word``."""
    assert process.stdout is not None
    heard = []
    while not heard or heard[-1].strip() != word.encode():
        ready, _, _ = select.select([process.stdout], [], [], WATCHDOG_SECONDS)
        heard.append(process.stdout.readline() if ready else b"")
        if not heard[-1]:
            text = b"".join(heard).decode(errors="replace")
            raise HangError(f"gdb does not say {word!r}:\n{text}\n{last_words(process.pid)}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills all that is left of it."""
    end_session(process)
    assert process.stdout is not None
    process.stdout.close()


def kills(count: int, seed: int, folder: Path) -> Iterator[Kill]:
    """So many kills, on a new server whenever one was harmed."""
    done = 0
    while done < count:
        with server(build("server")) as running:
            killer = Killer(running, folder, seed + done)
            while done < count:
                done += 1
                kill = killer.kill()
                yield kill
                if kill.wrong is not None:
                    break
            else:
                assert running.finish() == 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    done: list[Kill] = []
    with tempfile.TemporaryDirectory() as folder:
        for kill in kills(chosen.count, chosen.seed, Path(folder)):
            done.append(kill)
            if kill.wrong is not None:
                print(f"HARMED {kill.seconds:.3f} s after {kill.where}: {kill.wrong}", flush=True)
            if len(done) % 20 == 0:
                print(f"{len(done)} kills", flush=True)
    harmed = [kill for kill in done if kill.wrong is not None]
    for where, count in Counter(kill.where for kill in done).items():
        print(f"{count:4} kills after {where}")
    left = sum(kill.left > 0 for kill in done)
    print(
        f"{len(done)} kills (seed {chosen.seed}): {left} left probes in the code, "
        f"{len(harmed)} did harm"
    )
    return int(bool(harmed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
