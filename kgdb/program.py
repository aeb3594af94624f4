"""A kernel as code: its functions under their live addresses, and what may not be patched in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from iced_x86 import Code, FlowControl, Instruction, OpKind, Register

from darc.code import x86_64
from darc.code.program import Module, Program
from darc.ftree import Function
from darc.target import Region, Target

_INDIRECT_THUNK = re.compile(
    r"__x86_indirect_(?:its_|call_|jump_)?thunk_(r(?:[abcd]x|[sbd][ip]|sp|bp|\d+))"
)
_RETURN_THUNK = re.compile(r"(?:\w+_)?return_thunk")
_STATIC_CALL = "__SCT__"
_JUMP = 0xE9

_UNTOUCHABLE = (
    ("__entry_text_start", "__entry_text_end"),
    ("__noinstr_text_start", "__noinstr_text_end"),
    ("__irqentry_text_start", "__irqentry_text_end"),
    ("__kprobes_text_start", "__kprobes_text_end"),
)
"""Code that runs where pads may not be mapped (page-table isolation), or must not be probed."""

_DENIED = {
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

_CLOSED = ("__schedule",)
"""Functions that are not looked into: the stack is another one afterwards."""


class KernelProgram(Program):
    """The running kernel. ``modules`` are the kernel itself and what it has loaded."""

    def __init__(self, target: Target, modules: Sequence[Module], code: Sequence[Region]) -> None:
        """``code`` is where there are functions to read."""
        self._loaded = tuple(modules)
        self.kernel = modules[0]
        super().__init__(target, Path("/"), code)

    def _find_modules(self, known: dict[tuple[str, int], Module]) -> Iterator[Module]:
        return iter(self._loaded)

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

    def function(self, entry: int) -> x86_64.Function:
        found = super().function(entry)
        if found.sites and self.function_at(entry).symbol in _CLOSED:
            found.sites.clear()
        return found

    def is_jumped_into(self, start: int, end: int) -> bool:
        # Every patch is of one instruction (site_problem), and no jump leads into one.
        return False

    # ------------------------------------------------------------------- refusals

    def denial(self, function: Function) -> str | None:
        return _DENIED.get(function.symbol)

    def site_problem(self, site: x86_64.Site) -> str | None:
        if site.displaced:
            # A task that sleeps or was preempted may stand in the middle of several.
            return "the call is shorter than a jump"
        return self.untouchable(site.patch)

    def untouchable(self, address: int) -> str | None:
        """Why nothing may be patched at ``address``."""
        for first, last in _UNTOUCHABLE:
            start, end = self.value(first), self.value(last)
            if start is not None and end is not None and start <= address < end:
                return "it stands in code of the kernel's entries, which must not be touched"
        return None
