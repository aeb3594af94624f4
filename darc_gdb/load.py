"""Loads darc into gdb: ``source …/darc_gdb/load.py``, or start gdb as ``darc-gdb``."""

import os
import sys
from pathlib import Path

import gdb


def _find_packages() -> None:
    """darc itself stands beside this file; what it needs is where the launcher says, or in the
    virtual environment that 'make setup' made."""
    root = Path(__file__).resolve().parent.parent
    folders = [p for p in os.environ.pop("DARC_PYTHONPATH", "").split(os.pathsep) if p]
    gdb.execute("unset environment DARC_PYTHONPATH", to_string=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folders += [str(p) for p in root.glob(f".venv/lib/{version}/site-packages")]
    folders += [str(p) for p in root.glob(".venv/lib/python3*/site-packages")]
    for folder in [str(root), *folders]:
        if folder not in sys.path:
            sys.path.append(folder)


def _load() -> None:
    _find_packages()
    try:
        import darc_gdb
        from darc_gdb import commands
    except ImportError as error:
        raise gdb.GdbError(
            f"darc: cannot load: {error}; run 'make setup' in darc's folder first"
        ) from None
    if not hasattr(darc_gdb, "APP"):
        darc_gdb.APP = commands.register()  # type: ignore[attr-defined]
        # Breakpoint commands are run as code of the main module.
        gdb.execute("python import darc_gdb.target")


_load()
