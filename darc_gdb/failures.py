"""How darc's errors are told in gdb: by gdb, of a command; between commands, by darc."""

from __future__ import annotations

import gdb

from darc.app import failures
from darc.app.app import App
from darc_gdb import target as backend


def gdb_error(app: App, error: Exception, also: str = "") -> gdb.GdbError:
    """gdb's own error, which gdb shows as the one line for the user, with what ``also`` says at its
    end. A traceback above it, where that is wanted, is shown at once."""
    return gdb.GdbError(_line(app, error) + also)


def complain(app: App, error: Exception) -> None:
    """Shows an error that is no command's."""
    gdb.write(_line(app, error) + "\n", gdb.STDERR)


def _line(app: App, error: Exception) -> str:
    if above := failures.trace_of(app):
        gdb.write(backend.TARGET.screen.fitting(above), gdb.STDERR)
    return backend.TARGET.screen.fitting(failures.line_of(error))
