"""Detours on x86-64: what :class:`~darc.code.architecture.DetourWriter` asks for.

All that a thread needs on its way is in the code itself. To begin, ``rip`` is set and nothing else,
so that a signal that is handled before the first instruction finds the program's stack as it left
it, and comes back to the detour. The thread goes below what the program may have on its stack,
blocks signals, makes the call, rings, and gives itself back its mask of signals, all of its
registers and its place. Where the debugger cannot set masks, the mask comes first: a ring that the
program blocks is let through by ``ppoll``, whose mask the kernel takes back wherever the thread is
led.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from darc.code.architecture import Call, Detour, Ringer
from darc.code.frame_rule import WORD
from darc.code.x86_64 import PROGRAM_COUNTER, RESULT, STACK_POINTER, SYSTEM_CALL
from darc.code.x86_64_convention import ARGUMENTS, FLAGS, SCRATCH, SYSTEM_CALL_ARGUMENTS
from darc.code.x86_64_system_calls import SystemCall

STOPPED_IN = "orig_rax"
IN_NONE = WORD
CODE_SEGMENT = "cs"
_CODE_SEGMENTS = (0x33, 0xE033)
"""Of 64-bit code, the second under Xen (``__USER_CS`` of the kernel's ``segment.h``)."""

REGISTERS = (PROGRAM_COUNTER, STACK_POINTER, STOPPED_IN, FLAGS, *SCRATCH)
LENGTH = 400

_RED_ZONE = 128
_RESTART_BLOCK = -516 & WORD
_RESTARTED = {-512 & WORD, -513 & WORD, -514 & WORD, _RESTART_BLOCK}
"""In rax: the kernel begins the system call anew that the thread was stopped in."""
_ENDED_BY_HANDLERS = {-514 & WORD, _RESTART_BLOCK}
_EINTR = -4 & WORD

_ENTRY = 2
_NOP = b"\x66\x90"
"""In front of the entry: to restart a system call the kernel sets the thread back by two bytes."""
_SET = {
    "rax": b"\x48\xb8", "rcx": b"\x48\xb9", "rdx": b"\x48\xba", "rsi": b"\x48\xbe",
    "rdi": b"\x48\xbf", "r8": b"\x49\xb8", "r9": b"\x49\xb9", "r10": b"\x49\xba",
    "r11": b"\x49\xbb", "rsp": b"\x48\xbc",
}  # fmt: skip
_SET_HALF = {
    "rax": b"\xb8", "rcx": b"\xb9", "rdx": b"\xba", "rsi": b"\xbe", "rdi": b"\xbf",
    "r8": b"\x41\xb8", "r9": b"\x41\xb9", "r10": b"\x41\xba", "r11": b"\x41\xbb", "rsp": b"\xbc",
}  # fmt: skip
_CALL_RAX = b"\xff\xd0"
_TOUCH = b"\x48\x89\x04\x24\x48\x89\x44\x24\x28"  # mov [rsp], rax; mov [rsp+40], rax
_KEEP_RESULT = b"\x48\x89\x44\x24\x08"  # mov [rsp+8], rax
_LOAD_ADDRESS = b"\x48\x8d\x35\0\0\0\0"  # lea rsi, [rip + …]
_PUSH_WORD, _POP_FLAGS = b"\x68", b"\x9d"
_JUMP = b"\xff\x25\x00\x00\x00\x00"  # jmp [rip]
_CLEAR_TIME = b"\x48\xc7\x44\x24\x20\0\0\0\0\x48\xc7\x44\x24\x28\0\0\0\0"  # mov [rsp+32], 0; …
_LOAD_FOUND = b"\x48\x8b\x44\x24\x10"  # mov rax, [rsp+16]
_CLEAR_BIT = b"\x48\x0f\xba\xf0"  # btr rax, imm8
_KEEP_OPEN = b"\x48\x89\x44\x24\x18"  # mov [rsp+24], rax
_SIG_SETMASK, _MASK_SIZE = 2, 8

_AT_RESULT, _AT_FOUND, _AT_OPEN, _AT_TIME = 8, 16, 24, 32
"""Where there are, from the stack pointer on: the call's result, the mask that was found, that
without the bell, no time."""
_SLOTS = 48
"""Bytes of stack that the detour itself uses for these."""


def takes_calls(code_segment: int) -> bool:
    """Whether a thread with this ``cs`` can go through a detour: one that is in 32-bit code (as
    Wine has it) would take its instructions for others."""
    return code_segment in _CODE_SEGMENTS


def stack_needed(registers: Mapping[str, int]) -> range:
    """The part of its stack that a thread uses on its way."""
    low = (registers[STACK_POINTER] - _RED_ZONE - _SLOTS) & ~15
    return range(low - 8, registers[STACK_POINTER])


def is_restarted(result: int) -> bool:
    """Whether the kernel begins the system call anew that has this ``result`` where a thread was
    stopped in it."""
    return result in _RESTARTED


def restarted(registers: Mapping[str, int]) -> dict[str, int]:
    """The registers with which an interrupted system call begins anew, as the kernel would set them
    if the thread did nothing else before."""
    result, number = registers[RESULT], registers[STOPPED_IN]
    if not is_restarted(result) or number >> 63:
        return dict(registers)
    number = SystemCall.RESTART_SYSCALL if result == _RESTART_BLOCK else number
    again = registers[PROGRAM_COUNTER] - len(SYSTEM_CALL)
    return {**registers, RESULT: number, PROGRAM_COUNTER: again}


def interrupted(registers: Mapping[str, int], way: Detour) -> dict[str, int]:
    """The registers with which a thread takes a signal that came on its ``way``, as if it had come
    where the thread was: a system call that only a handler ends is ended."""
    if registers[RESULT] not in _ENDED_BY_HANDLERS or registers[STOPPED_IN] >> 63:
        return dict(way.registers)
    return {**way.registers, RESULT: _EINTR, PROGRAM_COUNTER: registers[PROGRAM_COUNTER]}


def is_refused(registers: Mapping[str, int], way: Detour) -> bool:
    """Whether a thread that SIGSYS comes to is refused a system call of its ``way``: the kernel
    leaves the number in rax then (``syscall_rollback``). Else somebody has sent it."""
    result = registers[RESULT]
    return way.numbers.get(registers[PROGRAM_COUNTER], result) == result


def plan(
    registers: Mapping[str, int],
    place: int,
    ringer: Ringer,
    call: Call,
    *,
    blocked: int,
    mask: int | None,
) -> Detour:
    """The way of a thread with these ``registers`` by ``place`` through a call, with the signals
    ``blocked`` kept from it. ``mask`` is what it blocks else; ``None``: what it finds blocked when
    it begins."""
    back = restarted(registers)
    own = (registers[STACK_POINTER] - _RED_ZONE - _SLOTS) & ~15 & WORD
    stack = (call.stack or own + _SLOTS) - _SLOTS
    way = _Way(place, own)
    way.begin(blocked, keeps_mask=mask is None)
    masked = way.here
    way.make(call, stack)
    leave, rungs = way.ring_last(ringer) if mask is None else way.ring_first(ringer, mask)
    way.go_back(back)
    return Detour(
        place=place,
        code=way.code(),
        entry=place + _ENTRY,
        masked=masked,
        leave=leave,
        rungs=rungs,
        result=stack + _AT_RESULT,
        registers={name: back[name] for name in (*SCRATCH, FLAGS, STACK_POINTER, PROGRAM_COUNTER)},
        numbers=way.numbers,
    )


class _Way:
    """The code of a detour at ``place``, as it grows. ``own`` is where its slots are."""

    def __init__(self, place: int, own: int) -> None:
        self._place = place
        self._own = own
        self._code = bytearray(_NOP)
        self._words: list[tuple[int, int]] = []
        """Where a word of data is named, and the word."""
        self.numbers: dict[int, int] = {}
        """Those of its system calls, by where each comes back."""

    @property
    def here(self) -> int:
        """Where the next instruction comes to stand."""
        return self._place + len(self._code)

    def begin(self, blocked: int, *, keeps_mask: bool) -> None:
        """Goes below the program's stack, and blocks signals."""
        # A page fault in user mode can be interrupted, one in a system call cannot.
        self._code += _set(rsp=self._own) + _TOUCH
        self._code += _set(
            rdi=_SIG_SETMASK,
            r10=_MASK_SIZE,
            rax=SystemCall.RT_SIGPROCMASK,
            rdx=self._own + _AT_FOUND if keeps_mask else 0,
        )
        self._take_address_of(blocked)
        self._ask(SystemCall.RT_SIGPROCMASK)

    def make(self, call: Call, stack: int) -> None:
        """Makes the call, a function's with this stack, and keeps its result."""
        names = ARGUMENTS if call.stack else SYSTEM_CALL_ARGUMENTS
        self._code += _set(**dict(zip(names, call.arguments, strict=False)), rax=call.address)
        if call.stack:
            self._code += _set(rsp=stack) + _CALL_RAX
        else:
            self._ask(call.address)
        self._code += _KEEP_RESULT

    def ring_first(self, ringer: Ringer, mask: int) -> tuple[int, tuple[int, ...]]:
        """Rings, and blocks what the ``mask`` has: from where on it gives the call up, and where it
        stands when it has rung."""
        self._ring(ringer)
        leave = self.here
        self._prepare_mask()
        self._take_address_of(mask)
        self._ask(SystemCall.RT_SIGPROCMASK)
        return leave, (leave,)

    def ring_last(self, ringer: Ringer) -> tuple[int, tuple[int, ...]]:
        """The same with the mask that it has found, before it rings: where the program blocks the
        ring, the second one is heard."""
        leave = self.here
        # Handlers may run from here on, on the program's own stack.
        self._prepare_mask()
        self._code += _set(rsi=self._own + _AT_FOUND)
        self._ask(SystemCall.RT_SIGPROCMASK)
        self._code += _CLEAR_TIME + _LOAD_FOUND + _CLEAR_BIT + bytes([ringer.signal - 1])
        self._code += _KEEP_OPEN
        self._ring(ringer)
        heard = self.here
        self._code += _set(
            rdi=0,
            rsi=0,
            rdx=self._own + _AT_TIME,
            r10=self._own + _AT_OPEN,
            r8=_MASK_SIZE,
            rax=SystemCall.PPOLL,
        )
        self._ask(SystemCall.PPOLL)
        return leave, (heard, self.here)

    def go_back(self, registers: Mapping[str, int]) -> None:
        """Gives the thread what it had, and its place."""
        flags = registers[FLAGS] & 0x7FFF_FFFF
        self._code += _PUSH_WORD + struct.pack("<I", flags) + _POP_FLAGS
        self._code += _set(**{name: registers[name] for name in SCRATCH})
        self._code += _set(rsp=registers[STACK_POINTER])
        self._code += _JUMP + struct.pack("<Q", registers[PROGRAM_COUNTER])

    def code(self) -> bytes:
        """All of it, with its data behind."""
        code = bytearray(self._code)
        for at, word in self._words:
            code[at - 4 : at] = struct.pack("<i", len(code) - at)
            code += struct.pack("<Q", word & WORD)
        assert len(code) <= LENGTH
        return bytes(code)

    def _ring(self, ringer: Ringer) -> None:
        self._code += _set(
            rdi=ringer.process, rsi=ringer.thread, rdx=ringer.signal, rax=SystemCall.TGKILL
        )
        self._ask(SystemCall.TGKILL)

    def _prepare_mask(self) -> None:
        """Of ``rt_sigprocmask`` all but the mask; the stack pointer may be the call's."""
        self._code += _set(
            rsp=self._own,
            rdi=_SIG_SETMASK,
            r10=_MASK_SIZE,
            rdx=0,
            rax=SystemCall.RT_SIGPROCMASK,
        )

    def _take_address_of(self, word: int) -> None:
        """Where this stands in the data, as a system call's second argument."""
        self._code += _LOAD_ADDRESS
        self._words.append((len(self._code), word))

    def _ask(self, number: int) -> None:
        self._code += SYSTEM_CALL
        self.numbers[self.here] = number


def _set(**values: int) -> bytes:
    """Sets registers; the flags stay as they are."""
    code = b""
    for name, value in values.items():
        value &= WORD
        if value >> 32:
            code += _SET[name] + struct.pack("<Q", value)
        else:
            code += _SET_HALF[name] + struct.pack("<I", value)
    return code
