"""Analyses one process from its exec to its end, again and again. Sourced into darc-gdb.

``DARC_SOAK_PROCESS`` names a JSON file of :class:`Settings`. The process waits in a shell that
becomes the program once gdb is attached (see ``attend.py``), so it keeps its parent, its files and
its own way to end. f0 is picked at random among the functions that were found on the stacks of the
program as it ran, or among its symbols while none were. What happens is added to a log, one
JSON object a line.
"""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gdb

from benchmarks.soak.events import Event
from darc.code.modules import Module
from darc.code.program import Program
from darc.debuggee import procfs
from darc.model.snapshot import SiteState, Snapshot
from darc.model.status import Status
from darc_gdb import APP
from darc_gdb.target import TARGET

Steps = Generator[None, None, None]
"""Something to be done in steps: at each ``yield`` the program goes on up to its next stop."""

INT3 = 0xCC
AT_ENTRY = 9
ALARM = 63
"""A real-time signal that programs do not use; gdb keeps it from them."""

SEEN, USED, HOT, UNUSED = 2.0, 4.0, 8.0, 0.05
"""What an analysis of a function is worth: seen on a stack, called, called often, never called."""
MANY = 20
FIRST_SAMPLES = 10
PATIENCE = 0.5
"""Seconds in which an analysis that waits for the first call of f0 may begin."""
MOST_FRAMES = 40
MOST_FAULTS = 20
FAULTS = ("SIGSEGV", "SIGILL", "SIGBUS", "SIGFPE", "SIGABRT", "SIGTRAP")
"""Signals that tell of a mistake: what the program was doing then is noted, and it goes on."""

_LONG = {"start-ops": (20, 1000), "decision-ops": (1_000_000,), "max-time": (2, 4)}
_SHORT = {"start-ops": (5, 20, 100), "decision-ops": (5, 20), "max-time": (0.2, 0.6, 1.5)}


@dataclass(frozen=True)
class Settings:
    """What the process is, and what is to be done with it."""

    pid: int
    fifo: str
    """Where the waiting shell reads the line that lets it go on."""
    log: str
    hot: str
    """JSON: functions seen on the stacks of this program's processes: file, offset, how often."""
    seed: int
    analyses: bool = True
    """Without them the process is stopped and let go just the same: what gdb alone does."""


class Ended(Exception):  # noqa: N818 - not an error
    """The process is gone."""


