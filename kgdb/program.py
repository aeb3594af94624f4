"""A kernel as code: its functions under their live addresses, and what may not be patched in it."""

from __future__ import annotations

import functools
import itertools
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from darc.code.architecture import FunctionCode, Site, Thunk
from darc.code.linkage import Linkage
from darc.code.live import LiveBytes
from darc.code.modules import Module
from darc.code.names import Names
from darc.code.outlines import Outlines
from darc.code.patchable import Patchable
from darc.code.processor import (
    LONGEST_INSTRUCTION,
    PATCH_LENGTH,
    decode,
    is_indirect_call,
    is_padding,
    read_function,
)
from darc.code.program import Program
from darc.code.regions import among
from darc.code.sequences import Sequences
from darc.code.spelling import find_symbols, split_spec
from darc.model.errors import FormatError, TargetError
from darc.model.ftree import CallKind, Cause, Fnode, Function, Meaning
from darc.target.memory import Memory
from darc.target.target import Region, Target
from kgdb.devices import Devices
from kgdb.foreign_probes import ForeignProbes, target_of
from kgdb.image import KernelModule, live_value
from kgdb.interrupts import PREEMPTS, InterruptHandlers

_INDIRECT_THUNK = re.compile(
    r"__x86_indirect_(?:its_|call_|jump_)?thunk_(r(?:[abcd]x|[sbd][ip]|sp|bp|\d+))"
)
_RETURN_THUNK = re.compile(r"(?:\w+_)?return_thunk")
_STATIC_CALL = "__SCT__"
_JUMP = 0xE9
_SAMPLE = 64
"""Places that are looked at, from all over a list."""
_LARGEST_OPERATIONS = 4096
"""Bytes of a structure of functions; what is larger is none."""

_UNTOUCHABLE = (
    ("__entry_text_start", "__entry_text_end"),
    ("__noinstr_text_start", "__noinstr_text_end"),
    ("__irqentry_text_start", "__irqentry_text_end"),
    ("__kprobes_text_start", "__kprobes_text_end"),
)
"""Code that runs where pads may not be mapped (page-table isolation), or must not be probed."""

_NOTRACE = {
    **dict.fromkeys(("__switch_to_asm", "__switch_to"), "it returns in another task"),
    **dict.fromkeys(
        ("ret_from_fork", "rewind_stack_and_make_dead", "do_exit", "do_group_exit", "panic"),
        "it does not return",
    ),
    **dict.fromkeys(
        ("__fentry__", "ftrace_caller", "ftrace_regs_caller", "return_to_handler"),
        "it looks at its own return address",
    ),
}
"""Callees that are never called through a pad, by symbol, and why."""

_SLEEPS = frozenset(
    (
        *("schedule", "__schedule", "schedule_preempt_disabled", "schedule_idle", "schedule_user"),
        *("schedule_rtlock", "rt_mutex_schedule"),  # for a lock, in a kernel with PREEMPT_RT
    )
)
_IS_PREEMPTED = frozenset(
    (
        *("preempt_schedule", "preempt_schedule_common", "preempt_schedule_notrace"),
        *("preempt_schedule_thunk", "preempt_schedule_notrace_thunk", "__cond_resched"),
        "preempt_schedule_irq",
    )
)
"""The scheduler's functions, which are not looked into: other tasks run meanwhile, and on other
stacks."""

_WAITS = re.compile(r"(?:io_|rt_mutex_)?schedule\w*|__schedule\w*")
"""Functions that only pass on that somebody else wants to sleep."""

_SWITCHED = ("finish_task_switch", "finish_task_switch.isra.0", "finish_task_switch.constprop.0")
_MODULES, _MODULES_END = 0xFFFF_FFFF_A000_0000, 0xFFFF_FFFF_FF00_0000
"""Where modules may be."""

_LANDING = frozenset(bytes.fromhex(code) for code in ("f30f1efa", "660f1f00", "0f1f40d6"))
"""What functions begin with that is no part of them: ``endbr64`` of kernels with indirect branch
tracking, and what the kernel overwrites it with where nothing leads to indirectly (``ibt.h``)."""


class KernelLinkage(Linkage):
    """Where a kernel's calls lead: static ones through a jump that the kernel patches."""

    def resolve(self, address: int, depth: int = 0) -> tuple[int, str | None] | None:
        names = self._program.names.at(address) if depth < 4 else []
        if any(name.startswith(_STATIC_CALL) for name in names):
            code = self._program.read(address, 5)
            if code[0] == _JUMP:
                return self.resolve(target_of(address, code), depth + 1)
        return address, None


