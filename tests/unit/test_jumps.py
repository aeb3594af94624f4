"""Which bytes are taken for jumps into a piece of code."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

from darc.code.program import Program
from darc.debuggee import procfs
from tests.unit.test_notrace import own_target

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
