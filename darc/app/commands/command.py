"""What a command is, and what its action may ask of the application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

from darc.app.finding import Request
from darc.app.options import START_OPTIONS, Typed, split_line, split_options
from darc.app.parameters import Parameter
from darc.app.pursuit import Pursuit
from darc.code.lookup import Lookup
from darc.model.contexts import Context
from darc.model.errors import UsageError
from darc.model.parameters import Parameters
from darc.model.snapshot import Snapshot
from darc.model.values import Kind
from darc.saved.storage import Stored
from darc.session.session import Session
from darc.views.style import Style

_Value = TypeVar("_Value")
_Value_co = TypeVar("_Value_co", covariant=True)


class Actions(Protocol):
    """What the actions need; each method may raise :class:`DarcError`."""

    @property
    def parameters(self) -> Parameters:
        """The parameters that ``set darc`` keeps."""

    @property
    def style(self) -> Style:
        """How views are drawn on the debugger's terminal."""

    @property
    def session(self) -> Session | None:
        """The session, also after its end."""

    @property
    def is_busy(self) -> bool:
        """Whether a function is analysed or waited for."""

    def analyse(self, request: Request, pursuit: Pursuit | None = None) -> None:
        """Begin a session; ``pursuit`` tells what comes behind it."""

    def need_session(self) -> Session:
        """The session, also after its end; an error when there is none."""

    def need_stopped(self) -> None:
        """An error where the program runs."""

    def tell(self) -> None:
        """Show what the session has to say at this stop, if anything."""

    def stop(self) -> None:
        """Take every probe out."""

    def lookup(self) -> Lookup:
        """What names mean in the program that the debugger has now."""

    def snapshot(self, *, lines: bool = True, tree: bool = False) -> Snapshot:
        """What is known now; an error when there is no session. The source lines of the paths are
        asked for, and with ``tree`` those of the ftree as far as it is drawn, which may take
        seconds; without ``lines`` none."""

    def table(self) -> Snapshot | None:
        """What has numbered functions last, a table of profiles, a walk or answers, until another
        does; ``None``: nothing has yet."""

    def measured(self) -> list[Context]:
        """The trees that were measured since the debugger began, of any f0, each by itself."""

    def set_parameter(self, name: str, text: str) -> None:
        """Keep the parameter called ``name``, as typed by the user."""

    def emit(self, text: str) -> None:
        """Show ``text`` to the user: what is :class:`~darc.views.words.Shown`, or one line."""

    def complete_function(self, prefix: str) -> list[str]:
        """Names of functions that begin with ``prefix``."""


@dataclass(frozen=True)
class Parsed:
    """What was typed of a request: a command line that is of the right form."""

    arguments: tuple[str, ...] = ()
    """The words as they were typed."""
    own: Mapping[Value[Any], object] = field(default_factory=dict)
    """What the command's parser has made of its own options, and of whatever else its action is to
    have from it."""
    overrides: Mapping[Parameter, object] = field(default_factory=dict)
    """What was typed of parameters, for this command alone. No parser makes it: the command reads
    it by its options (:attr:`Option.overrides`)."""


@dataclass(frozen=True, eq=False)
class Value(Generic[_Value]):
    """One of the values of :attr:`Parsed.own`: a command's parser puts it there, its action has it
    with its type. Two are two, also where they have one ``name``, which is for who looks at it."""

    name: str

    def put(self, value: _Value) -> dict[Value[Any], object]:
        """It, as one of these values."""
        return {self: value}

    def of(self, parsed: Parsed) -> _Value:
        """What :meth:`put` has put there."""
        return cast(_Value, parsed.own[self])


def path_of(file: str) -> Path:
    """A path as typed. Raises :class:`UsageError`."""
    try:
        return Path(file).expanduser()
    except RuntimeError:
        raise UsageError(f"there is no home directory for {file}; type the whole path") from None


def _file(text: str) -> Path:
    if not text:
        raise ValueError(text)
    return path_of(text)


FILE = Kind("the name of a file", _file, "FILE")
"""Completion offers files for it."""


@dataclass(frozen=True)
class Option(Generic[_Value_co]):
    """One option of a command, which has it once: its parser, its help and completion have it from
    there."""

    name: str
    metavar: str
    doc: str
    kind: Kind[_Value_co]
    """What may be typed behind it."""
    default: str = ""
    """What help tells of a command without it: the text of a value, where :meth:`value_in` is to
    read it."""
    complete: Callable[[Actions, str], list[str]] | None = None
    """What completion offers for its value before the words of its kind, by what is typed of it
    already, as :attr:`Command.complete_argument`; of a :data:`FILE` it offers files."""
    overrides: Parameter | None = None
    """The parameter that it gives a value to, for this command; ``None``: it is one of the
    command's own."""
    unlike: Parameter | None = None
    """Of one of the command's own: the parameter whose option has the same name and means something
    else, where there is one. Who takes that name says so."""

    def __post_init__(self) -> None:
        assert self.overrides is None or self.unlike is None, f"{self.name} is not its own"

    @property
    def help(self) -> str:
        """What it does, with the words that it takes, where there are no others and ``metavar``
        does not have them, and its default, if any is told."""
        told, words = [self.doc], self.kind.words
        if self.kind.has_no_others and tuple(self.metavar.split("|")) != words:
            told.append(f"One of {', '.join(words)}.")
        if self.default:
            told.append(f"Default: {self.default}.")
        return " ".join(told)

    @property
    def is_file(self) -> bool:
        """Whether it takes the name of a file."""
        return self.kind is FILE

    def completions(self, app: Actions, prefix: str) -> list[str]:
        """What ``prefix`` and what else may be typed for its value, as far as that can be listed.
        May raise :class:`DarcError`."""
        known = [] if self.complete is None else self.complete(app, prefix)
        return [*known, *(word for word in self.kind.words if word not in known)]

    def typed_in(self, typed: Typed) -> _Value_co | None:
        """The value that was typed; ``None``: it was not. Raises :class:`UsageError`."""
        text = typed.texts.get(self.name)
        return None if text is None else self.kind.read(text, self.name)

    def value_in(self, typed: Typed) -> _Value_co:
        """The value that was typed, else that of the default. Raises :class:`UsageError`."""
        return self.kind.read(typed.texts.get(self.name, self.default), self.name)


