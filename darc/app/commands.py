"""The commands, declared once for every debugger.

A debugger package makes one shim for each of :data:`COMMANDS` and one for the prefix, and hands
the rest of the line to :func:`run`, :func:`complete` and :func:`help_text`. The same holds for
``set darc`` and ``show darc`` with :func:`set_parameter`, :func:`show_parameter` and
:func:`parameter_help`.
"""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from darc import __version__
from darc.app.finding import Request
from darc.app.options import (
    START_OPTIONS,
    parse_overrides,
    parse_start_options,
    split_line,
    split_options,
)
from darc.model.errors import DarcError, UsageError, near
from darc.model.ftree import NodeState
from darc.model.parameters import PARAMETERS, Parameter, Parameters, find_parameter
from darc.model.snapshot import Snapshot
from darc.views import render, report
from darc.views.exporters import EXPORTERS
from darc.views.words import LOG_NAME_WIDTH, Shown, lines, message, printable


class App(Protocol):
    """What the actions need; each method may raise :class:`DarcError`."""

    @property
    def parameters(self) -> Parameters:
        """The parameters that ``set darc`` keeps."""

    @property
    def colour(self) -> bool:
        """Whether the debugger's output takes escape codes."""

    @property
    def width(self) -> int:
        """Columns of the debugger's output."""

    def start(self, function: str, overrides: dict[str, object]) -> None:
        """Begin a session on ``function``; ``overrides`` are keyed by field name."""

    def analyse(self, request: Request) -> None:
        """Begin a session with any other analysis."""

    def peak(self, spec: str) -> None:
        """Choose the peak to explain."""

    def descend(self, ids: Sequence[str]) -> None:
        """Go on into these fnodes only; into all root causes when there are none."""

    def stop(self) -> None:
        """Take every probe out."""

    def save(self, file: Path) -> None:
        """Write the session to ``file``, for :meth:`resume`."""

    def resume(self, file: Path, overrides: dict[str, object]) -> None:
        """Go on with the session in ``file``; ``overrides`` are keyed by field name."""

    def snapshot(self) -> Snapshot:
        """What is known now; an error when there is no session."""

    def set_parameter(self, name: str, text: str) -> None:
        """Keep the parameter called ``name``, as typed by the user."""

    def emit(self, text: str) -> None:
        """Show ``text`` to the user: what is :class:`~darc.views.words.Shown`, or one line."""

    def complete_function(self, prefix: str) -> list[str]:
        """Names of functions that begin with ``prefix``."""


@dataclass(frozen=True)
class Parsed:
    """A command line that is of the right form."""

    arguments: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Option:
    """One option: ``values`` are the words to complete, ``is_file`` asks for file names."""

    name: str
    metavar: str
    doc: str
    values: tuple[str, ...] = ()
    is_file: bool = False


@dataclass(frozen=True)
class Command:
    """One command, as ``darc NAME`` followed by what ``usage`` says."""

    name: str
    summary: str
    usage: str
    details: str
    examples: tuple[tuple[str, str], ...]
    parse: Callable[[str], Parsed]
    action: Callable[[App, Parsed], None]
    options: tuple[Option, ...] = ()
    complete_argument: Callable[[App, str], list[str]] | None = None
    takes_file: bool = False
    """Whether the argument is the name of a file."""


def run(app: App, name: str, argline: str) -> None:
    """Run the command called ``name`` with the rest of the line; ``""`` is ``darc`` alone.

    Raises :class:`DarcError`, with one line for the user.
    """
    if not name and not argline.strip():
        app.emit(lines(help_text("")))
        return
    command = find_command(name or argline.split()[0])
    command.action(app, command.parse(argline if name else argline.split(None, 1)[-1]))


def find_command(name: str) -> Command:
    """The command called ``name``. Raises :class:`UsageError` that names the near ones."""
    if name in COMMANDS:
        return COMMANDS[name]
    hint = near(name, COMMANDS) or f"; there are {', '.join(COMMANDS)}"
    raise UsageError(f"darc has no command '{name}'{hint}")


def complete(app: App, name: str, argline: str, word: str) -> list[str]:
    """What ``word``, the end of ``argline``, can become.

    ``word`` may be shorter than the last word of the line where the debugger breaks words at
    other places than spaces. Never raises.
    """
    command = COMMANDS.get(name)
    if command is None:
        return []
    before, typed = _last_word(argline)
    try:
        if completes_files(name, argline):
            candidates = _files(typed)
        else:
            candidates = _candidates(app, command, before, typed)
    except DarcError:
        return []
    cut = len(typed) - len(word) if typed.endswith(word) else 0
    fitting = (candidate for candidate in candidates if candidate.startswith(typed))
    return [candidate[cut:] for candidate in fitting if _can_be_typed(candidate)]


