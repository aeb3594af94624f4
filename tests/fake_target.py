"""A target without a debugger: a program of memory, threads and registers in Python.

:class:`FakeTarget` is for tests of what is built on a target. :class:`FakeWorld` plays the program
of the contract on it, so that the fake keeps the same contract as the real ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from darc.model.errors import TargetError, UnsupportedError
from darc.target.bell import Bell
from darc.target.breaks import Breaks
from darc.target.frames import Frames
from darc.target.memory import Memory
from darc.target.outcome import OnHit, Outcome
from darc.target.ownthread import Turn, any_thread, own_thread
from darc.target.screen import Screen
from darc.target.shapes import Field, Shape
from darc.target.symbols import Symbols
from darc.target.target import State, Target
from darc.target.threads import Threads
from darc.target.user_breaks import UserBreakpoints
from tests.contract.world import World

MASK = (1 << 64) - 1
GENERAL = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "rip", "eflags")
REGISTERS = (*GENERAL, "fs_base", *(f"r{n}" for n in range(8, 16)))


@dataclass
class FakeThread:
    """One thread's registers."""

    tid: int
    registers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REGISTERS, 0))


class CrashError(Exception):
    """A function of the fake program has crashed."""


@dataclass(frozen=True)
class FakeShape(Shape):
    """A type that a test makes up."""

    name: str = ""
    size: int = 4
    made_of: tuple[Field, ...] = ()
    array_of: Shape | None = None

    def fields(self) -> Sequence[Field]:
        return self.made_of

    def element(self) -> Shape | None:
        return self.array_of


@own_thread
class FakeSymbols(Symbols):
    """What a test says."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.lines: dict[int, tuple[str, int]] = {}
        self.inlined: dict[int, tuple[str, ...]] = {}
        self.sources: dict[tuple[str, str], list[int]] = {}
        self.hosts: dict[str, Sequence[str]] = {}
        self.shapes: dict[tuple[str, int], Shape] = {}

    def line_at(self, address: int) -> tuple[str, int] | None:
        return self.lines.get(address)

    def inlined_at(self, address: int) -> tuple[str, ...]:
        return self.inlined.get(address, ())

    def functions_in(self, file: str, function: str) -> Sequence[int]:
        return self.sources.get((file, function), [])

    def shape_of(self, variable: str, address: int) -> Shape | None:
        return self.shapes.get((variable, address))

    def inlined_into(self, function: str) -> Sequence[str]:
        return self.hosts.get(function, ())


@own_thread
class FakeMemory(Memory):
    """What a test maps."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.mapped: dict[int, bytearray] = {}

    def _bytes(self, address: int, size: int) -> tuple[bytearray, int]:
        for start, content in self.mapped.items():
            if start <= address and address + size <= start + len(content):
                return content, address - start
        raise TargetError(f"cannot access memory at {address:#x}")

    def read(self, address: int, size: int) -> bytes:
        content, at = self._bytes(address, size)
        return bytes(content[at : at + size])

    def write(self, address: int, data: bytes) -> None:
        content, at = self._bytes(address, len(data))
        content[at : at + len(data)] = data


@own_thread
class FakeBell(Bell):
    """Rung by :meth:`FakeTarget.ring`."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.armed: tuple[int, Callable[[], Outcome]] | None = None

    def arm(self, signal: int, handler: Callable[[], Outcome]) -> None:
        self.armed = (signal, handler)

    def change(self, signal: int) -> None:
        if self.armed is not None:
            self.armed = (signal, self.armed[1])

    def disarm(self) -> None:
        self.armed = None


@own_thread
class FakeBreaks(Breaks):
    """Hit by :meth:`FakeTarget.arrive`."""

    hits_stop_all = True

    def __init__(self, turn: Turn, memory: Memory) -> None:
        self.turn = turn
        self._memory = memory
        self.once: tuple[int, Callable[[], Outcome]] | None = None
        self.on_hit: dict[int, OnHit] = {}

    def break_once(self, address: int, handler: Callable[[], Outcome]) -> None:
        self.once = (address, handler)

    def cancel_break(self) -> None:
        self.once = None

    def set_break(self, address: int, on_hit: OnHit) -> Callable[[], None]:
        self._memory.read(address, 1)
        self.on_hit[address] = on_hit

        def take_back() -> None:
            if self.on_hit.get(address) is on_hit:
                del self.on_hit[address]

        return take_back


@own_thread
class FakeUserBreakpoints(UserBreakpoints):
    """Where a test says."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.places: set[int] = set()
        self.handler: Callable[[], None] | None = None

    def addresses(self) -> Sequence[int]:
        return sorted(self.places)

    def when_changed(self, handler: Callable[[], None] | None) -> None:
        self.handler = handler


