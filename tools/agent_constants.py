"""Writes ``darc/agent/constants.py`` from the agent's header.

``python tools/agent_constants.py`` replaces the file; a test compares the two.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from darc.agent.build import HERE, constants_in  # noqa: E402

FILE = HERE / "constants.py"

_BEGIN = '''"""The constants of ``abi.h``, as the agent was compiled with them.

Written by ``tools/agent_constants.py`` from the header: run that where one comes or goes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

_PREFIX = "DARC_"
"""What the header has before each name."""


@dataclass(frozen=True)
class Constants:
    """Those of the agent, by their names in its header."""

'''

_END = '''
    @classmethod
    def of(cls, found: Mapping[str, int]) -> Constants:
        """As they were ``found`` in the compiled agent. Raises KeyError: it lacks one."""
        names = [one.name for one in dataclasses.fields(cls)]
        return cls(**{name: found[_PREFIX + name] for name in names})

    def named(self, name: str) -> int:
        """One that a value names as the header does: ``DARC_HIDE``."""
        value = getattr(self, name.removeprefix(_PREFIX))
        assert isinstance(value, int)
        return value
'''


def text() -> str:
    """What the file has."""
    names = sorted(constants_in((HERE / "abi.h").read_text()))
    return _BEGIN + "".join(f"    {name.removeprefix('DARC_')}: int\n" for name in names) + _END


def main(file: Path = FILE) -> None:
    file.write_text(text())


if __name__ == "__main__":
    main()
