"""Callees that are never called through a pad (notrace), and code that no call enters."""

from __future__ import annotations

import re

from darc.code.backlooks import LOOKS_BACK
from darc.code.labels import LABEL, is_inside_another
from darc.code.processor import (
    CALL_THROUGH,
    PATCH_LENGTH,
    STACK_CHECK,
    called_before,
    ends_in_call_through,
    splits_stack,
)
from darc.code.program import Program
from darc.model.errors import TargetError
from darc.model.ftree import CallKind, Function

RETURNS_TWICE = ("setjmp", "_setjmp", "__sigsetjmp", "sigsetjmp", "getcontext")

VFORK = ("vfork", "__vfork")
"""Behind such a call a child runs in the program's own memory, in which no debugger may be."""

_SWITCHES = ("swapcontext", "__swapcontext")
"""They keep their return address for one thing: to come back to it, which a landing is made for."""

NOTRACE = {
    **dict.fromkeys((*RETURNS_TWICE, *VFORK), "it returns twice"),
    **dict.fromkeys(
        (
            *("dlsym", "dlvsym", "dlopen", "dlmopen", "__dlsym", "__dlopen"),
            *("dl_iterate_phdr", "__dl_iterate_phdr", "mcount", "__fentry__"),
        ),
        LOOKS_BACK,
    ),
    **dict.fromkeys(
        ("__morestack", "__morestack_non_split", "__morestack_large_model"),
        "it takes its arguments in registers of its own, and calls its caller",
    ),
    **dict.fromkeys(("clone", "__clone", "clone3", "__clone3"), "it returns on another stack"),
}
"""Callees that are never called through a pad, by symbol, and why."""

