"""Loads darc into lldb: ``command script import .../darc_lldb/load.py``, or start lldb as
``darc-lldb``.

All of it or nothing: whatever goes wrong is one line, and nothing of darc stays in lldb then. This
file itself is for any Python 3, and has ASCII characters alone.
"""

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # "typing" has it not in every Python 3
    import lldb

OLDEST_PYTHON = (3, 11)
_INTERRUPTED = 130  # the exit status that shells give to what Ctrl-C has ended


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
    from pathlib import Path

    root = Path(__file__).resolve().parent.parent
    folders = [p for p in os.environ.pop("DARC_PYTHONPATH", "").split(os.pathsep) if p]
    version = "python{}.{}".format(*sys.version_info[:2])
    folders += [str(p) for p in root.glob(f".venv/lib/{version}/site-packages")]
    folders += [str(p) for p in root.glob(".venv/lib/python3*/site-packages")]
    for folder in [str(root), *folders]:
        if folder not in sys.path:
            sys.path.append(folder)


def _load(debugger: "lldb.SBDebugger", namespace: "dict[str, object]") -> "str | None":
    if sys.version_info < OLDEST_PYTHON:
        version = "{}.{}".format(*sys.version_info[:2])
        return f"this lldb has Python {version}; darc needs 3.11 or newer"
    if not hasattr(sys.modules.get("lldb"), "eStateStopped"):
        return "this lldb's own Python module is not whole; 'darc-lldb' finds what it lacks"
    modules, path = set(sys.modules), list(sys.path)
    launched = "DARC_PYTHONPATH" in os.environ
    try:
        _restore_environment()
        _find_packages()
        import darc_lldb
        from darc_lldb import commands

        namespace["darc_lldb"] = darc_lldb  # where lldb looks up the names of classes
        commands.register(debugger)
        return None
    except ImportError as error:
        why = f"{error}; run 'make setup' in darc's folder first"
    except Exception as error:  # told in one line, like every other
        why = f"{error!r}; 'make setup' in darc's folder makes it anew"
    except KeyboardInterrupt:
        if launched:  # there is nothing yet that lldb would have to leave
            os._exit(_INTERRUPTED)
        known = sys.modules.get("darc_lldb.commands")
        if debugger.GetID() in getattr(known, "APPS", ()):
            return None
        why = "interrupted; 'command script import' of this file tries again"
    # A later try, when that is repaired, finds nothing of this one.
    namespace.pop("darc_lldb", None)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in ("darc", "darc_lldb"):
            del sys.modules[name]
    return "cannot load: " + why


def __lldb_init_module(debugger: "lldb.SBDebugger", namespace: "dict[str, object]") -> None:
    """Called by lldb for each debugger that imports this file."""
    trouble = _load(debugger, namespace)
    if trouble is not None:
        line = " ".join(trouble.split()).encode("ascii", "replace").decode("ascii")
        print("darc: " + line)
