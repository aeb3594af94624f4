"""Callees that are never called through a pad."""

from __future__ import annotations

from darc.code.program import Program
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
    reason = DENIED.get(function.symbol) or program.denial(function)
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
    """Whether any jump in the function's bytes, or what looks like one, may lead there in the end:
    cheap, as it is asked of thousands of callees."""
    seen: set[int] = set()
    ahead = program.far_jumps(address)
    for _ in range(depth):
        if any(not program.names_of(target).isdisjoint(DENIED) for target in ahead):
            return True
        seen |= ahead
        ahead = frozenset().union(*map(program.far_jumps, ahead)) - seen
    return False
