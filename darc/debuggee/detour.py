"""A call in a stopped thread that comes back by itself when the debugger is gone.

A debugger's own way of calling lets the function return to a breakpoint; were the debugger killed
meanwhile, the program would end there. Here the thread is sent through some instructions in padding
of the program's code: they go below what the program may have on its stack, block every signal but
those that they may raise themselves (:data:`OWN`), call the function, ring (a signal that is
ignored by default, which stops the thread for a debugger), and give the thread back its mask of
signals, all of its registers and its place. Where the debugger cannot set masks, the mask comes
first: a ring that the program blocks is let through by ``ppoll``, whose mask the kernel takes back
wherever the thread is led.

All that they need is in the code itself. To begin, ``rip`` is set and nothing else, so that a
signal that is handled before the first instruction finds the program's stack as it left it, and
comes back to the detour. To end, the debugger may set the registers itself, and may be gone
between any two of its steps: until the last one the thread goes the rest of its way alone.

For functions that use no vector registers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from signal import SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, Signals

from darc.code.frame_rule import WORD
from darc.code.processor import ARGUMENTS, FLAGS, SCRATCH, SYSTEM_CALL, SYSTEM_CALL_ARGUMENTS
from darc.code.system_calls import SystemCall
from darc.model.errors import TargetError
from darc.target.memory import Read
from darc.target.target import Region

_RED_ZONE = 128
RESTARTED = {-512 & WORD, -513 & WORD, -514 & WORD, -516 & WORD}
"""In rax: the kernel begins the system call anew that the thread was stopped in."""
_RESTART_BLOCK = -516 & WORD
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
_PUSH_WORD, _POP_FLAGS = b"\x68", b"\x9d"
_JUMP = b"\xff\x25\x00\x00\x00\x00"  # jmp [rip]
_CLEAR_TIME = b"\x48\xc7\x44\x24\x20\0\0\0\0\x48\xc7\x44\x24\x28\0\0\0\0"  # mov [rsp+32], 0; …
_LOAD_FOUND = b"\x48\x8b\x44\x24\x10"  # mov rax, [rsp+16]
_CLEAR_BIT = b"\x48\x0f\xba\xf0"  # btr rax, imm8
_KEEP_OPEN = b"\x48\x89\x44\x24\x18"  # mov [rsp+24], rax
_SIG_SETMASK = 2
_SLOTS = 48
"""Bytes of stack that the detour itself uses: the result, the mask that it found, that without the
bell, no time."""
_STACK_SIZE = 16384

OWN = (SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS)
"""What an instruction or a system call can raise, which a detour blocks from nobody: where a thread
blocks one that it raises itself, the kernel takes the program's handler away before it delivers it
(``force_sig_info_to_task`` in its ``signal.c``), and nobody could put it back."""

OWN_UNHELD = (SIGSYS,)
"""Of these, where the debugger cannot hold back those that somebody sends meanwhile: what comes of
a system call. The way itself makes no fault."""

REGISTERS = ("rip", "rsp", "orig_rax", FLAGS, *SCRATCH)
"""What :func:`plan` has to know of the thread."""


ATTEMPTS = 20
"""How often a call is tried where threads take signals first, before it is said that it cannot be
made now."""

_CODE_SEGMENTS = (0x33, 0xE033)
"""Of 64-bit code, the second under Xen (``__USER_CS`` of the kernel's ``segment.h``)."""

IN_32_BITS = (
    "the program is in 32-bit code at this moment, where darc can call nothing: let it go on for "
    "a moment, and try again"
)


HANDLER_AT_STAKE = (
    "every thread of the program blocks SIGSYS at this moment, and the program has a handler for "
    "that, which it would lose if darc's calls should come to itself: let it go on for a moment, "
    "and try again"
)
"""Where the debugger cannot set a thread's mask of signals before its first system call."""


def takes_calls(code_segment: int) -> bool:
    """Whether a thread with this ``cs`` can go through a detour: one that is in 32-bit code (as
    Wine has it) would take its instructions for others."""
    return code_segment in _CODE_SEGMENTS


class EndedError(TargetError):
    """The thread is gone."""

    def __init__(self, text: str = "the program ended in a call of darc's") -> None:
        super().__init__(text)


class WaitsError(TargetError):
    """The thread waits for another one, which stands still."""


class DispatchedError(TargetError):
    """The program has its own way with system calls: none of darc's is carried out."""


def failed(number: int) -> TargetError:
    """What a call has come to that ended in a signal of its own, or in none (0)."""
    if number == SIGSYS:
        return DispatchedError(
            "the program has system calls that it does not know come to itself "
            "(PR_SET_SYSCALL_USER_DISPATCH, as Wine does, or seccomp)"
        )
    what = Signals(number).name if number else "nothing"
    return TargetError(f"a call of darc's in the program ended in {what}")


@dataclass(frozen=True)
class Ringer:
    """How the thread rings: the process and itself as the program knows them, and the signal."""

    process: int
    thread: int
    signal: int


@dataclass(frozen=True)
class Call:
    """A system call's number or a function's address, and the arguments. ``stack`` is the end of
    memory that a function may use as its stack; 0 for a system call."""

    address: int
    arguments: Sequence[int]
    stack: int = 0


@dataclass(frozen=True, kw_only=True)
class Detour:
    """Write ``code`` at ``place``, then set ``rip`` to ``entry``. The thread has rung when it
    stands at one of ``rungs``; the result is at ``result``. Then the ``registers`` are set, in
    their order. Before ``masked`` signals are delivered, and from ``leave`` on, where it gives the
    call up. ``numbers`` are those of its system calls, by where each comes back."""

    place: int
    code: bytes
    entry: int
    masked: int
    leave: int
    rungs: tuple[int, ...]
    result: int
    registers: Mapping[str, int]
    numbers: Mapping[int, int]

    def is_dispatched(self, registers: Mapping[str, int]) -> bool:
        """Whether a thread that SIGSYS comes to is refused a system call of the way's own: the
        kernel leaves the number in rax then (``syscall_rollback``). Else somebody has sent it."""
        return self.numbers.get(registers["rip"], registers["rax"]) == registers["rax"]


LENGTH = 400
"""Bytes of code that a detour needs at most."""


def find_place(regions: Iterable[Region], read: Read) -> int | None:
    """Where code may stand for a moment: the zeros behind a file's code, up to the page's end.
    Never in a mapping that is shared, as that would be the file's own bytes."""
    for region in regions:
        permissions, path = region.permissions, region.path
        if "x" in permissions and "p" in permissions and path.startswith(("/", "[vdso]")):
            place = region.end - LENGTH
            try:
                if place >= region.start and not any(read(place, LENGTH)):
                    return place
            except TargetError:
                continue
    return None


def plan(
    registers: Mapping[str, int], place: int, ringer: Ringer, call: Call, mask: int | None = None
) -> Detour:
    """The way of a thread with these ``registers`` by ``place`` through a call. ``mask`` is what
    signals it blocks; ``None``: those that it finds blocked when it begins."""
    back = restarted(registers)
    own = (registers["rsp"] - _RED_ZONE - _SLOTS) & ~15 & WORD
    stack = (call.stack or own + _SLOTS) - _SLOTS
    found, result = own + 16, stack + 8
    blocked = all_but(ringer.signal, *(OWN_UNHELD if mask is None else OWN))
    code = bytearray(_NOP)
    words: list[tuple[int, int]] = []  # where a word of data is named, and the word
    numbers: dict[int, int] = {}

    def address_of(word: int) -> None:  # lea rsi, [rip + …]
        code.extend(b"\x48\x8d\x35\0\0\0\0")
        words.append((len(code), word))

    def ask(number: int) -> None:
        code.extend(SYSTEM_CALL)
        numbers[place + len(code)] = number

    # A page fault in user mode can be interrupted, one in a system call cannot.
    code += _set(rsp=own) + _TOUCH
    code += _set(
        rdi=_SIG_SETMASK, r10=8, rax=SystemCall.RT_SIGPROCMASK, rdx=found if mask is None else 0
    )
    address_of(blocked)
    ask(SystemCall.RT_SIGPROCMASK)
    masked = place + len(code)
    names = ARGUMENTS if call.stack else SYSTEM_CALL_ARGUMENTS
    code += _set(**dict(zip(names, call.arguments, strict=False)), rax=call.address)
    if call.stack:
        code += _set(rsp=stack) + _CALL_RAX
    else:
        ask(call.address)
    code += _KEEP_RESULT
    ring = _set(rdi=ringer.process, rsi=ringer.thread, rdx=ringer.signal, rax=SystemCall.TGKILL)
    give_mask = _set(rsp=own, rdi=_SIG_SETMASK, r10=8, rdx=0, rax=SystemCall.RT_SIGPROCMASK)
    if mask is None:
        leave = place + len(code)
        # Handlers may run from here on, on the program's own stack.
        code += give_mask + _set(rsi=found)
        ask(SystemCall.RT_SIGPROCMASK)
        code += _CLEAR_TIME + _LOAD_FOUND + _CLEAR_BIT + bytes([ringer.signal - 1]) + _KEEP_OPEN
        code += ring
        ask(SystemCall.TGKILL)
        rungs: tuple[int, ...] = (place + len(code),)
        code += _set(rdi=0, rsi=0, rdx=own + 32, r10=own + 24, r8=8, rax=SystemCall.PPOLL)
        ask(SystemCall.PPOLL)
        rungs = (*rungs, place + len(code))
    else:
        code += ring
        ask(SystemCall.TGKILL)
        leave = place + len(code)
        rungs = (leave,)
        code += give_mask
        address_of(mask)
        ask(SystemCall.RT_SIGPROCMASK)
    code += _PUSH_WORD + struct.pack("<I", back[FLAGS] & 0x7FFF_FFFF) + _POP_FLAGS
    code += _set(**{name: back[name] for name in SCRATCH}, rsp=back["rsp"])
    code += _jump(back["rip"])
    for at, word in words:
        code[at - 4 : at] = struct.pack("<i", len(code) - at)
        code += struct.pack("<Q", word & WORD)
    assert len(code) <= LENGTH
    final = {name: back[name] for name in (*SCRATCH, FLAGS, "rsp", "rip")}
    return Detour(
        place=place,
        code=bytes(code),
        entry=place + _ENTRY,
        masked=masked,
        leave=leave,
        rungs=rungs,
        result=result,
        registers=final,
        numbers=numbers,
    )


def call_function(run: Callable[[Call], int], address: int, arguments: Sequence[int]) -> int:
    """Calls a function by ``run``, on a stack of its own.

    Raises:
        TargetError: there is no memory for that, or it does not come back.
    """
    base = run(Call(SystemCall.MMAP, (0, _STACK_SIZE, 3, 0x22, WORD, 0)))  # private, anonymous
    if base >> 63:
        raise TargetError(f"the program may not map memory (error {WORD + 1 - base})")
    try:
        result = run(Call(address, arguments, base + _STACK_SIZE))
    except EndedError:
        raise
    except BaseException:
        run(Call(SystemCall.MUNMAP, (base, _STACK_SIZE)))
        raise
    run(Call(SystemCall.MUNMAP, (base, _STACK_SIZE)))
    return result


def all_but(*signals: int) -> int:
    """The mask of signals that lets these through alone."""
    return WORD & ~sum(1 << (signal - 1) for signal in set(signals))


def stack_needed(registers: Mapping[str, int]) -> range:
    """The part of its stack that a thread uses on its way."""
    low = (registers["rsp"] - _RED_ZONE - _SLOTS) & ~15
    return range(low - 8, registers["rsp"])


def interrupted(registers: Mapping[str, int], way: Detour) -> dict[str, int]:
    """The registers with which a thread takes a signal that came on its way by the detour, as if it
    had come where the thread was: a system call that only a handler ends is ended."""
    if registers["rax"] not in _ENDED_BY_HANDLERS or registers["orig_rax"] >> 63:
        return dict(way.registers)
    return {**way.registers, "rax": _EINTR, "rip": registers["rip"]}


def _jump(address: int) -> bytes:
    """Leads to an address, however far away, and leaves all registers as they are."""
    return _JUMP + struct.pack("<Q", address)


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


def restarted(registers: Mapping[str, int]) -> dict[str, int]:
    """The registers with which an interrupted system call begins anew, as the kernel would set them
    if the thread did nothing else before."""
    rax, number = registers["rax"], registers["orig_rax"]
    if rax not in RESTARTED or number >> 63:
        return dict(registers)
    number = SystemCall.RESTART_SYSCALL if rax == _RESTART_BLOCK else number
    return {**registers, "rax": number, "rip": registers["rip"] - len(SYSTEM_CALL)}