@own_thread
class FakeFrames(Frames):
    """Nobody looks at them."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    def show_pads(
        self, agent: Path, base: int, caller: Callable[[int, int], tuple[int, int] | None]
    ) -> None:
        pass

    def hide_pads(self) -> None:
        pass

    def forget(self) -> None:
        pass


@own_thread
class FakeScreen(Screen):
    """Keeps what is shown."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.pending = True
        self.emitted: list[str] = []

    def accepts_pending(self, question: str) -> bool:
        return self.pending

    @property
    def colour(self) -> bool:
        return False

    @property
    def width(self) -> int:
        return 80

    @any_thread
    def live(self, text: str | None) -> None:
        pass

    def emit(self, text: str) -> None:
        self.emitted.append(text + "\n")


@own_thread
class FakeThreads(Threads):
    """Those that a test adds."""

    def __init__(self, turn: Turn, threads: Mapping[int, FakeThread]) -> None:
        self.turn = turn
        self._threads = threads

    def ids(self) -> Sequence[int]:
        return list(self._threads)

    def program_counters(self) -> Mapping[int, int]:
        return {tid: thread.registers["rip"] for tid, thread in self._threads.items()}

    def _registers(self, thread: int, name: str) -> dict[str, int]:
        if thread not in self._threads:
            raise TargetError(f"thread {thread} is gone")
        registers = self._threads[thread].registers
        if name not in registers:
            raise TargetError(f"there is no register {name}")
        return registers

    def read_register(self, thread: int, name: str) -> int:
        return self._registers(thread, name)[name]

    def write_register(self, thread: int, name: str, value: int) -> None:
        self._registers(thread, name)[name] = value & MASK


@own_thread
class FakeTarget(Target):
    """At most one program, made of Python values. Public attributes are the program's: a test sets
    them up and changes them as the program would."""

    bell: FakeBell
    breaks: FakeBreaks
    frames: FakeFrames
    memory: FakeMemory
    screen: FakeScreen
    symbols: FakeSymbols
    threads: FakeThreads
    user_breaks: FakeUserBreakpoints

    def __init__(self, executable: str = "/fake/program") -> None:
        self.turn = Turn()
        self.bell = FakeBell(self.turn)
        self.memory = FakeMemory(self.turn)
        self.frames = FakeFrames(self.turn)
        self.breaks = FakeBreaks(self.turn, self.memory)
        self.screen = FakeScreen(self.turn)
        self.symbols = FakeSymbols(self.turn)
        self.user_breaks = FakeUserBreakpoints(self.turn)
        self.process: int | None = None
        self.was_attached = False
        self.running = False
        self.file = executable
        self.fake_threads: dict[int, FakeThread] = {}
        self.threads = FakeThreads(self.turn, self.fake_threads)
        self.current = 0
        self.functions: dict[int, Callable[..., int]] = {}
        self.deciding = False
        self.stops = 0
        self.modules_handler: Callable[[], Outcome] | None = None

    # What a test does to the program.

    def map(self, start: int, content: bytes) -> None:
        """Maps memory with this content."""
        self.memory.mapped[start] = bytearray(content)

    def add_thread(self, tid: int, **registers: int) -> FakeThread:
        """Adds a thread; the first one is current."""
        thread = self.fake_threads[tid] = FakeThread(tid)
        thread.registers.update(registers)
        self.current = self.current or tid
        return thread

    def end(self) -> None:
        """The program is gone."""
        self.process = None
        self.running = False
        self.memory.mapped.clear()
        self.fake_threads.clear()
        self.current = 0
        self.breaks.once = None
        self.breaks.on_hit.clear()

    def arrive(self, address: int) -> Outcome:
        """The current thread comes to ``address``: breakpoints act there."""
        self.fake_threads[self.current].registers["rip"] = address
        on_hit = self.breaks.on_hit.get(address)
        deferred = None if on_hit is None else on_hit(self.current)
        verdict = Outcome.CONTINUE
        if deferred is not None:
            self.deciding = True
            try:
                verdict = deferred()
            finally:
                self.deciding = False
        if self.breaks.once is not None and self.breaks.once[0] == address:
            _, handler = self.breaks.once
            self.breaks.once = None
            if handler() is Outcome.STOP:
                return Outcome.STOP
        return verdict

    def ring(self, number: int) -> Outcome:
        """The current thread gets a signal."""
        armed = self.bell.armed
        if armed is None or armed[0] != number:
            return Outcome.CONTINUE
        self.deciding = True
        self.stops += 1
        try:
            return armed[1]()
        finally:
            self.deciding = False

    # What it does as a target.

    @property
    def pid(self) -> int | None:
        return self.process

    @property
    def state(self) -> State:
        if self.process is None:
            return State.NONE
        return State.RUNNING if self.running else State.STOPPED

    @property
    def attached(self) -> bool:
        return self.was_attached

    @property
    def executable(self) -> str | None:
        return self.file

    def check_supported(self) -> None:
        if self.process is None:
            raise UnsupportedError("there is no program: 'run' or 'attach' it first")

    def call(self, address: int, arguments: Sequence[int]) -> int:
        assert not self.deciding, "nothing may be called while a bell is answered"
        if address not in self.functions:
            raise TargetError(f"the call of {address:#x} crashed")
        try:
            return self.functions[address](*(argument & MASK for argument in arguments)) & MASK
        except CrashError:
            raise TargetError(f"the call of {address:#x} crashed") from None

    def when_modules_change(self, handler: Callable[[], Outcome] | None) -> None:
        self.modules_handler = handler

    def own_threads(self) -> Sequence[int]:
        return []

    @property
    @any_thread
    def own_stops(self) -> int:
        return self.stops


