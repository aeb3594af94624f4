"""Runs darc-gdb on programs and watches over it: in batch, on a terminal, attached.

A test that has one of the marks :data:`IN_BOTH` and :data:`EVERYWHERE` is run in lldb as well: its
commands are written as for gdb, and :mod:`tests.lldb.runner` puts them into lldb's words.

Everything that a test starts is in a session of its own. When the watchdog runs out, or the test
is over, every process of that session is killed; before that the watchdog tells what each of them
was doing. It is there for hangs alone: how long something takes decides nothing.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from darc_gdb import launcher

ROOT = Path(__file__).resolve().parent.parent
LOAD = ROOT / "darc_gdb" / "load.py"
DARC_GDB = (sys.executable, str(ROOT / "darc_gdb" / "launcher.py"))
"""``darc-gdb``; :func:`debug` begins at once with what this becomes, the same each time."""

PLAIN_GDB = ("gdb",)

WATCHDOG_SECONDS = 100
"""Far more than anything takes, and less than pytest's own limit, which would tell nothing."""

REPORT = "darc report --format json -o report.json"
"""A command for :func:`debug`: its result is in :attr:`Done.report`."""

EXIT = 'python print("program exit:", gdb.convenience_variable("_exitcode"))'
"""A command for :func:`debug`: its result is in :attr:`Done.program_status`."""


GDB, LLDB, NEWEST = "gdb", "lldb", "newest"
"""The debuggers: gdb, the lldb that the system has, and the newest one that it could have."""

IN_BOTH = pytest.mark.debuggers(GDB, LLDB)
EVERYWHERE = pytest.mark.debuggers(GDB, LLDB, NEWEST)
IN_LLDB_AT_NIGHT = pytest.mark.debuggers(GDB, LLDB, long=(LLDB,))
"""For tests of darc's own work on code and latencies, which is the same in every debugger: lldb has
its turn in ``make test-long``."""

NEWEST_AT_NIGHT = pytest.mark.debuggers(GDB, LLDB, NEWEST, long=(NEWEST,))
"""For tests of signals and terminals, which take long: one lldb has its turn each time."""


def gdb_alone(reason: str) -> pytest.MarkDecorator:
    """A test that lldb is spared among others that it is not: ``reason`` says why."""
    assert reason
    return pytest.mark.debuggers(GDB, reason=reason)


class HangError(AssertionError):
    """Something did not end: its last words are in the message."""


@dataclass(frozen=True)
class Done:
    """A batch run of gdb that has ended."""

    status: int
    gdb: str
    output: bytes
    errors: bytes
    report: dict[str, Any] | None

    @property
    def program_status(self) -> int:
        """What the program ended with, where the commands have :data:`EXIT`."""
        found = re.findall(r"^program exit: (\d+)$", self.gdb, re.M)
        assert found, self.gdb
        return int(found[-1])

    @property
    def root_causes(self) -> list[dict[str, Any]]:
        """The root cause paths of the report, but that of preemption: on a busy machine it is a
        cause of most peaks, beside whatever a program was made for."""
        assert self.report is not None, self.gdb
        found = self.report["root_cause_paths"]
        return [path for path in found if path["cause"] != "preemption"]

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """The functions of each of the :attr:`root_causes`."""
        return [tuple(path["functions"]) for path in self.root_causes]

    def section(self, name: str) -> str:
        """What gdb wrote between ``echo <NAME>\\n`` and the next such line, or the end."""
        parts = re.split(r"^<(\w+)>\n", self.gdb, flags=re.M)
        sections = dict(zip(parts[1::2], parts[2::2], strict=True))
        assert name in sections, self.gdb
        return sections[name]


STOOD_STILL = (
    r"^ +the program stood still for \S+ in \d+ stops?(, the longest \S+)?; "
    r"before, for \S+, for its probes$"
)
"""What an analysis has cost the program, as it is told."""


def mark(name: str) -> str:
    """A command that begins a :meth:`Done.section`."""
    return f"echo <{name}>\\n"


@functools.cache
def undisturbed(program: Path, args: tuple[str, ...]) -> tuple[int, bytes]:
    """Exit status and output of the program when nobody looks."""
    done = subprocess.run(
        [program, *args], capture_output=True, timeout=WATCHDOG_SECONDS, check=False
    )
    return done.returncode, done.stdout


_NO_SANDBOX = "import darc.debuggee.procfs as found; found._is_filtered = lambda *_: False"
"""The filter of ``tests/delays/slow_calls.c`` forbids nothing: the agent may ring by itself."""


