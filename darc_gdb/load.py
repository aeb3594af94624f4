"""Loads darc into gdb: ``source .../darc_gdb/load.py``, or start gdb as ``darc-gdb``.

All of it or nothing: whatever goes wrong is one line, and nothing of darc stays in gdb then. This
file itself is for any Python 3, and has ASCII characters alone.
"""

import collections.abc
import contextlib
import os
import signal
import sys

import gdb

_INTERRUPTED = 130  # the exit status that shells give to what Ctrl-C has ended
_LAUNCHED = "DARC_PYTHONPATH" in os.environ


def _find_darc() -> str:
    """It stands beside this file: in this folder, where Python finds it from now on. Each file that
    loads darc has this, as nothing of it can be imported before."""
    from pathlib import Path

    root = str(Path(__file__).resolve().parent.parent)
    if root not in sys.path:
        sys.path.append(root)
    return root


def _import_and_register() -> None:
    import darc_gdb

    if not hasattr(darc_gdb, "APP"):
        from darc_gdb import commands

        before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        try:  # Ctrl-C comes before this, or behind it
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
            darc_gdb.APP = commands.register()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_loaded() -> bool:
    return hasattr(sys.modules.get("darc_gdb"), "APP")


def _load() -> "str | None":
    modules, path = set(sys.modules), list(sys.path)
    try:
        root = _find_darc()
        from darc.app.loading import add_packages, too_old

        why = too_old("this gdb", sys.version_info[:2])
        if why is None:
            with _ended_by_hangup():
                gdb.execute("unset environment DARC_PYTHONPATH", to_string=True)
                add_packages(root)
                _import_and_register()
            return None
    except ImportError as error:
        why = f"cannot load: {error}; run 'make setup' in darc's folder first"
    except Exception as error:  # told in one line, like every other
        why = f"cannot load: {error!r}; 'make setup' in darc's folder makes it anew"
    except KeyboardInterrupt:  # gdb's Python gets one for SIGTERM as well
        if _LAUNCHED:
            gdb.execute(f"quit {_INTERRUPTED}")
        if _is_loaded():
            return None
        why = "cannot load: interrupted; 'source' of this file tries again"
    # A later try, when that is repaired, finds nothing of this one.
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in ("darc", "darc_gdb", "kgdb"):
            del sys.modules[name]
    return why


def _stand_by() -> None:
    from darc_gdb.hooks import stand_by

    stand_by()


@contextlib.contextmanager
def _ended_by_hangup() -> "collections.abc.Iterator[None]":
    """SIGHUP ends gdb at once meanwhile, as there is nothing yet to leave. gdb itself would end
    some time later, by then in the middle of an attach, and leave the program stopped."""
    from darc.app.sigactions import action_of, set_action

    has_program = any(inferior.pid for inferior in gdb.inferiors())
    if has_program or signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        yield
        return
    before = action_of(signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        set_action(signal.SIGHUP, before)


_trouble = _load()  # not raised: gdb would show where in this file
if _is_loaded():
    _stand_by()
if _trouble is not None:
    _line = " ".join(_trouble.split()).encode("ascii", "replace").decode("ascii")
    gdb.write(f"darc: {_line}\n", gdb.STDERR)
del _trouble