def _can_be_typed(candidate: str) -> bool:
    """Whether a name may stand in a list on a terminal, and be typed there."""
    return len(candidate) <= LOG_NAME_WIDTH and printable(candidate) == candidate


def completes_files(name: str, argline: str) -> bool:
    """Whether the debugger is to complete the end of ``argline`` as a file name."""
    command = COMMANDS.get(name)
    if command is None:
        return False
    before, typed = _last_word(argline)
    option = before[-1] if before else typed.partition("=")[0]
    if any(choice.is_file and choice.name == option for choice in command.options):
        return True
    if not command.takes_file or typed.startswith("-"):
        return False
    metavars = {choice.name: choice.metavar for choice in command.options}
    try:
        return not split_options(f"darc {name}", before, metavars)[0]
    except DarcError:  # the value of an option is still to come
        return False


def help_text(name: str) -> str:
    """The long help of a command, which ends in examples; ``""`` is that of ``darc`` itself."""
    if not name:
        return _prefix_help()
    command = find_command(name)
    parts = [f"{command.summary}\nUsage: {command.usage}", _wrap(command.details)]
    if command.options:
        rows = [(f"{option.name} {option.metavar}", option.doc) for option in command.options]
        parts.append("Options:\n" + _table(rows))
    parts.append("Examples:\n" + _table([(f"{line}", doc) for line, doc in command.examples]))
    return "\n\n".join(parts)


def set_parameter(app: App, name: str, text: str) -> None:
    """``set darc NAME TEXT``. Raises :class:`UsageError`."""
    find_parameter(name).read(text)
    app.set_parameter(name, text)


def show_parameter(app: App, name: str = "") -> Shown:
    """The text of ``show darc NAME``, or of ``show darc``. Raises :class:`UsageError`."""
    shown = [find_parameter(name)] if name else [p for p in PARAMETERS if p.is_available]
    texts = ((parameter.name, app.parameters.text_of(parameter.name)) for parameter in shown)
    return Shown("\n".join(message(f"darc {name}: {text}") for name, text in texts))


def parameter_help(name: str) -> str:
    """The long help of ``set darc NAME`` and ``show darc NAME``. Raises :class:`UsageError`."""
    parameter = find_parameter(name)
    default = parameter.text(parameter.default)
    valid = _wrap(f"Valid: {parameter.valid}. The default is {default}.")
    lines = [_wrap(parameter.doc), valid]
    if parameter.option:
        lines.append(f"'darc start FUNCTION {parameter.option} {parameter.metavar}' overrides it.")
    return "\n".join([*lines, "", "Example:", f"  set darc {parameter.name} {parameter.example}"])


def _prefix_help() -> str:
    rows = [(f"darc {command.name}", command.summary) for command in COMMANDS.values()]
    kept = ", ".join(parameter.name for parameter in PARAMETERS if parameter.is_available)
    return "\n\n".join(
        [
            "Find the root causes of a latency peak.\nUsage: darc COMMAND [ARGUMENTS]",
            _wrap(
                "darc times the calls of a function, shows its latency profile with its peaks and "
                "descends from the chosen peak, level by level, to the calls that cause it."
            ),
            "Commands ('help darc COMMAND' tells more):\n" + _table(rows),
            _wrap(f"Parameters of 'set darc' and 'show darc': {kept}."),
            "Examples:\n"
            + _table(
                [
                    ("darc start handle", "profile the function handle, then"),
                    ("run", "run until its peaks are on the screen,"),
                    ("darc peak last", "choose the slowest peak,"),
                    ("continue", "and let darc find what causes it."),
                ]
            ),
        ]
    )


def _wrap(text: str) -> str:
    return "\n".join(textwrap.fill(part, 79) for part in text.split("\n"))


def _table(rows: Sequence[tuple[str, str]]) -> str:
    left = min(max(len(name) for name, _ in rows), 26)
    lines = []
    for name, doc in rows:
        indent = " " * (left + 4)
        text = textwrap.fill(doc, 79, initial_indent=indent, subsequent_indent=indent)
        fits = len(name) <= left
        lines.append(
            f"  {name}".ljust(left + 4) + text[left + 4 :] if fits else f"  {name}\n{text}"
        )
    return "\n".join(lines)


def _last_word(argline: str) -> tuple[list[str], str]:
    words = argline.split()
    if not argline or argline[-1].isspace():
        return words, ""
    return words[:-1], words[-1]


