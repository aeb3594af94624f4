"""A call in a stopped thread that comes back by itself when the debugger is gone.

A debugger's own way of calling lets the function return to a breakpoint; were the debugger killed
meanwhile, the program would end there. Here the thread is sent through a few instructions in
padding of the program's code: they call the function, ring (a signal that is ignored by default,
which stops the thread for a debugger), and give the thread back all of its registers and its place.
The debugger may do the last part itself, and may end between any two of its steps.

For functions that use no vector registers. How a thread rings is said in ``agent/stubs.S``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WORD = (1 << 64) - 1
_RED_ZONE = 128
_RESTART_SYSCALL = 219
RESTARTED = {-512 & WORD, -513 & WORD, -514 & WORD, -516 & WORD}
"""In rax: the kernel begins the system call anew that the thread was stopped in."""
_RESTART_BLOCK = -516 & WORD

_ENTRY = 2
_NOP = b"\x66\x90"
_MOV_RSP = b"\x48\xbc"
_MOV_RESULT = b"\x48\xa3"  # mov [address], rax
_POP = {
    "rax": b"\x58", "rcx": b"\x59", "rdx": b"\x5a", "rsi": b"\x5e", "rdi": b"\x5f",
    "r8": b"\x41\x58", "r9": b"\x41\x59", "r10": b"\x41\x5a", "r11": b"\x41\x5b",
    "eflags": b"\x9d",
}  # fmt: skip
_CALL_RAX, _SYSCALL = b"\xff\xd0", b"\x0f\x05"
_RET_OVER_RED_ZONE = b"\xc2" + struct.pack("<H", _RED_ZONE)
_TGKILL, _PPOLL = 234, 271

_ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_CALL = (*_ARGUMENTS, "rax")
_RING = ("rdi", "rsi", "rdx", "rax")
_LISTEN = ("rdi", "rsi", "rdx", "r10", "r8", "rax")
_BACK = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "eflags")
REGISTERS = ("rip", "rsp", "orig_rax", *_BACK)
"""What :func:`plan` has to know of the thread."""


@dataclass(frozen=True)
class Ringer:
    """How the thread rings: the process and itself as the program knows them, the signal, and the
    signals that it blocks."""

    process: int
    thread: int
    signal: int
    blocked: int


@dataclass(frozen=True)
class Detour:
    """Write ``code`` at its place and ``data`` at ``stack``, then set ``rip`` to ``entry``. The
    thread has rung when it stands at ``rung`` or behind; the function's result is at ``result``.
    Then the ``registers`` are set, in their order."""

    code: bytes
    stack: int
    data: bytes
    entry: int
    rung: int
    result: int
    registers: Mapping[str, int]


LENGTH = 128
"""Bytes of code that a detour needs at most."""


def plan(
    registers: Mapping[str, int],
    place: int,
    ringer: Ringer,
    address: int,
    arguments: Sequence[int],
) -> Detour:
    """The way of a thread with these ``registers`` by ``place`` through a function."""
    back = _restarted(registers)
    given = (*arguments, *([0] * (len(_ARGUMENTS) - len(arguments))))
    parts = (
        (*given, address),
        (0,),  # the result
        (ringer.process, ringer.thread, ringer.signal, _TGKILL),
        (0, 0),  # no time
        (ringer.blocked & ~(1 << (ringer.signal - 1)),),
    )
    words = [word for part in parts for word in part]
    listen, leave = len(words), len(words) + len(_LISTEN)
    size = 8 * (leave + len(_BACK) + 1)
    stack = registers["rsp"] - _RED_ZONE - size
    result, ring, no_time, mask = (stack + 8 * number for number in (7, 8, 12, 14))
    words += [0, 0, no_time, mask, 8, _PPOLL]
    words += [*(back[name] for name in _BACK), back["rip"]]
    # The function's own frames lie below: where its arguments were, and further down.
    code = bytearray(_NOP + _MOV_RSP + struct.pack("<Q", stack))
    code += b"".join(_POP[name] for name in _CALL)
    code += b"\x48\x83\xe4\xf0"  # and rsp, -16
    code += _CALL_RAX + _MOV_RESULT + struct.pack("<Q", result)
    code += _MOV_RSP + struct.pack("<Q", ring) + b"".join(_POP[name] for name in _RING) + _SYSCALL
    rung = place + len(code)
    code += _MOV_RSP + struct.pack("<Q", stack + 8 * listen)
    code += b"".join(_POP[name] for name in _LISTEN) + _SYSCALL
    code += _MOV_RSP + struct.pack("<Q", stack + 8 * leave)
    code += b"".join(_POP[name] for name in _BACK) + _RET_OVER_RED_ZONE
    assert len(code) <= LENGTH
    final = {name: back[name] for name in _BACK} | {"rsp": registers["rsp"], "rip": back["rip"]}
    data = struct.pack(f"<{len(words)}Q", *(word & WORD for word in words))
    return Detour(bytes(code), stack, data, place + _ENTRY, rung, result, final)


def _restarted(registers: Mapping[str, int]) -> dict[str, int]:
    """The registers with which an interrupted system call begins anew, as the kernel would set them
    if the thread did nothing else before."""
    rax, number = registers["rax"], registers["orig_rax"]
    if rax not in RESTARTED or number >> 63:
        return dict(registers)
    number = _RESTART_SYSCALL if rax == _RESTART_BLOCK else number
    return {**registers, "rax": number, "rip": registers["rip"] - len(_SYSCALL)}