class Hot:
    """Functions with what an analysis of each is worth, shared by all processes of a job: more
    when it was seen to be called often, less when it was never called."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.seen: dict[tuple[str, int], float] = {}
        if file.exists():
            for path, offset, worth in json.loads(file.read_text()):
                self.seen[path, offset] = worth

    def judge(self, program: Program, shown: Snapshot) -> None:
        """Learns from an analysis; what f0 called is known to be called, too."""
        if shown.ftree is None:
            return
        for node in shown.ftree.walk():
            calls = node.totals.calls
            if node is shown.ftree and shown.profile is not None:
                calls = shown.profile.count
            module = program.module_at(node.function.address)
            if module is None or not module.path.startswith("/"):
                continue
            key = module.path, node.function.address - module.bias
            if calls:
                self.seen[key] = USED if calls < MANY else HOT
            elif node is shown.ftree:
                self.seen[key] = UNUSED

    def forget(self, path: str, offset: int) -> None:
        """darc refuses this one."""
        self.seen[path, offset] = UNUSED

    def save(self) -> None:
        """Replaces the file; what another process adds at the same time may be lost."""
        temporary = self._file.with_suffix(f".{os.getpid()}")
        rows = [[path, offset, worth] for (path, offset), worth in self.seen.items()]
        temporary.write_text(json.dumps(rows))
        temporary.replace(self._file)


class Process:
    """The one process that this gdb looks after."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._random = random.Random(settings.seed)
        self._hot = Hot(Path(settings.hot))
        self._analyses = 0
        self._faults = 0
        self._signal = ""
        gdb.events.stop.connect(self._on_stop)

    # ------------------------------------------------------------------------ its life

    def follow(self) -> Steps:
        """From the shell that waits to the end of the program that it becomes."""
        quiet("set pagination off", "set confirm off", "set breakpoint pending on")
        quiet("set print thread-events off", "set print inferior-events off")
        quiet("handle all nostop noprint pass", "handle SIGINT nostop noprint pass")
        quiet(f"handle SIG{ALARM} stop print nopass")
        for fault in FAULTS:
            quiet(f"handle {fault} stop print " + ("nopass" if fault == "SIGTRAP" else "pass"))
        quiet(f"attach {self._settings.pid}", "catch exec")
        catch = gdb.breakpoints()[-1]
        gate = os.open(self._settings.fifo, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.write(gate, b"go\n")
            yield from self._go_on()
        finally:
            os.close(gate)
        catch.delete()
        # gdb 13 loses its way when it is stopped while it makes the acquaintance of libthread_db.
        quiet(f"tbreak *{entry_point(self._settings.pid):#x}")
        yield from self._go_on()
        space = gdb.current_progspace()
        assert space is not None
        self.note(Event.BEGIN, program=str(space.filename))
        while True:
            yield from self._turn()

    def _turn(self) -> Steps:
        first = FIRST_SAMPLES if len(self._hot.seen) < MANY and not self._analyses else 0
        for _ in range(first or self._random.random() < 0.2):
            yield from self._sample(self._random.choice((0.002, 0.01, 0.05)))
        if self._settings.analyses:
            yield from self._analyse()
        else:
            yield from self._sample(self._random.choice((0.05, 0.3)))

    def _go_on(self) -> Steps:
        """Up to a stop that is not one of the program's own signals."""
        while True:
            yield
            if TARGET.pid is None:
                raise Ended
            name = self._signal
            if name not in FAULTS:
                return
            self._faults += 1
            self.note(Event.FAULT, signal=name, where=lines_of("bt 12"), code=lines_of("x/5i $pc"))
            if self._faults >= MOST_FAULTS:
                quiet(f"handle {name} nostop")

    def _on_stop(self, event: gdb.StopEvent) -> None:
        self._signal = event.stop_signal if isinstance(event, gdb.SignalEvent) else ""

    # ---------------------------------------------------------------------- what is hot

    def _sample(self, seconds: float) -> Steps:
        """Lets the program run for a moment and looks at its stacks."""
        with alarm(self._settings.pid, seconds):
            yield from self._go_on()
        program = self._program()
        for thread in gdb.selected_inferior().threads()[:8]:
            thread.switch()
            for pc in frames():
                module = program.module_at(pc)
                if module is None or not module.path.startswith("/"):
                    continue
                start = program.names.function_at(pc).address
                self._hot.seen.setdefault((module.path, start - module.bias), SEEN)
        self._hot.save()

    @staticmethod
    def _program() -> Program:
        pid = TARGET.pid
        assert pid is not None
        return Program(TARGET, procfs.root(pid), procfs.regions(pid))

    def _pick(self) -> tuple[Module, int]:
        """A function: where it is in which file."""
        program = self._program()
        modules = {module.path: module for module in program.modules}
        seen = {key: worth for key, worth in self._hot.seen.items() if key[0] in modules}
        if not seen or self._random.random() < 0.05:
            module, offset = self._random.choice(list(symbols(program.modules)))
        else:
            (path, offset) = self._random.choices(list(seen), list(seen.values()))[0]
            module = modules[path]
        return module, offset

    # ------------------------------------------------------------------------ analysing

    def _analyse(self) -> Steps:
        module, offset = self._pick()
        address = module.bias + offset
        name = f"{module.name}!{self._program().names.function_at(address).name}"
        kind = _LONG if self._analyses % 5 == 4 else _SHORT
        self._analyses += 1
        chosen: dict[str, object] = {
            option: self._random.choice(values) for option, values in kind.items()
        }
        chosen["peak"] = self._random.choice(("last", "1", "p50", "p99", "0-60"))
        chosen["lookahead"] = self._random.choice(("1", "auto", "auto"))
        options = " ".join(f"--{option} {value}" for option, value in chosen.items())
        begin = time.monotonic()
        refused = ""
        try:
            quiet(f"darc start *{address:#x} {options}")
        except gdb.error as error:
            refused = str(error)
        if not refused:
            try:
                yield from self._go_on_to_the_end()
            finally:
                self._note_analysis(name, time.monotonic() - begin)
            quiet("darc stop")
            self._compare_code(name)
        else:
            self.note(Event.REFUSED, f0=name, why=refused)
            self._hot.forget(module.path, offset)
            # Else one program whose every function is refused would never go on.
            yield from self._sample(0.05)

    def _go_on_to_the_end(self) -> Steps:
        """Until the analysis is over, with stops in between as a user would make them."""
        if APP.snapshot().status is Status.PENDING:
            with alarm(self._settings.pid, PATIENCE):
                yield from self._go_on()
        while APP.session is not None and APP.session.alive:
            if self._random.random() < 0.3:
                with alarm(self._settings.pid, self._random.choice((0.01, 0.1))):
                    yield from self._go_on()
                self._compare_code("a stop in between")
                lines_of("bt 20")
            else:
                yield from self._go_on()

    def _note_analysis(self, name: str, seconds: float) -> None:
        if APP.session is None:
            return
        shown: Snapshot = APP.session.snapshot()
        self._hot.judge(APP.session.program, shown)
        self._hot.save()
        nodes = list(shown.ftree.walk()) if shown.ftree is not None else []
        states = Counter(site.state for site in shown.program.sites)
        self.note(
            Event.ANALYSIS,
            f0=name,
            seconds=round(seconds, 3),
            status=shown.status.value,
            calls=shown.profile.count if shown.profile is not None else 0,
            below=sum(node.totals.calls for node in nodes[1:]),
            sites=states[SiteState.TIMED],
            not_possible=states[SiteState.NOT_POSSIBLE],
            stops=shown.program.stops,
            notes=list(shown.notes),
        )

    def _compare_code(self, moment: str) -> None:
        """At a stop for the user all code is what the files hold."""
        try:
            altered = altered_code(self._settings.pid)
        except OSError:
            if is_alive(self._settings.pid):
                raise
            raise Ended from None  # killed as it stood still
        if altered:
            self.note(Event.ALTERED, f0=moment, places=altered[:20])

    def note(self, event: Event, **what: Any) -> None:
        """One line of the log."""
        entry = {"event": event.value, "pid": self._settings.pid, **what}
        with Path(self._settings.log).open("a") as log:
            log.write(json.dumps(entry) + "\n")


class alarm:  # noqa: N801 - used as a function
    """Stops the process after some time, for gdb alone to see, unless it stops by itself."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._ring, (pid,))
        self._lock = threading.Lock()
        self._over = False

    def _ring(self, pid: int) -> None:
        with self._lock:
            if not self._over:
                try:
                    os.kill(pid, ALARM)
                except ProcessLookupError:
                    return

    def __enter__(self) -> None:
        # gdb's own signals are for its main thread.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._timer.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._over = True
        self._timer.cancel()


def frames() -> Iterator[int]:
    """Places in the code on the selected thread's stack, innermost first."""
    frame: gdb.Frame | None = gdb.newest_frame()
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        yield int(frame.pc())
        try:
            frame = frame.older()
        except gdb.error:
            return


def symbols(modules: list[Module]) -> Iterator[tuple[Module, int]]:
    """The functions that the program itself names, else those of all its files."""
    found = [(modules[0], s.address) for s in modules[0].image.symbols if not s.ifunc]
    yield from found or ((m, s.address) for m in modules for s in m.image.symbols if not s.ifunc)


def altered_code(pid: int) -> list[str]:
    """``file+offset`` of each byte of mapped code that is neither the file's nor a breakpoint."""
    altered = []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for region in procfs.regions(pid):
            if "x" not in region.permissions or "w" in region.permissions:
                continue
            if not region.path.startswith("/") or not Path(region.path).is_file():
                continue
            with Path(region.path).open("rb") as file:
                file.seek(region.offset)
                stored = file.read(region.end - region.start)
            memory.seek(region.start)
            live = memory.read(len(stored))
            if live != stored:
                altered += [
                    f"{Path(region.path).name}+{region.offset + i:#x}"
                    for i, byte in enumerate(live)
                    if byte not in (stored[i], INT3)
                ]
    return altered


def entry_point(pid: int) -> int:
    """Where the program itself begins, once its libraries are loaded."""
    data = Path(f"/proc/{pid}/auxv").read_bytes()
    return int(dict(struct.iter_unpack("<QQ", data))[AT_ENTRY])


def is_alive(pid: int) -> bool:
    """Whether the process is there, and more than a zombie."""
    return procfs.status(pid).get("State", "Z")[0] not in "ZX"


def quiet(*commands: str) -> None:
    """Executes commands; what they say goes nowhere."""
    for command in commands:
        gdb.execute(command, to_string=True)


def lines_of(command: str) -> str:
    """What a command says, or its error."""
    try:
        return str(gdb.execute(command, to_string=True))
    except gdb.error as error:
        return str(error)


def step() -> None:
    """Goes on after a stop; ``$soak_goes_on`` tells whether there is anything left to do."""
    goes_on = True
    try:
        next(STEPS)
    except Ended:
        PROCESS.note(Event.END)
        goes_on = False
    except gdb.error as error:
        PROCESS.note(Event.END if TARGET.pid is None else Event.TROUBLE, error=str(error))
        goes_on = False
    gdb.set_convenience_variable("soak_goes_on", goes_on)


PROCESS = Process(Settings(**json.loads(Path(os.environ["DARC_SOAK_PROCESS"]).read_text())))
STEPS = PROCESS.follow()
step()
