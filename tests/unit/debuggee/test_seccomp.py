"""What seccomp filters say of darc's system calls: against the kernel, and by hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.code.system_calls import AUDIT_ARCHITECTURE, SystemCall
from darc.debuggee.seccomp import MADE, admits

ALLOW, KILL, LOG, ENOSYS = 0x7FFF0000, 0x80000000, 0x7FFC0000, 0x00050026
LOAD, AND, EQUAL, RETURN, RETURN_A, JUMP = 0x20, 0x54, 0x15, 0x06, 0x16, 0x05
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16 + 2 * 8


def assembled(*code: Sequence[int]) -> bytes:
    return b"".join(struct.pack("<HBBI", *one) for one in code)


def that_refuses(number: int, action: int) -> bytes:
    """As a service manager's: another architecture ends the program, and one call comes to this."""
    return assembled(
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, AUDIT_ARCHITECTURE),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 0, 1, number),
        (RETURN, 0, 0, action),
        (RETURN, 0, 0, ALLOW),
    )


@pytest.mark.parametrize("action", [KILL, ENOSYS, 0x00030000, 0x7FC00000, 0x7FF00000])
def test_a_filter_that_refuses_one_of_them(action: int) -> None:
    for number in MADE:
        assert not admits([that_refuses(number, action)])
    assert admits([that_refuses(SystemCall.CLONE3, action)])
    assert admits([that_refuses(SystemCall.TGKILL, LOG)])


def test_every_filter_has_to() -> None:
    harmless = that_refuses(SystemCall.CLONE3, KILL)
    assert admits([harmless, harmless])
    assert not admits([harmless, that_refuses(SystemCall.TGKILL, KILL)])


def test_what_looks_at_arguments_may_refuse() -> None:
    """As systemd's MemoryDenyWriteExecute does of mmap's."""
    by_argument = assembled(
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 0, 3, SystemCall.MMAP),
        (LOAD, 0, 0, ARGUMENT),
        (AND, 0, 0, 4),
        (EQUAL, 1, 0, 4),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, KILL),
    )
    assert not admits([by_argument])
    assert admits([by_argument], set(MADE) - {SystemCall.MMAP})


def test_what_a_filter_keeps_and_computes() -> None:
    """ST, LDX, ADD X, TXA and a jump over code that is never run."""
    code = assembled(
        (LOAD, 0, 0, NUMBER),
        (0x02, 0, 0, 3),
        (0x61, 0, 0, 3),
        (0x0C, 0, 0, 0),
        (0x1C, 0, 0, 0),
        (0x1D, 1, 0, 0),
        (RETURN, 0, 0, KILL),
        (JUMP, 0, 0, 1),
        (RETURN, 0, 0, KILL),
        (0x00, 0, 0, ALLOW),
        (RETURN_A, 0, 0, 0),
    )
    assert admits([code])


@given(st.lists(st.tuples(*(st.integers(0, most) for most in (0xFF, 9, 9, 0xFFFFFFFF)))))
def test_what_is_no_filter_admits_nothing_and_is_no_error(code: list[tuple[int, ...]]) -> None:
    """Nor one that goes on behind its end."""
    assert not admits([assembled(*code, (LOAD, 0, 0, NUMBER))])
    assert not admits([assembled(*code)[:-1]])
