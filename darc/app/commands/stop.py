"""``darc stop``: the end of a session."""

from __future__ import annotations

from darc.app.commands.command import Actions, Command, Parsed, no_arguments


def _stop(app: Actions, _parsed: Parsed) -> None:
    app.stop()


STOP = Command(
    name="stop",
    summary="Take every probe out and end the search.",
    usage="darc stop",
    details="The program goes on as if darc had never been there; what is known stays.",
    examples=(("darc stop", "End the search."),),
    parse=no_arguments,
    action=_stop,
)
