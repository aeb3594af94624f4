"""What an ELF file's headers say, and the bytes of its parts, each read when it is asked for.

A program may have hundreds of files, of most of which only the segments matter. pyelftools makes an
object of each header and took 10 ms a file, half a minute's worth of a large program's start being
just that; so headers are unpacked here in one go, and it is asked for DWARF alone.

Raises whatever unpacking meets where a file is damaged; :mod:`darc.code.elf` sees to that.
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from darc.code.processor import LARGEST, MACHINE

_ELF = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")

_LITTLE_ENDIAN = 1
_MANY_SECTIONS, _MANY_SEGMENTS = 0xFFFF, 0xFFFF
"""SHN_XINDEX and PN_XNUM: the first section's header has the number."""

NOBITS = 8
_COMPRESSED = 0x800
_NOTE = struct.Struct("<III")


class Content(Protocol):
    """The bytes of a file, or of memory."""

    @property
    def size(self) -> int:
        """How many."""

    def read(self, offset: int, size: int) -> bytes:
        """As many of them as there are. Raises OSError."""


class HeldContent:
    """Bytes that are here, or a mapped file's."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self._data = data

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._data)

    def read(self, offset: int, size: int) -> bytes:
        """As many of them as there are."""
        return bytes(self._data[offset : offset + size])


class FileContent:
    """The bytes of a module's file, as long as it is the same file: one that was replaced has
    none."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self.path = path
        self._stamp = _stamp(path.stat())
        self.size = self._stamp[2]

    def read(self, offset: int, size: int) -> bytes:
        """As many of them as there are. Raises OSError, also where the file was replaced."""
        opened = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _stamp(os.fstat(opened)) != self._stamp:
                raise OSError(f"{self.path} was replaced")
            return os.pread(opened, max(0, min(size, self.size - offset)), offset)
        finally:
            os.close(opened)


def _stamp(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@dataclass(frozen=True)
class Segment:
    """A loaded segment: file range, address and whether it is executable."""

    address: int
    size: int
    offset: int
    executable: bool


def segment_at(segments: Iterable[Segment], address: int) -> Segment | None:
    """The one that holds ``address``."""
    for segment in segments:
        if segment.address <= address < segment.address + segment.size:
            return segment
    return None


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section's header."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int

    @property
    def is_code(self) -> bool:
        """Whether it is executable (``SHF_EXECINSTR``)."""
        return bool(self.flags & 4)

    @property
    def is_loaded(self) -> bool:
        """Whether the process has it in its memory (``SHF_ALLOC``)."""
        return bool(self.flags & 2)


class Headers:
    """See the module."""

    def __init__(self, content: Content) -> None:
        """Raises ValueError, OverflowError, struct.error or OSError: there are no headers, or none
        that can be."""
        self.content = content
        fields = _ELF.unpack(content.read(0, _ELF.size))
        self.ident: bytes = fields[0]
        self.kind: int = fields[1]
        self.machine: tuple[int, int] = (self.ident[4], fields[2])
        self.entry: int = fields[4]
        self._segments_at, self._sections_at = fields[5], fields[6]
        segment_size, segment_count, section_size, section_count, self._names_at = fields[9:]
        if self.ident[:4] != b"\x7fELF" or self.ident[5] != _LITTLE_ENDIAN:
            raise ValueError("it is no ELF file of this kind")
        if self._sections_at and (section_count == 0 or _MANY_SECTIONS in fields[9:]):
            first = _SECTION.unpack(content.read(self._sections_at, _SECTION.size))
            section_count = section_count or first[5]
            if self._names_at == _MANY_SECTIONS:
                self._names_at = first[6]
            if segment_count == _MANY_SEGMENTS:
                segment_count = first[7]
        self._section_count = section_count if self._sections_at else 0
        self._segment_count = segment_count
        for offset, count, each, needed in (
            (self._segments_at, segment_count, segment_size, _SEGMENT.size),
            (self._sections_at, self._section_count, section_size, _SECTION.size),
        ):
            if count and (each != needed or offset + count * each > content.size):
                raise ValueError("its headers lie outside")

    @property
    def table(self) -> range:
        """Where in the file it stands what is loaded."""
        return range(self._segments_at, self._segments_at + self._segment_count * _SEGMENT.size)

    @functools.cached_property
    def segments(self) -> tuple[Segment, ...]:
        """What is loaded."""
        table = self.content.read(self._segments_at, self._segment_count * _SEGMENT.size)
        return tuple(
            Segment(address, size, offset, bool(flags & 1))
            for kind, flags, offset, address, _, _, size, _ in _SEGMENT.iter_unpack(table)
            if kind == 1 and size <= LARGEST and address + size <= 1 << 64
        )

    @functools.cached_property
    def sections(self) -> tuple[Section, ...]:
        """All of them, by their numbers."""
        table = self.content.read(self._sections_at, self._section_count * _SECTION.size)
        rows = list(_SECTION.iter_unpack(table))
        names = b""
        if self._names_at < len(rows):
            names = self.content.read(rows[self._names_at][4], rows[self._names_at][5])
        return tuple(
            Section(
                name=_text(names, name),
                kind=kind,
                flags=flags,
                address=address,
                offset=offset,
                size=size,
                link=link,
            )
            for name, kind, flags, address, offset, size, link, _, _, _ in rows
        )

    @functools.cached_property
    def _by_name(self) -> Mapping[str, Section]:
        found: dict[str, Section] = {}
        for section in self.sections:
            found.setdefault(section.name, section)
        return found

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return self._by_name.get(name)

    def data(self, section: Section) -> bytes:
        """What a section holds. Raises ValueError where that is nothing that a file can have."""
        if section.kind == NOBITS or section.flags & _COMPRESSED:
            raise ValueError("the section has no content that can be read")
        if section.offset + section.size > self.content.size:
            raise ValueError("the section lies outside")
        return self.content.read(section.offset, section.size)

    @functools.cached_property
    def code_sections(self) -> frozenset[int]:
        """The numbers of the sections that are code."""
        return frozenset(n for n, section in enumerate(self.sections) if section.is_code)

    def build_id(self, most: int = 1 << 16) -> str | None:
        """The linker's name for this build, in hexadecimal digits; ``None`` where there is none in
        the first ``most`` bytes of notes."""
        section = self.section(".note.gnu.build-id")
        if section is None or section.size > most:
            return None
        data, at = self.data(section), 0
        while at + _NOTE.size <= len(data):
            name_size, size, kind = _NOTE.unpack_from(data, at)
            at += _NOTE.size
            name = data[at : at + name_size]
            at += (name_size + 3) // 4 * 4
            if kind == 3 and name == b"GNU\0":
                return data[at : at + size].hex() or None
            at += (size + 3) // 4 * 4
        return None


def no_headers() -> Headers:
    """Those of code that has no file: no segment and no section."""
    ident = b"\x7fELF" + bytes((MACHINE[0], _LITTLE_ENDIAN, 1))
    sizes = _ELF.size, _SEGMENT.size, 0, _SECTION.size, 0, 0
    return Headers(HeldContent(_ELF.pack(ident, 0, MACHINE[1], 1, 0, 0, 0, 0, *sizes)))


def _text(strings: bytes, at: int) -> str:
    end = strings.find(b"\0", at)
    return strings[at : end if end >= 0 else len(strings)].decode("utf-8", "replace")