class FakeWorld(World):
    """``program.c`` in Python: the same rounds, names, stops and values."""

    NAMES = ("add", "crash", "stop_here", "pass", "rung", "outer", "inlined_place", "main")
    WORDS = ("word", "passed", "ticks", "calls", "whole")
    CODE, DATA = 0x40_0000, 0x60_0000
    RET = 0xC3

    def __init__(self) -> None:
        self.target: FakeTarget = FakeTarget()
        self.target.symbols.hosts = {"inner": ["outer"]}
        self.target.user_breaks.places = {self.address("stop_here")}
        self._run: Iterator[int] = iter(())

    def address(self, name: str) -> int:
        if name in self.WORDS:
            return self.DATA + 8 * self.WORDS.index(name)
        return self.CODE + 32 * self.NAMES.index(name)

    def start(self) -> None:
        target = self.target
        target.process = os.getpid()
        target.map(self.CODE, b"\x90" * 32 * len(self.NAMES))
        target.map(self.DATA, bytes(8 * len(self.WORDS)))
        target.map(0x7FFF_FFFF_0000, bytes(16))
        self._set("word", 0x1122334455667788)
        for tid in (target.process, target.process + 1):
            target.add_thread(tid, fs_base=0x7F00_0000_0000 + tid, rsp=0x7FFF_FFFF_0008)
        target.functions = {self.address("add"): self._add}
        target.symbols.lines = {self.address("add"): ("program.c", 16)}
        target.symbols.inlined = {self.address("inlined_place"): ("inner",)}
        number = FakeShape("int")
        union = FakeShape(made_of=(Field("number", 0, number), Field("other", 0, number)))
        before = FakeShape(array_of=FakeShape("char", 1))
        part = FakeShape("part_t", 8, (Field("before", 0, before), Field("", 4, union)))
        parts = Field("parts", 8, FakeShape("", 24, array_of=part))
        whole = FakeShape("", 32, (Field("first", 0, FakeShape("long", 8)), parts))
        target.symbols.shapes = {("whole", self.address("whole")): whole}
        target.symbols.sources = {
            ("program.c", name): [self.address(name)] for name in ("add", "outer")
        }
        self._run = self._rounds()
        assert self.go() == self.address("stop_here")

    def go(self) -> int | None:
        self._set("ticks", self._get("ticks") + 1 if self.target.process else 0)
        return next(self._run, None)

    def _rounds(self) -> Iterator[int]:
        target = self.target
        for number in (1, 2, 3, 4):
            yield from self._at("stop_here")
            for _ in range(3):
                yield from self._at("pass")
                if target.memory.read(self.address("pass"), 1)[0] != self.RET:
                    self._set("passed", self._get("passed") + 1)
            target.fake_threads[target.current].registers["rip"] = self.address("main")
            if target.ring(23) is Outcome.STOP:
                yield target.threads.read_register(target.current, "rip")
            yield from self._at("rung")
            if number <= 2 and target.modules_handler is not None:
                target.modules_handler()
        target.end()

    def _at(self, name: str) -> Iterator[int]:
        address = self.address(name)
        stopped = self.target.arrive(address) is Outcome.STOP
        if stopped or address in self.target.user_breaks.places:
            yield address

    def _get(self, name: str) -> int:
        return int.from_bytes(self.target.memory.read(self.address(name), 8), "little")

    def _set(self, name: str, value: int) -> None:
        if self.target.process is not None:
            self.target.memory.write(self.address(name), value.to_bytes(8, "little"))

    def _add(self, *arguments: int) -> int:
        self._set("calls", self._get("calls") + 1)
        return sum(arguments)

    def kill(self) -> None:
        self.target.end()

    def set_breakpoint(self, address: int) -> None:
        self.target.user_breaks.places.add(address)
        if self.target.user_breaks.handler is not None:
            self.target.user_breaks.handler()

    def clear_breakpoint(self, address: int) -> None:
        self.target.user_breaks.places.discard(address)

    def set_pending(self, accept: bool) -> None:
        self.target.screen.pending = accept

    def shown(self) -> str:
        return "".join(self.target.screen.emitted)
