"""The cells of return landings on x86-64 (see :mod:`darc.pads.returns`)::

site's cell     call target             f0's cell       lea rsp, [rsp + 8]
                                                        call [rip + body]
back            push [rip + word]       back            push [rip + word]
                jmp its pad                             jmp common

retired back    push [rip + word]
                ret
                .long what is called - here
"""

from __future__ import annotations

import struct

from darc.agent import compiled
from darc.code.x86_64 import BREAKPOINT, PATCH_LENGTH, RETURN

_LIMITS = compiled.load().constants
_SIZE = _LIMITS.LANDING_SIZE
_ENTER = _LIMITS.LANDING_ENTER
_BACK = _LIMITS.LANDING_BACK

_PUSH, _CALL_THROUGH = b"\xff\x35", b"\xff\x15"
_CALL, _JUMP = b"\xe8", b"\xe9"
_DROP = b"\x48\x8d\x64\x24\x08"  # lea rsp, [rsp + 8]

_ON = _BACK + 6
"""Where a cell's last instruction is."""

_DIRECT = BREAKPOINT * (_BACK - PATCH_LENGTH) + _CALL
"""How a site's cell begins whose call is a direct one."""

UNUSED = BREAKPOINT * _SIZE
"""See :class:`~darc.pads.architecture.CellWriter`."""

RETIRED = (
    b"\x50\x51"  # push rax; push rcx
    b"\x48\x8b\x44\x24\x10"  # mov rax, [rsp + 16]: where the cell is returned to
    b"\x48\x63\x48\x02"  # movsxd rcx, dword ptr [rax + 2]: of the push there
    b"\x48\x8b\x4c\x08\x06"  # mov rcx, [rax + rcx + 6]: the program's own return address
    b"\x48\x89\x4c\x24\x10"  # mov [rsp + 16], rcx
    b"\x48\x63\x48\x07"  # movsxd rcx, dword ptr [rax + 7]: behind the ret
    b"\x48\x8d\x44\x08\x0b"  # lea rax, [rax + rcx + 11]: what is called
    b"\x59"  # pop rcx
    b"\x48\x87\x04\x24"  # xchg rax, [rsp]
    b"\xc3"  # ret
)
"""It leaves registers and flags as they are."""

_SLOT_WITHIN = {0: 0, 1: 8, 32: 8, 36: 0}
"""How far above the stack pointer the slot is at some places in it; 16 at all others."""


def of_site(call: bytes, cell: int, word: int, pad: int) -> bytes:
    """See :meth:`~darc.pads.architecture.CellWriter.of_site`."""
    return call.rjust(_BACK, BREAKPOINT) + _pushed(cell, word) + _jump(cell, pad)


def of_caller(cell: int, word: int, body: int, common: int) -> bytes:
    """See :meth:`~darc.pads.architecture.CellWriter.of_caller`."""
    code = BREAKPOINT * _ENTER + _DROP + _CALL_THROUGH + _distance(cell + _BACK, body)
    return code + _pushed(cell, word) + _jump(cell, common)


def returning(code: bytes) -> bytes:
    """See :meth:`~darc.pads.architecture.CellWriter.returning`."""
    return code[:_ON] + RETURN + code[_ON + 1 :]


def returning_with(code: bytes, cell: int, called: int) -> bytes | None:
    """See :meth:`~darc.pads.architecture.CellWriter.returning_with`."""
    rest = called - (cell + _SIZE)
    if not -(1 << 31) <= rest < 1 << 31:
        return None
    return code[:_ON] + RETURN + struct.pack("<i", rest)


def called_behind(code: bytes, cell: int) -> int:
    """See :meth:`~darc.pads.architecture.CellWriter.called_behind`."""
    return cell + _SIZE + int.from_bytes(code[_ON + 1 :], "little", signed=True)


def called(code: bytes, cell: int) -> int | None:
    """See :meth:`~darc.pads.architecture.CellWriter.called`."""
    if not code.startswith(_DIRECT):
        return None
    distance = int.from_bytes(code[len(_DIRECT) : _BACK], "little", signed=True)
    return cell + _BACK + distance


def calling(code: bytes, cell: int, target: int) -> bytes:
    """See :meth:`~darc.pads.architecture.CellWriter.calling`."""
    return _DIRECT + _distance(cell + _BACK, target) + code[_BACK:]


def slot_in_cell(part: int, stack: int, *, is_callers: bool) -> int:
    """See :meth:`~darc.pads.architecture.CellWriter.slot_in_cell`."""
    return stack if (is_callers and part == _ENTER) or part >= _ON else stack - 8


def slot_in_retired(part: int, stack: int) -> int:
    """See :meth:`~darc.pads.architecture.CellWriter.slot_in_retired`."""
    return stack + _SLOT_WITHIN.get(part, 16)


def slot_in_common(part: int, stack: int) -> int:
    """See :meth:`~darc.pads.architecture.CellWriter.slot_in_common`."""
    return stack + 8 if part else stack


def _pushed(cell: int, word: int) -> bytes:
    return _PUSH + _distance(cell + _ON, word)


def _jump(cell: int, to: int) -> bytes:
    """A cell's last instruction."""
    return _JUMP + _distance(cell + _SIZE, to)


def _distance(end: int, to: int) -> bytes:
    return struct.pack("<i", to - end)