_NEVER_RETURN = frozenset(
    (
        *("abort", "exit", "_exit", "_Exit", "quick_exit", "pthread_exit", "thrd_exit"),
        *("__assert_fail", "__assert_perror_fail", "__assert_rtn", "__stack_chk_fail"),
        *("__stack_chk_fail_local", "__fortify_fail", "__chk_fail", "__libc_fatal"),
        *("longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "setcontext"),
        *("_Unwind_Resume", "__cxa_throw", "__cxa_rethrow", "__cxa_bad_cast", "__cxa_bad_typeid"),
        *("__cxa_pure_virtual", "__cxa_throw_bad_array_new_length", "__clang_call_terminate"),
        *("std::terminate", "__rust_start_panic", "rust_panic", "rust_begin_unwind"),
        *("panic", "nmi_panic", "do_exit", "do_group_exit", "rewind_stack_and_make_dead"),
    )
)
_ENDS_BADLY = re.compile(
    r"std::__throw_\w+|(core|std)::panicking::\w+|core::(option|result)::(unwrap|expect)_failed"
    r"|core::slice::(index|copy_from_slice_impl)::\w+_fail|core::cell::panic_\w+"
    r"|core::str::slice_error_fail|alloc::alloc::handle_alloc_error"
    r"|alloc::raw_vec::(capacity_overflow|handle_error)"
)


def never_returns(callee: str | None) -> bool:
    """Whether a call of the function that is shown as ``callee`` ends its caller too: in no call of
    that which has returned was it made."""
    if callee is None:
        return False
    return callee in _NEVER_RETURN or _ENDS_BADLY.match(callee) is not None


NEVER_BACK = (
    *("longjmp", "_longjmp", "siglongjmp", "__libc_longjmp", "__libc_siglongjmp", "__longjmp"),
    *("__longjmp_chk", "____longjmp_chk", "_exit", "_Exit"),
)
"""Functions that leave their callers' frames or the program: no call of them ever ends."""

NEVER_CALLED = ("_start", "_dl_start_user", "__start_context", "__restore_rt")
"""Symbols of code that is not entered by a call, for where no frame information tells."""

_CANCELLED = ("__syscall_cp_asm", "__syscall_cancel_arch")
"""Their threads are cancelled only where they stand between two of their instructions (musl's
src/thread/pthread_cancel.c, and glibc's nptl/cancellation.c since 2.41)."""

SPLIT = "its stack grows in pieces (-fsplit-stack): it may go on in another one"
"""Why no function is timed that begins with a look at how much of its stack is left: where that is
too little ``__morestack`` calls it once more, behind its own call of that."""

_TAIL_DEPTH = 4
"""How many tail calls in a row are followed to a notrace callee."""


def why_notrace(program: Program, function: Function, depth: int = _TAIL_DEPTH) -> str | None:
    """Why a call of ``function`` is left alone: for itself, or for what it jumps to at its end,
    which sees the same return address. ``None`` when it is not."""
    if function.symbol.startswith("_Unwind_"):
        return "it walks the stack"
    if function.symbol in _SWITCHES:
        return None
    if depth < _TAIL_DEPTH:
        return _read_why(program, function, depth)
    key, unbound = (function.address, function.symbol), program.linkage.unbound
    if key not in program.patchable.notrace:
        reason = _read_why(program, function, depth)
        if program.linkage.unbound != unbound:
            return reason  # it may be another one when that is bound
        program.patchable.notrace[key] = reason
    return program.patchable.notrace[key]


def _read_why(program: Program, function: Function, depth: int) -> str | None:
    reason = NOTRACE.get(function.symbol) or program.patchable.why_notrace(function)
    module = program.module_at(function.address)
    if reason is None and program.patchable.sees_callers and _splits(program, function.address):
        return SPLIT
    if reason is not None or module is None or depth == 0:
        return reason
    if program.patchable.sees_callers and _ends_in_a_look(program, function.address, depth):
        return LOOKS_BACK
    if not module.image.dynamic.imports_any(NOTRACE):
        return None
    if not _may_end_in_one(program, function.address, depth):
        return None
    for site in program.function(function.address).sites:
        if site.kind is CallKind.TAIL and site.target is not None:
            reason = why_notrace(program, program.linkage.callee_at(site.target), depth - 1)
            if reason is not None:
                return reason
    return None


def entered_otherwise(program: Program, function: Function) -> str | None:
    """Why ``function`` cannot be timed at its first instruction: what lies on top of the stack
    there is no return address, as no call leads there (the first code of a program or a thread,
    the dynamic linker's trampolines, labels that look like functions), or somebody asks where in it
    a thread stands. ``None`` where it can."""
    address = function.address
    module = program.module_at(address)
    if module is None:
        return None
    if program.sequences.lie_between(address, address + 1):
        return "it begins with a restartable sequence (rseq), which may be executed nowhere else"
    if function.symbol in _CANCELLED:
        return "whether its thread may be cancelled is told by where it stands in it"
    own = address - module.bias
    if own == module.image.entry or function.symbol in NEVER_CALLED:
        return "it is not called: the program begins there, or comes back to it"
    if not module.image.frames.may_be_called(own):
        return "it is not called: its frame information knows of no caller's address there"
    extent = module.image.frames.extent(own)
    is_start = extent is not None and extent[0] == own
    if not is_start and _follows_call(program, address):
        return "it is not called: the call before it returns to it"
    return LABEL if is_inside_another(program, address) else None


def _splits(program: Program, address: int) -> bool:
    """Whether a function begins with a look at the end of its stack."""
    try:
        return splits_stack(program.read(address, STACK_CHECK))
    except TargetError:
        return False


def _follows_call(program: Program, address: int) -> bool:
    """Whether the bytes before ``address`` look like a call that returns to it."""
    try:
        before = program.read(address - CALL_THROUGH, CALL_THROUGH)
    except TargetError:
        return False  # nothing stands there
    target = called_before(before[-PATCH_LENGTH:], address)
    return ends_in_call_through(before) if target is None else program.is_code(target)


def _ends_in_a_look(program: Program, address: int, depth: int) -> bool:
    """Whether a part that was split off it, or what it jumps to at its end, looks at the return
    address of both."""
    seen = {address}
    ahead = program.jumps.out_of(address)
    for _ in range(depth):
        kept = (t for t in ahead if program.linkage.names_of(t).isdisjoint(_SWITCHES))
        ahead = frozenset(_part_around(program, _real(program, target)) for target in kept) - seen
        if any(map(program.back_looks.at_caller, ahead)):
            return True
        seen |= ahead
        ahead = frozenset().union(*map(program.jumps.out_of, ahead))
    return False


def _part_around(program: Program, target: int) -> int:
    """Where the part of a function begins that a jump to ``target`` leads into with the frame
    that the frame information tells of; ``target`` where that tells nothing."""
    module = program.module_at(target)
    own = None if module is None else module.image.frames.extent(target - module.bias)
    return target if module is None or own is None else own[0] + module.bias


def _may_end_in_one(program: Program, address: int, depth: int) -> bool:
    """Whether jumps out of the function may lead there in the end: cheap, as it is asked of
    thousands of callees."""
    seen: set[int] = set()
    ahead = program.jumps.out_of(address)
    for _ in range(depth):
        if any(not program.linkage.names_of(target).isdisjoint(NOTRACE) for target in ahead):
            return True
        seen |= ahead
        ahead = frozenset().union(*(program.jumps.out_of(_real(program, t)) for t in ahead)) - seen
    return False


def _real(program: Program, target: int) -> int:
    """Through a PLT entry that is bound by now."""
    resolved = program.linkage.resolve(target)
    return target if resolved is None else resolved[0]
