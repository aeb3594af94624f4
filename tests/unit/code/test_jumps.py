"""Which bytes are taken for jumps into a piece of code."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from typing import cast

from darc.code.architecture import Surroundings
from darc.code.jumps import Jumps
from darc.code.program import Program
from darc.debuggee import procfs
from tests.unit.owntarget import own_target

SOURCE = r"""
.text
.globl before, within, led_into, entered
before:                 # no table tells of its extent, as of what linkers add to each program
    jmp *%rax           # ff e0, and with the next byte e0 66: "loopne" into what is below
    .byte 0x66, 0x0f, 0x1f, 0x44, 0, 0
    ret
    .balign 8, 0xcc
within:
    jmp entered + 1     # this is a jump
    .org before + 0x68, 0xcc
.type led_into, @function
led_into:
    push %rbx
    mov %rdi, %rbx
    pop %rbx
    ret
.size led_into, . - led_into
.type entered, @function
entered:
    push %rbx
    mov %rdi, %rbx
    pop %rbx
    ret
.size entered, . - entered
.globl labelled, twice, inside
.type labelled, @function
labelled:
    push %rbx
.Lhere:
    mov %rdi, %rbx
    pop %rbx
    ret
.size labelled, . - labelled
.type twice, @function
twice:
    push %rbx
.type inside, @function
inside:
    mov %rdi, %rbx
    pop %rbx
    ret
.size inside, . - inside
.data
    .quad .Lhere
.section .note.GNU-stack, "", @progbits
"""


def test_bytes_in_another_instruction_are_no_jump(tmp_path: Path) -> None:
    source, library = tmp_path / "jumps.s", tmp_path / "libjumps.so"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", library, source], check=True)
    loaded = ctypes.CDLL(str(library))
    program = Program(own_target(), Path("/"), procfs.regions(os.getpid()))

    def address(name: str) -> int:
        found = ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value
        assert found is not None
        return found

    assert not program.is_jumped_into(address("led_into"), address("led_into") + 5)
    assert program.is_jumped_into(address("entered"), address("entered") + 5)
    # Assembly may have a table of labels, or another function's begin in one.
    assert program.is_jumped_into(address("labelled"), address("labelled") + 5)
    assert program.is_jumped_into(address("twice"), address("twice") + 5)


class Endless:
    """Code of which no table tells where its functions end, as most of chromium's."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.read_bytes = 0
        self.outlines = self

    def extent(self, address: int) -> tuple[int, int]:
        return address, self.size

    def read(self, _address: int, size: int) -> bytes:
        self.read_bytes += size
        return b"\xeb\xe0" * (size // 2)  # each leads out of what is before it

    def is_code(self, _address: int) -> bool:
        return True


def test_code_without_an_end_is_not_decoded() -> None:
    """A quarter of a gigabyte of it for each function, in gigabytes of memory."""
    endless = Endless(1 << 28)
    jumps = Jumps(cast(Surroundings, endless))
    assert jumps.out_of(0x1000) == frozenset()
    assert endless.read_bytes == 0
    near = Endless(0x1000 + 64)
    assert min(Jumps(cast(Surroundings, near)).out_of(0x1000)) == 0x1000 - 30
    assert near.read_bytes == 64
