"""A kernel's ELF file, vmlinux: symbols, and where frames are by the unwinder's own tables (ORC).

It has no ``.eh_frame``; DWARF is there only in files of hundreds of megabytes and never read here.
"""

from __future__ import annotations

import array
import bisect
import collections
import functools
import mmap
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from darc.code.debug_file import DebugFile
from darc.code.elf import Image
from darc.code.frame_rule import FrameRule
from darc.code.frames import FrameDescriptions
from darc.code.headers import Headers
from darc.code.modules import Module
from darc.code.symbols import FunctionSymbols, Listed, Ranked, readable
from darc.code.symscans import Symbol
from darc.model.errors import FormatError, UsageError
from darc.target.target import Target

AddressOf = Callable[[str], int | None]
"""The live address of a symbol."""

WHERE_SYMBOLS_ARE = (
    "load the vmlinux that the kernel was built with, or that of its debugging package (Debian: "
    "linux-image-…-dbg, in /usr/lib/debug/boot)"
)

_BOOT_HEADER = 0x202
"""Where a bzImage tells that it is one (Documentation/arch/x86/boot.rst)."""

_ORC_ENTRY = 6
_ORC_RULES: dict[int, dict[int, str]] = {
    5: {4: "rbp", 5: "rsp", 8: "(rbp)", 9: "(rsp)"},
    3: {4: "rbp", 3: "rsp", 10: "(rbp)", 9: "(rsp)"},
}
"""How a frame is found (``ORC_REG_*``, orc_types.h), by the number of the stack pointer, which is
that of most places in a kernel: numbered anew in 7.x. In brackets: by what lies there. Others are
not to be met at a call."""


class _KernelSymbols(FunctionSymbols):
    """Those of the symbol table, without a look at dynamic ones."""

    def __init__(
        self,
        headers: Headers,
        debug_file: DebugFile,
        values: dict[str, int],
        sizes: dict[str, int],
    ) -> None:
        """``values`` and ``sizes`` are filled in when they are read."""
        super().__init__(headers, debug_file)
        self._values = values
        self._sizes = sizes

    def _read(self) -> Listed:
        return Listed(readable(self._ranked()))

    def _ranked(self) -> Iterator[Ranked]:
        headers = self._headers
        section = headers.section(".symtab")
        if section is None:
            return
        strings = headers.data(headers.sections[section.link])
        rows, executable, values = headers.data(section), headers.code_sections, self._values
        for name, info, _other, index, value, size in struct.iter_unpack("<IBBHQQ", rows):
            kind = info & 15
            if not name or kind > 2:
                continue
            text = strings[name : strings.find(b"\0", name)].decode("ascii", "replace")
            values.setdefault(text, value)
            if kind == 1:
                self._sizes.setdefault(text, size)
            if index in executable and (kind == 2 or (kind == 0 and not text.startswith(".L"))):
                rank = (kind == 0, len(text) - len(text.lstrip("_")), info >> 4 != 1, len(text))
                yield rank, Symbol(text, value, size, ifunc=False, exported=False)


class _OrcFrames(FrameDescriptions):
    """Where the unwinder's tables say that frames are; where functions end, symbols tell."""

    def extent(self, address: int) -> tuple[int, int] | None:
        return None

    @functools.cached_property
    def _orc(self) -> tuple[int, array.array[int], bytes]:
        """Address and words of the table of places, and the entries."""
        places, entries = map(self._headers.section, (".orc_unwind_ip", ".orc_unwind"))
        if places is None:
            return 0, array.array("i"), b""
        words = array.array("i", self._headers.data(places))
        return places.address, words, b"" if entries is None else self._headers.data(entries)

    def rule(self, address: int) -> FrameRule | None:
        base, places, entries = self._orc
        numbers = range(len(places))
        index = bisect.bisect_right(numbers, address, key=lambda n: base + 4 * n + places[n]) - 1
        if index < 0:
            return None
        raw = entries[index * _ORC_ENTRY : (index + 1) * _ORC_ENTRY]
        if len(raw) < _ORC_ENTRY:
            return None
        offset, _, registers = struct.unpack("<hhH", raw)
        return {
            "rbp": FrameRule("rbp", offset),
            "rsp": FrameRule("rsp", offset),
            "(rbp)": FrameRule("rbp", 0, offset),
            "(rsp)": FrameRule("rsp", offset, 0),
        }.get(self._registers.get(registers & 15, ""))

    @functools.cached_property
    def _registers(self) -> dict[int, str]:
        """What the numbers of registers mean."""
        _, _, entries = self._orc
        numbers = collections.Counter(entries[4::_ORC_ENTRY])
        per_register: collections.Counter[int] = collections.Counter()
        for byte, count in numbers.items():
            per_register[byte & 15] += count
        most = per_register.most_common(1)
        return _ORC_RULES.get(most[0][0], {}) if most else {}


