"""Where frames are in the code of one ELF file, by its frame information.

``.eh_frame`` and ``.debug_frame`` are pyelftools' to decode. Nothing is said of code that no
segment holds. Addresses are the file's own.
"""

from __future__ import annotations

import bisect
import functools
import io
import itertools
import re
import struct
from array import array
from collections.abc import Iterator
from typing import Any

from elftools.dwarf.callframe import CIE, FDE, CallFrameInfo, RegisterRule
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile

from darc.code import lsda
from darc.code.damaged import where_damaged
from darc.code.debug_file import LARGEST_UNPACKED, DebugFile
from darc.code.frame_rule import FrameRule
from darc.code.headers import NOBITS, Headers, Segment, segment_at
from darc.code.processor import EXCEPTION_RETURN, FRAME_AT_ENTRY, FRAMES, SANDBOX_CALL

if not hasattr(CallFrameInfo, "_parse_entry_at"):
    raise ImportError(
        "this pyelftools reads no single entry of .eh_frame; one from 0.29 on, before 0.34, does"
    )

_PCREL_SDATA4 = 0x1B
_USUAL = struct.Struct("<IIiI")
"""An entry's first fields in the form that compilers give it: its length, how far above the third
the common entry is, how far from here the code begins, and its size."""

_LONG = 512 << 10
"""Bytes of code without frame information that are more than what is written by hand, or than a C
library that was built without it."""

_SHORT = 64
"""Bytes of an entry that are looked at for its first instruction."""

_ADVANCES = range(0x41, 0x80)
"""DW_CFA_advance_loc, by 1 to 63 units: what comes behind it is not of the first instruction."""

_GNU_ARGS_SIZE = 0x2E  # DW_CFA_GNU_args_size
_BREG0, _BREG31 = 0x70, 0x8F  # DW_OP_breg0: a register and a distance


