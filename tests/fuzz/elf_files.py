"""Damaged ELF files: real ones, with bytes, fields and whole tables changed, cut or repeated."""

from __future__ import annotations

import functools
import random
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path

from darc.code.demangle import display_name
from darc.code.elf import Image, read_image
from darc.code.lookup import Lookup
from darc.code.program import Program
from darc.model.errors import DarcError, TargetError
from darc.target.ownthread import Turn
from darc.target.target import Region
from fixtures.build import build
from tests.fake_target import FakeMemory, FakeTarget

BASE = 0x5555_5555_0000

_ODD = (
    0,
    1,
    2,
    7,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    1 << 31,
    (1 << 32) - 1,
    1 << 62,
    (1 << 64) - 1,
)
"""Values that counts, sizes and offsets seldom have."""


@functools.cache
def originals() -> tuple[bytes, ...]:
    """Programs as compilers make them."""
    made = (
        build("mixture"),
        build("throwing"),
        build("plt"),
        build("mixture", strip="all"),
        build("mixture", static=True, pie=False),
    )
    return tuple(path.read_bytes() for path in made)


@functools.cache
def _tables(which: int) -> Sequence[tuple[int, int]]:
    """Where the parts of a file are that are read: its headers and sections, by offset and size."""
    from io import BytesIO

    from elftools.elf.elffile import ELFFile

    elf = ELFFile(BytesIO(originals()[which]))
    read = (".eh_frame", ".eh_frame_hdr", ".symtab", ".strtab", ".dynsym", ".dynstr", ".rela.plt",
            ".rela.dyn", ".note.gnu.build-id", ".gcc_except_table", ".gnu_debuglink",
            ".debug_frame", ".shstrtab")  # fmt: skip
    found = [(0, 64), (elf["e_phoff"], elf["e_phnum"] * 56), (elf["e_shoff"], elf["e_shnum"] * 64)]
    for section in elf.iter_sections():
        if section.name in read and section["sh_size"]:
            found.append((section["sh_offset"], section["sh_size"]))
    return found


def mutated(chance: random.Random) -> bytes:
    """A file with some damage."""
    which = chance.choices(range(len(originals())), (4, 4, 3, 3, 1))[0]
    data = bytearray(originals()[which])
    for _ in range(chance.choice((1, 1, 2, 3, 8, 30))):
        offset, size = chance.choice(_tables(which))
        at = max(min(offset + chance.randrange(size), len(data) - 1), 0)
        kind = chance.randrange(7)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            form = chance.choice("BHIQ")
            value = chance.choice(_ODD) + chance.choice((-1, 0, 1))
            at -= at % struct.calcsize(form)
            value &= (1 << 8 * struct.calcsize(form)) - 1
            data[at : at + struct.calcsize(form)] = struct.pack(f"<{form}", value)
        elif kind == 3:
            data[at : at + chance.randrange(1, 64)] = chance.randbytes(chance.randrange(64))
        elif kind == 4:
            end = min(offset + size, len(data))
            data[at:end] = chance.randbytes(end - at)
        elif kind == 5:
            other = chance.randrange(len(data))
            data[at : at + 16] = data[other : other + 16]
        elif chance.random() < 0.2:
            del data[at:]
        if not data:
            break
    return bytes(data)


def look(image: Image, chance: random.Random) -> None:
    """Asks everything of a file that darc asks."""
    places = [s.address for s in list(image.symbols)[:: max(1, len(image.symbols) // 8)]]
    places += [chance.randrange(1 << 16), image.entry, (1 << 64) - 1, 0]
    for place in places:
        image.symbols.at(place)
        image.symbols.names_at(place)
        image.symbols.next_above(place)
        image.segment_of(place)
        image.frames.may_be_called(place)
        image.frames.landing_pads(place)
        image.frames.rule(place)
        extent = image.frames.extent(place)
        if extent is not None:
            segment = image.segment_of(place)
            assert segment is not None
            assert segment.address <= extent[0] < extent[1] <= segment.address + segment.size
    for symbol in image.symbols:
        display_name(symbol.name)
    assert image.identity
    assert len(image.dynamic.got_names) < 1 << 20
    image.dynamic.imports_any(["malloc"])
    image.symbols.exported("handle")
    image.frames.exception_returns()
    _ = image.brings_its_unwinder


class _Mapped(FakeMemory):
    """That of a process that has the file mapped from :data:`BASE` on."""

    def __init__(self, turn: Turn, data: bytes) -> None:
        super().__init__(turn)
        self._data = data

    def read(self, address: int, size: int) -> bytes:
        if size > 1 << 28:
            raise AssertionError(f"a read of {size} bytes")
        if not BASE <= address <= address + size <= BASE + len(self._data):
            raise TargetError("gdb: Cannot access memory")
        return self._data[address - BASE : address - BASE + size]


def trial(chance: random.Random) -> None:
    """One damaged file, by itself and as a module of a program."""
    data = mutated(chance)
    with tempfile.NamedTemporaryFile(prefix="darc-fuzz-") as file:
        file.write(data)
        file.flush()
        path = Path(file.name)
        if chance.random() < 0.5:
            look(read_image(path, path.name), chance)
            return
        size = (len(data) + 4095) // 4096 * 4096
        region = Region(start=BASE, end=BASE + size, permissions="r-xp", offset=0, path=str(path))
        target = FakeTarget()
        target.process = 1
        target.memory = _Mapped(target.turn, data.ljust(size, b"\0"))
        program = Program(target, Path("/"), [region])
        for module in program.modules:
            for symbol in list(module.image.symbols)[:4]:
                _analyse(program, symbol.address + module.bias)
        if program.modules:
            _analyse(program, Lookup(program, target).find("handle"))


def _analyse(program: Program, entry: int) -> None:
    try:
        code = program.function(entry)
        program.outlines.extent(entry)
        program.is_jumped_into(entry, entry + 5)
        for site in code.sites:
            program.linkage.callee_at(site.target or 0)
    except DarcError:
        pass
