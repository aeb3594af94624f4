"""A made-up machine that runs a few instructions, with breakpoints and a clock of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

from iced_x86 import Instruction, Mnemonic

from darc.code import x86_64
from darc.code.architecture import FunctionCode
from darc.code.landmarks import Landmark
from darc.code.x86_64 import read_function
from darc.debuggee.process import ProcessDebuggee
from darc.debuggee.process_pads import ProcessPads
from darc.debuggee.switchwatch import Forerunner, OffWatch, Watching
from darc.model.ftree import Fnode, Function
from darc.target.outcome import Outcome
from tests.fake_target import FakeTarget
from tests.unit.assembly import BASE, Code

MS = 10**6
STACK = 0x7000_0000
TID = 7

PLAIN = """
f: sub rsp,8
call g
call h
add rsp,8
ret
g: sub rsp,8
call w
add rsp,8
ret
h: ret
w: ret
catch: ret
jump: ret
main: call f
nop
ret
"""


class ThrownError(Exception):
    """The fake program's exception."""


class Program(Code):
    """The assembled code, as the engine asks for it."""

    modules: tuple[()] = ()
    interrupts: tuple[()] = ()
    has_more = False

    @functools.cached_property
    def function(self) -> Callable[[int], FunctionCode[Instruction]]:
        """By entry. It is read once: hundreds of calls of it are made."""
        return functools.cache(lambda entry: read_function(entry, self))

    def function_at(self, address: int, name: str | None = None) -> Function:
        name = next(n for n, (start, end) in self.parts.items() if start <= address < end)
        return Function(
            name=name,
            symbol=name,
            module="prog",
            address=self.symbols[name],
            offset=self.symbols[name] - BASE,
        )

    callee_at = function_at

    @property
    def linkage(self) -> Program:
        return self

    @property
    def names(self) -> Program:
        return self

    @property
    def live(self) -> Program:
        return self

    @property
    def mapped(self) -> Program:
        return self

    def meaning(self, node: Fnode) -> None:
        return None

    def is_returned_to(self, _address: int) -> bool:
        return True

    def is_shared(self, _address: int) -> bool:
        return False

    def knows(self, _address: int) -> bool:
        return True

    def resolve(self, address: int) -> tuple[int, None]:
        return address, None

    def module_at(self, address: int) -> None:
        return None


class Pads(ProcessPads):
    def clean_up(
        self, program: object, *, unmap: bool = True, of_memory: bool = False
    ) -> list[str]:
        return []

    def children_with_copies(self) -> Sequence[int]:
        """The made-up process has none; that of its number here may have any."""
        return ()


class MadeUpWatching(Watching):
    """``begin`` and ``expect`` by those functions."""

    def __init__(
        self,
        begin: Callable[[], OffWatch | None],
        expect: Callable[[], Forerunner | None] = lambda: None,
    ) -> None:
        self._begin = begin
        self._expect = expect

    def expect(self) -> Forerunner | None:
        return self._expect()

    def begin(self) -> OffWatch | None:
        return self._begin()


class Debuggee(ProcessDebuggee):
    hz = 10**9
    begun = False
    off_watch: OffWatch | None = None

    def __init__(self, target: FakeTarget, program: Program) -> None:
        self._target = target
        self._program = program
        self._pads = Pads(target, 1)

    def is_gone(self) -> bool:
        return False

    def danger_of_breakpoints(self) -> str | None:
        return None

    def risk_of_breakpoints(self) -> str | None:
        return None

    def watching(self) -> Watching:
        return MadeUpWatching(lambda: self.off_watch)

    def arm_limit(self, handler: Callable[[], Outcome]) -> int | None:
        return None

    def begin(self) -> None:
        self.begun = True

    def leave(self, is_there: bool = True) -> None:
        self.begun = False

    def check_supported(self) -> None: ...
    def refresh(self, program: object) -> None: ...
    def use(self, thread: int) -> None:
        return None

    def waited_ns(self, thread: int) -> int:
        return 0

    def landmarks(self, program: object) -> Iterator[tuple[Landmark, int, str]]:
        for kind, name in ((Landmark.SHOW, "catch"), (Landmark.JUMP, "jump")):
            if name in self._program.symbols:
                yield kind, self._program.symbols[name], name


class Machine:
    """Runs the program: calls, returns, the stack pointer, and time; nothing else."""

    COST = MS // 10

    def __init__(self, code: Code) -> None:
        self.code = Program(code.data, code.symbols, code.parts)
        self.target = FakeTarget()
        self.target.map(BASE, code.data + bytes(16))
        self.target.map(STACK - 0x10000, bytes(0x10000))
        self.now = 0
        self.latency: Callable[[str], int] = lambda name: 0
        self.throws: Callable[[str], bool] = lambda name: False
        self.catches: set[str] = set()
        self.switch(TID, STACK)
        self.registers["r11"] = 0
        self.hits = 0
        self.stopped = False
        self.on_call: Callable[[int, int], None] = lambda site, callee: None
        """Is told of each call, where it is made and what it calls, at the time that is now,"""
        self.on_return: Callable[[], None] = lambda: None
        """and of each return."""

    def switch(self, tid: int, stack: int) -> None:
        """Another thread runs."""
        if tid not in self.target.fake_threads:
            self.target.add_thread(tid, rsp=stack)
        self.target.current = tid

    @property
    def registers(self) -> dict[str, int]:
        return self.target.fake_threads[self.target.current].registers

    def arrive(self, address: int) -> None:
        if address not in self.target.breaks.on_hit:
            self.registers["rip"] = address
            return
        self.hits += 1
        self.now += self.COST
        self.stopped |= self.target.arrive(address) is Outcome.STOP

    def call(self, name: str, back: int = 0x9999) -> None:
        """Calls a function from nowhere."""
        self._push(back)
        self.on_call(0, self.code.symbols[name])
        self._run(self.code.symbols[name])

    def _push(self, word: int) -> None:
        self.registers["rsp"] -= 8
        self.target.memory.write(self.registers["rsp"], word.to_bytes(8, "little"))

    def _run(self, entry: int) -> None:
        """Runs a function up to its return, which takes its return address off the stack."""
        function = self.code.function(entry)
        name = self.code.names.function_at(entry).symbol
        for index, (at, instruction) in enumerate(sorted(function.instructions.items())):
            self.arrive(at)
            if not index:
                self.now += self.latency(name)
                if self.throws(name):
                    raise ThrownError
            if instruction.mnemonic in (Mnemonic.SUB, Mnemonic.ADD):
                sign = 1 if instruction.mnemonic == Mnemonic.ADD else -1
                self.registers["rsp"] += sign * instruction.immediate(1)
            elif instruction.mnemonic == Mnemonic.CALL:
                self._call(name, instruction)
            elif instruction.mnemonic == Mnemonic.JMP:
                self._run(int(instruction.near_branch_target))
                return
            elif instruction.mnemonic == Mnemonic.RET:
                self.registers["rsp"] += 8
                self.on_return()
                return

    def _call(self, name: str, instruction: Instruction) -> None:
        target = x86_64.branch_target(instruction) or self.registers["r11"]
        before = self.registers["rsp"]
        self._push(int(instruction.next_ip))
        self.on_call(int(instruction.ip), target)
        try:
            self._run(target)
        except ThrownError:
            if name not in self.catches:
                raise
            self.registers["rsp"] = before
            self.call("catch")
