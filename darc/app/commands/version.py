"""``darc version``: which darc this is."""

from __future__ import annotations

import platform
from pathlib import Path

from darc import __version__
from darc.app.commands.command import Actions, Command, Parsed, no_arguments


def _version(app: Actions, _parsed: Parsed) -> None:
    here = Path(__file__).resolve().parents[2]
    app.emit(f"darc {__version__}, Python {platform.python_version()}, {here}")


VERSION = Command(
    name="version",
    summary="Show which darc this is.",
    usage="darc version",
    details=("Tells the release, the debugger's Python and the folder that darc was loaded from."),
    examples=(("darc version", "What to write into a report of a bug."),),
    parse=no_arguments,
    action=_version,
    only_looks=True,
)
