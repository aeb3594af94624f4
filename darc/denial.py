"""Callees that are never called through a pad."""

from __future__ import annotations

from darc.code.program import Program, jumps
from darc.errors import TargetError
from darc.ftree import CallKind, Function

RETURNS_TWICE = ("setjmp", "_setjmp", "__sigsetjmp", "sigsetjmp", "getcontext")

DENIED = {
    **dict.fromkeys((*RETURNS_TWICE, "vfork", "__vfork"), "it returns twice"),
    **dict.fromkeys(
        ("dlsym", "dlvsym", "dlopen", "dlmopen", "__dlsym", "__dlopen", "mcount", "__fentry__"),
        "it looks at its own return address",
    ),
    **dict.fromkeys(("clone", "__clone", "clone3", "__clone3"), "it returns on another stack"),
}
"""Callees that are never called through a pad, by symbol, and why."""

_TAIL_DEPTH = 4
"""How many tail calls in a row are followed to a denied callee."""


def denied(program: Program, function: Function, depth: int = _TAIL_DEPTH) -> str | None:
    """Why a call of ``function`` is left alone: for itself, or for what it jumps to at its end,
    which sees the same return address. ``None`` when it is not."""
    if function.symbol.startswith("_Unwind_"):
        return "it walks the stack"
    reason = DENIED.get(function.symbol)
    module = program.module_at(function.address)
    if reason is not None or module is None or depth == 0:
        return reason
    if not module.image.imports_any(DENIED):
        return None
    if not _may_end_in_one(program, function.address, depth):
        return None
    for site in program.function(function.address).sites:
        if site.kind is CallKind.TAIL and site.target is not None:
            reason = denied(program, program.callee_at(site.target), depth - 1)
            if reason is not None:
                return reason
    return None


def _may_end_in_one(program: Program, address: int, depth: int) -> bool:
    """Whether anything in a function's bytes looks like a jump that ends in a denied one: cheap, as
    it is asked of thousands of callees, whose code is not decoded for it."""
    extent = program.extent(address)
    if extent is None or depth == 0:
        return False
    try:
        code = program.read(extent[0], extent[1] - extent[0])
    except TargetError:
        return False
    for _, target in jumps(code, extent[0]):
        if extent[0] <= target < extent[1] or not program.is_code(target):
            continue
        if program.callee_at(target).symbol in DENIED:
            return True
        if program.jump_slot(target) is None and _may_end_in_one(program, target, depth - 1):
            return True
    return False