@dataclass(frozen=True)
class Command:
    """One command, as ``darc NAME`` followed by what ``usage`` says."""

    name: str
    summary: str
    usage: str
    details: str
    examples: tuple[tuple[str, str], ...]
    parse: Callable[[Typed], Parsed]
    """Makes sense of what was typed: of its arguments and its own options. Those that it does not
    have were refused before, and those that override parameters read. Raises
    :class:`UsageError`."""
    action: Callable[[Actions, Parsed], None]
    options: tuple[Option[object], ...] = ()
    complete_argument: Callable[[Actions, str], list[str]] | None = None
    takes_file: bool = False
    """Whether the argument is the name of a file."""
    takes_one: bool = False
    """Whether it takes one argument at most."""
    begins: bool = False
    """Whether it may begin an analysis: lldb has to see the program's stops before that."""
    only_looks: bool = False
    """Whether nothing becomes of the program by it."""
    saves: str = ""
    """Of one that begins what can be saved (:meth:`darc.analyses.analysis.Analysis.stored`): what
    of it is in the file of ``darc save``."""
    goes_on: Callable[[Stored, Parameters, Parsed], Request] | None = None
    """Of one that begins what another run can go on with (``darc resume``): the request that goes
    on with a session that such a run had saved, by the parameters given. What was typed is what
    :attr:`parse` makes of it with the session's function in the place of its own, options of its
    own among it. May raise :class:`UsageError`: there is nothing to go on with; and
    :class:`~darc.saved.checked.DamagedFileError`."""

    def __post_init__(self) -> None:
        assert self.begins or not (self.saves or self.goes_on), f"darc {self.name} does not begin"
        assert not (self.begins and self.only_looks), (
            f"darc {self.name} begins: it does more than look"
        )
        assert not (wrong := self._clashes()), f"darc {self.name}: {'; '.join(wrong)}"

    def _clashes(self) -> list[str]:
        """What is wrong with the names of its options: each means one thing."""
        names = [option.name for option in self.options]
        wrong = [f"{name} is there twice" for name in sorted(set(names)) if names.count(name) > 1]
        for option in self.options:
            meant = option.overrides or option.unlike
            if meant is not START_OPTIONS.get(option.name):
                wrong.append(f"{option.name} and a parameter: say whether it overrides that")
            if option.unlike is not None and self.goes_on is not None:
                wrong.append(f"{option.name} is the parameter's behind 'darc resume'")
        return wrong

    def split(self, words: Iterable[str]) -> Typed:
        """Words, taken apart by its options. Raises :class:`UsageError`: it has no such option, or
        one has no text."""
        metavars = {option.name: option.metavar for option in self.options}
        arguments, found = split_options(f"darc {self.name}", words, metavars, begins=self.begins)
        return Typed(f"darc {self.name}", self.usage, tuple(arguments), tuple(found))

    def read(self, argline: str) -> Parsed:
        """What was typed behind it. Raises :class:`UsageError`."""
        return self.parsed(self.split(split_line(argline)))

    def parsed(self, typed: Typed) -> Parsed:
        """What was typed, with what of it overrides parameters. Raises :class:`UsageError`."""
        parameters = {option.name: option.overrides for option in self.options}
        given = ((parameters[name], text) for name, text in typed.options)
        overrides = {one: one.read(text) for one, text in given if one is not None}
        made = self.parse(typed)
        assert not made.overrides, f"darc {self.name} reads parameters by itself"
        return replace(made, overrides=overrides)


def no_arguments(typed: Typed) -> Parsed:
    """A parser for a command that takes no arguments. Raises :class:`UsageError` for any."""
    if typed.words:
        raise UsageError(f"{typed.command} takes no argument, not '{' '.join(typed.words)}'")
    return Parsed()


def advised(word: str, instead: str) -> str:
    """A ``word`` that takes no place here, as a name for a command that is advised; ``instead``
    where it is none, but what a shell would take for a pipe or a file's sign."""
    return instead if word[:1] in {*"|>&"} else word


def one_file(typed: Typed) -> Path:
    """The one file that a command takes. Raises :class:`UsageError`."""
    name, files = typed.command, typed.words
    if len(files) != 1 or not files[0]:
        got = f", not {' and '.join(files)}; put quotes around a name that holds spaces"
        raise UsageError(f"{name} needs one file: {name} FILE{got if files else ''}")
    return path_of(files[0])
