"""Writes what Python knows of the agent's structures, from the layout of the compiled agent:
``structures.py``, ``fieldnames.py`` and ``fieldvalues.py`` of ``darc/agent``.

``python tools/agent_structures.py`` replaces the files; a test compares them.
"""

from __future__ import annotations

import keyword
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from darc.agent import compiled  # noqa: E402
from darc.agent.build import HERE  # noqa: E402

ROWS, NAMES = HERE / "structures.py", HERE / "fieldnames.py"
VALUES = HERE / "fieldvalues.py"

STRUCTURES = ("Block", "Context", "Control", "Event", "Kept", "Record", "Site")
"""What is read as a whole, by its name in the header without the prefix."""

NAMED = (
    "Block",
    "Class",
    "Context",
    "Contexts",
    "Control",
    "Event",
    "Kept",
    "Record",
    "Site",
)
"""Whose fields are asked for by their names."""

NEUTRAL = {"Parked": {"back", "stack"}}
"""and these of one whose others are a processor's registers."""

WRITTEN = {"Contexts": 8, "Control": 16, "Record": 8, "Site": 8}
"""What is written by the names of its fields: up to which size, in bytes, these are numbers."""

_BEGIN = '''"""The rows of the agent's tables, with the numbers that ``abi.h`` says they have.

Written by ``tools/agent_structures.py`` from the compiled agent: run that where one comes or goes.
"""

from __future__ import annotations

from typing import NamedTuple
'''

_BEGIN_NAMES = '''"""The names of the agent's structures and of their fields, as ``abi.h`` has them.

Written by ``tools/agent_structures.py`` from the compiled agent: run that where one comes or goes.
"""

from __future__ import annotations

from enum import StrEnum


class Structure(StrEnum):
    """One of the header."""

'''

_BEGIN_VALUES = '''"""What may be written into the agent's structures, by their names in ``abi.h``.

Written by ``tools/agent_structures.py`` from the compiled agent: run that where one comes or goes.
"""

from __future__ import annotations

from typing import TypedDict
'''

_END_NAMES = '''

class AgentField(StrEnum):
    """A field of one of them, behind its structure."""
'''

_END = '''    at: int = 0
    """Where it is, of one that is told by that."""
'''


def _class(name: str) -> str:
    structure = f"darc_{name.lower()}"
    fields = "".join(f"    {field}: int\n" for field in compiled.load().numbers(structure))
    return f'class {name}Row(NamedTuple):\n    """``struct {structure}``."""\n\n{fields}{_END}'


def _written(name: str) -> str:
    """What may be set of a structure: its numbers, and what else is given as bytes."""
    structure, most = f"darc_{name.lower()}", WRITTEN[name]
    sizes = {of: size for of, (_, size) in sorted(compiled.load().fields.items())}
    own = {_field(of): size for of, size in sizes.items() if of.startswith(f"{structure}.")}
    own = {of: size for of, size in own.items() if not keyword.iskeyword(of)}
    words = "".join(f"    {field}: int\n" for field, size in own.items() if size <= most)
    rest = "".join(f"    {field}: bytes\n" for field, size in own.items() if size > most)
    return (
        f"class {name}Words(TypedDict, total=False):\n"
        f'    """Numbers of ``struct {structure}``, of up to {most} bytes."""\n\n{words}\n\n'
        f"class {name}Values({name}Words, total=False):\n"
        f'    """Whatever it has."""\n' + (f"\n{rest}" if rest else "")
    )


def _field(name: str) -> str:
    return name.partition(".")[2]


def _fields(name: str) -> str:
    """A structure's fields as an enum, so that mypy knows each."""
    structure = f"darc_{name.lower()}"
    own = [field for field in sorted(compiled.load().fields) if field.startswith(f"{structure}.")]
    of_all = NEUTRAL.get(name, set(map(_field, own)))
    own = [field for field in own if _field(field) in of_all]
    members = "".join(f'    {_field(field).upper()} = "{field}"\n' for field in own)
    return f'class {name}Field(AgentField):\n    """Of ``struct {structure}``."""\n\n{members}'


def rows() -> str:
    """What the file of rows has."""
    return "\n\n".join((_BEGIN, *map(_class, STRUCTURES)))


def names() -> str:
    """What the file of names has."""
    found = sorted(compiled.load().sizes)
    own = "".join(f'    {name.removeprefix("darc_").upper()} = "{name}"\n' for name in found)
    return "\n\n".join((_BEGIN_NAMES + own + _END_NAMES, *map(_fields, (*NAMED, *NEUTRAL))))


def values() -> str:
    """What the file of values has."""
    return "\n\n".join((_BEGIN_VALUES, *map(_written, WRITTEN)))


MADE = {ROWS: rows, NAMES: names, VALUES: values}
"""What each file has."""


def main() -> None:
    for file, text in MADE.items():
        file.write_text(text())


if __name__ == "__main__":
    main()
