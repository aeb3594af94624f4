"""One ELF file: what of it is loaded, its symbols, its frames and what it tells the dynamic linker.

Headers (:mod:`darc.code.headers`) are unpacked when a file is opened; symbols, frames and dynamic
linking are parts of their own, made when they are asked for, as most of a program's files are asked
for none. Addresses are the file's own (add the load bias).

A file may be damaged, by accident or on purpose. Without its headers it is refused; where one of
its tables cannot be read, the file says nothing there (:func:`~darc.code.damaged.where_damaged`).
No table is read that is larger than the file.
"""

from __future__ import annotations

import functools
import hashlib
import mmap
import struct
from collections.abc import Sequence
from pathlib import Path

from darc.code.damaged import where_damaged
from darc.code.debug_file import DebugFile, build_id_of
from darc.code.dynamic import Dynamic
from darc.code.frames import FrameDescriptions
from darc.code.headers import (
    Content,
    FileContent,
    Headers,
    HeldContent,
    Segment,
    segment_at,
)
from darc.code.pointers import CodePointers
from darc.code.processor import BREAKPOINT, LARGEST, MACHINE, PROGRAMS, handed_to_c
from darc.code.stapprobes import StapProbe, stap_probes_of
from darc.code.symbols import FunctionSymbols
from darc.model.errors import FormatError, UnsupportedError
from darc.model.libraries import is_c_library, is_loader
from darc.target.memory import Read

_FIRST_CODE = 64
"""Bytes of what a program executes first: more than it has up to its first call."""


_UNWINDING = ("_Unwind_", "__cxa_throw", "__gxx_personality", "__gcc_personality", "unw_")


