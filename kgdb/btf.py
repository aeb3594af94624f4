"""Where fields are in a kernel's structures, by its BTF (Documentation/bpf/btf.rst)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from darc.model.errors import FormatError

_MAGIC = 0xEB9F
_STRUCT, _UNION = 4, 5
_KIND_INT, _KIND_ARRAY, _KIND_ENUM, _KIND_FUNC_PROTO = 1, 3, 6, 13
_KIND_VAR, _KIND_DATASEC, _KIND_DECL_TAG, _KIND_ENUM64 = 14, 15, 17, 19
_MODIFIERS = frozenset({8, 9, 10, 11, 18})  # typedef, volatile, const, restrict, type tag


def _extra(kind: int, count: int) -> int:
    """Bytes that follow a type's twelve."""
    return {
        _KIND_INT: 4,
        _KIND_ARRAY: 12,
        _STRUCT: 12 * count,
        _UNION: 12 * count,
        _KIND_ENUM: 8 * count,
        _KIND_FUNC_PROTO: 8 * count,
        _KIND_VAR: 4,
        _KIND_DATASEC: 12 * count,
        _KIND_DECL_TAG: 4,
        _KIND_ENUM64: 12 * count,
    }.get(kind, 0)


@dataclass(frozen=True)
class _Type:
    name: int
    kind: int
    count: int
    flag: bool
    place: int
    size: int


class Btf:
    """The types of one kernel."""

    def __init__(self, data: bytes) -> None:
        """``data`` is the section ``.BTF``. Raises FormatError: it is none."""
        if len(data) < 24 or struct.unpack_from("<H", data)[0] != _MAGIC:
            raise FormatError("the kernel has no type information (CONFIG_DEBUG_INFO_BTF)")
        head, types, types_size, strings, strings_size = struct.unpack_from("<5I", data, 4)
        self._types = data[head + types : head + types + types_size]
        self._strings = data[head + strings : head + strings + strings_size]
        self._all: list[_Type] = [_Type(name=0, kind=0, count=0, flag=False, place=0, size=0)]
        at = 0
        while at < len(self._types):
            name, info, size = struct.unpack_from("<3I", self._types, at)
            kind, count = info >> 24 & 0x1F, info & 0xFFFF
            flag = bool(info >> 31)
            self._all.append(_Type(name, kind, count, flag=flag, place=at + 12, size=size))
            at += 12 + _extra(kind, count)

    def _name(self, offset: int) -> str:
        return self._strings[offset : self._strings.find(b"\0", offset)].decode("ascii", "replace")

    def offset(self, structure: str, field: str) -> int:
        """Bytes from the begin of a structure to a field, also within unnamed ones; ``a.b`` for a
        field of a field.

        Raises:
            FormatError: there is none.
        """
        wanted = self._strings.find(b"\0" + structure.encode() + b"\0") + 1
        for own in self._all:
            if own.kind == _STRUCT and own.name == wanted and own.count:
                found = self._path(own, field.split("."))
                if found is not None:
                    return found
        raise FormatError(f"the kernel's types have no {structure}.{field}")

    def size(self, structure: str) -> int:
        """Bytes of a structure. Raises FormatError: there is none."""
        wanted = self._strings.find(b"\0" + structure.encode() + b"\0") + 1
        for own in self._all:
            if own.kind == _STRUCT and own.name == wanted and own.count:
                return own.size
        raise FormatError(f"the kernel's types have no {structure}")

    def _path(self, own: _Type, names: list[str]) -> int | None:
        found = self._find(own, names[0])
        if found is None or len(names) == 1:
            return None if found is None else found[0]
        inner = self._path(self._real(found[1]), names[1:])
        return None if inner is None else found[0] + inner

    def _real(self, number: int) -> _Type:
        found = self._all[number]
        while found.kind in _MODIFIERS:
            found = self._all[found.size]
        return found

    def _find(self, own: _Type, wanted: str) -> tuple[int, int] | None:
        """Offset and type of a field."""
        for index in range(own.count):
            name, kind, bits = struct.unpack_from("<3I", self._types, own.place + 12 * index)
            at = (bits & 0xFFFFFF if own.flag else bits) // 8
            if name and self._name(name) == wanted:
                return at, kind
            inner = self._real(kind)
            if not name and inner.kind in (_STRUCT, _UNION):
                found = self._find(inner, wanted)
                if found is not None:
                    return at + found[0], found[1]
        return None