class KernelImage(Image):
    """A vmlinux, mapped rather than read: only what is looked at takes memory."""

    def __init__(self, path: Path) -> None:
        """Raises FormatError: it cannot be read or is no kernel."""
        self.path = path
        self.values: dict[str, int] = {}
        """Of every symbol, also of data, its value."""
        self.sizes: dict[str, int] = {}
        """Of every object, in bytes."""
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise FormatError(f"cannot read {path}: {error}") from None
        super().__init__(self._map, path.name)
        len(self.symbols)  # which fills in the values
        if "linux_banner" not in self.values:
            has_any = self._headers.section(".symtab") is not None
            lacks = "has no symbols of a Linux kernel" if has_any else "has no symbols (stripped)"
            raise FormatError(f"{path} {lacks}: {WHERE_SYMBOLS_ARE}")

    @functools.cached_property
    def symbols(self) -> FunctionSymbols:
        return _KernelSymbols(self._headers, self._debug_file, self.values, self.sizes)

    @functools.cached_property
    def frames(self) -> FrameDescriptions:
        return _OrcFrames(self._headers, self._debug_file)

    def content(self, address: int, size: int) -> bytes:
        """What the file has at an address."""
        for segment in self.segments:
            if segment.address <= address < segment.address + segment.size:
                start = segment.offset + address - segment.address
                return bytes(self._map[start : start + size])
        return b""

    def section(self, name: str) -> bytes:
        """A section's bytes; none when there is no such section."""
        section = self._headers.section(name)
        return self._headers.data(section) if section is not None else b""

    def relative_places(self, name: str) -> Iterator[int]:
        """The addresses that a section tells, each as its distance from where that stands."""
        section = self._headers.section(name)
        if section is None:
            return
        for number, distance in enumerate(array.array("i", self._headers.data(section))):
            yield section.address + 4 * number + distance


@dataclass(frozen=True, kw_only=True)
class KernelModule(Module):
    """The kernel itself, among its modules."""

    image: KernelImage


def live_value(image: KernelImage, name: str, bias: int) -> int | None:
    """The live address of a symbol of the kernel's own, where ``bias`` is added to the file's."""
    found = image.values.get(name)
    return None if found is None else found + bias


def kernel_file(target: Target) -> Path:
    """The file that the debugger has for the kernel. Raises UsageError: it has none."""
    path = target.executable
    if path is None:
        raise UsageError("gdb has no symbols: 'file vmlinux' with that of the running kernel")
    return Path(path)


def what_lacks(path: Path) -> str | None:
    """Of a file that is no vmlinux, but of a kernel, what it is not; ``None``: of none."""
    try:
        with path.open("rb") as file:
            if file.read(_BOOT_HEADER + 4)[_BOOT_HEADER:] == b"HdrS":
                return "is a kernel's boot image, without symbols"
            if ELFFile(file).get_section_by_name(".BTF") is not None:
                return "has a kernel's types alone (BTF), neither its code nor its functions"
    except (OSError, ELFError):
        pass
    return None


def is_kernel(path: Path) -> bool:
    """Whether a file looks like a vmlinux, told quickly."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            return elf.get_section_by_name("__ksymtab") is not None or (
                elf.get_section_by_name(".data..percpu") is not None
            )
    except (OSError, ELFError):
        return False