class FrameDescriptions:
    """What one file says of frames: where their CFA is, where they end, what comes back to them."""

    def __init__(self, headers: Headers, debug_file: DebugFile) -> None:
        self._headers = headers
        self._debug_file = debug_file
        self._latest_rules: tuple[range, list[tuple[int, FrameRule | None]]] = range(0), []

    def extent(self, address: int) -> tuple[int, int] | None:
        """The extent that one frame description covers around ``address``."""
        place = self._place(address)
        known = None if place is None else self._usual_extent(place)
        if known is not None:
            return known if known[0] <= address < known[1] and self._is_held(*known) else None
        found = self._fde(address)
        return found[:2] if found else None

    @where_damaged(None)
    def rule(self, address: int) -> FrameRule | None:
        """How to find the CFA at ``address``; ``None`` when the file does not say, or says it in a
        form that pads do not follow."""
        extent, rules = self._latest_rules
        if address not in extent:
            if self._begins_as_all(address):
                return FRAME_AT_ENTRY
            found = self.extent(address)
            if found is None:
                return None
            rules = self._rules(found[0])
            self._latest_rules = range(*found), rules  # most are asked for one after the other
        index = bisect.bisect_right(rules, address, key=_first) - 1
        return rules[index][1] if index >= 0 else None

    @where_damaged(None)
    def kept_frame_pointer(self, address: int) -> int | None:
        """Where from a frame's CFA the caller's frame pointer is at ``address``; ``None``: it is
        in its register, or nobody knows."""
        extent = self.extent(address)
        rows = [] if extent is None else self._rows(extent[0])
        index = bisect.bisect_right(rows, address, key=_first) - 1
        return rows[index][3] if index >= 0 else None

    @functools.lru_cache(maxsize=1024)  # noqa: B019
    @where_damaged(None)
    def landing_pads(self, address: int) -> frozenset[int] | None:
        """Where exceptions come back to in the code that one frame description covers around
        ``address``; ``None`` when the file has it in a form that is not known."""
        found = self._fde(address)
        if found is None or not any(found[2].augmentation_bytes or b""):
            return frozenset()
        pointer = found[2].lsda_pointer
        if pointer is None:
            return frozenset()
        for section in self._headers.sections:
            start = section.address
            if start <= pointer < start + section.size and section.kind != NOBITS:
                return lsda.landing_pads(self._headers.data(section), start, pointer, found[0])
        return None

    @where_damaged(True)
    def may_be_called(self, address: int) -> bool:
        """Whether a call may lead to ``address``, as far as the file tells: frame information of a
        program's or a thread's first code says that there is no caller, that of trampolines that
        more than a return address lies on the stack."""
        if self._begins_as_all(address):
            return True
        extent = self.extent(address)
        rows = [] if extent is None else self._rows(extent[0])
        before = [row for row in rows if row[0] <= address]
        if not before:
            return True
        _, cfa, returns, _ = before[-1]
        if cfa.expr is not None:
            return False
        return returns and (cfa.reg is None or _rule(cfa) == FRAME_AT_ENTRY)

    def _begins_as_all(self, address: int) -> bool:
        """Whether an entry begins there that says nothing else of its first instruction than the
        common one, and that what all functions say. To decode all of it takes pyelftools a
        millisecond, and of a stripped program thousands are asked for."""
        place = self._place(address)
        known = None if place is None else self._usual_extent(place)
        if place is None or known is None or known[0] != address:
            return False
        assert self._tables is not None
        stream = self._tables[0].stream
        stream.seek(place)
        length, above, _, _ = _USUAL.unpack(stream.read(_USUAL.size))
        more = stream.read(min(length + 4 - _USUAL.size, _SHORT))
        if not more or more[0] + 1 >= len(more):  # the size of what is of a language comes first
            return False
        first = more[more[0] + 1 :]  # the whole of a short entry
        goes_on = first[0] in _ADVANCES or first == bytes(length + 4 - _USUAL.size - more[0] - 1)
        return goes_on and self._is_at_entry(place + 4 - above)

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    @where_damaged(False)
    def _is_at_entry(self, offset: int) -> bool:
        """Whether what the common entry there says is what holds at a function's entry."""
        assert self._tables is not None
        parsed = _entry(self._tables[0], offset)
        rows = parsed.get_decoded().table if isinstance(parsed, CIE) else []
        if len(rows) != 1 or rows[0]["cfa"].expr is not None:
            return False
        returns = getattr(rows[0].get(FRAMES.RETURN_ADDRESS), "type", None)
        return _rule(rows[0]["cfa"]) == FRAME_AT_ENTRY and returns == RegisterRule.OFFSET

    @functools.cached_property
    @where_damaged(list)
    def starts(self) -> list[int]:
        """Where the functions and parts of functions begin that it tells of."""
        frames = self._tables
        if frames is None or not frames[3]:
            return [start for start, _, _ in self._all_fdes]
        return [start + frames[4] for start in self._fde_starts]

    @functools.cached_property
    @where_damaged(list)
    def unframed(self) -> list[tuple[int, int]]:
        """Long stretches of code that no frame information tells of, in a file that has it for
        other code: made by no compiler as the rest is, but in a runtime's own way."""
        starts = self.starts
        if not starts:
            return []
        return [
            (low, high)
            for segment in self._headers.segments
            if segment.executable
            for low, high in self._gaps(starts, segment)
            if high - low >= _LONG
        ]

    def _gaps(self, starts: list[int], segment: Segment) -> Iterator[tuple[int, int]]:
        first, last = segment.address, segment.address + segment.size
        known = starts[bisect.bisect_left(starts, first) : bisect.bisect_left(starts, last)]
        for low, high in itertools.pairwise((first, *known, last)):
            if high - low >= _LONG:
                extent = self.extent(low)
                yield low if extent is None else extent[1], high

    @where_damaged(list)
    def exception_returns(self) -> list[int]:
        """Entries of the functions that end as only gcc's ``__builtin_eh_return`` does: the
        unwinder's, which a stripped program does not name."""
        return self._functions_with(EXCEPTION_RETURN)

    @where_damaged(list)
    def sandbox_entries(self) -> list[int]:
        """Entries of the functions that make the system calls ``prctl`` and ``seccomp``, or the one
        that their caller names, as libc's ``prctl`` and ``syscall`` do, which a stripped static
        program does not name."""
        return self._functions_with(SANDBOX_CALL)

    def _functions_with(self, code: re.Pattern[bytes]) -> list[int]:
        found: set[int] = set()
        for section in self._headers.sections:
            if not section.is_code or section.kind == NOBITS:
                continue
            for match in code.finditer(self._headers.data(section)):
                extent = self.extent(section.address + match.start())
                if extent is not None:
                    found.add(extent[0])
        return sorted(found)

    @functools.lru_cache(maxsize=1024)  # noqa: B019
    @where_damaged(list)
    def _rows(self, start: int) -> list[tuple[int, Any, bool, int | None]]:
        """Where a row begins, its CFA, whether there is a caller to return to, and where from the
        CFA that one's frame pointer is kept, if it is."""
        found = self._fde(start)
        if found is None:
            return []
        # pyelftools decodes no table that holds this one, which says nothing of the CFA.
        instructions = found[2].instructions
        instructions[:] = [i for i in instructions if i.opcode != _GNU_ARGS_SIZE]
        rows = found[2].get_decoded().table  # fails at an operation that pyelftools does not know
        returns = [getattr(row.get(FRAMES.RETURN_ADDRESS), "type", None) for row in rows]
        ends = [kind == RegisterRule.UNDEFINED for kind in returns]
        return [
            (row["pc"], row["cfa"], not is_end, _offset(row.get(FRAMES.FRAME_POINTER)))
            for row, is_end in zip(rows, ends, strict=True)
        ]

    @functools.lru_cache(maxsize=1024)  # noqa: B019
    @where_damaged(list)
    def _rules(self, start: int) -> list[tuple[int, FrameRule | None]]:
        """Where each rule begins to hold, in order."""
        found: list[tuple[int, FrameRule | None]] = []
        for pc, current, _, _ in self._rows(start):
            if current.expr is not None:
                found.append((pc, _expression_rule(bytes(current.expr))))
                continue
            found.append((pc, _rule(current)))
        return found

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - images live as long as the session
    @where_damaged(None)
    def _fde(self, address: int) -> tuple[int, int, FDE] | None:
        found = self._find_fde(address)
        if found is None:
            return None
        return found if self._is_held(*found[:2]) else None

    def _is_held(self, start: int, end: int) -> bool:
        segment = segment_at(self._headers.segments, start)
        return segment is not None and end <= segment.address + segment.size

    def _find_fde(self, address: int) -> tuple[int, int, FDE] | None:
        frames = self._tables
        if frames is None or not frames[3]:
            fdes = self._all_fdes
            index = bisect.bisect_right(fdes, address, key=lambda f: f[0]) - 1
            if index < 0 or address >= fdes[index][1]:
                return None
            start, end, known = fdes[index]
            parsed: object = known
            if isinstance(known, int):
                assert frames is not None
                parsed = _entry(frames[0], known)
            return (start, end, parsed) if isinstance(parsed, FDE) else None
        place = self._place(address)
        found = None if place is None else self._entry_at(place)
        return found if found is not None and found[0] <= address < found[1] else None

    def _place(self, address: int) -> int | None:
        """The offset in .eh_frame of the entry that may be of ``address``, by the search table;
        ``None`` also where there is no such table."""
        frames = self._tables
        if frames is None or not frames[3]:
            return None
        _, frame_address, table, _, header_address = frames
        number = bisect.bisect_right(self._fde_starts, address - header_address)
        if not number:
            return None
        place = struct.unpack_from("<i", table, 12 + (number - 1) * 8 + 4)[0] + header_address
        return int(place) - frame_address

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    @where_damaged(None)
    def _usual_extent(self, offset: int) -> tuple[int, int] | None:
        """What the entry there covers, where it has the form that compilers give it. To decode all
        of it takes pyelftools 0.4 ms, and of a stripped program thousands are asked for."""
        assert self._tables is not None
        info, address = self._tables[:2]
        if not 0 <= offset <= info.size - _USUAL.size:
            return None
        info.stream.seek(offset)
        length, above, distance, size = _USUAL.unpack(info.stream.read(_USUAL.size))
        if not above or length >= info.size - offset or not self._is_usual(offset + 4 - above):
            return None
        start = address + offset + 8 + distance
        return start, start + size

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    @where_damaged(False)
    def _is_usual(self, offset: int) -> bool:
        """Whether the entries that belong to the common one there are as :data:`_USUAL` has
        them."""
        assert self._tables is not None
        parsed = _entry(self._tables[0], offset)
        encoding = isinstance(parsed, CIE) and parsed.augmentation_dict.get("FDE_encoding")
        return bool(encoding == _PCREL_SDATA4)

    @functools.cached_property
    def _fde_starts(self) -> array[int]:
        """Where the search table's entries begin, as it tells them."""
        assert self._tables is not None
        _, _, table, count, _ = self._tables
        return array("i", table[12 : 12 + 8 * count])[::2]

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    def _entry_at(self, offset: int) -> tuple[int, int, FDE] | None:
        """The entry there in .eh_frame, which many addresses are asked for."""
        assert self._tables is not None
        entry = _entry(self._tables[0], offset)
        if not isinstance(entry, FDE):
            return None
        start = entry["initial_location"]
        return start, start + entry["address_range"], entry

    @functools.cached_property
    @where_damaged(None)
    def _tables(self) -> tuple[CallFrameInfo, int, bytes, int, int] | None:
        section = self._headers.section(".eh_frame")
        header = self._headers.section(".eh_frame_hdr")
        if section is None or section.kind == NOBITS:
            return None
        data = self._headers.data(section)
        structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
        info = CallFrameInfo(io.BytesIO(data), len(data), section.address, structs, True)
        if header is None or header.kind == NOBITS:
            return info, section.address, b"", 0, 0
        table = self._headers.data(header)
        if table[:4] != b"\x01\x1b\x03\x3b":  # sdata4 pcrel pointer, udata4 count, sdata4 datarel
            return info, section.address, b"", 0, 0
        count = min(struct.unpack_from("<I", table, 8)[0], (len(table) - 12) // 8)
        return info, section.address, table, count, header.address

    def _scan(self) -> list[tuple[int, int, FDE | int]] | None:
        """Start, end and offset of each entry of .eh_frame, where all have the form that compilers
        give them; ``None``: they have not. pyelftools alone takes a second for each megabyte."""
        assert self._tables is not None
        info, address = self._tables[:2]
        info.stream.seek(0)
        data = info.stream.read()
        found: list[tuple[int, int, FDE | int]] = []
        at = 0
        while at + 16 <= len(data):
            length, above, distance, size = _USUAL.unpack_from(data, at)
            if length == 0:
                at += 4
                continue
            if length >= len(data) - at:
                return None  # also the mark of 64 bits
            if above:
                if not self._is_usual(at + 4 - above):
                    return None
                start = address + at + 8 + distance
                found.append((start, start + size, at))
            at += 4 + length
        return found

    @functools.cached_property
    @where_damaged(list)
    def _all_fdes(self) -> list[tuple[int, int, FDE | int]]:
        """For files without a search table (or with .debug_frame alone): start, end, and the entry
        or its offset in .eh_frame."""
        found: list[tuple[int, int, FDE | int]] = []
        entries: list[Any] = []
        if self._tables is not None:
            scanned = self._scan()
            if scanned:
                return sorted(scanned)
            entries = self._tables[0].get_entries()
        for headers in (self._headers, self._debug_file.headers):
            elf = None if entries or headers is None else _with_dwarf(headers)
            if elf is not None:
                dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
                if dwarf.has_CFI():
                    entries = dwarf.CFI_entries()
        for entry in entries:
            if isinstance(entry, FDE):
                start = entry["initial_location"]
                found.append((start, start + entry["address_range"], entry))
        return sorted(found, key=lambda f: f[0])


def _first(row: tuple[Any, ...]) -> int:
    return int(row[0])


def _rule(cfa: Any) -> FrameRule | None:
    """A CFA that is told from a register, as far as that is one which is known."""
    register = FRAMES.NAMES.get(cfa.reg)
    return FrameRule(register, cfa.offset) if register else None


def _offset(rule: Any) -> int | None:
    """From the CFA to where a register is kept there."""
    is_kept = getattr(rule, "type", None) == RegisterRule.OFFSET
    return int(rule.arg) if is_kept else None


def _entry(info: CallFrameInfo, offset: int) -> object:
    """The entry of .eh_frame at an offset in it. pyelftools has no public way to a single one, only
    to all, which takes a second for each megabyte; what it is asked for instead is looked for
    above, as readers of damaged files keep to themselves what is missing."""
    return info._parse_entry_at(offset)


def _with_dwarf(headers: Headers) -> ELFFile | None:
    """The file for pyelftools, where what that reads for ``.debug_frame`` can be what it says."""
    if headers.section(".debug_frame") is None and headers.section(".zdebug_frame") is None:
        return None
    elf = ELFFile(io.BytesIO(headers.content.read(0, headers.content.size)))
    sane = all(
        section["sh_type"] != "SHT_NOBITS"
        and (not section.compressed or section.data_size <= LARGEST_UNPACKED)
        for section in elf.iter_sections()
        if section.name.startswith((".debug_", ".zdebug_", ".eh_frame"))
    )
    return elf if sane and elf.has_dwarf_info() else None


def _sleb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise IndexError("no number of 64 bits")
        if not byte & 0x80:
            return value - (1 << shift if byte & 0x40 else 0), at


def _expression_rule(expression: bytes) -> FrameRule | None:
    """``breg r, n; deref`` with an optional constant added: gcc's realigned frames."""
    try:
        register = FRAMES.NAMES.get(expression[0] - _BREG0)
        if register is None or expression[0] > _BREG31:
            return None
        through, at = _sleb(expression, 1)
        if expression[at] != 0x06:
            return None
        rest = expression[at + 1 :]
        if not rest:
            return FrameRule(register, 0, through)
        if rest[0] == 0x23:  # plus_uconst; small values only
            value, end = _sleb(rest, 1)
            return FrameRule(register, value, through) if end == len(rest) and value >= 0 else None
    except IndexError:
        pass
    return None
