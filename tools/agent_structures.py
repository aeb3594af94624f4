"""Writes ``darc/agent/structures.py`` from the layout of the compiled agent.

``python tools/agent_structures.py`` replaces the file; a test compares the two.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from darc.agent import compiled  # noqa: E402
from darc.agent.build import HERE  # noqa: E402

FILE = HERE / "structures.py"

STRUCTURES = ("Context", "Control", "Event", "Kept", "Record", "Site")
"""What is read as a whole, by its name in the header without the prefix."""

_BEGIN = '''"""The rows of the agent's tables, with the numbers that ``abi.h`` says they have.

Written by ``tools/agent_structures.py`` from the compiled agent: run that where one comes or goes.
"""

from __future__ import annotations

from typing import NamedTuple
'''

_END = '''    at: int = 0
    """Where it is, of one that is told by that."""
'''


def _class(name: str) -> str:
    structure = f"darc_{name.lower()}"
    fields = "".join(f"    {field}: int\n" for field in compiled.load().numbers(structure))
    return f'class {name}Row(NamedTuple):\n    """``struct {structure}``."""\n\n{fields}{_END}'


def text() -> str:
    """What the file has."""
    return "\n\n".join((_BEGIN, *map(_class, STRUCTURES)))


def main(file: Path = FILE) -> None:
    file.write_text(text())


if __name__ == "__main__":
    main()
