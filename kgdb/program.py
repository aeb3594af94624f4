"""A kernel as code: its functions under their live addresses, and what may not be patched in it."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from iced_x86 import Code, FlowControl, Instruction, Mnemonic, OpKind, Register

from darc.code.architecture import FunctionCode, Site
from darc.code.modules import Module
from darc.code.overlay import Overlay
from darc.code.processor import PATCH_LENGTH, decode, read_function
from darc.code.program import Program
from darc.code.spelling import find_symbols, split_spec
from darc.model.errors import FormatError, TargetError
from darc.model.ftree import CallKind, Cause, Fnode, Function
from darc.target.target import Region, Target
from kgdb.devices import Devices
from kgdb.image import KernelImage

_INDIRECT_THUNK = re.compile(
    r"__x86_indirect_(?:its_|call_|jump_)?thunk_(r(?:[abcd]x|[sbd][ip]|sp|bp|\d+))"
)
_RETURN_THUNK = re.compile(r"(?:\w+_)?return_thunk")
_STATIC_CALL = "__SCT__"
_CALL, _JUMP, _INT3 = 0xE8, 0xE9, 0xCC
_JUMP_SIZE = 5
_DIRECT = (_CALL, _JUMP)
_NOTHING = (Mnemonic.NOP, Mnemonic.INT3)
_SAMPLE = 16

TRACED = "a tracer of the kernel's own (ftrace) is active on it"
PROBED = "a kprobe or another debugger is active on it"

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
_PREEMPTS = "preempt_schedule_irq"
_DEVICES = "__common_interrupt"
_INTERRUPTS = (
    _DEVICES,
    "__sysvec_apic_timer_interrupt",
    "__sysvec_call_function",
    "__sysvec_call_function_single",
    "__sysvec_irq_work",
    "__sysvec_hyperv_callback",
    "__sysvec_hyperv_stimer0",
    "__sysvec_xen_hvm_callback",
    "__sysvec_kvm_asyncpf_interrupt",
    "irq_exit_rcu",
    _PREEMPTS,
)
"""What interrupts any function: handlers, soft interrupts behind them, and the scheduler where
another task is to run then."""

_HYPERVISORS = {"hyperv": 2, "xen": 4, "kvm": 5}
"""Of ``enum x86_hypervisor_type``, those whose handlers have their names."""

_VECTORS = {
    "__sysvec_apic_timer_interrupt": 0xEC,
    "__sysvec_hyperv_stimer0": 0xED,
    "__sysvec_hyperv_callback": 0xF3,
    "__sysvec_xen_hvm_callback": 0xF3,
    "__sysvec_kvm_asyncpf_interrupt": 0xF3,
    "__sysvec_irq_work": 0xF6,
    "__sysvec_call_function_single": 0xFB,
    "__sysvec_call_function": 0xFC,
}
"""irq_vectors.h"""

_MODULES, _MODULES_END = 0xFFFF_FFFF_A000_0000, 0xFFFF_FFFF_FF00_0000
"""Where modules may be."""

_NOP = bytes.fromhex("0f1f440000")
_LANDING = frozenset(bytes.fromhex(code) for code in ("f30f1efa", "660f1f00", "0f1f40d6"))
"""What functions begin with that is no part of them: ``endbr64`` of kernels with indirect branch
tracking, and what the kernel overwrites it with where nothing leads to indirectly (``ibt.h``)."""


class KernelProgram(Program):
    """The running kernel. Its modules are looked for once they are asked for: it takes a while."""

    may_displace = False  # a task that sleeps or was preempted may stand anywhere

    def __init__(
        self,
        target: Target,
        kernel: Module,
        load: Callable[[], Sequence[Module]],
        devices: Devices | None = None,
    ) -> None:
        """``load`` finds the modules; ``devices`` tell whose interrupts are whose."""
        self.kernel = kernel
        self._devices = devices
        self._load: Callable[[], Sequence[Module]] | None = load
        self._loaded: tuple[Module, ...] = (kernel,)
        self._probed = Overlay()
        """What stood where others have probes of their own: see :meth:`_see_through_probes`."""
        super().__init__(target, Path("/"), _code(self._loaded))
        self.interrupts = tuple(self._handlers())

    def _find_modules(self, known: dict[tuple[str, int], Module]) -> Iterator[Module]:
        return iter(self._loaded)

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

    def in_sequence(self, start: int, end: int) -> bool:
        """A kernel has no restartable sequences: it ends those of programs."""
        return False

    def module_at(self, address: int) -> Module | None:
        if self._load is not None and address >= _MODULES and address < _MODULES_END:
            self.load_modules()
        return super().module_at(address)

    def is_code(self, address: int) -> bool:
        return self.module_at(address) is not None

    @property
    def has_more(self) -> bool:
        return self._load is not None

    def look_further(self) -> None:
        self.load_modules()

    def untold(self, spec: str) -> str:
        if self.kernel.image.has_section(".debug_info"):
            return ""
        bare = "; this vmlinux has no debugging information, which tells"
        scope, name = split_spec(spec)
        if scope is None or scope.endswith("!"):
            return f"{bare} what was inlined, and into what"
        known = len(find_symbols([(self.kernel.image, 0)], name))
        return f"{bare} source files" + (f": take {name}" if known == 1 else "")

    def value(self, name: str) -> int | None:
        """The live address of a kernel's symbol."""
        found = self.kernel.image.values.get(name)  # type: ignore[attr-defined]
        return None if found is None else int(found) + self.kernel.bias

    # --------------------------------------------------------------------- code

    def names_at(self, address: int) -> list[str]:
        """Every name that stands exactly at a live address."""
        module = self.module_at(address)
        return [] if module is None else module.image.names_at(address - module.bias)

    def thunks(self, instruction: Instruction) -> Instruction | None:
        """Retpolines and return thunks: what a call or jump to one does in the end."""
        if not instruction.op_count or instruction.op0_kind != OpKind.NEAR_BRANCH64:
            return None
        flow = instruction.flow_control
        if flow not in (FlowControl.CALL, FlowControl.UNCONDITIONAL_BRANCH):
            return None
        meant = self._meant(int(instruction.near_branch_target), flow)
        if meant is not None:
            meant.len = instruction.len  # before the address, which is counted from the end
            meant.ip = instruction.ip
        return meant

    def _meant(self, target: int, flow: int) -> Instruction | None:
        for name in self.names_at(target):
            if flow == FlowControl.UNCONDITIONAL_BRANCH and _RETURN_THUNK.fullmatch(name):
                return Instruction.create(Code.RETNQ)
            if found := _INDIRECT_THUNK.fullmatch(name):
                code = Code.CALL_RM64 if flow == FlowControl.CALL else Code.JMP_RM64
                return Instruction.create_reg(code, getattr(Register, found[1].upper()))
        return None

    def resolve(self, address: int, depth: int = 0) -> tuple[int, str | None] | None:
        """Static calls lead through a jump that the kernel patches."""
        if depth < 4 and any(name.startswith(_STATIC_CALL) for name in self.names_at(address)):
            code = self.read(address, 5)
            if code[0] == _JUMP:
                further = address + 5 + int.from_bytes(code[1:], "little", signed=True)
                return self.resolve(further, depth + 1)
        return address, None

    def read(self, address: int, size: int) -> bytes:
        return self._probed.over(address, super().read(address, size))

    def forget_code(self) -> None:
        super().forget_code()
        self._probed.clear()

    def function(self, entry: int) -> FunctionCode:
        found = self._functions.get(entry)
        if found is not None:
            return found
        found = super().function(entry)
        if self._see_through_probes(entry, found):
            del self._functions[entry]
            found = super().function(entry)
        found.sites[:] = [self._with_nops(site, found) for site in found.sites]
        self._leave_probes_alone(found)
        if found.sites and self.function_at(entry).symbol in _SLEEPS | _IS_PREEMPTED:
            found.sites.clear()
        return found

    # ------------------------------------------------------ probes of the kernel's own

    def _see_through_probes(self, entry: int, found: FunctionCode) -> bool:
        """Whether somebody else has probes in a function: a kprobe, ftrace, a debugger from
        outside. Decoded with them, the bytes behind would be taken for other instructions."""
        before = len(self._probed)
        way_in = self.way_in(entry)
        live = self.read(way_in, _JUMP_SIZE)
        if live[0] == _CALL and self.is_for_tracers(way_in):
            self._probed[way_in] = _NOP
        for start, end in found.parts:
            for at, own in self._others(start, end):
                self._probed[at] = own
        return len(self._probed) > before

    def is_for_tracers(self, address: int) -> bool:
        """Whether the kernel was built with a place for ftrace there."""
        own = self._own(address, _JUMP_SIZE)
        if not own:  # a tracer's trampoline is no code that anybody knows
            return not self._leads_into_code(address, self.read(address, _JUMP_SIZE))
        if own[0] != _CALL:
            return own == _NOP
        return "__fentry__" in self.names_at(_target(address, own))

    def _others(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Where instructions of the kernel's file are a trap now, or jump out of all code, and the
        instructions that they stand for. (Other changes are the kernel's own: alternatives,
        static calls and branches, thunks.)"""
        own, live = self._own(start, end - start), self.read(start, end - start)
        strange = {
            at
            for at, byte in enumerate(live)
            if byte in (_INT3, _JUMP) and own[at : at + 1] != live[at : at + 1]
        }
        if not strange or len(own) < len(live):
            return
        for instruction in decode(own, start):
            at = int(instruction.ip) - start
            if at not in strange:
                continue
            if live[at] == _INT3:
                yield start + at, own[at : at + 1] + live[at + 1 : at + instruction.len]
            elif not self._leads_into_code(start + at, live[at : at + _JUMP_SIZE]):
                yield start + at, own[at : self._whole(own, at)]

    def _own(self, address: int, size: int) -> bytes:
        """What the kernel's file has; of modules there is no file."""
        start, end = self.kernel.start, self.kernel.end
        if not start <= address < end:
            return b""
        return self.kernel.image.content(address - self.kernel.bias, size)  # type: ignore[attr-defined,no-any-return]

    def _leads_into_code(self, address: int, code: bytes) -> bool:
        """Whether a call or jump does; bytes that are too few for one are none."""
        return len(code) < _JUMP_SIZE or self.is_code(_target(address, code))

    @staticmethod
    def _whole(own: bytes, at: int) -> int:
        """Where the instructions end that a jump at ``at`` stands over."""
        end = at
        while end < at + _JUMP_SIZE:
            end += decode(own[end : end + 16], end)[0].len
        return end

    def _leave_probes_alone(self, found: FunctionCode) -> None:
        """A call site that somebody else's probe stands in is left alone."""
        inside = [
            (at, at + len(own))
            for at, own in self._probed.items()
            if any(start <= at < end for start, end in found.parts)
        ]
        for index, site in enumerate(found.sites):
            last = max(site.back, site.patch + site.length)
            if any(at < last and site.patch < end for at, end in inside):
                found.sites[index] = replace(site, problem=PROBED, is_short=False)

    # ---------------------------------------------- calls where there are no retpolines

    def _with_nops(self, site: Site, function: FunctionCode) -> Site:
        """With the nops behind a short call or jump through a register: where there are no
        retpolines, the kernel has written both over what its compiler wrote."""
        behind = int(site.instruction.next_ip)
        indirect = site.kind.is_indirect
        if not indirect or site.thunk is not None or site.slot is None:
            return site  # whatever stands behind it
        end = next(end for start, end in function.parts if start <= site.address < end)
        rest = decode(self.read(behind, min(end - behind, PATCH_LENGTH)), behind)
        if site.kind is CallKind.INDIRECT:
            rest = rest[:1]  # a task may come back to it, but not to one behind it
        end = behind
        for nop in itertools.takewhile(lambda one: one.mnemonic in _NOTHING, rest):
            if end < site.address + PATCH_LENGTH:
                end = int(nop.next_ip)
        length = end - site.address
        inside = range(site.address + 1, end)
        if length < PATCH_LENGTH or not function.targets.isdisjoint(inside):
            return site
        site = replace(site, patch=site.address, length=length, displaced=(), problem=None)
        if site.kind is CallKind.TAIL_INDIRECT:
            return replace(site, back=end, is_short=False)
        return replace(site, nop=end - behind, is_short=True)

    @property
    def has_nops_behind_calls(self) -> bool:
        """Whether it has replaced its compiler's calls of thunks by shorter ones, see above."""
        image = self.kernel.image
        assert isinstance(image, KernelImage)
        places = image.relative_places(".retpoline_sites")
        start, end = self.value("_stext"), self.value("_etext")  # what comes behind is freed
        assert start is not None
        assert end is not None
        live = (at for place in places if start <= (at := place + self.kernel.bias) < end)
        return any(self.read(at, 1)[0] not in _DIRECT for at in itertools.islice(live, _SAMPLE))

    def landing_pads(self, address: int) -> frozenset[int]:
        return frozenset()  # C has no exceptions

    def way_in(self, entry: int) -> int:
        return entry + 4 if self.read(entry, 4) in _LANDING else entry

    def is_jumped_into(self, start: int, end: int) -> bool:
        # Every patch is of one instruction (site_problem), and no jump leads into one.
        return False

    # ------------------------------------------------- interrupts and the scheduler

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

    def _handlers(self) -> Iterator[Site]:
        """Those that can be entered, each as a call that stands at its own entry."""
        for name in _INTERRUPTS:
            entry = self.value(name)
            if entry is None or not self._is_in_use(name):
                continue
            at = self.way_in(entry)
            if self.read(at, 5) == _NOP:
                nop, kind = decode(_NOP, at)[0], CallKind.INTERRUPT
                is_one = self._devices is None or name != _DEVICES
                yield Site(
                    address=entry,
                    kind=kind,
                    patch=at,
                    length=5,
                    back=at + 5,
                    target=None,
                    pointer=None,
                    instruction=nop,
                    slot=None,
                    is_own_callee=is_one,
                )

    def _is_in_use(self, name: str) -> bool:
        owner = next((own for own in _HYPERVISORS if f"_{own}_" in name), None)
        place = self.value("x86_hyper_type")
        if owner is None or place is None:
            return True
        return int.from_bytes(self.read(place, 4), "little") == _HYPERVISORS[owner]

    def meaning(self, node: Fnode) -> tuple[Cause, str | None] | None:
        symbol = node.function.symbol
        if symbol == _PREEMPTS or symbol in _IS_PREEMPTED:
            return Cause.PREEMPTION, None
        if node.site is not None and node.site.kind is CallKind.INTERRUPT:
            return Cause.INTERRUPT, self._vector(node.function)
        if symbol not in _SLEEPS:
            return None
        for above in reversed(node.route()[:-1]):
            if not _WAITS.fullmatch(above.function.symbol):
                return Cause.BLOCKED, f"{above.function.name} slept"
        return Cause.BLOCKED, None

    def _vector(self, handler: Function) -> str | None:
        vector = _VECTORS.get(handler.symbol)
        if vector is not None:
            return f"vector {vector:#x}"
        return self._devices.note(handler.address) if self._devices is not None else None

    # ------------------------------------------------------------------- refusals

    sees_callers = False
    """A kernel's functions tell tracers alone who has called them."""

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
        places = ((self.value(first), self.value(last)) for first, last in _UNTOUCHABLE)
        return [range(start, end) for start, end in places if start is not None and end is not None]


def _target(address: int, code: bytes) -> int:
    """Where a call or jump of five bytes leads."""
    return address + _JUMP_SIZE + int.from_bytes(code[1:_JUMP_SIZE], "little", signed=True)


def _code(modules: Sequence[Module]) -> list[Region]:
    return [
        Region(start=m.start, end=m.end, permissions="r-x", offset=0, path=m.path) for m in modules
    ]