class KernelNames(Names):
    """What a kernel's functions are called, as far as its vmlinux tells."""

    def __init__(self, program: KernelProgram, memory: Memory) -> None:
        super().__init__(program)
        self._known, self._memory = program, memory

    def untold(self, spec: str) -> str:
        if self._known.kernel.image.has_section(".debug_info"):
            return ""
        bare = "; this vmlinux has no debugging information, which tells"
        scope, name = split_spec(spec)
        if scope is None or scope.endswith("!"):
            return f"{bare} what was inlined, and into what"
        known = len(find_symbols([(self._known.kernel.image.symbols, 0)], name))
        return f"{bare} source files" + (f": take {name}" if known == 1 else "")

    def operations(self, name: str) -> list[int]:
        place, size = self._known.value(name), self._known.kernel.image.sizes.get(name, 0)
        if place is None or not 8 <= size <= _LARGEST_OPERATIONS:
            return []
        raw = self._memory.read(place, size & ~7)
        found = dict.fromkeys(address for (address,) in struct.iter_unpack("<Q", raw))
        return [
            address
            for address in found
            if self._known.is_code(address) and self.function_at(address).address == address
        ]


class KernelOutlines(Outlines):
    """The functions of a kernel, as its files tell."""

    def landing_pads(self, address: int) -> frozenset[int]:
        return frozenset()  # C has no exceptions


class KernelBytes(LiveBytes):
    """A kernel's bytes, without what darc and others who trace it wrote there."""

    def __init__(self, program: KernelProgram, target: Target) -> None:
        super().__init__(program, target)
        self._foreign = program.foreign_probes

    def read(self, address: int, size: int) -> bytes:
        return self._foreign.over(address, super().read(address, size))


class KernelPatchable(Patchable):
    """What may be changed in a kernel's code."""

    may_displace = False  # a task that sleeps or was preempted may stand anywhere

    sees_callers = False
    """A kernel's functions tell tracers alone who has called them."""

    def __init__(self, program: KernelProgram) -> None:
        super().__init__(program)
        self._value = program.value

    def why_notrace(self, function: Function) -> str | None:
        return _NOTRACE.get(function.symbol)

    def site_problem(self, site: Site) -> str | None:
        if site.displaced:
            # A task that sleeps or was preempted may stand in the middle of several.
            return "the call is shorter than a jump"
        return self.untouchable(site.patch)

    def ordinary_code(self) -> list[range]:
        """Nobody asks: calls have no landings in a kernel, and it makes no such code."""
        return []

    def untouchable(self, address: int) -> str | None:
        """Why nothing may be patched at ``address``."""
        if any(address in places for places in self._untouchable):
            return "it stands in code of the kernel's entries, which must not be touched"
        return None

    @functools.cached_property
    def _untouchable(self) -> list[range]:
        places = ((self._value(first), self._value(last)) for first, last in _UNTOUCHABLE)
        return [range(start, end) for start, end in places if start is not None and end is not None]