def _candidates(app: App, command: Command, before: Sequence[str], typed: str) -> list[str]:
    options = {option.name: option for option in command.options}
    if before and before[-1] in options:
        return _values(app, options[before[-1]])
    name, equals, _ = typed.partition("=")
    if equals and name in options:
        return [f"{name}={value}" for value in _values(app, options[name])]
    if typed.startswith("-"):
        return [option for option in options if option not in before]
    if command.complete_argument is None:
        return list(options) if not typed else []
    return command.complete_argument(app, typed)


def _files(typed: str) -> list[str]:
    """The files that ``typed``, a path or an option with one, may become. Debuggers put a space
    behind a word that is alone: a folder that is comes with what it holds."""
    option, equals, path = typed.partition("=")
    option, path = (option + equals, path) if typed.startswith("-") else ("", typed)
    found = _entries(path)
    if len(found) == 1 and found[0].endswith("/"):
        found = _entries(found[0]) or found
    return [option + name for name in found]


def _entries(path: str) -> list[str]:
    """What a folder holds whose name begins with ``path``; folders end in ``/``."""
    start = path.rpartition("/")[2]
    shown = path[: len(path) - len(start)]
    try:
        with os.scandir(Path(shown).expanduser()) as entries:
            return sorted(
                shown + entry.name + ("/" if entry.is_dir() else "")
                for entry in entries
                if entry.name.startswith(start) and (start or not entry.name.startswith("."))
                if not set(entry.name) & set(" \t\n'\"\\")  # they would have to be quoted
            )
    except (OSError, ValueError, RuntimeError):
        return []  # there is no such folder, or nobody may look into it


def _values(app: App, option: Option) -> list[str]:
    if option.name == "--peak":
        return [*_peaks(app, ""), *(value for value in option.values if value != "last")]
    return list(option.values)


def _peaks(app: App, _prefix: str) -> list[str]:
    try:
        peaks = app.snapshot().peaks
    except DarcError:
        peaks = ()
    return [*(str(peak.number) for peak in peaks), "last"]


def _fnodes(app: App, _prefix: str) -> list[str]:
    root = app.snapshot().ftree
    nodes = root.walk() if root is not None else ()
    return [node.id for node in nodes if node.state is not NodeState.REJECTED]


def _functions(app: App, prefix: str) -> list[str]:
    return app.complete_function(prefix)


def _no_arguments(name: str) -> Callable[[str], Parsed]:
    def parse(argline: str) -> Parsed:
        arguments, _ = split_options(f"darc {name}", split_line(argline), {})
        if arguments:
            raise UsageError(f"darc {name} takes no argument, not '{' '.join(arguments)}'")
        return Parsed()

    return parse


def _parse_start(argline: str) -> Parsed:
    function, overrides = parse_start_options(argline)
    return Parsed((function,), overrides)


def _parse_peak(argline: str) -> Parsed:
    spec = "".join(split_line(argline))
    if not spec:
        raise UsageError("darc peak needs a peak: N, last, bins as 17-19, '>4ms' or p99")
    value = find_parameter("peak").read(spec)
    if not isinstance(value, str):
        raise UsageError("darc peak takes a peak: N, last, bins as 17-19, '>4ms' or p99")
    return Parsed((value,))


def _parse_descend(argline: str) -> Parsed:
    ids, _ = split_options("darc descend", split_line(argline), {})
    for fnode in ids:
        if not all(part.isdecimal() for part in fnode.split(".")):
            raise UsageError(
                f"'{fnode}' is not an fnode; type its number as 'darc tree' shows it, as 1.3.2"
            )
    return Parsed(tuple(ids))


def _parse_report(argline: str) -> Parsed:
    metavars = {option.name: option.metavar for option in REPORT_OPTIONS}
    arguments, found = split_options("darc report", split_line(argline), metavars)
    if arguments:
        raise UsageError(
            f"darc report takes no argument '{arguments[0]}'; to write it to a file type "
            f"'darc report -o {arguments[0]}'"
        )
    texts = dict(found)
    file = texts.get("-o", texts.get("--output"))
    if file == "":
        raise UsageError("-o needs the name of a file: -o FILE")
    path = _path(file) if file is not None else None
    form = texts.get("--format") or report.format_of(path)
    report.check_format(form)
    require = texts.get("--require")
    if require not in (None, "root-cause"):
        raise UsageError(f"--require: '{require}' is not root-cause; type '--require root-cause'")
    return Parsed((), {"format": form, "file": path, "require": require is not None})


