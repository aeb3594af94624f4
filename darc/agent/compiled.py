"""The agent as it was compiled with this package: its code, and the layout of what it shares."""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack, cast, overload

from darc.agent.constants import Constants
from darc.agent.fieldnames import AgentField, Structure
from darc.agent.fieldvalues import ContextsValues, ControlValues, RecordValues, SiteValues
from darc.model.errors import UnsupportedError

ABI_VERSION = 53
_NUMBERS = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""By their sizes in bytes, as :mod:`struct` calls them."""

Row = TypeVar("Row", bound=tuple[int, ...])
"""One of :mod:`darc.agent.structures`."""


class AgentSymbol(StrEnum):
    """What of the agent is asked for by its name."""

    BELL = "darc_bell"
    CALIBRATE = "darc_calibrate"
    CALIBRATE_BACK = "darc_calibrate_back"
    CALIBRATE_MEMBERS = "darc_calibrate_members"
    END_F0 = "darc_end_f0"
    ENTER_F0 = "darc_enter_f0"
    FROM_PAD_ENTER = "darc_from_pad_enter"
    FROM_PAD_LEAVE = "darc_from_pad_leave"
    HOME = "darc_home"
    HOME_BACK = "darc_home_back"
    HOME_STACK = "darc_home_stack"
    LEAVE_F0 = "darc_leave_f0"
    NOTHING = "darc_nothing"
    PARKED = "darc_parked"
    STUB_CALL = "darc_stub_call"
    STUB_ENTRY = "darc_stub_entry"
    STUB_INDIRECT = "darc_stub_indirect"
    STUB_LANDED = "darc_stub_landed"
    STUB_LEAVE = "darc_stub_leave"
    STUB_RETURNED = "darc_stub_returned"
    STUB_TAIL = "darc_stub_tail"
    UNPARKED = "darc_unparked"


_ANOTHER = "the compiled agent is of another version: run 'make setup' again"


@dataclass(frozen=True)
class Blob:
    """The compiled agent.

    ``code`` is position independent; ``symbols`` maps its entry points to offsets in ``code``.
    """

    code: bytes
    symbols: Mapping[AgentSymbol, int]
    constants: Constants
    sizes: Mapping[Structure, int]
    fields: Mapping[AgentField, tuple[int, int]]
    """Offset and size of each, in bytes."""

    def offset(self, field: AgentField) -> int:
        """Offset in bytes of ``RecordField.SLOT`` and the like."""
        return self.fields[field][0]

    @overload
    def pack(
        self, structure: Literal[Structure.CONTEXTS], **values: Unpack[ContextsValues]
    ) -> bytes: ...

    @overload
    def pack(
        self, structure: Literal[Structure.CONTROL], **values: Unpack[ControlValues]
    ) -> bytes: ...

    @overload
    def pack(
        self, structure: Literal[Structure.RECORD], **values: Unpack[RecordValues]
    ) -> bytes: ...

    @overload
    def pack(self, structure: Literal[Structure.SITE], **values: Unpack[SiteValues]) -> bytes: ...

    def pack(self, structure: Structure, **values: Any) -> bytes:
        """The bytes of one ``structure``; fields that are not named are zero."""
        raw = bytearray(self.sizes[structure])
        for name, value in values.items():
            offset, size = self._place(structure, name)
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

    def by_name(self, structure: Structure, raw: bytes) -> dict[str, int]:
        """The same of any ``structure``, where names of its fields are known only now."""
        return dict(zip(self.numbers(structure), self._values(structure, raw), strict=True))

    def _place(self, structure: str, name: str) -> tuple[int, int]:
        """Offset and size of a field whose name is known only now."""
        return self.fields[cast(AgentField, f"{structure}.{name}")]

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
            offset, size = self._place(structure, name)
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
