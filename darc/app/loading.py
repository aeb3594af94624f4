"""What ``load.py`` of each debugger does first: it has any Python 3, and nothing that darc needs.

So this file is for any Python 3, too, has ASCII characters alone, and imports nothing of darc's.
"""

import os
import sys

OLDEST_PYTHON = (3, 11)


def too_old(debugger: str, version: "tuple[int, ...]") -> "str | None":
    """Why darc cannot run in the Python of this version that ``debugger`` has."""
    if version >= OLDEST_PYTHON:
        return None
    return "{} has Python {}.{}; darc needs {}.{} or newer".format(
        debugger, *version[:2], *OLDEST_PYTHON
    )


def add_packages(root: str) -> None:
    """Has Python find what darc needs: where the launcher says, or in the virtual environment that
    'make setup' made in ``root``."""
    from pathlib import Path

    folders = [p for p in os.environ.pop("DARC_PYTHONPATH", "").split(os.pathsep) if p]
    version = "python{}.{}".format(*sys.version_info[:2])
    folders += [str(p) for p in Path(root).glob(f".venv/lib/{version}/site-packages")]
    folders += [str(p) for p in Path(root).glob(".venv/lib/python3*/site-packages")]
    for folder in folders:
        if folder not in sys.path:
            sys.path.append(folder)