def _path(file: str) -> Path:
    try:
        return Path(file).expanduser()
    except RuntimeError:
        raise UsageError(f"there is no home directory for {file}; type the whole path") from None


def _one_file(name: str, files: Sequence[str]) -> Path:
    if len(files) != 1 or not files[0]:
        got = f", not {' and '.join(files)}; put quotes around a name that holds spaces"
        raise UsageError(f"darc {name} needs one file: darc {name} FILE{got if files else ''}")
    return _path(files[0])


def _parse_save(argline: str) -> Parsed:
    files, _ = split_options("darc save", split_line(argline), {})
    return Parsed((), {"file": _one_file("save", files)})


def _parse_resume(argline: str) -> Parsed:
    files, overrides = parse_overrides("darc resume", argline)
    return Parsed((), {"file": _one_file("resume", files), "overrides": overrides})


def _save(app: App, parsed: Parsed) -> None:
    file = parsed.options["file"]
    assert isinstance(file, Path)
    app.save(file)


def _resume(app: App, parsed: Parsed) -> None:
    file, overrides = parsed.options["file"], parsed.options["overrides"]
    assert isinstance(file, Path)
    assert isinstance(overrides, dict)
    app.resume(file, overrides)


def _start(app: App, parsed: Parsed) -> None:
    app.start(parsed.arguments[0], dict(parsed.options))


def _peak(app: App, parsed: Parsed) -> None:
    app.peak(parsed.arguments[0])


def _descend(app: App, parsed: Parsed) -> None:
    app.descend(parsed.arguments)


def _version(app: App, _parsed: Parsed) -> None:
    here = Path(__file__).resolve().parent
    app.emit(f"darc {__version__}, Python {platform.python_version()}, {here}")


def _default_of_resume(parameter: Parameter) -> str:
    """A thread is of one run alone (see :func:`darc.saved.refit.new_parameters`)."""
    return "all" if parameter.field == "thread" else "that of the session"


def _stop(app: App, _parsed: Parsed) -> None:
    app.stop()


def _shows(
    view: Callable[[Snapshot, render.Style], str],
) -> Callable[[App, Parsed], None]:
    def show(app: App, _parsed: Parsed) -> None:
        app.emit(view(app.snapshot(), _style(app)))

    return show


def _report(app: App, parsed: Parsed) -> None:
    file = parsed.options["file"]
    report.write_report(
        app.snapshot(),
        str(parsed.options["format"]),
        file if isinstance(file, Path) else None,
        emit=app.emit,
        style=_style(app),
        require_root_cause=bool(parsed.options["require"]),
    )


def _style(app: App) -> render.Style:
    return render.Style(app.width, app.colour, app.parameters.verbose)


REPORT_OPTIONS = (
    Option(
        "--format",
        "FORMAT",
        "text or json; the default is what FILE ends in, else text.",
        tuple(EXPORTERS),
    ),
    Option(
        "-o",
        "FILE",
        "Write to FILE, which is replaced as a whole; the default is to show it.",
        is_file=True,
    ),
    Option("--output", "FILE", "The same as -o.", is_file=True),
    Option(
        "--require",
        "root-cause",
        "An error when no root cause was found; the default is none.",
        ("root-cause",),
    ),
)


def _search_options(default: Callable[[Parameter], str]) -> tuple[Option, ...]:
    return tuple(
        Option(
            name,
            parameter.metavar,
            f"{parameter.doc} Default: {default(parameter)}.",
            parameter.completions,
        )
        for name, parameter in START_OPTIONS.items()
        if parameter.is_available
    )


