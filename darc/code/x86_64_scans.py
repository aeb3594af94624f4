"""What bytes of x86-64's code look like, where there are too many to decode them."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from darc.code.x86_64_system_calls import SystemCall

_FAR = re.compile(rb"[\xe8\xe9](?=....)", re.DOTALL)
"""The opcode of a direct call or a jump to somewhere far, with how far it is behind it."""

_ADDRESS = re.compile(rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](?=....)", re.DOTALL)
"""``lea`` of something by how far it is behind the instruction, without that."""

_THROUGH = re.compile(rb"\xff\x15(?=....)", re.DOTALL)
"""A call through a word, without how far that is behind it."""

_SPLITS = re.compile(rb"\x64(\x48\x3b\x24|\x4c\x3b[\x14\x1c])\x25\x70\0\0\0")
"""``cmp rsp, fs:0x70``, or that of r10 or r11, where the stack's end stands (``__private_ss``).
At most ``endbr64`` and a ``lea`` stand before it."""

EXCEPTION_RETURN = re.compile(rb"\x48\x89\xcc\x59\xff\xe1")  # mov rsp, rcx; pop rcx; jmp rcx

_SANDBOXING = (SystemCall.PRCTL, SystemCall.SECCOMP)

SANDBOX_CALL = re.compile(
    rb"\xb8(?:%s).{0,24}?\x0f\x05|\x48\x89\xf8[^\xc3]{0,40}?\x0f\x05"
    % b"|".join(re.escape(struct.pack("<I", one)) for one in _SANDBOXING),
    re.DOTALL,
)
"""mov eax, the number of one of these, or mov rax, rdi; and soon behind it a syscall."""


def led_to(code: bytes, start: int) -> Iterator[tuple[int, int]]:
    """See :meth:`~darc.code.architecture.CodeReader.led_to`."""
    for match in _FAR.finditer(code):
        yield start + match.start(), _reached(code, start, match.end())


def led_through(code: bytes, start: int) -> Iterator[int]:
    """See :meth:`~darc.code.architecture.CodeReader.led_through`."""
    return (_reached(code, start, match.end()) for match in _THROUGH.finditer(code))


def pointed_to(code: bytes, start: int) -> Iterator[int]:
    """See :meth:`~darc.code.architecture.CodeReader.pointed_to`."""
    return (_reached(code, start, match.end()) for match in _ADDRESS.finditer(code))


def _reached(code: bytes, start: int, at: int) -> int:
    """What is so far behind an instruction as the number says that it ends with."""
    return start + at + 4 + int.from_bytes(code[at : at + 4], "little", signed=True)


STACK_CHECK = 32  # bytes


def splits_stack(code: bytes) -> bool:
    """See :meth:`~darc.code.architecture.CodeReader.splits_stack`."""
    return _SPLITS.search(code) is not None


CALL_THROUGH = 6  # bytes


def ends_in_call_through(code: bytes) -> bool:
    """See :meth:`~darc.code.architecture.CodeReader.ends_in_call_through`."""
    return code[:2] == b"\xff\x15" or (code[4] == 0xFF and 0xD0 <= code[5] <= 0xD7)


HOOK_LENGTH = 14
"""Bytes of the longest."""

_HOOK = re.compile(
    rb"(?:\xf3\x0f\x1e\xfa)?"  # endbr64, which some leave where it is
    rb"(?:[\xe9\xeb]"  # jmp, near or short
    rb"|\xff\x25"  # jmp *distance(%rip)
    # movabs $where, %reg; then jmp *%reg, or push %reg and ret
    rb"|[\x48\x49][\xb8-\xbf].{8}\x41?(?:\xff[\xe0-\xe7]|[\x50-\x57]\xc3)"
    rb"|\x68.{4}(?:\xc3|\xc7\x44\x24\x04))",  # push $where; ret, or its upper half behind it
    re.DOTALL,
)


def is_hook(code: bytes) -> bool:
    """Whether ``code``, of :data:`HOOK_LENGTH` bytes, or less at the end of what is there, leads
    away at once, as funchook's, subhook's, Detours' and MinHook's do (their sources)."""
    return _HOOK.match(code) is not None
