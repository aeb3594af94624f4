"""The probes that a file offers to debuggers and tracers, as SystemTap has them: instructions
without effect, whose places notes tell."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from darc.code.headers import Headers

_NOTE = struct.Struct("<III")
_PLACES = struct.Struct("<QQQ")
"""The probe's instruction; where the linker had put ``.stapsdt.base`` by then, which tells how far
the file was moved since; the probe's semaphore."""

_OWNER, _KIND = b"stapsdt\0", 3


@dataclass(frozen=True)
class StapProbe:
    """One place of a probe, by the file's own address; there may be several of a name."""

    address: int
    provider: str
    name: str


def stap_probes_of(headers: Headers) -> Iterator[StapProbe]:
    """All that a file's notes tell of. Raises ValueError or struct.error where it is damaged."""
    section, base = headers.section(".note.stapsdt"), headers.section(".stapsdt.base")
    data, at = b"" if section is None else headers.data(section), 0
    while at + _NOTE.size <= len(data):
        owner_size, size, kind = _NOTE.unpack_from(data, at)
        owner = at + _NOTE.size
        told = owner + (owner_size + 3) // 4 * 4
        at = told + (size + 3) // 4 * 4
        if kind != _KIND or data[owner : owner + owner_size] != _OWNER:
            continue
        address, linked, _ = _PLACES.unpack_from(data, told)
        provider, name = data[told + _PLACES.size : told + size].split(b"\0", 2)[:2]
        moved = base.address - linked if base is not None and linked else 0
        yield StapProbe(address + moved, provider.decode("latin-1"), name.decode("latin-1"))
