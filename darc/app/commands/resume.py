"""``darc resume``: an analysis goes on where a run before had come to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from darc.app.commands.command import Actions, Command, Option, Parsed, one_file
from darc.app.commands.start import search_options
from darc.app.options import START_OPTIONS, Typed, parse_overrides
from darc.app.parameters import Parameter
from darc.model.errors import FormatError, UsageError
from darc.saved import refit, storage
from darc.saved.checked import DamagedFileError, short_key
from darc.saved.storage import Stored


def resume_of(commands: Iterable[Command]) -> Command:
    """``darc resume`` of what ``commands`` begin, as far as they know how it goes on."""
    known = {one.name: one for one in commands}
    resumable = {name: one for name, one in known.items() if one.goes_on is not None}
    options = {option.name: option for option in search_options(_default)}
    for command in resumable.values():
        for option in command.options:
            options.setdefault(option.name, _as_kept(option, command))
    return Command(
        name="resume",
        summary="Go on with a saved session in a new run of the program.",
        usage="darc resume FILE [OPTIONS]",
        details=(
            "Like 'darc start', with the function, the parameters and the peak of the session; "
            "options override its parameters. After --start-ops calls the new profile is "
            "compared with the saved one, and the search goes on where it stopped. The program "
            "may have been built anew: what does not fit any more is told."
        ),
        examples=(
            ("darc resume slow.json", "Go on where the session stopped."),
            (
                "darc resume slow.json --max-depth 64",
                "Go on below the paths that the maximum depth ended.",
            ),
        ),
        parse=_parse,
        action=partial(_resume, known),
        begins=True,
        options=tuple(options.values()),
        takes_file=True,
    )


def _default(parameter: Parameter) -> str:
    """A thread is of one run alone (see :func:`darc.saved.refit.new_parameters`)."""
    return "all" if parameter.field == "thread" else "that of the session"


def _as_kept(option: Option, command: Command) -> Option:
    """One that only ``command`` has, whose default is what the session had."""
    doc = re.sub(r" Default: .*", "", option.doc)
    return replace(option, doc=f"{doc} Of 'darc {command.name}'. Default: that of the session.")


def _parse(typed: Typed) -> Parsed:
    """What the options mean is for the command to say that had begun the session; those of ``darc
    start`` mean the same to each, and are told of before a file is read."""
    parse_overrides(typed)
    return Parsed((), {"file": one_file(typed), "typed": typed})


def _resume(known: Mapping[str, Command], app: Actions, parsed: Parsed) -> None:
    file, typed = parsed.options["file"], parsed.options["typed"]
    assert isinstance(file, Path)
    assert isinstance(typed, Typed)
    stored = storage.read_file(file)
    command = _beginner(known, stored, file)
    again = _typed_again(command, stored, typed, file)
    fields = {one.field for one in START_OPTIONS.values()}
    overrides = {field: value for field, value in again.options.items() if field in fields}
    refit.check_overrides(stored, overrides)
    parameters = refit.new_parameters(stored, overrides)
    assert command.goes_on is not None
    try:
        request = command.goes_on(stored, parameters, again)
    except DamagedFileError as error:
        raise FormatError(f"{file} {error}") from None
    app.analyse(replace(request, command="resume", resumed=stored))


def _beginner(known: Mapping[str, Command], stored: Stored, file: Path) -> Command:
    """The command that begins such an analysis, and knows how it goes on."""
    key = stored.analysis
    if not key:
        raise UsageError(f"{file} is of an analysis that has no name: nothing goes on with it")
    command = known.get(key)
    if command is None:
        raise UsageError(f"{file} is of 'darc {short_key(key)}', which this darc does not have")
    if command.goes_on is None:
        raise UsageError(f"{file} is of 'darc {key}', which begins anew in each run")
    return command


def _typed_again(command: Command, stored: Stored, typed: Typed, file: Path) -> Parsed:
    """What was typed behind the file, as ``command`` reads it behind the session's function."""
    has = {option.name for option in command.options}
    for name, _ in typed.options:
        if name not in has:
            raise UsageError(f"{file} is of 'darc {command.name}', which has no option '{name}'")
    return command.parse(replace(typed, words=(stored.spec,)))
