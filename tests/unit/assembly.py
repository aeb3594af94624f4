"""Code that a test writes as assembler."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from darc.code.frame_rule import FrameRule

BASE = 0x10000


TABLE = 0x20000


@dataclass
class Code:
    """A stretch of assembled code, as :class:`darc.code.x86_64.Surroundings` sees it."""

    data: bytes
    symbols: dict[str, int]
    parts: dict[str, tuple[int, int]]
    cold: set[int] = field(default_factory=set)
    rules: dict[int, FrameRule] = field(default_factory=dict)
    entered: set[int] = field(default_factory=set)
    table: bytes = b""

    def read(self, address: int, size: int) -> bytes:
        if TABLE <= address < TABLE + len(self.table):
            return self.table[address - TABLE :][:size].ljust(size, b"\0")
        return self.data[address - BASE :][:size].ljust(size, b"\xcc")

    @property
    def outlines(self) -> Code:
        return self

    def extent(self, address: int) -> tuple[int, int] | None:
        return next((p for p in self.parts.values() if p[0] <= address < p[1]), None)

    def frame_rule(self, address: int) -> FrameRule | None:
        return self.rules.get(address)

    def landing_pads(self, _address: int) -> frozenset[int]:
        return frozenset()

    def is_function_start(self, address: int) -> bool:
        return address in self.symbols.values() and address not in self.cold

    def is_cold_part(self, address: int) -> bool:
        return address in self.cold

    def is_jumped_into(self, start: int, end: int) -> bool:
        return any(start < at < end for at in self.entered)

    def is_code(self, address: int) -> bool:
        return BASE <= address < BASE + len(self.data)


Assemble = Callable[[str], Code]


@pytest.fixture
def assembled(tmp_path: Path) -> Assemble:
    """Assembles functions, each given as ``name: lines``, back to back."""

    def make(source: str) -> Code:
        (tmp_path / "code.s").write_text(".intel_syntax noprefix\n.text\n" + source)
        elf, raw = tmp_path / "code.elf", tmp_path / "code.bin"
        subprocess.run(["gcc", "-c", tmp_path / "code.s", "-o", tmp_path / "code.o"], check=True)
        link = ["ld", f"-Ttext={BASE:#x}", "-e", "0", "-o", str(elf), str(tmp_path / "code.o")]
        subprocess.run(link, check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", elf, raw], check=True)
        data = raw.read_bytes()
        names = subprocess.run(["nm", elf], capture_output=True, text=True, check=True).stdout
        symbols = {}
        for line in names.splitlines():
            address, kind, name = line.split()
            if kind in "tT" and not name.startswith("."):
                symbols[name] = int(address, 16)
        starts = sorted(symbols.values())
        ends = [*starts[1:], BASE + len(data)]
        extents = dict(zip(starts, ends, strict=True))
        parts = {name: (at, extents[at]) for name, at in symbols.items()}
        cold = {at for name, at in symbols.items() if name.endswith("_cold")}
        return Code(data, symbols, parts, cold)

    return make
