"""The agent in a process of its own: its real machine code, pads and landings, a program that is
made of a script, and a clock that stands still but where the script moves it.

A :class:`World` is one process (``harness.c``) that everything is written into once, as a debugger
does; each :meth:`World.run` is a fork of it.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from darc.agent import compiled
from darc.agent.compiled import AgentSymbol
from darc.agent.fieldnames import ContextField, ControlField, Structure
from darc.agent.fieldvalues import SiteValues
from darc.agent.layout import Room, plan
from darc.agent.memory import AgentMemory
from darc.agent.rows import KeptOp, Node, Route
from darc.code.architecture import Prologue, Site
from darc.code.frame_rule import FrameRule
from darc.code.processor import decode
from darc.model.ftree import CallKind
from darc.pads import processor as pads
from darc.pads.returns import ReturnLandings
from fixtures.build import build_once

HERE = Path(__file__).resolve().parent
AREA, TABLES = 0x1000_0000, 0x2000_0000
AREA_SIZE, TABLES_SIZE = 1 << 20, 4 << 20
STACKS, STACK_GAP = 0x4000_0000, 64 << 20
FUNCTIONS = 4
ROOT, UNWINDER, CATCHER, LONGJMP, ENDING = range(4, 9)
FRAME = {0: 136, 1: 152, 2: 184, 3: 136, 4: 168}
MOST_TARGETS = 2
_GUARDS = {
    UNWINDER: "DARC_HIDE",
    CATCHER: "DARC_SHOW",
    LONGJMP: "DARC_JUMP",
    ENDING: "DARC_END",
}


def _numbers(prefix: str) -> dict[str, int]:
    text = (HERE / "harness.h").read_text()
    return {name: int(value) for name, value in re.findall(rf"    {prefix}_(\w+) = (\d+)", text)}


OP = _numbers("OP")
EV = {number: name for name, number in _numbers("EV").items()}
WRONG = {number: name for name, number in _numbers("WRONG").items()}

Where = tuple[str, int, int]
"""A call site: "call", "tail" or "indirect", the function it is in, and the one that it calls."""


@dataclass(frozen=True)
class Timed:
    """One fnode below f0: a site of its parent's function, and whether it is timed. An indirect one
    stands for as many nodes as targets are told apart."""

    parent: int
    where: Where
    timed: bool = True
    lanes: int = (1 << MOST_TARGETS + 1) - 1
    """Of an indirect one: which of its targets are, and, by the last bit, whether all others."""


@dataclass(frozen=True)
class Tree:
    """What is timed: nodes by number, routes by site, and the nodes whose children are compared."""

    nodes: tuple[Node, ...]
    functions: tuple[int | None, ...]
    routes: dict[Where, tuple[Route, ...]]
    analysis: tuple[int, ...]


@dataclass(frozen=True)
class Setting:
    """An analysis, as the debugger has set it up."""

    trees: tuple[Tree, ...]
    resolution: int = 1
    analyse: bool = False
    peak: tuple[int, int] = (0, 1 << 62)
    least_op: int = 0
    needed: int = 1 << 40
    batch: int = 1
    inner_cost: int = 0
    tsc_step: int = 0
    full_cost: int = 0
    path_cost: int = 0
    pass_cost: int = 0
    slow_cost: int = 0
    indirect_cost: int = 0
    kept_cost: int = 0
    return_cost: int = 0
    span_cost: int = 0
    first_cost: int = 0
    closing_cost: int = 0
    target_cost: int = 0
    tail_cost: int = 0
    tail_inner: int = 0
    records: int = 2048
    contexts: int = 8
    signal: int = 0
    by_longest: bool = False
    """Only the longest call of a callee counts, as in the paper."""
    no_callers: bool = False
    """No landing is left for f0's callers."""
    other_stack: bool = False
    """Handlers have stacks of their own."""
    least_span: int | None = None
    """Ops are kept whole, and calls of at least so many cycles one by one."""
    fast: tuple[int, int] = (0, 0)
    """Those outside the peak that are kept, too."""


