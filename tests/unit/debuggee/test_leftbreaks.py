"""Breakpoints that a killed debugger has left: what is one, and what may be another's and stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from signal import SIGTRAP
from typing import Any, cast

import pytest

from darc.code.modules import load_image
from darc.code.program import Program
from darc.code.stapprobes import StapProbe
from darc.debuggee import leftbreaks, procfs
from darc.debuggee.leftbreaks import take_out_breakpoints
from darc.model.ftree import Function
from darc.target.target import Region, Target
from tests.fake_target import FakeTarget

BIAS, PID = 0x7000_0000_0000, 4711
OWN, INNER, PLAIN = 0x10, 0x22, 0x30
PROBES = {"init_complete": 0x40, "reloc_complete": 0x44, "unmap_complete": 0x48}
OTHERS = {"map_complete": 0x4C}
STORED = bytes(0x10) + b"\xc3" * 0x10 + b"\x48\x89\xe5" * 4 + b"\x55" * 0x34 + bytes(0x20)
"""What the file has: returns from 0x10 on, instructions of three bytes from 0x20 on."""


class Symbols:
    """A function of debuggers, and others."""

    def names_at(self, address: int) -> list[str]:
        return ["_dl_debug_state"] if address == OWN else []


@dataclass
class Image:
    """A dynamic linker."""

    symbols: Symbols = field(default_factory=Symbols)
    stap_probes: Sequence[StapProbe] = tuple(
        StapProbe(at, "rtld", name) for name, at in (PROBES | OTHERS).items()
    )

    def loaded(self, address: int, size: int) -> bytes:
        return STORED[address : address + size]


@dataclass
class Module:
    image: Image = field(default_factory=Image)
    name: str = "ld.so"
    bias: int = BIAS
    is_vdso: bool = False


class FakeProgram:
    """Its file is at :data:`BIAS`."""

    def __init__(self) -> None:
        self.module = Module()
        self.names = self.outlines = self.live = self
        self.forgotten = 0

    def module_at(self, address: int) -> Module | None:
        return self.module if BIAS <= address < BIAS + len(STORED) else None

    def function_at(self, address: int) -> Function:
        start = BIAS + 0x20 if address == BIAS + INNER else address
        return Function("f", "f", "ld.so", start, start - BIAS)

    def extent(self, address: int) -> tuple[int, int]:
        return BIAS + (0x20 if 0x20 <= address - BIAS < 0x2C else address - BIAS), 0

    def in_file(self, address: int, size: int) -> bytes:
        return STORED[address - BIAS :][:size]

    def forget_code(self) -> None:
        self.forgotten += 1


def _region(start: int, size: int, permissions: str, path: str) -> Region:
    return Region(start=start, end=start + size, permissions=permissions, offset=0, path=path)


@dataclass
class Live:
    """A process in which breakpoints were left at some offsets."""

    left: Iterable[int]
    permissions: str = "r-xp"
    probed: bool = False
    catches: bool = False
    fill: int = 1

    def take_out(self, monkeypatch: pytest.MonkeyPatch, *, is_known: bool) -> set[int]:
        """Where the file's bytes are back; what is told must be of all others."""
        memory = bytearray(STORED)
        for at in self.left:
            memory[at : at + self.fill] = b"\xcc" * self.fill
        target = FakeTarget()
        target.map(BIAS, bytes(memory))
        mapped = [_region(BIAS, len(STORED), self.permissions, "/ld.so")]
        if self.probed:
            mapped.append(_region(0x10000, 0x1000, "--xp", "[uprobes]"))

        def own(_pid: int, parts: Iterable[range]) -> Iterator[range]:
            yield from parts

        monkeypatch.setattr(procfs, "regions", lambda _: tuple(mapped))
        monkeypatch.setattr(procfs, "catches", lambda _, number: self.catches and number == SIGTRAP)
        monkeypatch.setattr(leftbreaks, "own_pages", own)
        program = FakeProgram()
        self.told = take_out_breakpoints(
            cast(Target, target), cast(Program, cast(Any, program)), PID, is_known=is_known
        )
        now = target.memory.read(BIAS, len(STORED))
        back = {at for at in self.left if now[at] == STORED[at]}
        assert all(now[at] == STORED[at] for at in range(len(STORED)) if memory[at] != 0xCC)
        assert program.forgotten == bool(back)
        return back


@pytest.mark.parametrize(
    ("live", "is_known", "out"),
    [
        (Live([OWN]), False, {OWN}),
        (Live([OWN], catches=True), False, {OWN}),
        (Live([OWN], probed=True), True, set()),
        (Live([OWN, PLAIN]), False, {OWN}),
        (Live([OWN, PLAIN]), True, {OWN, PLAIN}),
        (Live([OWN, PLAIN], catches=True), True, {OWN}),
        (Live([INNER]), True, set()),
        (Live([INNER + 1]), True, {INNER + 1}),
        (Live(PROBES.values()), False, set(PROBES.values())),
        (Live([*PROBES.values(), PLAIN]), False, set(PROBES.values())),
        (Live([*PROBES.values(), *OTHERS.values()]), False, set()),
        (Live([0x40]), False, set()),
        (Live([0x40]), True, {0x40}),
        (Live([OWN, PLAIN], fill=3), True, set()),
        (Live([OWN, PLAIN], "rwxp"), True, set()),
        (Live([]), True, set()),
    ],
)
def test_what_is_taken_out(
    live: Live, out: set[int], monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    assert live.take_out(monkeypatch, is_known=is_known) == out
    stay = set(live.left) - out if live.permissions == "r-xp" and live.fill == 1 else set()
    assert any("had left" in line for line in live.told) == bool(out)
    assert any("stays in" in line for line in live.told) == bool(stay)
    assert len(live.told) == bool(out) + bool(stay)


def test_probes_of_a_file_are_instructions_without_effect() -> None:
    """The C++ library's, as Debian has it: for what is thrown, thrown on, and caught."""
    import ctypes
    import os
    from pathlib import Path

    ctypes.CDLL("libstdc++.so.6")
    path = next(r.path for r in procfs.regions(os.getpid()) if "/libstdc++.so" in r.path)
    image = load_image(Path(path))
    assert {(p.provider, p.name) for p in image.stap_probes} == {
        ("libstdcxx", name) for name in ("catch", "throw", "rethrow")
    }
    assert {image.loaded(p.address, 1) for p in image.stap_probes} == {b"\x90"}
