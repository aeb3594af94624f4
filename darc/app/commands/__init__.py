"""The commands, declared once for every debugger: a file for some, and one registry.

A debugger package makes one shim for each of :data:`COMMANDS` and one for the prefix, and hands
the rest of the line to :func:`run`, :func:`complete` and :func:`help_text`. The same holds for
``set darc`` and ``show darc`` with :func:`set_parameter`, :func:`show`, :func:`show_parameter`
and :func:`parameter_help`.

Asks the application through :class:`Actions` alone, and reads files that are named. Of the session
that it has there a command takes what is known and what is saved, and hands its analysis what the
user chooses (:meth:`~darc.session.session.Session.follow`). Does nothing else with a session,
nothing with a program or a debugger, and prints nothing: texts go out by ``Actions.emit``.
"""

from __future__ import annotations

from darc.app.commands.command import Actions, Command
from darc.app.commands.completion import complete, completes_files
from darc.app.commands.dispatch import run
from darc.app.commands.registry import COMMANDS, find_command
from darc.app.commands.report import REPORT_OPTIONS
from darc.app.commands.texts import (
    SET_HELP,
    SHOW_HELP,
    help_text,
    parameter_help,
    set_parameter,
    show,
    show_parameter,
)

__all__ = [
    "COMMANDS",
    "REPORT_OPTIONS",
    "SET_HELP",
    "SHOW_HELP",
    "Actions",
    "Command",
    "complete",
    "completes_files",
    "find_command",
    "help_text",
    "parameter_help",
    "run",
    "set_parameter",
    "show",
    "show_parameter",
]
