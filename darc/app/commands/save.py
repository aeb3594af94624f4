"""``darc save``: a session as a file."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from darc.app.commands.command import Actions, Command, Parsed, Value, one_file
from darc.app.options import Typed
from darc.model.errors import UsageError
from darc.saved import storage
from darc.saved.files import replace_file

_FILE: Value[Path] = Value("file")


def _parse_save(typed: Typed) -> Parsed:
    return Parsed((), _FILE.put(one_file(typed)))


def _save(known: Mapping[str, Command], app: Actions, parsed: Parsed) -> None:
    file = _FILE.of(parsed)
    if app.session is None and app.is_busy:
        raise UsageError("nothing was collected yet: type 'run', then 'darc save' at a stop")
    session = app.need_session()
    if session.alive:
        app.need_stopped()
    stored = session.stored()
    replace_file(file, storage.to_text(stored) + "\n", "slow.json")
    command = known.get(stored.analysis)
    is_resumed = command is not None and command.goes_on is not None
    how = f": 'darc resume {shlex.quote(str(file))}' goes on with it" if is_resumed else ""
    app.emit(f"darc: session saved to {file}{how}")


def save_of(commands: Iterable[Command]) -> Command:
    """``darc save`` of what ``commands`` begin, as far as they tell what of it is saved."""
    known = {one.name: one for one in commands}
    kept = " ".join(f"Of 'darc {one.name}': {one.saves}." for one in known.values() if one.saves)
    return Command(
        name="save",
        summary="Save the session to a file, for 'darc resume'.",
        usage="darc save FILE",
        details=(
            f"At any stop, also after the end, what is known by then. {kept} FILE is JSON and is "
            "replaced as a whole."
        ),
        examples=(
            ("darc save slow.json", "Keep what is known by now."),
            ("darc save ~/sessions/slow.json", "The same, in another directory."),
        ),
        parse=_parse_save,
        action=partial(_save, known),
        takes_file=True,
        only_looks=True,
    )
