"""What a process's seccomp filters do at the system calls that darc makes in it.

A filter may end the program for a call (``SECCOMP_RET_KILL_PROCESS``), have it come to the program
itself, or fail it, so that a thread goes by where it was to stop. Where the debugger may read the
filters, that is known beforehand: each is a program in classic BPF, which has no loops, and is run
here with the call's number alone (Linux, ``Documentation/userspace-api/seccomp_filter.rst``;
``seccomp_check_filter`` in ``kernel/seccomp.c`` has the instructions that there may be).
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from darc.code.system_calls import AUDIT_ARCHITECTURE, SystemCall
from darc.debuggee.procfs import in_sandbox_of_its_own
from darc.target.target import Target

MADE: Final = (
    SystemCall.MMAP,
    SystemCall.MPROTECT,
    SystemCall.MUNMAP,
    SystemCall.MADVISE,
    SystemCall.RT_SIGPROCMASK,
    SystemCall.RT_SIGTIMEDWAIT,
    SystemCall.RESTART_SYSCALL,
    SystemCall.TGKILL,
    SystemCall.PPOLL,
)
"""Those that a stopped thread makes for darc. The agent makes none where there are filters."""

_INSTRUCTION = struct.Struct("<HBBI")
"""``struct sock_filter``: code, jt, jf, k."""

_ALLOWED = (0x7FFF0000, 0x7FFC0000)
"""``SECCOMP_RET_ALLOW`` and ``_LOG``, whose low 16 bits are data."""
_ACTION = 0xFFFF0000
_MOST_STEPS = 20_000

_WORD = 0xFFFFFFFF
_DATA_BYTES = 64  # struct seccomp_data
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4

# linux/bpf_common.h
_LD, _LDX, _ST, _STX, _ALU, _JMP, _RET = range(7)
_IMM, _ABS, _MEM, _LEN = 0x00, 0x20, 0x60, 0x80
_BY_X, _OF_A = 0x08, 0x10
_JA = 0x00
_HOLDS: Mapping[int, Callable[[int, int], object]] = {
    0x10: operator.eq,
    0x20: operator.gt,
    0x30: operator.ge,
    0x40: operator.and_,
}
_NEG, _DIV = 0x80, 0x30
_MADE_OF: Mapping[int, Callable[[int, int], int]] = {
    0x00: operator.add,
    0x10: operator.sub,
    0x20: operator.mul,
    _DIV: operator.floordiv,
    0x40: operator.or_,
    0x50: operator.and_,
    0x60: lambda a, by: a << (by & 31),
    0x70: lambda a, by: a >> (by & 31),
    0xA0: operator.xor,
}
_TAX, _TXA = 0x07, 0x87


def may_forbid(target: Target, pid: int) -> bool:
    """Whether seccomp may end the process, which ``target`` has stopped, for what darc asks of the
    kernel, or keep it from coming back."""
    return in_sandbox_of_its_own(pid) and not target.admits_calls()


def admits(filters: Iterable[bytes], calls: Iterable[int] = MADE) -> bool:
    """Whether each of the ``filters`` (arrays of ``struct sock_filter``) lets all of these system
    calls through, whatever their arguments are. One that is not understood does not."""
    numbers = list(calls)
    return all(_lets_through(one, number) for one in filters for number in numbers)


def _lets_through(raw: bytes, number: int) -> bool:
    if not raw or len(raw) % _INSTRUCTION.size:
        return False
    try:
        found = _outcomes(list(_INSTRUCTION.iter_unpack(raw)), number)
        return all(one is not None and one & _ACTION in _ALLOWED for one in found)
    except _UnknownError:
        return False


class _UnknownError(Exception):
    """It cannot be told."""


@dataclass(frozen=True)
class _Machine:
    """Of the filter's machine; what is not known is ``None``."""

    at: int = 0
    a: int | None = 0
    x: int | None = 0
    memory: tuple[int | None, ...] = (0,) * 16


def _outcomes(code: Sequence[tuple[int, int, int, int]], number: int) -> Iterator[int | None]:
    """What the filter may return, on every way that it may go."""
    waiting, seen = [_Machine()], set[_Machine]()
    while waiting:
        state = waiting.pop()
        if state in seen:
            continue
        seen.add(state)
        if len(seen) > _MOST_STEPS or not 0 <= state.at < len(code):
            raise _UnknownError
        operation, if_true, if_false, k = code[state.at]
        kind = operation & 7
        if kind == _RET:
            yield state.a if operation & _OF_A else k
        elif kind == _JMP:
            waiting += [
                replace(state, at=state.at + 1 + by)
                for by in _jumps(operation, state, (if_true, if_false, k))
            ]
        else:
            waiting.append(replace(_done(operation, k, state, number), at=state.at + 1))


def _jumps(operation: int, state: _Machine, by: tuple[int, int, int]) -> tuple[int, ...]:
    """How far it goes on, on each way that it may."""
    if_true, if_false, k = by
    how = operation & 0xF0
    if how == _JA:
        return (k,)
    if how not in _HOLDS:
        raise _UnknownError
    a, other = state.a, state.x if operation & _BY_X else k
    if a is None or other is None:
        return (if_true, if_false)
    return (if_true if _HOLDS[how](a, other) else if_false,)


def _done(operation: int, k: int, state: _Machine, number: int) -> _Machine:
    """The state behind an instruction that goes on to the next one."""
    kind, mode = operation & 7, operation & 0xE0
    if kind in (_LD, _LDX):
        value = _loaded(mode, k, state, number)
        return replace(state, a=value) if kind == _LD else replace(state, x=value)
    if kind in (_ST, _STX) and k < len(state.memory):
        value = state.a if kind == _ST else state.x
        return replace(state, memory=(*state.memory[:k], value, *state.memory[k + 1 :]))
    if kind == _ALU:
        return replace(state, a=_result(operation, state.a, state.x if operation & _BY_X else k))
    if operation == _TAX:
        return replace(state, x=state.a)
    if operation == _TXA:
        return replace(state, a=state.x)
    raise _UnknownError


def _loaded(mode: int, k: int, state: _Machine, number: int) -> int | None:
    if mode == _ABS:
        return {_NUMBER_AT: number, _ARCHITECTURE_AT: AUDIT_ARCHITECTURE}.get(k)
    if mode == _MEM and k < len(state.memory):
        return state.memory[k]
    if mode not in (_IMM, _LEN):
        raise _UnknownError
    return k if mode == _IMM else _DATA_BYTES


def _result(operation: int, a: int | None, other: int | None) -> int | None:
    how = operation & 0xF0
    if how == _NEG:
        return None if a is None else -a & _WORD
    if how not in _MADE_OF or (how == _DIV and not other):
        raise _UnknownError
    return None if a is None or other is None else _MADE_OF[how](a, other) & _WORD
