"""Programs of another kind are refused in one line. The tests write them byte for byte."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.debugger import Done, debug

EM_386, EM_AARCH64 = 3, 183
BASE = 0x8048000

# mov eax, 1; mov ebx, 7; int 0x80: exit(7), in 32-bit code
EXIT_7 = bytes.fromhex("b801000000bb07000000cd80")


def elf32(machine: int) -> bytes:
    """A static program with one segment of code and no symbols."""
    header, segment = 52, 32
    entry = BASE + header + segment
    ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    fields = (2, machine, 1, entry, header, 0, 0, header, segment, 1, 0, 0, 0)
    size = header + segment + len(EXIT_7)
    load = struct.pack("<8I", 1, 0, BASE, BASE, size, size, 5, 0x1000)
    return ident + struct.pack("<HHIIIIIHHHHHH", *fields) + load + EXIT_7


def elf64(machine: int) -> bytes:
    """The same for 64 bits; the code is nobody's."""
    header, segment = 64, 56
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    entry = 0x400000 + header + segment
    fields = (2, machine, 1, entry, header, 0, 0, header, segment, 1, 0, 0, 0)
    size = header + segment + 64
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, size, size, 0x1000)
    return ident + struct.pack("<HHIQQQIHHHHHH", *fields) + load + bytes(64)


def refused(folder: Path, program: Path, *commands: str) -> list[str]:
    """The lines in which darc says no."""
    done: Done = debug(folder, program, (), commands)
    assert "Traceback" not in done.gdb
    assert "internal error" not in done.gdb
    lines = [line for line in done.gdb.splitlines() if line.startswith("darc: ")]
    assert lines, done.gdb
    return lines


def written(folder: Path, data: bytes) -> Path:
    program = folder / "foreign"
    program.write_bytes(data)
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("function", ["main", f"*{BASE + 84:#x}"])
def test_32_bit_program(function: str, tmp_path: Path) -> None:
    program = written(tmp_path, elf32(EM_386))
    lines = refused(tmp_path, program, f"darc start {function}")
    assert any("64-bit x86" in line for line in lines), lines
    # Where the kernel runs it, it is the same once it runs.
    lines = refused(tmp_path, program, "starti", f"darc start {function}")
    assert any("64-bit x86" in line for line in lines), lines


@pytest.mark.parametrize(
    "data",
    [elf64(EM_AARCH64), elf32(EM_386)[:40], b"#!/bin/sh\nexit 0\n", b"", bytes(200)],
    ids=["aarch64", "truncated", "script", "empty", "zeros"],
)
def test_what_is_no_program_of_this_machine(data: bytes, tmp_path: Path) -> None:
    refused(tmp_path, written(tmp_path, data), "darc start main", "run", "darc start main")
