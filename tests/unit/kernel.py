"""A made-up kernel: its memory, symbols and code."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

from darc.code.frame_rule import FrameRule
from darc.code.headers import Segment
from darc.code.modules import Module
from darc.code.symscans import Symbol
from darc.model.errors import TargetError
from darc.target.target import Target
from kgdb.image import KernelImage, KernelModule
from kgdb.program import KernelProgram
from tests.fake_symbols import FakeSymbols

TEXT = 0xFFFFFFFF81000000


CALLER, THUNK, RETURN, STATIC, CALLEE, ENTRY = (TEXT + 0x100 * n for n in range(1, 7))


NOP = bytes.fromhex("0f1f440000")


def relative(opcode: bytes, address: int, target: int) -> bytes:
    return opcode + struct.pack("<i", target - (address + len(opcode) + 4))


class Memory:
    """Bytes at addresses; what is not there cannot be read."""

    def __init__(self, *parts: tuple[int, bytes]) -> None:
        self.parts = list(parts)

    def read(self, address: int, size: int) -> bytes:
        for start, data in self.parts:
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        raise TargetError(f"nothing at {address:#x}")


class Symbols(FakeSymbols):
    """Those of a made-up file, which has no sections."""

    def may_have(self, function: str) -> bool:
        return any(function in symbol.name for symbol in self)

    def at(self, address: int) -> Symbol | None:
        return next((s for s in self if s.address <= address < s.address + s.size), None)


class Frames:
    """Of code that keeps no frame, and tells of none."""

    def extent(self, _address: int) -> None:
        return None

    def rule(self, _address: int) -> FrameRule:
        return FrameRule("rsp", 8)


class Image:
    """A kernel's file, as :class:`kgdb.image.KernelImage` has them."""

    name = "vmlinux"
    segments = (Segment(TEXT, 0x1000, 0, True),)

    def __init__(
        self, symbols: dict[str, tuple[int, int]], text: bytes = b"", **values: int
    ) -> None:
        self.text = text
        self.symbols = Symbols(
            [
                Symbol(name=n, address=at, size=size, ifunc=False, exported=False)
                for n, (at, size) in symbols.items()
            ]
        )
        self.frames = Frames()
        self.thunk_calls: list[int] = []
        self.values = {n: at for n, (at, _) in symbols.items()} | values

    def relative_places(self, name: str) -> Iterator[int]:
        """Those of one section, the calls of thunks."""
        return iter(self.thunk_calls if name == ".retpoline_sites" else ())

    def content(self, address: int, size: int) -> bytes:
        return self.text[address - TEXT : address - TEXT + size]


def kernel(
    code: bytes,
    modules: tuple[Module, ...] = (),
    changes: dict[int, bytes] | None = None,
    behind: bytes = b"",
) -> KernelProgram:
    """A kernel whose function ``caller`` has these bytes behind its nop, where they are not
    other ones by now: ``changes``, by how far behind its begin. ``behind`` it is another."""
    text = bytearray(b"\xcc" * 0x1000)
    for at, data in ((CALLER, NOP + code + behind), (STATIC, relative(b"\xe9", STATIC, CALLEE))):
        text[at - TEXT : at - TEXT + len(data)] = data
    symbols = {
        "caller": (CALLER, len(NOP + code)),
        "__x86_indirect_thunk_r11": (THUNK, 32),
        "__x86_return_thunk": (RETURN, 5),
        "__SCT__hook": (STATIC, 8),
        "callee": (CALLEE, 8),
        "entry": (ENTRY, 8),
    }
    if behind:
        symbols["next"] = (CALLER + len(NOP + code), len(behind))
    live = bytearray(text)
    for at, data in (changes or {}).items():
        live[CALLER - TEXT + at : CALLER - TEXT + at + len(data)] = data
    image = Image(symbols, bytes(text), __entry_text_start=ENTRY, __entry_text_end=ENTRY + 0x100)
    module = KernelModule(
        path="vmlinux",
        name="vmlinux",
        bias=0,
        start=TEXT,
        end=TEXT + 0x1000,
        image=cast(KernelImage, image),
    )
    target = cast("Target", SimpleNamespace(memory=Memory((TEXT, bytes(live)))))
    return KernelProgram(target, module, lambda: modules)


STRINGS = b"\0task_struct\0pid\0tgid\0inner\0deep\0"


def text(name: str) -> int:
    return STRINGS.index(b"\0" + name.encode() + b"\0") + 1
