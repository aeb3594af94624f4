"""``darc resume``: an analysis goes on where a run before had come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from darc.app.commands.analysing import search_options
from darc.app.commands.command import Actions, Command, Option, Parsed, Value, one_file
from darc.app.options import Typed
from darc.app.parameters import PROBES_MEAN, Parameter, by_field
from darc.model.errors import FormatError, UsageError
from darc.saved import refit, storage
from darc.saved.checked import DamagedFileError, short_key
from darc.saved.storage import Stored

_FILE: Value[Path] = Value("file")
_TYPED: Value[Typed] = Value("typed")

_MEAN: Mapping[str, str] = {
    "--peak": (
        "The peak to explain, where the session had chosen none yet: a number N, 'last', bins as "
        "17-19, '>4ms' or a percentile as p99. One that it had chosen stays; 'darc start' looks "
        "into another."
    ),
    "--start-ops": (
        "Calls of the function to see in this run before its profile is compared with the saved "
        "one and the search goes on. 'auto' is that of 'darc start'."
    ),
    "--start-time": (
        "The same as a time of this run: 10s, 2min, 500ms; a plain number is seconds. It takes the "
        "place of a number of calls; with --start-ops whichever comes first."
    ),
    "--decision-ops": (
        "Calls inside the peak to see at each level that is still to be decided; those that the "
        "session has seen there count. 'auto' decides as soon as the votes are decisive."
    ),
    "--maxcount-percentage": (
        "The share of the largest maxcount that makes a callee a root cause as well, at levels "
        "that are still to be decided. What the session has decided stays."
    ),
    "--max-depth": (
        "Levels to descend at most, those of the session among them; the function itself is level "
        "1. With more than before, the search goes on below the paths that the maximum ended."
    ),
    "--max-probes": (
        "Call sites to time at once at most in this run. More callees than that are timed in turns."
    ),
    "--lookahead": (
        "Levels to time at once from where the session stopped. 1 goes level by level; auto is 3, "
        "but 1 where the function is short, hot, and wanted often."
    ),
    "--loops": (
        "What counts, at levels that are still to be decided, of a callee that is called again and "
        "again: all of its calls together, or the longest one alone, as in the paper."
    ),
    "--max-time": (
        "End this run's search after this time with what is known: 30s, 2min, 500ms; a plain "
        "number is seconds. What earlier runs took does not count."
    ),
    "--resolution": (
        "Bins for each doubling of the latency, where the session had chosen no peak yet: a peak "
        "keeps the bins that it was chosen by."
    ),
    "--thread": (
        "In a process: analyse the calls of this thread of the new run only; TID is the system's "
        "thread id. That of the session was of its own run."
    ),
    "--task": (
        "In a kernel: analyse in this run only the calls that this process makes, or tasks of this "
        "name."
    ),
    "--probes": (
        f"How latency is collected in this run, whatever it was in the session's: {PROBES_MEAN}"
    ),
    "--on-finish": "What the program does when the root causes that were left to find are known.",
}
"""What the options of ``darc start`` mean to a session that goes on."""


def resume_of(commands: Iterable[Command]) -> Command:
    """``darc resume`` of what ``commands`` begin, as far as they know how it goes on."""
    known = {one.name: one for one in commands}
    options = {option.name: option for option in search_options(_default, docs=_MEAN)}
    own: dict[str, list[Option[object]]] = {}
    for command in known.values():
        if command.goes_on is None:
            continue
        for option in command.options:
            if option.overrides is None:
                own.setdefault(option.name, []).append(option)
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
        parse=partial(_parse, own),
        action=partial(_resume, known),
        begins=True,
        options=tuple(options.values()),
        takes_file=True,
    )


def _default(parameter: Parameter) -> str:
    return parameter.default_text if parameter.is_of_one_run else "that of the session"


def _as_kept(option: Option[object], command: Command) -> Option[object]:
    """One that only ``command`` has, whose default is what the session had."""
    return replace(
        option, doc=f"{option.doc} Of 'darc {command.name}'.", default="that of the session"
    )


def _parse(own: Mapping[str, Iterable[Option[object]]], typed: Typed) -> Parsed:
    """What the options mean is for the command to say that had begun the session. What is a value
    of none is told of before a file is read: those of ``darc start`` mean the same to each, the
    others are ``own`` ones, of one command or several."""
    for name, text in typed.options:
        _check(own.get(name, ()), text)
    return Parsed((), {**_FILE.put(one_file(typed)), **_TYPED.put(typed)})


def _check(options: Iterable[Option[object]], text: str) -> None:
    """Raises :class:`UsageError` where none of these, which have one name, takes ``text``."""
    refusals = []
    for option in options:
        try:
            option.kind.read(text, option.name)
        except UsageError as error:
            refusals.append(error)
        else:
            return
    if refusals:
        raise refusals[0]


def _resume(known: Mapping[str, Command], app: Actions, parsed: Parsed) -> None:
    file, typed = _FILE.of(parsed), _TYPED.of(parsed)
    stored = storage.read_file(file)
    command = _beginner(known, stored, file)
    again = _typed_again(command, stored, typed, file)
    overrides = by_field(again.overrides)
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
    return command.parsed(replace(typed, words=(stored.spec,)))
