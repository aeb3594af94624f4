"""Where exceptions come back to: the call-site table of a function's language-specific data.

A C++ function's ``catch`` blocks and clean-ups are entered by the unwinder alone, so that no jump
in the code tells of them. The format is gcc's (the Itanium C++ ABI leaves it to the personality
routine; libgcc's ``unwind-pe.h`` and libstdc++'s ``eh_personality.cc`` read it).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_OMIT = 0xFF
_ULEB = 0x01
_FORMS = {0x00: "<Q", 0x02: "<H", 0x03: "<I", 0x04: "<Q", 0x0A: "<h", 0x0B: "<i", 0x0C: "<q"}
_PC_RELATIVE = 0x10


class _TableReader:
    def __init__(self, data: bytes, at: int, address: int) -> None:
        self._data = data
        self.at = at
        self._bias = address - at

    def byte(self) -> int:
        value = self._data[self.at]
        self.at += 1
        return value

    def uleb(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def encoded(self, encoding: int) -> int:
        """A value in one of the encodings ``DW_EH_PE_*``."""
        if encoding == _ULEB:
            return self.uleb()
        form = _FORMS.get(encoding & 0x0F)
        if form is None or encoding & 0x70 not in (0, _PC_RELATIVE):
            raise ValueError(f"pointer encoding {encoding:#x}")
        here = self._bias + self.at
        value = int(struct.unpack_from(form, self._data, self.at)[0])
        self.at += struct.calcsize(form)
        return value + here if encoding & _PC_RELATIVE else value


def landing_pads(section: bytes, section_address: int, lsda: int, start: int) -> frozenset[int]:
    """Addresses in the function whose frame description begins at ``start`` and whose data area is
    at the address ``lsda`` in ``section``.

    Raises:
        ValueError: the table cannot be read.
    """
    try:
        return frozenset(_landing_pads(_TableReader(section, lsda - section_address, lsda), start))
    except (IndexError, struct.error) as error:
        raise ValueError(f"exception table at {lsda:#x}: {error}") from None


def _landing_pads(table: _TableReader, start: int) -> Iterator[int]:
    encoding = table.byte()
    base = start if encoding == _OMIT else table.encoded(encoding)
    if table.byte() != _OMIT:
        table.uleb()  # where the types are
    encoding = table.byte()
    length = table.uleb()
    end = table.at + length
    while table.at < end:
        table.encoded(encoding)  # start of the code
        table.encoded(encoding)  # its length
        landing = table.encoded(encoding)
        table.uleb()  # what is to be done
        if landing:
            yield base + landing
