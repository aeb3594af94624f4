"""What one ELF file tells the dynamic linker: the names behind its slots, and what it needs.

Addresses are the file's own.
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Iterable

from darc.code.damaged import where_damaged
from darc.code.headers import Headers
from darc.code.processor import RELOCATIONS

_SHT_RELA = 4
_DT_NEEDED, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 14, 15, 29


class Dynamic:
    """Dynamic relocations (``.rela.plt``, ``.rela.dyn``) and ``.dynamic`` of one file."""

    def __init__(self, headers: Headers) -> None:
        self._headers = headers

    @functools.cached_property
    @where_damaged(dict)
    def got_names(self) -> dict[int, str]:
        """Names behind GOT slots, by the slot's address, from the dynamic relocations."""
        names: dict[int, str] = {}
        headers = self._headers
        dynsym = headers.section(".dynsym")
        for section_name in (".rela.plt", ".rela.dyn"):
            section = headers.section(section_name)
            if section is None or dynsym is None or section.kind != _SHT_RELA:
                continue
            strings = headers.data(headers.sections[dynsym.link])
            table, symbols = headers.data(section), headers.data(dynsym)
            for offset, info, _addend in struct.iter_unpack("<QQq", table[: len(table) // 24 * 24]):
                index = info >> 32
                if (info & 0xFFFFFFFF) not in RELOCATIONS.named or not index:
                    continue
                if index * 24 + 4 > len(symbols):
                    continue
                name = struct.unpack_from("<I", symbols, index * 24)[0]
                text = strings[name : strings.find(b"\0", name)].decode("utf-8", "surrogateescape")
                names[offset] = text.split("@", 1)[0]
        return names

    @functools.cached_property
    @where_damaged(dict)
    def resolver_slots(self) -> dict[int, list[int]]:
        """Slots that the file's own indirect functions (IFUNC) fill when it is loaded, by the
        address of the function that chooses."""
        slots: dict[int, list[int]] = {}
        for name in (".rela.plt", ".rela.dyn", ".rela.iplt"):
            section = self._headers.section(name)
            if section is None or section.kind != _SHT_RELA:
                continue
            table = self._headers.data(section)
            for offset, info, addend in struct.iter_unpack("<QQq", table[: len(table) // 24 * 24]):
                if info & 0xFFFFFFFF == RELOCATIONS.resolved:
                    slots.setdefault(addend, []).append(offset)
        return slots

    @functools.cached_property
    def _imports(self) -> frozenset[str]:
        return frozenset(self.got_names.values())

    def imports_any(self, names: Iterable[str]) -> bool:
        """Whether the file calls one of ``names`` in another file."""
        return not self._imports.isdisjoint(names)

    @functools.cached_property
    def libraries(self) -> frozenset[str]:
        """The libraries that are to be loaded with it, by the names that they give themselves."""
        return frozenset(self._dynamic_names(_DT_NEEDED))

    @functools.cached_property
    def soname(self) -> str | None:
        """The name that a library gives itself; it may be mapped from a file of another one."""
        return next(iter(self._dynamic_names(_DT_SONAME)), None)

    @functools.cached_property
    def search_paths(self) -> tuple[str, ...]:
        """Where the libraries are looked for first that it needs, as it is written there."""
        return (*self._dynamic_names(_DT_RPATH), *self._dynamic_names(_DT_RUNPATH))

    @where_damaged(list)
    def _dynamic_names(self, wanted: int) -> list[str]:
        section = self._headers.section(".dynamic")
        if section is None:
            return []
        table = self._headers.data(section)
        strings = self._headers.data(self._headers.sections[section.link])
        return [
            os.fsdecode(strings[at : strings.find(b"\0", at)])
            for tag, at in struct.iter_unpack("<QQ", table[: len(table) // 16 * 16])
            if tag == wanted
        ]