@dataclass(frozen=True)
class Event:
    """What the program did or was asked to do, in order."""

    what: str
    thread: int
    a: int
    b: int
    c: int
    clock: int
    nested: int


@dataclass(frozen=True)
class Step:
    """Registers before one of darc's instructions was executed."""

    rip: int
    events: int
    """So many events were before: all of one call or return have the same number."""
    registers: tuple[int, ...]
    """r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp."""


@dataclass
class Counted:
    """What the agent has counted in one context."""

    thread: int
    sum: int
    dropped: int
    in_peak: int
    round: int
    unreported: int
    number: int
    weighted: int
    totals: tuple[tuple[int, ...], ...]


@dataclass
class Run:
    """What came of a script."""

    events: list[Event]
    steps: list[Step]
    status: int
    counted: dict[int, list[Counted]]
    """By the number of the event."""
    fields: dict[str, int]
    fault: tuple[int, int] | None = None
    kept: list[KeptOp] = field(default_factory=list)
    """The ops that were kept of the last round, and from how many of each class."""
    ops_seen: tuple[int, ...] = ()
    open_slots: dict[int, frozenset[int]] = field(default_factory=dict)
    """By the number of the event of a :data:`COMPACT`: what is open."""

    @property
    def wrongs(self) -> list[str]:
        """What the program itself has found to be wrong."""
        return [f"{WRONG[e.a]} {e.b:#x} {e.c & (1 << 64) - 1:#x}" for e in self.events
                if e.what == "WRONG"]  # fmt: skip


EPOCH, ROUND, TOGGLE, HEAL, COMPACT, TREE, DEAD, LEAVE = range(8)
"""What a debugger does at a stop: calls under way are dropped; a decision; f0 is watched no more,
or again; it looks for operations that jumps have left; room is made among records; another tree; it
does nothing any more, and is gone; it leaves, with the program's own return addresses on all
stacks."""


class Memory:
    """A process's memory, as a target offers it."""

    def __init__(self, pid: int) -> None:
        self._file = os.open(f"/proc/{pid}/mem", os.O_RDWR)

    def read(self, address: int, size: int) -> bytes:
        """Bytes there."""
        return os.pread(self._file, size, address)

    @property
    def memory(self) -> Memory:
        """A target's."""
        return self

    def write(self, address: int, data: bytes) -> None:
        """Also where the program itself may not."""
        os.pwrite(self._file, data, address)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """No more."""
        os.close(self._file)


