"""What a file's name that somebody types can become."""

from __future__ import annotations

import os
from pathlib import Path


def files(typed: str) -> list[str]:
    """The files that ``typed``, a path or an option with one, may become. Debuggers put a space
    behind a word that is alone: a folder that is comes with what it holds."""
    option, equals, path = typed.partition("=")
    option, path = (option + equals, path) if typed.startswith("-") else ("", typed)
    found = _entries(path)
    if len(found) == 1 and found[0].endswith("/"):
        found = _entries(found[0]) or found
    return [option + name for name in found]


def _entries(path: str) -> list[str]:
    """What a folder holds whose name begins with ``path``; folders end in ``/``."""
    start = path.rpartition("/")[2]
    shown = path[: len(path) - len(start)]
    try:
        with os.scandir(Path(shown).expanduser()) as entries:
            return sorted(
                shown + entry.name + ("/" if entry.is_dir() else "")
                for entry in entries
                if entry.name.startswith(start) and (start or not entry.name.startswith("."))
                if not set(entry.name) & set(" \t\n'\"\\")  # they would have to be quoted
            )
    except (OSError, ValueError, RuntimeError):
        return []  # there is no such folder, or nobody may look into it