def debug(
    folder: Path,
    program: Path | None,
    args: Sequence[str],
    commands: Sequence[str],
    *,
    options: Sequence[str] = (),
    gdb: Sequence[str] = DARC_GDB,
) -> Done:
    """Runs gdb in batch, in ``folder``, on ``program``, whose output goes to files of its own;
    lldb, where the test is run in that.

    Raises:
        HangError: it did not end.
    """
    if "SLOW_CALLS" in os.environ and tuple(gdb) != PLAIN_GDB:
        python = "python" if current() == GDB else "script"
        commands = [f"{python} {_NO_SANDBOX}", *commands]
    if current() != GDB:
        from tests.lldb import runner

        plain = tuple(gdb) == PLAIN_GDB
        words = runner.translated(commands)
        return runner.debug(folder, program, args, words, options=options, plain=plain)
    redirected = shlex.join(args) + " > program.out 2> program.err"
    began, variables = _loading_gdb() if tuple(gdb) == DARC_GDB else (gdb, {})
    command = [*began, "-nx", "-q", "-batch", *options]
    if program is not None:
        command += ["-ex", f"set args {redirected}"]
    for one in commands:
        command += ["-ex", one.removeprefix("attempt ")]
    if program is not None:
        command.append(str(program))
    return Done(*watched(folder, command, variables))


@functools.cache
def _loading_gdb() -> tuple[Sequence[str], Mapping[str, str]]:
    """What ``darc-gdb`` becomes, and what it sets."""
    gdb = shutil.which("gdb")
    assert gdb is not None
    assert launcher.why_not(gdb) is None
    return launcher.loading(gdb)


def watched(
    folder: Path, command: Sequence[str], variables: Mapping[str, str] | None = None
) -> tuple[int, str, bytes, bytes, dict[str, Any] | None]:
    """What a :class:`Done` is made of, from a debugger that runs in batch in ``folder``, with
    ``variables`` in its environment.

    Raises:
        HangError: it did not end.
    """
    log = folder / "debugger.out"
    for stale in ("program.out", "program.err", "report.json"):
        (folder / stale).unlink(missing_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment(), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        status = process.wait(WATCHDOG_SECONDS)
    except subprocess.TimeoutExpired:
        words = last_words(process.pid, log, folder / "program.out", folder / "program.err")
        raise HangError(f"{shlex.join(command)}\n{words}") from None
    finally:
        end_session(process)
    report = folder / "report.json"
    return (
        status,
        log.read_text(errors="replace"),
        _bytes(folder / "program.out"),
        _bytes(folder / "program.err"),
        json.loads(report.read_text()) if report.exists() else None,
    )


_driven_by = [GDB]


def current() -> str:
    """The debugger that the test is run in."""
    return _driven_by[-1]


@contextlib.contextmanager
def driven_by(debugger: str) -> Iterator[None]:
    """:func:`debug` runs this one."""
    _driven_by.append(debugger)
    try:
        yield
    finally:
        _driven_by.pop()


def attempt(command: str) -> str:
    """A command that goes wrong, with others behind it: lldb would end at its error."""
    return f"attempt {command}"


def environment() -> dict[str, str]:
    """The environment of this test run, without what would change how gdb behaves."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DARC_", "COV_"))}
    return {**kept, "DEBUGINFOD_URLS": "", "LC_ALL": "C.UTF-8", "TERM": "xterm"}


def _bytes(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""


# ------------------------------------------------------------------- programs of their own


class Server:
    """The fixture ``server``, or one that answers as that does, running by itself, to be attached
    to."""

    def __init__(self, program: Path, *args: str) -> None:
        self._process = subprocess.Popen(
            [program, *args],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        self.pid = self._process.pid
        self.program = program

    def read_line(self) -> bytes:
        """The next line of its output, or what there is of it at its end."""
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._output], [], [], WATCHDOG_SECONDS)
            if not ready:
                raise HangError(f"{self.program} says nothing\n{last_words(self.pid)}")
            byte = os.read(self._output, 1)
            if not byte:
                break
            line += byte
        return line

    def operations(self) -> int:
        """Asks it how many operations it has done, none of them wrong."""
        self._process.send_signal(signal.SIGUSR1)
        line = self.read_line()
        assert line.endswith(b" operations, 0 wrong\n"), (line, self._process.poll())
        return int(line.split()[0])

    def finish(self) -> int:
        """Asks it to end, as nobody traces it any more; checks its last words."""
        assert tracer(self.pid) == 0
        self._process.send_signal(signal.SIGTERM)
        assert self.read_line() == b"stopped, 0 wrong\n"
        return self._process.wait(WATCHDOG_SECONDS)

    def end(self) -> None:
        """Whatever happened: afterwards it is gone."""
        end_session(self._process)
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextlib.contextmanager
def server(program: Path, *args: str) -> Iterator[Server]:
    """A running :class:`Server`, gone at the end."""
    made = Server(program, *args)
    try:
        assert made.read_line() == b"ready\n"
        yield made
    finally:
        made.end()


def let_go(pid: int) -> None:
    """Waits until nobody traces the process: lldb's server outlives lldb by some moments."""
    while (who := tracer(pid)) != 0:
        with contextlib.suppress(ProcessLookupError):
            watched_end = os.pidfd_open(who)
            try:
                ready, _, _ = select.select([watched_end], [], [], WATCHDOG_SECONDS)
            finally:
                os.close(watched_end)
            if not ready:
                raise HangError(f"process {pid} is still traced\n{last_words(os.getsid(who))}")


def tracer(pid: int) -> int:
    """Who traces the process, 0 for nobody."""
    return int(_status(Path(f"/proc/{pid}"))["TracerPid"])


def parent(pid: int) -> int:
    """The process that began this one."""
    return int(_status(Path(f"/proc/{pid}"))["PPid"])


# ------------------------------------------------------------------------------ a terminal


class Terminal:
    """gdb, or lldb where the test is run in that, on a terminal of its own, typed into as a person
    would."""

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str],
        columns: int = 100,
        *,
        gdb: Sequence[str] = DARC_GDB,
        changed: Mapping[str, str] | None = None,
    ) -> None:
        """``gdb`` is how to start that; ``changed`` is what its environment has otherwise."""
        import fcntl
        import struct
        import termios

        self._folder = folder
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 40, columns, 0, 0))
        command: Sequence[str] = (*gdb, "-nx", "-q", "-iex", "set pagination off")
        variables: Mapping[str, str] = {}
        self._prompt = r"\(gdb\) "
        if current() != GDB:
            from tests.lldb import runner

            command, variables = runner.on_terminal()
            self._prompt = runner.PROMPT
        self._process = subprocess.Popen(
            [*command, *arguments],
            cwd=folder,
            env={**environment(), **variables, **(changed or {})},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.pid = self._process.pid
        self.seen = ""
        self._read = 0

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Reads until ``pattern`` is there, behind what was waited for before."""
        deadline = time.monotonic() + WATCHDOG_SECONDS
        while True:
            found = re.compile(pattern).search(self.seen, self._read)
            if found:
                self._read = found.end()
                return found
            ready, _, _ = select.select([self.master], [], [], deadline - time.monotonic())
            if not ready:
                words = last_words(self._process.pid)
                raise HangError(f"no {pattern!r} on the terminal:\n{self.seen[-4000:]}\n{words}")
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"the debugger ended before {pattern!r}:\n{self.seen[-4000:]}")
            self.seen += data.decode(errors="replace")

    def type(self, text: str) -> None:
        """Types into the terminal."""
        os.write(self.master, text.encode())

    def enter(self, line: str) -> None:
        """Types a command, of gdb's, in the words of the debugger that is used."""
        if current() != GDB:
            from tests.lldb import runner

            line = "\n".join(runner.translated([line]))
        self.type(line + "\n")

    def command(self, line: str) -> str:
        """Types a command at the prompt and returns what is shown up to the next prompt, without
        its escape codes."""
        begin = self._read
        self.enter(line)
        self.prompt()
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.seen[begin : self._read])

    def prompt(self) -> None:
        """Waits until the debugger waits for a command."""
        self.wait_for(self._prompt)

    def quit(self) -> int:
        """Leaves the debugger, with the program."""
        self.enter("set confirm off")
        self.enter("quit")
        return self.wait()

    def wait(self) -> int:
        """Reads until gdb has ended."""
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 65536):
                self.seen += data.decode(errors="replace")
        return self._process.wait(WATCHDOG_SECONDS)

    def hang_up(self) -> int:
        """The terminal is gone, and then the debugger."""
        os.close(self.master)
        self.master = -1
        return self._process.wait(WATCHDOG_SECONDS)

    def end(self) -> None:
        """Whatever happened: afterwards gdb is gone."""
        end_session(self._process)
        if self.master >= 0:
            os.close(self.master)


