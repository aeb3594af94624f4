"""Runs the command that was typed."""

from __future__ import annotations

from darc.app.commands.command import Actions
from darc.app.commands.registry import find_command
from darc.app.commands.texts import help_text
from darc.views.words import lines


def run(app: Actions, name: str, argline: str) -> None:
    """Run the command called ``name`` with the rest of the line; ``""`` is ``darc`` alone.

    Raises :class:`DarcError`, with one line for the user.
    """
    if not name:
        name, argline = [*argline.split(None, 1), "", ""][:2]
    if name in ("", "help"):  # beside the debugger's 'help darc'
        app.emit(lines(help_text("".join(argline.split()[:1]))))
        return
    command = find_command(name)
    if {"-h", "--help"} & set(argline.split()):
        app.emit(lines(help_text(command.name)))
        return
    was_busy = app.is_busy
    command.action(app, command.read(argline))
    assert command.begins or was_busy or not app.is_busy, (
        f"darc {command.name} has begun an analysis: its Command has to say begins=True, or lldb "
        "sees none of the program's stops"
    )