class Image:
    """What one ELF file says. Built from bytes, so that live memory (the vdso) serves as well."""

    def __init__(
        self, data: bytes | mmap.mmap | Content, name: str, root: Path = Path("/")
    ) -> None:
        """``root`` is where a file's separate debug file is looked for.

        Raises:
            FormatError: it is no ELF file, or damaged.
            UnsupportedError: it is for another machine.
        """
        content = HeldContent(data) if isinstance(data, (bytes, mmap.mmap)) else data
        start = content.read(0, 20)
        machine = (start[4], int.from_bytes(start[18:20], "little")) if len(start) == 20 else None
        if start[:4] == b"\x7fELF" and machine not in (None, MACHINE):
            raise UnsupportedError(f"{name} is not a {PROGRAMS} program, which darc needs")
        try:
            self._headers = Headers(content)
        except (ValueError, OverflowError, struct.error, OSError):
            raise FormatError(f"{name} is not an ELF file, or it is damaged") from None
        self.name = name
        self._debug_file = DebugFile(self._headers, root)
        self.segments = self._read_segments()
        if not self.segments:
            raise FormatError(f"{name} has nothing to load: it is damaged, or no program")
        self.entry: int = self._headers.entry

    @functools.cached_property
    def symbols(self) -> FunctionSymbols:
        """Its functions' symbols."""
        return FunctionSymbols(self._headers, self._debug_file)

    @functools.cached_property
    def frames(self) -> FrameDescriptions:
        """Where frames are in its code."""
        return FrameDescriptions(self._headers, self._debug_file)

    @functools.cached_property
    def unnamed_main(self) -> int | None:
        """Where ``main`` of a program is that names it nowhere (stripped), as its first code tells;
        ``None`` where nothing does."""
        code = self.loaded(self.entry, _FIRST_CODE) if self.entry else None
        found = None if code is None else handed_to_c(code, self.entry)
        segment = None if found is None else self.segment_of(found)
        if segment is None or not segment.executable or self.symbols.named(("main",)):
            return None
        return found

    @functools.cached_property
    def dynamic(self) -> Dynamic:
        """What it tells the dynamic linker."""
        return Dynamic(self._headers)

    @functools.cached_property
    def pointers(self) -> CodePointers:
        """Addresses of code in its data."""
        return CodePointers(self._headers)

    @functools.cached_property
    @where_damaged(tuple)
    def stap_probes(self) -> Sequence[StapProbe]:
        """Those that it offers to debuggers and tracers, in the order of its notes."""
        return tuple(stap_probes_of(self._headers))

    @where_damaged(tuple)
    def _read_segments(self) -> tuple[Segment, ...]:
        return self._headers.segments

    def segment_of(self, address: int) -> Segment | None:
        """The loaded segment that holds ``address``."""
        return segment_at(self.segments, address)

    @where_damaged(None)
    def loaded(self, address: int, size: int) -> bytes | None:
        """The bytes that the file has for ``address``, as far as one of its segments reaches."""
        segment = self.segment_of(address)
        if segment is None:
            return None
        at = address - segment.address
        return self._headers.content.read(segment.offset + at, min(size, segment.size - at))

    @functools.cached_property
    def build_id(self) -> str | None:
        """The linker's name for this build, where it left one."""
        return build_id_of(self._headers)

    @functools.cached_property
    def identity(self) -> str:
        """Tells builds apart: the build id in hexadecimal digits, or ``sha256:`` and the digest of
        the whole file where the linker left none."""
        if self.build_id is not None:
            return self.build_id
        return f"sha256:{hashlib.sha256(self._whole()).hexdigest()}"

    def is_in(self, read: Read) -> bool:
        """Whether memory has this file, whose bytes ``read`` gives by the file's own addresses: by
        its headers and its build id, or by all of its code where the linker left no build id.
        Debuggers may have breakpoints in that.

        Raises:
            TargetError: there is nothing to read.
        """
        parts = [(self._at_offset(self._headers.table), b"")]
        note = self.section_range(".note.gnu.build-id")
        if note and self.build_id is not None:
            parts.append((note, b""))
        else:
            code = (s for s in self.segments if s.executable)
            parts += [(range(s.address, s.address + s.size), BREAKPOINT) for s in code]
        return all(self._agrees(read, part, besides) for part, besides in parts)

    def _at_offset(self, part: range) -> range:
        """Where a part of the file is loaded; nothing where it is not."""
        for one in self.segments:
            if one.offset <= part.start and part.stop <= one.offset + one.size:
                moved = one.address - one.offset
                return range(part.start + moved, part.stop + moved)
        return range(0)

    def _agrees(self, read: Read, part: range, besides: bytes) -> bool:
        stored = self.loaded(part.start, len(part)) if part else None
        if not stored or len(stored) != len(part):
            return False
        found = read(part.start, len(part))
        return found == stored or (
            len(found) == len(stored)
            and all(
                one == other or one in besides for one, other in zip(found, stored, strict=True)
            )
        )

    @where_damaged(bytes)
    def _whole(self) -> bytes:
        content = self._headers.content
        return content.read(0, content.size)

    @functools.cached_property
    @where_damaged(False)
    def has_debug_information(self) -> bool:
        """Whether it, or its separate debug file, tells of source files."""
        files = (self._headers, self._debug_file.headers)
        return any(one is not None and one.section(".debug_info") is not None for one in files)

    @where_damaged(False)
    def has_section(self, name: str) -> bool:
        """Whether the file has a section of that name."""
        return self._headers.section(name) is not None

    @where_damaged(None)
    def section_range(self, name: str) -> range | None:
        """Where the section of that name is in memory, by the file's own addresses."""
        found = self._headers.section(name)
        if found is None or not found.is_loaded or found.size > LARGEST:
            return None
        return range(found.address, found.address + found.size)

    @where_damaged(False)
    def holds(self, text: bytes) -> bool:
        """Whether these bytes stand in a section of constants."""
        constants = self._headers.section(".rodata")
        return constants is not None and text in self._headers.data(constants)

    @functools.cached_property
    def brings_its_unwinder(self) -> bool:
        """Whether it handles exceptions (C++, Rust) and takes the unwinder from no other file."""
        if not self.has_section(".gcc_except_table"):
            return False
        if any(map(self.symbols.may_name, _UNWINDING)) and any(
            name.startswith(_UNWINDING) for name in self.dynamic.got_names.values()
        ):
            return False
        return not (is_c_library(self.name) or is_loader(self.name))

    def warm_up(self) -> None:
        """Reads what is read once, when it is first asked for: it takes up to some 100 ms in a
        large file. Any thread."""
        self.symbols.at(0)
        self.frames.extent(0)
        self.dynamic.imports_any(())
        self.pointers.lie_between(0, 0)


def read_image(path: Path, name: str, root: Path = Path("/")) -> Image:
    """Reads a file as the process sees it (``root`` is ``/proc/PID/root`` or ``/``), with its
    separate debug file where there is one (build id, debug link, MiniDebugInfo).

    Raises:
        FormatError: it cannot be read or is no ELF file.
        UnsupportedError: it is for another machine.
    """
    try:
        content = FileContent(path)
        content.read(0, 1)
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FormatError(f"cannot read {path}: {reason}") from None
    return Image(content, name, root)