class KernelProgram(Program):
    """The running kernel. Its modules are looked for once they are asked for: it takes a while."""

    _linkage_type = KernelLinkage

    def __init__(
        self,
        target: Target,
        kernel: KernelModule,
        load: Callable[[], Sequence[Module]],
        devices: Devices | None = None,
    ) -> None:
        """``load`` finds the modules; ``devices`` tell whose interrupts are whose."""
        self.kernel = kernel
        self._handlers = InterruptHandlers(self, devices)
        self._load: Callable[[], Sequence[Module]] | None = load
        self._loaded: tuple[Module, ...] = (kernel,)
        self.foreign_probes = ForeignProbes(self, kernel)
        super().__init__(target, Path("/"), _code(self._loaded))
        self.live = KernelBytes(self, target)
        self.names = KernelNames(self, target.memory)
        self.outlines = KernelOutlines(self)
        self.patchable: KernelPatchable = KernelPatchable(self)
        self.interrupts = tuple(self._handlers.sites())

    def _find_modules(self, known: Mapping[tuple[str, int], Module]) -> Iterator[Module]:
        return iter(self._loaded)

    def update(self, regions: Iterable[Region]) -> None:
        super().update(regions)
        self.sequences = Sequences(self._target, ())  # a kernel has none: it ends those of programs

    def load_modules(self) -> None:
        """From now on modules are known as well."""
        if self._load is None:
            return
        load, self._load = self._load, None
        try:
            self._loaded = (self.kernel, *load())
        except (FormatError, TargetError) as error:
            self.problems.append(f"the kernel's modules cannot be read: {error}")
        self.update(_code(self._loaded))

    def look_again(self) -> None:
        """Modules may have been loaded or unloaded."""
        self.update(_code(self._loaded))

    def module_at(self, address: int) -> Module | None:
        if self._load is not None and address >= _MODULES and address < _MODULES_END:
            self.load_modules()
        return super().module_at(address)

    def is_code(self, address: int) -> bool:
        return self.module_at(address) is not None

    def code_among(self, addresses: Sequence[int]) -> Iterator[tuple[int, int]]:
        return among(addresses, ((module.start, module.end) for module in self.modules))

    @property
    def first_file(self) -> Module:
        return self.kernel

    @property
    def has_more(self) -> bool:
        return self._load is not None

    def look_further(self) -> None:
        self.load_modules()

    def value(self, name: str) -> int | None:
        """The live address of a kernel's symbol."""
        return live_value(self.kernel.image, name, self.kernel.bias)

    # --------------------------------------------------------------------- code

    def thunks(self, target: int) -> Thunk | None:
        """Retpolines and return thunks."""
        for name in self.names.at(target):
            if _RETURN_THUNK.fullmatch(name):
                return Thunk(None)
            if found := _INDIRECT_THUNK.fullmatch(name):
                return Thunk(found[1])
        return None

    def is_thunk(self, address: int) -> bool:
        return any(map(_INDIRECT_THUNK.fullmatch, self.names.at(address)))

    def forget_code(self) -> None:
        super().forget_code()
        self.foreign_probes.forget()

    def function(self, entry: int) -> FunctionCode:
        found = self._functions.get(entry)
        if found is not None:
            return found
        found = super().function(entry)
        if self.foreign_probes.see_through(self.way_in(entry), found):
            del self._functions[entry]
            found = super().function(entry)
        found.sites[:] = [self._with_nops(site, found) for site in found.sites]
        self.foreign_probes.leave_alone(found)
        if found.sites and self.names.function_at(entry).symbol in _SLEEPS | _IS_PREEMPTED:
            found.sites.clear()
        return found

    # ---------------------------------------------- calls where there are no retpolines

    def _with_nops(self, site: Site, function: FunctionCode) -> Site:
        """With the nops behind a short call or jump through a register: where there are no
        retpolines, the kernel has written both over what its compiler wrote."""
        behind = int(site.instruction.next_ip)
        indirect = site.kind.is_indirect
        if not indirect or site.thunk is not None or site.slot is None:
            return site  # whatever stands behind it
        if site.instruction.len >= PATCH_LENGTH:
            return site  # newer kernels fill it up by prefixes: a call fits as it is
        end = next(end for start, end in function.ranges if start <= site.address < end)
        rest = decode(self.read(behind, min(end - behind, PATCH_LENGTH)), behind)
        if site.kind is CallKind.INDIRECT:
            rest = rest[:1]  # a task may come back to it, but not to one behind it
        end = behind
        for nop in itertools.takewhile(is_padding, rest):
            if end < site.address + PATCH_LENGTH:
                end = int(nop.next_ip)
        length = end - site.address
        inside = range(site.address + 1, end)
        if length < PATCH_LENGTH or not function.targets.isdisjoint(inside):
            return site
        site = replace(site, patch=site.address, length=length, displaced=(), problem=None)
        if site.kind is CallKind.TAIL_INDIRECT:
            return replace(site, back=end, is_short=False)
        return replace(site, nop=end - behind, is_short=False)

    @property
    def has_nops_behind_calls(self) -> bool:
        """Whether it has replaced its compiler's calls of thunks by shorter ones, see above."""
        places = self.kernel.image.relative_places(".retpoline_sites")
        start, end = self.value("_stext"), self.value("_etext")  # what comes behind is freed
        assert start is not None
        assert end is not None
        live = [at for place in places if start <= (at := place + self.kernel.bias) < end]
        every = max(1, len(live) // _SAMPLE)  # many a file begins with jumps alone
        return any(map(self._is_short_call, live[::every]))

    def _is_short_call(self, address: int) -> bool:
        call = decode(self.read(address, LONGEST_INSTRUCTION), address)[0]
        return is_indirect_call(call) and call.len < PATCH_LENGTH

    def way_in(self, entry: int) -> int:
        return entry + 4 if self.read(entry, 4) in _LANDING else entry

    def is_jumped_into(self, start: int, end: int) -> bool:
        # Every patch is of one instruction (site_problem), and no jump leads into one.
        return False

    # ------------------------------------------------------------ the scheduler

    @functools.cached_property
    def switch_place(self) -> int | None:
        """The scheduler's function that is called where one task has left the processor, which is
        its first argument, and another one has it; ``None``: it is not certain that all of them
        come there."""
        schedule = self.value("__schedule")
        if schedule is None:
            return None
        code = read_function(schedule, self, self.thunks)  # not kept: it is not looked into
        called = {site.target for site in code.sites}
        found = [at for name in _SWITCHED if (at := self.value(name)) in called and at is not None]
        return found[0] if len(found) == 1 else None

    def meaning(self, node: Fnode) -> Meaning | None:
        symbol = node.function.symbol
        if symbol == PREEMPTS or symbol in _IS_PREEMPTED:
            return Meaning(Cause.PREEMPTION)
        if node.site is not None and node.site.kind is CallKind.INTERRUPT:
            return Meaning(Cause.INTERRUPT, self._handlers.note(node.function))
        if symbol not in _SLEEPS:
            return None
        for above in reversed(node.route()[:-1]):
            if not _WAITS.fullmatch(above.function.symbol):
                return Meaning(Cause.BLOCKED, f"{above.function.name} slept")
        return Meaning(Cause.BLOCKED)


def _code(modules: Sequence[Module]) -> list[Region]:
    return [
        Region(start=m.start, end=m.end, permissions="r-x", offset=0, path=m.path) for m in modules
    ]
