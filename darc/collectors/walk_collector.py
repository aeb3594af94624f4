"""Timing the calls below one function at a time, in windows (CrossWalk 3.1).

As a set's (:mod:`darc.collectors.set_collector`), but for the choice of what counts: the members of
a level are the callees of one function, and only its calls of them count (``is_asked_for`` in
``darc/agent/members.c``). What it jumps to at its end comes back to its caller: so a function with
tail calls is a member of its own level, and what is jumped to in a frame of its is its callee. The
members of each level take the place of those of the one before.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from darc.agent.rows import Walker
from darc.code.architecture import FunctionCode
from darc.code.processor import FRAME_POINTER, PROGRAM_COUNTER, STACK_POINTER, THREAD_POINTER
from darc.code.program import Program
from darc.code.unwind import Frame, frames
from darc.collectors.collector import Assignment, Way
from darc.collectors.pad_collector import PadCollector
from darc.collectors.set_collector import SetCollector
from darc.debuggee import clock
from darc.debuggee.debuggee import Debuggee
from darc.model.errors import DarcError, TargetError, UnsupportedError
from darc.model.ftree import Function

MOST_WALKED = 1000
"""Functions that are timed in one walk, over all its levels."""

_WORDS = 8192
"""Of a stack that are looked at."""

_PER_LEVEL = 200

EVENT_WAITS = frozenset(("epoll_wait", "epoll_pwait", "epoll_pwait2"))
"""Functions that threads wait in for whatever comes next, wherever that is called."""


@dataclass(frozen=True)
class ThreadStack:
    """Where a thread stands: its key in the agent, and its frames, the outermost first."""

    key: int
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class Counted:
    """Of one thread in a window, in cycles: calls that began and ended there, with the parts of
    those that were under way at its end. By function."""

    calls: Mapping[Function, int] = field(default_factory=dict)
    cycles: Mapping[Function, int] = field(default_factory=dict)
    first: int = 0
    """TSC of the first call; 0: there was none. And of the first one of an event wait:"""
    first_wait: int = 0


class WalkCollector(SetCollector):
    """See the module."""

    @classmethod
    def below(cls, *, goes_below: bool) -> Way:
        """How one is made; see there for ``goes_below``."""
        return Way(cls, functools.partial(cls, goes_below=goes_below))

    @staticmethod
    def problem(debuggee: Debuggee) -> str | None:
        has_sets = debuggee.pads.room_for_set(1) is not None
        has_sets &= debuggee.is_readable_while_it_runs
        return None if has_sets else "'darc walk' is for processes"

    def __init__(self, assignment: Assignment, goes_below: bool) -> None:
        """``goes_below`` says that the walk begins with a function whose own calls are timed as
        well."""
        super().__init__(assignment, (), progress=assignment.progress)
        self._goes_below = goes_below
        self.doing = "looks at the threads' stacks"
        """How far the walk is, for whoever waits."""
        self._free = self._idle = 0
        self._before: dict[tuple[int, int], tuple[int, int]] = {}
        self._epoch = 0
        self.entered: AbstractSet[int] = frozenset()
        """Where the return addresses of calls stand that began in the latest window and have not
        ended, when that was counted."""

    # ------------------------------------------------------------- begin and end

    def _room_of(self) -> int:
        return MOST_WALKED

    def _check(self) -> list[str]:
        waits = [] if self._goes_below else _exported(self._program)
        for function in waits:  # where it begins nothing is timed
            with contextlib.suppress(UnsupportedError):
                return self._debuggee.check(self._program, function, self._spec)
        return PadCollector._check(self)

    def _prepare(self, code: FunctionCode) -> None:
        del code
        idle = _exported(self._program)
        self._idle = self._add(idle)
        self._free = self._idle + (self._add([self._root.function]) if self._goes_below else 0)

    def _check_any(self) -> None:
        """A level may have no callee that can be timed."""

    def _why_none_is_left(self, before: AbstractSet[int]) -> str | None:
        return None

    def _enable(self) -> None:
        super()._enable()
        self.tables.members.walk_from((), self._free, self._idle)

    def _add(self, functions: Sequence[Function]) -> int:
        guards = {place for _, place, _ in self._debuggee.guard_places(self._program)}
        first = len(self.functions)
        self.functions = (*self.functions, *functions)
        for number, function in enumerate(functions, first):
            self._progress(f"{self._spec}: {self.doing}")
            why = self._prepare_one(number, function, guards)
            if why is not None:
                self.left_out[function] = why
        return len(functions)

    # -------------------------------------------------------------------- levels

    def begin_level(
        self, parts: Sequence[tuple[int, int]], callees: Sequence[Function], jumper: Function | None
    ) -> None:
        """The calls of ``callees`` count that come from code in these ``parts``, or that ``jumper``
        jumps to where it has tail calls, and no others. The program stands still."""
        own = self._member(jumper)
        for number in sorted(self.installer.members):
            if number >= self._free and number != own:
                self.installer.give_up_member(number)
        if jumper is not None and own is None:
            self._add([jumper])
            own = self._member(jumper)
        always = {function.address for function in self.functions[: self._free]}
        callees = [function for function in callees if function.address not in always]
        room = min(self.tables.members.most, MOST_WALKED) - len(self.functions)
        chosen = callees[: min(_PER_LEVEL, room)]
        for function in callees[len(chosen) :]:
            self.left_out[function] = "there are too many functions on the way"
        self._add(chosen)
        stretches = [range(*part) for part in parts]
        self.tables.members.walk_from(stretches, self._free, self._idle, own)
        for number, why in self.installer.enable_members().items():
            self.left_out[self.functions[number]] = why

    def _member(self, function: Function | None) -> int | None:
        """The number under which it is timed."""
        if function is None:
            return None
        numbers = self.installer.members
        return next((n for n in numbers if self.functions[n].address == function.address), None)

    def is_member(self, function: Function) -> bool:
        """Whether its calls are timed now."""
        return self._member(function) is not None

    def begin_window(self) -> None:
        """The program is about to go on."""
        self._epoch = self.tables.epoch
        walkers = self.tables.members.walkers(self._epoch)
        self._before = {
            (key, number): counted
            for key, walker in walkers.items()
            for number, counted in walker.counted.items()
        }

    def counted(self, start: int, end: int) -> dict[int, Counted]:
        """What was counted since :meth:`begin_window`, by the threads' keys."""
        walkers = self.tables.members.walkers(self._epoch)
        contexts = {walker.context: key for key, walker in walkers.items()}
        calls: dict[int, dict[Function, int]] = {key: {} for key in walkers}
        cycles: dict[int, dict[Function, int]] = {key: {} for key in walkers}

        def add(key: int, number: int, many: int, long: int) -> None:
            function = self.functions[number]
            calls[key][function] = calls[key].get(function, 0) + many
            cycles[key][function] = cycles[key].get(function, 0) + long

        for key, walker in walkers.items():
            for number, (many, total) in walker.counted.items():
                before = self._before.get((key, number), (0, 0))
                if many > before[0] and number < len(self.functions):
                    add(key, number, many - before[0], total - before[1])
        for key, number, spent in self._under_way(contexts, walkers, start, end):
            add(key, number, 1, spent)
        return {
            key: Counted(calls[key], cycles[key], *walker.first) for key, walker in walkers.items()
        }

    def _under_way(
        self, contexts: Mapping[int, int], walkers: Mapping[int, Walker], start: int, end: int
    ) -> Iterator[tuple[int, int, int]]:
        """The calls of this window that have not ended: thread, member, and cycles."""
        found: list[tuple[int, int, dict[str, int]]] = []
        self.entered = entered = set()
        for record in self.tables.records.open():
            key = contexts.get(record["context"])
            if key is None or record["open"] != 1 or record["entered"] != self._epoch:
                continue
            number = self._member_of(record)
            if number is None or not self._stands(record):
                continue
            entered.add(record["slot"])
            found.append((key, number, record))
        for key, number, record in found:
            waiting = sum(
                end - waits["start"]
                for other, idle, waits in found
                if other == key and idle < self._idle <= number and waits["slot"] < record["slot"]
            )
            spent = walkers[key].spent
            inner = max(spent - record["overhead"] + waiting, 0)
            yield key, number, max(end - max(record["start"], start) - inner, 0)
            for tail, begun in self.tables.records.tails(record):
                if tail < len(self.functions):
                    yield key, tail, max(end - spent - begun - waiting, 0)

    def _member_of(self, record: Mapping[str, int]) -> int | None:
        """The number of the function that an open record's call is of."""
        tables = self.tables
        first = tables.base + tables.layout.blocks
        if not record["block"] or (record["block"] - first) % tables.blob.sizes["darc_block"]:
            return None
        at = record["block"] + tables.blob.offset("darc_block.member")
        number = int.from_bytes(tables.raw(at, 4), "little") - 1
        return number if 0 <= number < len(self.functions) else None

    def _stands(self, record: Mapping[str, int]) -> bool:
        try:
            word = int.from_bytes(self.tables.raw(record["slot"], 8), "little")
        except TargetError:
            return False
        return word == record["pad_back"]

    @property
    def cut_short(self) -> int:
        """Calls at the edges of windows count up to there."""
        return 0

    # -------------------------------------------------------------------- stacks

    def stacks(self) -> dict[int, ThreadStack]:
        """Of all threads, by the system's ids. The program stands still."""
        records = [record for record in self.tables.records.open() if self._stands(record)]
        backs = {record["slot"]: record["back"] for record in records}
        had = {record["slot"]: self._had(record) for record in records}
        found = {}
        for thread in self._target.threads.ids():
            self._progress(f"{self._spec}: {self.doing}")
            try:
                stack = self._stack(thread, backs)
                found[thread] = ThreadStack(stack.key, tuple(self._with_gone(stack.frames, had)))
            except DarcError:
                continue  # it has just ended
        return found

    def _had(self, record: Mapping[str, int]) -> list[int]:
        """The functions that are known to have had the frame of an open call, the first one
        first, by their addresses."""
        number = self._member_of(record)
        if number is None:
            return []
        tails = [tail for tail, _ in self.tables.records.tails(record)]
        return [self.functions[n].address for n in (number, *tails) if n < len(self.functions)]

    def _with_gone(
        self, found: Sequence[Frame], had: Mapping[int, Sequence[int]]
    ) -> Iterator[Frame]:
        """The frames, with the functions before each that have handed it on."""
        for frame in found:
            now = self._program.function_at(frame.at).address
            for address in had.get(frame.slot, ()):
                if self._program.function_at(address).address == now:
                    break
                yield Frame(address, frame.slot)
            yield frame

    def _stack(self, thread: int, backs: Mapping[int, int]) -> ThreadStack:
        target, foothold = self._target, self.foothold
        assert foothold is not None
        names = (PROGRAM_COUNTER, STACK_POINTER, FRAME_POINTER, THREAD_POINTER)
        pc, stack, frame, key = (target.threads.read_register(thread, name) for name in names)
        slots: dict[int, int] = dict(backs)
        if self.tables.bell and self.tables.bell_slot:
            slots[self.tables.bell_slot] = self.tables.bell_return
        raw = _read_stack(target.memory.read, stack)

        def word(at: int) -> int | None:
            if at in slots:
                return slots[at]
            begin = at - stack
            if not 0 <= begin <= len(raw) - 8:
                return None
            return int.from_bytes(raw[begin : begin + 8], "little")

        if foothold.holds(pc):
            above = [slot for slot in slots if stack <= slot < stack + len(raw)]
            if not above:
                return ThreadStack(key, ())
            slot = min(above)
            pc, stack = slots[slot], slot + 8
            raw = raw[slot + 8 - target.threads.read_register(thread, STACK_POINTER) :]
        found = frames(self._program, pc, stack, frame, word)
        return ThreadStack(key, tuple(reversed(found)))

    def ran(self, thread: int) -> tuple[int, int] | None:
        """See :meth:`darc.debuggee.debuggee.Debuggee.ran`."""
        return self._debuggee.ran(thread)

    @property
    def is_stopped(self) -> bool:
        """Whether the debugger has stopped the program. Any thread."""
        return self._debuggee.is_stopped()

    @property
    def now(self) -> int:
        """The time-stamp counter."""
        return clock.tsc_now()


def _read_stack(read: Callable[[int, int], bytes], stack: int) -> bytes:
    size = 8 * _WORDS
    while size >= 8:
        try:
            return read(stack, size)
        except DarcError:
            size //= 2
    return b""


def plain_name(symbol: str) -> str:
    """``poll`` of ``__poll`` and ``poll@@GLIBC_2.2.5``."""
    return symbol.split("@", 1)[0].lstrip("_")


def is_of_c(module: str) -> bool:
    """Whether a file of this name is the C library, or the part of it that has its threads."""
    return module.startswith(("libc.", "libc-", "libpthread", "ld-musl"))


def _exported(program: Program) -> list[Function]:
    found: dict[int, Function] = {}
    for module in program.modules:
        if not is_of_c(module.name):
            continue
        for symbol in module.image.symbols:
            if symbol.name.split("@", 1)[0] in EVENT_WAITS:
                address = symbol.address + module.bias
                found[address] = program.function_at(address, symbol.name.split("@", 1)[0])
    return [found[address] for address in sorted(found)]
