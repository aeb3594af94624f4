"""The agent as it was compiled with this package: its code, and the layout of what it shares."""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from darc.agent.constants import Constants
from darc.model.errors import UnsupportedError

ABI_VERSION = 52
_NUMBERS = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""By their sizes in bytes, as :mod:`struct` calls them."""

Row = TypeVar("Row", bound=tuple[int, ...])
"""One of :mod:`darc.agent.structures`."""

_ANOTHER = "the compiled agent is of another version: run 'make setup' again"


@dataclass(frozen=True)
class Blob:
    """The compiled agent.

    ``code`` is position independent; ``symbols`` maps its entry points to offsets in ``code``.
    """

    code: bytes
    symbols: dict[str, int]
    constants: Constants
    sizes: dict[str, int]
    fields: dict[str, tuple[int, int]]

    def offset(self, field: str) -> int:
        """Offset in bytes of ``"darc_record.slot"`` and the like."""
        return self.fields[field][0]

    def pack(self, structure: str, **values: int | bytes) -> bytes:
        """The bytes of one ``structure``; fields that are not named are zero."""
        raw = bytearray(self.sizes[structure])
        for name, value in values.items():
            offset, size = self.fields[f"{structure}.{name}"]
            data = (
                value
                if isinstance(value, bytes)
                else (value % (1 << 8 * size)).to_bytes(size, "little")
            )
            raw[offset : offset + len(data)] = data
        return bytes(raw)

    def unpack(self, kind: type[Row], raw: bytes, at: int = 0) -> Row:
        """A row of :mod:`darc.agent.structures`, which is ``at`` an address; of what ``raw`` does
        not reach to it has zeros."""
        make: Callable[..., Row] = kind
        structure = f"darc_{kind.__name__.removesuffix('Row').lower()}"
        return make(*self._values(structure, raw), at)

    def by_name(self, structure: str, raw: bytes) -> dict[str, int]:
        """The same of any ``structure``, where names of its fields are known only now."""
        return dict(zip(self.numbers(structure), self._values(structure, raw), strict=True))

    @functools.cache  # noqa: B019 - the blob lives as long as the process
    def numbers(self, structure: str) -> tuple[str, ...]:
        """The names of the fields of a ``structure`` that are numbers (no arrays, no strings), in
        their order."""
        prefix = structure + "."
        of_it = {name: place for name, place in self.fields.items() if name.startswith(prefix)}
        found = [(place, name) for name, place in of_it.items() if place[1] in _NUMBERS]
        return tuple(name.removeprefix(prefix) for _, name in sorted(found))

    def _values(self, structure: str, raw: bytes) -> tuple[int, ...]:
        form = self._form(structure)
        return form.unpack_from(raw if len(raw) >= form.size else raw.ljust(form.size, b"\0"))

    @functools.cache  # noqa: B019 - the blob lives as long as the process
    def _form(self, structure: str) -> struct.Struct:
        form, end = "<", 0
        for name in self.numbers(structure):
            offset, size = self.fields[f"{structure}.{name}"]
            form += f"{offset - end}x{_NUMBERS[size]}"
            end = offset + size
        return struct.Struct(form)

    def __hash__(self) -> int:
        return id(self)


@functools.cache
def load() -> Blob:
    """The agent that was compiled with this package.

    Raises:
        UnsupportedError: it is missing or of another version; the message says how to build it.
    """
    folder = resources.files(__package__)
    try:
        code = (folder / "agent.bin").read_bytes()
        layout: dict[str, Any] = json.loads((folder / "layout.json").read_text())
    except (OSError, ValueError):
        raise UnsupportedError(
            "the compiled agent is missing: run 'make setup' in darc's folder, or reinstall darc"
        ) from None
    if layout["constants"]["DARC_ABI_VERSION"] != ABI_VERSION:
        raise UnsupportedError(_ANOTHER)
    try:
        constants = Constants.of(layout["constants"])
    except KeyError:
        raise UnsupportedError(_ANOTHER) from None
    return Blob(
        code=code,
        symbols=layout["symbols"],
        constants=constants,
        sizes=layout["sizes"],
        fields={name: (place[0], place[1]) for name, place in layout["fields"].items()},
    )


def elf_file() -> Path:
    """The agent with its symbols and frame information, for debuggers."""
    return Path(str(resources.files(__package__) / "agent.elf"))
