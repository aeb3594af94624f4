"""Loads darc into lldb: ``command script import …/darc_lldb/load.py``, or start lldb as
``darc-lldb``."""

import json
import os
import sys
from pathlib import Path


def _restore_environment() -> None:
    """Takes back what the launcher changed for lldb's own Python: the program starts without."""
    for name, value in json.loads(os.environ.pop("DARC_ENVIRONMENT", "{}")).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _find_packages() -> None:
    """darc itself stands beside this file; what it needs is where the launcher says, or in the
    virtual environment that 'make setup' made."""
    root = Path(__file__).resolve().parent.parent
    folders = [p for p in os.environ.pop("DARC_PYTHONPATH", "").split(os.pathsep) if p]
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folders += [str(p) for p in root.glob(f".venv/lib/{version}/site-packages")]
    folders += [str(p) for p in root.glob(".venv/lib/python3*/site-packages")]
    for folder in [str(root), *folders]:
        if folder not in sys.path:
            sys.path.append(folder)


def __lldb_init_module(debugger, namespace):
    """Called by lldb for each debugger that imports this file."""
    _restore_environment()
    _find_packages()
    try:
        import darc_lldb
        from darc_lldb import commands
    except ImportError as error:
        print(f"darc: cannot load: {error}; run 'make setup' in darc's folder first")
        return
    namespace["darc_lldb"] = darc_lldb  # where lldb looks up the names of classes
    commands.register(debugger)