class World:
    """The process that all runs are forked from."""

    def __init__(self, code: bytes | None = None, symbols: dict[str, int] | None = None) -> None:
        """With another agent's code, if that is given."""
        program = build_once(
            "agent-harness",
            ["gcc", "-O1", "-g", "-mgeneral-regs-only", "-static", "-no-pie", "-fno-pie",
             "-pthread", "-fcf-protection=none", "-fno-stack-protector", "-I", str(HERE),
             str(HERE / "harness.c"), str(HERE / "functions.S"), "-o", "agent-harness"],
            *(HERE / name for name in ("harness.c", "harness.h", "functions.S")),
        )  # fmt: skip
        self._symbols = _symbols(program)
        self._process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.blob = compiled.load()
        self.code, self.symbols = code or self.blob.code, symbols or self.blob.symbols
        while not self._is_mapped():
            if self._process.poll() is not None:
                raise RuntimeError("the program with the agent cannot have its memory")
        self._memory = Memory(self._process.pid)
        self.indexes: dict[Where, int] = {}
        self.sites: dict[int, SiteValues] = {}
        self._install()

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._memory.close()

    def _is_mapped(self) -> bool:
        maps = Path(f"/proc/{self._process.pid}/maps").read_text()
        last = STACKS + 2 * STACK_GAP
        return f"\n{last:08x}-" in maps or f"\n{last:x}-" in maps

    # ------------------------------------------------------------------ the agent and its pads

    def _install(self) -> None:
        memory = self._memory
        self._landings = ReturnLandings(memory, AREA)  # type: ignore[arg-type]
        self._base = AREA + 0x14000
        memory.write(self._base, self.code)
        self._used = self._base + (len(self.code) + 63) // 64 * 64
        self._stubs = pads.Stubs(
            *(self._base + self.symbols[AgentSymbol[f"STUB_{name.upper()}"]]
              for name in ("call", "indirect", "returned", "tail", "entry", "leave", "landed"))
        )  # fmt: skip
        layout = plan(self.blob, Room(sites=64, nodes=256, routes=256, records=16, contexts=1))
        tables = AgentMemory(
            blob=self.blob, base=TABLES, layout=layout, read=memory.read, write=memory.write
        )
        self._landings.begin(tables.control, self._stubs.landed)
        sectors = (AREA // pads.SECTOR * pads.SECTOR,)
        kinds = self.blob.constants
        patches: list[tuple[int, bytes]] = []

        def place(make: Callable[[int], pads.Pad]) -> tuple[int, pads.Pad]:
            origin = self._used
            pad = make(origin)
            memory.write(origin, pad.code)
            self._used += len(pad.code)
            return origin, pad

        number = 0
        for function in range(9):
            if function in range(1, ROOT + 1):
                continue
            entry = self._symbols[f"f{function}"]
            first = decode(memory.read(entry, 16), entry)[0]
            prologue = Prologue(entry, (first,), first.len, memory.read(entry, first.len))
            data, lands = tables.sites.address(number), function == 0
            origin, pad = place(functools.partial(_entry, prologue, data, self._stubs, lands=lands))
            row: SiteValues = {"kind": kinds.F0}
            if lands:
                assert pad.body is not None
                body = origin + pad.body
                self._landings.bind(entry, body)
                row |= {"pad_back": self._landings.callers, "landings": AREA, "body": body,
                        "timed": 1}  # fmt: skip
            else:
                assert pad.back is not None
                row |= {"kind": kinds.named(_GUARDS[function]), "pad_back": origin + pad.back}
            self.sites[number] = row
            patch = pads.patch_bytes(None, entry, first.len, origin)
            patches.append((entry, patch))
            number += 1
        for function in range(ROOT + 1):
            wheres: list[tuple[str, int, str, str]] = [
                ("call", callee, f"site_{function}_{callee}", f"back_{function}_{callee}")
                for callee in range(FUNCTIONS)
            ]
            wheres += [("indirect", 0, f"icall_{function}", f"iback_{function}")]
            wheres += [
                ("tail", callee, f"tail_{function}_{callee}", "") for callee in range(FUNCTIONS)
            ]
            for kind, callee, name, back_name in wheres:
                address = self._symbols[name]
                instruction = decode(memory.read(address, 16), address)[0]
                is_tail = kind == "tail"
                site = Site(
                    address=address,
                    kind={"call": CallKind.DIRECT, "indirect": CallKind.INDIRECT,
                          "tail": CallKind.TAIL}[kind],
                    patch=address,
                    length=instruction.len,
                    back=address + instruction.len,
                    target=None if kind == "indirect" else self._symbols[f"f{callee}"],
                    pointer=None,
                    instruction=instruction,
                    slot=FrameRule("rsp", 8 + (0 if is_tail else FRAME[function])),
                )  # fmt: skip
                data, pad_back = tables.sites.address(number), 0
                if is_tail:
                    if instruction.len < 5:
                        raise RuntimeError("a short tail jump")
                    origin, _ = place(
                        functools.partial(_tail, site, data, sectors, stubs=self._stubs)
                    )
                    patch = pads.patch_tail(site, origin)
                else:
                    assert site.back == self._symbols[back_name]
                    cell = self._landings.claim(site.back)
                    pad_back = self._landings.returns_to(cell)
                    origin, pad = place(
                        functools.partial(
                            _call, site, data, sectors, stubs=self._stubs, back=pad_back
                        )
                    )
                    assert pad.back is not None
                    far = origin + pad.cells.get("target", 0)
                    call = pads.landing_call(site, pad_back, far)
                    self._landings.lead(cell, call, origin + pad.back)
                    patch = pads.patch_bytes(site.kind, address, instruction.len, origin)
                patches.append((address, patch))
                self.indexes[(kind, function, callee)] = number
                self.sites[number] = {
                    "back": site.back,
                    "pad_back": pad_back,
                    "kind": kinds.TAIL if is_tail else kinds.CALL,
                    "indirect": MOST_TARGETS if kind == "indirect" else 0,
                }
                number += 1
        for address, patch in patches:
            memory.write(address, patch)
        assert number <= layout.room.sites
        assert self._used < AREA + AREA_SIZE

    # ------------------------------------------------------------------ a run

    def run(self, setting: Setting, scripts: Sequence[Sequence[tuple[int, ...]]]) -> Run:
        """Runs scripts 0 to 2 in threads of their own, and the others as handlers."""
        self._order(b"f")
        what, pid, _ = self._answer()
        assert what == "p"
        memory = Memory(pid)
        try:
            return _Running(self, memory, setting).run(scripts)
        finally:
            memory.close()

    def _order(self, order: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(order)

    def _answer(self) -> tuple[str, int, int]:
        assert self._process.stdout is not None
        raw = b""
        while len(raw) < 24:
            part = self._process.stdout.read(24 - len(raw))
            if not part:
                raise RuntimeError("the program with the agent has ended")
            raw += part
        what, first, second = struct.unpack("<3q", raw)
        return chr(what), first, second

    def code_at(self, address: int, size: int) -> bytes:
        """As it stands in the process."""
        return self._memory.read(address, size)

    def address(self, name: str) -> int:
        """Of a symbol of ``harness.c``."""
        return self._symbols[name]


class _Running:
    def __init__(self, world: World, memory: Memory, setting: Setting) -> None:
        self._world = world
        self._memory = memory
        self._setting = setting
        room = Room(
            sites=64,
            nodes=256,
            routes=256,
            records=setting.records,
            contexts=setting.contexts,
        )
        layout = plan(world.blob, room)
        assert layout.size <= TABLES_SIZE
        self._tables = AgentMemory(
            blob=world.blob, base=TABLES, layout=layout, read=memory.read, write=memory.write
        )
        self._layout = layout
        self._enabled = True
        self._tree = 0

    def _set(self, name: str, value: int) -> None:
        self._memory.write(self._world.address(name), struct.pack("<Q", value))

    def _get(self, name: str) -> int:
        return int.from_bytes(self._memory.read(self._world.address(name), 8), "little")

    def run(self, scripts: Sequence[Sequence[tuple[int, ...]]]) -> Run:
        world, setting, layout = self._world, self._setting, self._layout
        self._prepare()
        size, _, _, most, *_ = struct.unpack("<8Q", self._memory.read(world.address("sizes"), 64))
        for number, script in enumerate(scripts):
            raw = b"".join(
                struct.pack("<iiq", op, (rest[1:] or (0,))[0], (rest or (0,))[0])
                for op, *rest in script[:most]
            )
            self._memory.write(world.address("scripts") + number * size * most, raw)
        fields = world.blob.fields
        header = world.blob.sizes[Structure.CONTEXTS]
        self._set("snapshot_contexts", TABLES + layout.contexts + header)
        self._set("context_size", layout.context_size)
        self._set("context_room", setting.contexts)
        self._set("totals_at", layout.totals_at)
        self._set("node_count", max(len(tree.nodes) for tree in setting.trees))
        self._set("bins_at", fields[ContextField.BINS][0])
        self._set("bins_count", fields[ContextField.BINS][1] // 8)
        self._set("on_other_stack", setting.other_stack)
        world._order(b"g")
        done = Run(events=[], steps=[], status=0, counted={}, fields={})
        while True:
            what, first, second = world._answer()
            if what == "d":
                self._debug(done, first, second)
                world._order(b"c")
            elif what == "f":
                done.fault = (first, second)
                self._collect(done)
            elif what == "e":
                self._collect(done)
                world._order(b"x")
            elif what == "s":
                done.status = first
                return done

    def _prepare(self) -> None:
        world, setting, tables = self._world, self._setting, self._tables
        life_at = self._get("life_at")
        tables.write_control(setting.resolution, 1, life_at)
        tables.set_landings([AREA])
        tables.set_code([range(1 << 63)])
        for index, row in world.sites.items():
            tables.sites.write(index, **row)
        self._write_tree(setting.trees[0])
        only = 0
        tables.set(
            mode=int(setting.analyse),
            peak_low=setting.peak[0],
            peak_high=setting.peak[1],
            least_op=setting.least_op,
            needed=setting.needed,
            batch=setting.batch,
            inner_cost=setting.inner_cost,
            tsc_step=setting.tsc_step,
            full_cost=setting.full_cost,
            path_cost=setting.path_cost,
            pass_cost=setting.pass_cost,
            slow_cost=setting.slow_cost,
            indirect_cost=setting.indirect_cost,
            kept_cost=setting.kept_cost,
            return_cost=setting.return_cost,
            span_cost=setting.span_cost,
            first_cost=setting.first_cost,
            closing_cost=setting.closing_cost,
            target_cost=setting.target_cost,
            tail_cost=setting.tail_cost,
            tail_inner=setting.tail_inner,
            loops=int(setting.by_longest),
            bell_signal=setting.signal,
            last_beat=0,
            fresh=1 << 62,
            process=os.getpid(),
            only_thread=only,
        )
        if setting.least_span is not None:
            tables.kept.keep(setting.least_span, setting.fast)
        if setting.no_callers:
            limits = world.blob.constants
            count = limits.LANDINGS - limits.LANDING_CALLERS
            at = AREA + limits.LANDING_WORDS + 8 * limits.LANDING_CALLERS
            self._memory.write(at, struct.pack("<Q", 0x1234) * count)
        tables.enabled = True

    def _write_tree(self, tree: Tree) -> None:
        tables, world = self._tables, self._world
        pairs: list[Route] = []
        for where, index in world.indexes.items():
            routes = tree.routes.get(where, ())
            timed = any(tree.nodes[route.child].timed for route in routes)
            tables.sites.set(index, route_first=len(pairs), route_count=len(routes), timed=timed)
            pairs += routes
        tables.sites.write_nodes(tree.nodes, pairs, tree.analysis)

    def _debug(self, done: Run, what: int, argument: int) -> None:
        tables = self._tables
        if what == EPOCH:
            tables.begin_epoch()
        elif what == ROUND:
            tables.begin_epoch()
            self._forget()
            tables.set(round=tables.round + 1, seen=0, bell=0)
        elif what == TOGGLE:
            self._enabled = not self._enabled
            tables.enabled = self._enabled
        elif what == HEAL:
            tables.ops.watch_stale(tables.ops.watch_stale(frozenset()))
        elif what == COMPACT:
            number = self._get("event_count") - 1
            done.open_slots[number] = frozenset(r.slot for r in tables.records.open())
            tables.records.compact()
        elif what == TREE:
            self._tree = (self._tree + 1) % len(self._setting.trees)
            tables.begin_epoch()
            self._write_tree(self._setting.trees[self._tree])
            self._forget()
            tables.set(round=tables.round + 1, seen=0, bell=0)
        elif what == DEAD:
            tables.set(last_beat=0, fresh=0, debugger=0, patience=0, wake=0)
        elif what == LEAVE:
            self._leave()

    def _leave(self) -> None:
        """As :meth:`darc.pads.installer.PadInstaller.remove` does, but that patches stay: they lead
        past an agent that is not enabled."""
        tables, memory = self._tables, self._memory
        landings = ReturnLandings(memory, AREA)  # type: ignore[arg-type]
        tables.enabled = False
        for record in tables.records.used():
            word = int.from_bytes(memory.read(record.slot, 8), "little")
            if (own := landings.own(word)) is not None:
                memory.write(record.slot, struct.pack("<Q", own))
        landings.retire()
        self._set("is_left", 1)

    def _forget(self) -> None:
        if self._setting.least_span is not None:
            self._tables.kept.forget()

    def _collect(self, done: Run) -> None:
        world, memory = self._world, self._memory
        raw = memory.read(world.address("events"), 48 * self._get("event_count"))
        for number in range(len(raw) // 48):
            what, thread, a, b, c, clock, nested = struct.unpack_from("<iiqqqQQ", raw, 48 * number)
            done.events.append(
                Event(what=EV[what], thread=thread, a=a, b=b, c=c, clock=clock, nested=nested)
            )
        size = 18 * 8
        raw = memory.read(world.address("traced"), size * self._get("traced_count"))
        for number in range(len(raw) // size):
            rip, events, *registers = struct.unpack_from("<18Q", raw, size * number)
            done.steps.append(Step(rip, events, tuple(registers)))
        raw = memory.read(world.address("snapshots"), 8 * self._get("snapshot_count"))
        words = struct.unpack(f"<{len(raw) // 8}Q", raw)
        for number, event in enumerate(done.events):
            if event.what == "SNAP":
                done.counted[number] = _counted(words, event.a, event.b, event.c)
        if self._setting.least_span is not None:
            done.kept = self._tables.kept.ops()
            done.ops_seen = self._tables.kept.seen()
        names = "seen bell lost_records lost_contexts lost_ops left_ops lost_callers epoch round"
        done.fields = {name: self._tables.get(ControlField[name.upper()]) for name in names.split()}


def _counted(words: Sequence[int], at: int, contexts: int, nodes: int) -> list[Counted]:
    found = []
    for _ in range(contexts):
        head, rest = words[at : at + 8], words[at + 8 : at + 8 + 6 * nodes]
        totals = tuple(tuple(rest[i : i + 6]) for i in range(0, len(rest), 6))
        thread, total, dropped, in_peak, round_, unreported, number, weighted = head
        found.append(
            Counted(
                thread=thread,
                sum=total,
                dropped=dropped,
                in_peak=in_peak,
                round=round_,
                unreported=unreported,
                number=number,
                weighted=weighted,
                totals=totals,
            )
        )
        at += 8 + 6 * nodes
    return found


def _entry(prologue: Prologue, data: int, stubs: pads.Stubs, at: int, *, lands: bool) -> pads.Pad:
    return pads.entry_pad(prologue, data, stubs=stubs, origin=at, lands=lands)


def _tail(site: Site, data: int, sectors: Sequence[int], at: int, *, stubs: pads.Stubs) -> pads.Pad:
    return pads.tail_pad(site, data, sectors=sectors, stubs=stubs, origin=at)


def _call(
    site: Site, data: int, sectors: Sequence[int], at: int, *, stubs: pads.Stubs, back: int
) -> pads.Pad:
    return pads.call_pad(
        site, site_data=data, sectors=sectors, stubs=stubs, origin=at, landing=back
    )


def _symbols(program: Path) -> dict[str, int]:
    with program.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        return {s.name: s["st_value"] for s in table.iter_symbols() if s.name}


def tree_of(timed: Sequence[Timed], analysis: Sequence[int] = (0,)) -> Tree:
    """Numbers the nodes so that the children of each follow each other, as darc does.
    ``Timed.parent`` and ``analysis`` are places among ``timed``, 0 being f0."""
    numbers: dict[int, int] = {0: 0}
    functions: list[int | None] = [0]
    nodes: list[Node] = [Node(0, 0, 0, True)]
    routes: dict[Where, list[Route]] = {}
    order = [0]
    for place in order:
        parent = numbers[place]
        mine = [(n + 1, one) for n, one in enumerate(timed) if one.parent == place]
        first = len(nodes)
        for key, one in mine:
            kind, _, callee = one.where
            routes.setdefault(one.where, []).append(Route(parent, len(nodes), one.lanes))
            numbers[key] = len(nodes)
            lanes = one.lanes.bit_count() if kind == "indirect" else 1
            for _ in range(lanes):
                nodes.append(Node(parent, 0, 0, one.timed))
                functions.append(None if kind == "indirect" else callee)
            order.append(key)
        nodes[parent] = Node(
            nodes[parent].parent, first if mine else 0, len(nodes) - first, nodes[parent].timed
        )
    return Tree(
        tuple(nodes),
        tuple(functions),
        {where: tuple(pairs) for where, pairs in routes.items()},
        tuple(sorted({numbers[place] for place in analysis if place in numbers})),
    )


def signal_of(status: int) -> str | None:
    """By what signal a process has ended."""
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else None
