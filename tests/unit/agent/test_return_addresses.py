"""Which addresses calls come back to: the agent's own look at code, and the debugger's."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iced_x86 import Code, Encoder, Instruction, MemoryOperand, Register

from darc.agent.build import CFLAGS, HERE
from darc.code.processor import CONTEXT_RETURN, LONGEST_CALL, SIGNAL_RETURN, ends_in_call

INT3 = b"\xcc"
_BASES = (Register.NONE, Register.RAX, Register.RBP, Register.RSP, Register.R12, Register.R13)
_INDICES = (Register.NONE, Register.RCX, Register.R12)
_DISTANCES = (0, 8, -128, 0x1000)

SOURCE = """
#include "abi.h"
#define COLD __attribute__((noinline, cold))
typedef struct darc_control control;
typedef struct darc_site site;
#include "callers.c"
static struct darc_site sites[2];
static struct darc_control ctl;
/* patched: where darc has written length bytes over others, 0: nowhere */
int comes_back(u64 start, u64 end, u64 back, u64 patched, u32 length, const u8 *original)
{
    struct darc_code code = {start, end};
    ctl.code = (u64)&code;
    ctl.code_count = 1;
    ctl.sites = (u64)sites;
    ctl.site_room = 2;
    sites[1].patched = patched != 0;
    sites[1].address = patched;
    sites[1].length = length;
    for (u32 i = 0; i < length && i < sizeof sites[1].original; i++)
        sites[1].original[i] = original[i];
    return is_behind_call(&ctl, &code, back);
}
"""


@pytest.fixture(scope="session")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("agent")
    (folder / "one.c").write_text(SOURCE)
    made = folder / "one.so"
    flags = [flag for flag in CFLAGS if "visibility" not in flag and "Werror" not in flag]
    flags += ["-w", "-shared", "-nostdlib", f"-I{HERE}"]
    subprocess.run(["gcc", *flags, str(folder / "one.c"), "-o", str(made)], check=True)
    found = ctypes.CDLL(str(made)).comes_back
    word = ctypes.c_uint64
    found.argtypes = (word, word, word, word, ctypes.c_uint32, ctypes.c_char_p)
    return found


def comes_back(agent: Any, before: bytes, behind: bytes = b"", *, patch: bytes = b"") -> bool:
    """Whether the agent takes what stands between these bytes for what a call comes back to.
    ``patch`` is what darc has written over the first ones."""
    margin = b"\x90" * 32
    code = ctypes.create_string_buffer(margin + patch + before[len(patch) :] + behind + margin)
    start = ctypes.addressof(code)
    at = start + len(margin)
    patched = at if patch else 0
    return bool(
        agent(start, start + len(code), at + len(before), patched, len(patch), before[: len(patch)])
    )


def encoded(instruction: Instruction) -> bytes:
    encoder = Encoder(64)
    encoder.encode(instruction, 0)
    return encoder.take_buffer()


def indirect(code: Any) -> list[bytes]:
    """Calls, or jumps, of every form of operand."""
    found = [encoded(Instruction.create_reg(code, register)) for register in _BASES[1:]]
    for base, index, distance in itertools.product(_BASES, _INDICES, _DISTANCES):
        operand = MemoryOperand(base, index, 1, distance, 0 if not distance else 8)
        if base == Register.NONE and index == Register.NONE:
            operand = MemoryOperand(Register.RIP, displ=0x1234, displ_size=8)
        found.append(encoded(Instruction.create_mem(code, operand)))
    return found


CALLS = [*indirect(Code.CALL_RM64), b"\xe8\x10\0\0\0", b"\x66\x48\xe8\x10\0\0\0"]
JUMPS = [*indirect(Code.JMP_RM64), b"\xe9\x10\0\0\0", b"\xeb\x10", b"\xc3", b"\x0f\x1f\x40\0"]


@pytest.mark.parametrize("call", CALLS, ids=bytes.hex)
def test_every_form_of_a_call_is_told(call: bytes, agent: Any) -> None:
    """Also where a breakpoint stands on it."""
    code = call.rjust(LONGEST_CALL, b"\x90")
    assert ends_in_call(code[-LONGEST_CALL:])
    assert comes_back(agent, code)
    assert comes_back(agent, (INT3 + call[1:]).rjust(LONGEST_CALL, b"\x90"))


@pytest.mark.parametrize("other", [*JUMPS, 20 * INT3, 20 * b"\x90"], ids=bytes.hex)
def test_what_is_no_call_is_told(other: bytes, agent: Any) -> None:
    code = other.rjust(16, b"\x90")
    assert not ends_in_call(code[-LONGEST_CALL:])
    assert not comes_back(agent, code)


@pytest.mark.parametrize("behind", [SIGNAL_RETURN, CONTEXT_RETURN], ids=["signal", "context"])
def test_what_no_call_comes_before(behind: bytes, agent: Any) -> None:
    """A signal's handler, and what a coroutine of the C library's begins with, are timed."""
    assert comes_back(agent, 8 * b"\x90", behind)


CODE = st.binary(min_size=LONGEST_CALL, max_size=LONGEST_CALL)


@given(CODE.filter(lambda code: INT3 not in code))
@settings(max_examples=500)
def test_both_looks_say_the_same(agent: Any, code: bytes) -> None:
    assert comes_back(agent, code) == ends_in_call(code)


FAR = b"\xe9\0\0\0\x40"
"""A jump out of all code that is known, as one to a pad."""


@pytest.mark.parametrize("call", [b"\xe8\x10\0\0\0", b"\xff\xd0", b"\xff\x50\x10"], ids=bytes.hex)
@pytest.mark.parametrize("ahead", range(5))
def test_a_call_that_darc_has_written_over(call: bytes, ahead: int, agent: Any) -> None:
    """It is among the first bytes of a function that is timed, and runs in its pad."""
    code = b"\x90" * ahead + call
    end = ahead + len(call)
    if end >= len(FAR):
        assert comes_back(agent, code[:end], patch=FAR)
        assert not comes_back(agent, b"\x90" * end, patch=FAR)
