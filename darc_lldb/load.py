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

_INTERRUPTED = 130  # the exit status that shells give to what Ctrl-C has ended


def _restore_environment() -> None:
    """Takes back what the launcher changed for lldb's own Python: the program starts without."""
    for name, value in json.loads(os.environ.pop("DARC_ENVIRONMENT", "{}")).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _find_darc() -> str:
    """It stands beside this file: in this folder, where Python finds it from now on. Each file that
    loads darc has this, as nothing of it can be imported before."""
    from pathlib import Path

    root = str(Path(__file__).resolve().parent.parent)
    if root not in sys.path:
        sys.path.append(root)
    return root


def _what_lldb_lacks() -> "str | None":
    if hasattr(sys.modules.get("lldb"), "eStateStopped"):
        return None
    return "this lldb's own Python module is not whole; 'darc-lldb' finds what it lacks"


def _import_and_register(debugger: "lldb.SBDebugger", namespace: "dict[str, object]") -> None:
    import darc_lldb
    from darc_lldb import commands

    namespace["darc_lldb"] = darc_lldb  # where lldb looks up the names of classes
    commands.register(debugger)


def _load(debugger: "lldb.SBDebugger", namespace: "dict[str, object]") -> "str | None":
    modules, path = set(sys.modules), list(sys.path)
    launched = "DARC_PYTHONPATH" in os.environ
    try:
        root = _find_darc()
        from darc.app.loading import add_packages, too_old

        why = too_old("this lldb", sys.version_info[:2]) or _what_lldb_lacks()
        if why is None:
            _restore_environment()
            add_packages(root)
            _import_and_register(debugger, namespace)
            return None
    except ImportError as error:
        why = f"cannot load: {error}; run 'make setup' in darc's folder first"
    except Exception as error:  # told in one line, like every other
        why = f"cannot load: {error!r}; 'make setup' in darc's folder makes it anew"
    except KeyboardInterrupt:
        if launched:  # there is nothing yet that lldb would have to leave
            os._exit(_INTERRUPTED)
        known = sys.modules.get("darc_lldb.debuggers")
        if debugger.GetID() in getattr(known, "DEBUGGERS", ()):
            return None
        why = "cannot load: interrupted; 'command script import' of this file tries again"
    # A later try, when that is repaired, finds nothing of this one.
    namespace.pop("darc_lldb", None)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in ("darc", "darc_lldb"):
            del sys.modules[name]
    return why


def __lldb_init_module(debugger: "lldb.SBDebugger", namespace: "dict[str, object]") -> None:
    """Called by lldb for each debugger that imports this file."""
    trouble = _load(debugger, namespace)
    if trouble is not None:
        line = " ".join(trouble.split()).encode("ascii", "replace").decode("ascii")
        print("darc: " + line)