COMMANDS: Mapping[str, Command] = {
    command.name: command
    for command in (
        Command(
            name="start",
            summary="Find the root causes of a latency peak of FUNCTION.",
            usage="darc start FUNCTION [--peak P] [OPTIONS]",
            details=(
                "FUNCTION may be f, file.c:f, lib.so!f, Class::f or *ADDRESS. Before 'run' darc "
                "waits for the program and its libraries. After --start-ops calls the profile is "
                "shown; without --peak the program then stops for the choice. 'set darc PARAMETER' "
                "keeps the same options for every start, in place of the defaults below."
            ),
            examples=(
                ("darc start handle", "Profile handle, stop at the profile."),
                ("darc start handle --peak last", "Explain its slowest peak without a stop."),
                (
                    "darc start server.c:handle --peak '>4ms' --max-time 5min",
                    "Explain the calls above 4 ms, for 5 minutes at most.",
                ),
                (
                    "darc start 'Cache<int>::find' --start-ops 2000 --resolution 2",
                    "A finer profile of a C++ function.",
                ),
            ),
            parse=_parse_start,
            action=_start,
            options=_search_options(lambda parameter: parameter.text(parameter.default)),
            complete_argument=_functions,
        ),
        Command(
            name="peak",
            summary="Choose the peak to explain.",
            usage="darc peak P",
            details=(
                "P is a number that the histogram shows (1 is the leftmost), 'last', bins (17-19), "
                "a latency ('>4ms') or a percentile (p99). Then let the program go on."
            ),
            examples=(
                ("darc peak 3", "The third peak from the left."),
                ("darc peak last", "The slowest one."),
                ("darc peak '>4ms'", "Every call above 4 ms."),
            ),
            parse=_parse_peak,
            action=_peak,
            complete_argument=_peaks,
        ),
        Command(
            name="status",
            summary="Show how far the search is.",
            usage="darc status",
            details=(
                "Tells the state, the calls seen and the peak, and the root cause paths so far."
            ),
            examples=(("darc status", "At any time, also before the program runs."),),
            parse=_no_arguments("status"),
            action=_shows(render.status),
        ),
        Command(
            name="histogram",
            summary="Show the latency profile with its peaks.",
            usage="darc histogram",
            details=(
                "Both axes are logarithmic: bin b holds the calls of 2^b cycles and more, and the "
                "labels above are the average latency of a bin."
            ),
            examples=(("darc histogram", "Draw the profile and list its peaks."),),
            parse=_no_arguments("histogram"),
            action=_shows(render.histogram),
        ),
        Command(
            name="tree",
            summary="Show the function tree with its maxcounts.",
            usage="darc tree",
            details=(
                "Root causes are marked with ●. '18 of 20': it was among the largest in 18 of the "
                "20 calls in which it was compared with the other callees, and behind that is its "
                "mean latency in these; 'itself 2 of 20': the same of its own time, beside its own "
                "callees. '×20,000': so often it was called in each, and the latency is of all "
                "these calls. 'set darc verbose on' lists every callee that was rejected, too."
            ),
            examples=(("darc tree", "Show the tree; its numbers name fnodes, as 1.3.2."),),
            parse=_no_arguments("tree"),
            action=_shows(render.tree),
        ),
        Command(
            name="descend",
            summary="Go on into these nodes of the tree only.",
            usage="darc descend [FNODE...]",
            details=(
                "For 'set darc auto off': at each decision the search waits for this command. "
                "Without FNODE it goes on into every root cause."
            ),
            examples=(
                ("darc descend", "Into every root cause of this level."),
                ("darc descend 1.3.2", "Into this one only, as 'darc tree' numbers it."),
            ),
            parse=_parse_descend,
            action=_descend,
            complete_argument=_fnodes,
        ),
        Command(
            name="stop",
            summary="Take every probe out and end the search.",
            usage="darc stop",
            details="The program goes on as if darc had never been there; what is known stays.",
            examples=(("darc stop", "End the search."),),
            parse=_no_arguments("stop"),
            action=_stop,
        ),
        Command(
            name="save",
            summary="Save the session to a file, for 'darc resume'.",
            usage="darc save FILE",
            details=(
                "At any stop, also after the end: f0, the parameters, the profile, the peak, the "
                "tree with its maxcounts and the votes that were not decided yet. FILE is JSON and "
                "is replaced as a whole."
            ),
            examples=(
                ("darc save slow.json", "Keep what is known by now."),
                ("darc save ~/sessions/slow.json", "The same, in another directory."),
            ),
            parse=_parse_save,
            action=_save,
            takes_file=True,
        ),
        Command(
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
            parse=_parse_resume,
            action=_resume,
            options=_search_options(_default_of_resume),
            takes_file=True,
        ),
        Command(
            name="report",
            summary="Show or write the result.",
            usage="darc report [--format FORMAT] [-o FILE] [--require root-cause]",
            details=(
                "The report has the profile, its peaks, the root cause paths, the function tree "
                "and what was done to the program. JSON is for scripts: times are cycles, with hz."
            ),
            examples=(
                ("darc report", "Show it."),
                ("darc report -o out.json", "Write it as JSON."),
                ("darc report --require root-cause", "Fail when there is no root cause."),
            ),
            parse=_parse_report,
            action=_report,
            options=REPORT_OPTIONS,
        ),
        Command(
            name="version",
            summary="Show which darc this is.",
            usage="darc version",
            details=(
                "Tells the release, the debugger's Python and the folder that darc was loaded from."
            ),
            examples=(("darc version", "What to write into a report of a bug."),),
            parse=_no_arguments("version"),
            action=_version,
        ),
    )
}