@contextlib.contextmanager
def terminal(
    folder: Path, *arguments: str, columns: int = 100, gdb: Sequence[str] = DARC_GDB
) -> Iterator[Terminal]:
    """gdb at its first prompt on a :class:`Terminal`, gone at the end."""
    made = Terminal(folder, arguments, columns, gdb=gdb)
    try:
        made.prompt()
        yield made
    finally:
        made.end()


# ---------------------------------------------------------------------------- the watchdog


def session_members(session: int) -> list[int]:
    """Every process of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(int(entry.name)) == session:
                    found.append(int(entry.name))
    return found


def end_session(process: subprocess.Popen[bytes]) -> None:
    """Kills everything that is left of the session that ``process`` leads."""
    for member in sorted(session_members(process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)
    process.wait()


def last_words(session: int, *files: Path) -> str:
    """What every process of a session is doing, and the ends of the files they wrote."""
    lines = []
    for file in files:
        lines.append(f"--- end of {file.name}")
        lines += _bytes(file).decode(errors="replace").splitlines()[-25:]
    for pid in session_members(session):
        folder = Path(f"/proc/{pid}")
        lines.append(f"--- process {pid}: {_read(folder / 'cmdline')[:200]}")
        with contextlib.suppress(OSError):
            for task in sorted((folder / "task").iterdir()):
                status = _status(task)
                keys = ("Name", "State", "TracerPid", "SigPnd", "ShdPnd", "SigBlk", "SigCgt")
                lines.append(f"thread {task.name}: " + " ".join(status.get(k, "?") for k in keys))
                lines += [
                    f"  {name}: {_read(task / name)[:600]}"
                    for name in ("wchan", "syscall", "stack")
                ]
    return "\n".join(lines)


def _status(folder: Path) -> dict[str, str]:
    rows = (line.partition(":") for line in _read(folder / "status").splitlines())
    return {key: value.strip() for key, _, value in rows}


def _read(file: Path) -> str:
    try:
        return file.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"
