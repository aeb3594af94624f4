"""Which function a request means: in the program's file before it runs, and in the program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from darc.analyses.analysis import Analysis, AnalysisBrief
from darc.app import naming
from darc.code import runtimes
from darc.code.lookup import Lookup
from darc.code.midway import why_none
from darc.code.modules import Module, load_image
from darc.code.program import Program
from darc.code.spelling import address_of, ambiguous, fitting, split_offset, split_spec
from darc.collectors.collector import Way
from darc.collectors.finder import Finder
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.duties import HasCode
from darc.model.errors import (
    AmbiguousError,
    DarcError,
    NotFoundError,
    UnsupportedError,
    UsageError,
)
from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.parameters import Parameters
from darc.model.part import Part
from darc.saved import refit
from darc.saved.storage import Stored
from darc.target.target import Target

_MOST_FILES = 4
"""That are named for an address that several may have."""


@dataclass(frozen=True)
class Request:
    """What the user has asked for with ``darc`` ``command``: an ``analysis`` of the calls of
    ``function``, as typed."""

    command: str
    """Its name, for messages."""
    function: str
    parameters: Parameters
    analysis: Callable[[AnalysisBrief], Analysis]
    resumed: Stored | None = None
    """The session that it goes on with."""
    finder: Finder | None = None
    """What tells what it is of, where that is not the function. Then ``function`` is what to wait
    for before ``run``."""
    way: Way | None = None
    """How latencies are collected, where that is a way of its own."""
    verb: str = "analyses"
    """What is done with the function, for the line that says that it has begun."""
    replaces_finished: bool = False
    """Whether an analysis that has ended, and has the program still, makes room for it."""
    next_one: str = ""
    """What 'continue' goes on to, for who types the same command in the middle of it."""
    needs_main: bool = True
    """Whether there is nothing to begin with where no function is called so; else the program's
    first code is."""
    stops_unseen: bool = False
    """Whether it stops the program now and then without a word: it is refused in gdb's non-stop
    mode, which has no such stops, and in a kernel."""
    reads_beside: bool = False
    """Whether it looks at what is counted while the program runs: it is refused where that cannot
    be, before anything is looked for."""
    parts: Mapping[str, Part] = field(default_factory=dict)
    """What is known of it before it begins."""
    lookup: Lookup | None = None
    """What told how to spell the function, where that was asked: the analysis begins in the same
    debuggee, which is made once."""
    is_of_file: bool = False
    """Whether the function is an address of the program's file, typed before that ran."""

    @property
    def spec(self) -> str:
        """What it is called."""
        return self.function if self.finder is None else self.finder.text


def check_file(
    target: Target,
    request: Request,
    progress: Callable[[str], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Request, str | None]:
    """Before 'run', what is wrong already is told at once. The request, with what the file tells of
    it, and what to say of a function that is not there yet. ``progress`` is told what is done,
    ``tell`` what goes on without a part of it.

    Raises:
        DarcError: nothing can come of it.
    """
    function, path = request.function, target.executable
    if path is None:
        raise UsageError("there is no program: type 'file PROGRAM', or attach to a process")
    image = load_image(Path(path))
    runtimes.check(image, Path(path).name)
    if function.startswith("*") and request.resumed is None:
        address = address_of(function)
        segment = image.segment_of(address)
        if segment is not None and not segment.executable:
            raise NotFoundError(f"at {function[1:]} is no code of {Path(path).name}")
        if segment is not None and (why := why_none(image, address)) is not None:
            raise UsageError(why)
        return replace(request, is_of_file=segment is not None), None
    if request.finder is not None:
        for told in naming.check_patterns(request.finder.named, Path(path), progress):
            tell(f"darc: {told}")
    if function.startswith("*") or (function == "main" and image.unnamed_main is not None):
        return request, None
    missing = naming.missing(target, function, Path(path), progress)
    if missing is not None and not target.screen.accepts_pending(
        f"{missing}; wait for a library that has it?"
    ):
        raise NotFoundError(missing)
    return request, missing


def check_code(program: Program) -> None:
    """Before anything is looked for in a program that is there. Raises UnsupportedError: nothing
    may be timed in it, as far as its files tell that at once."""
    for module in program.modules:
        runtimes.check_sections(module.image, module.name)


def check_read(command: str, debuggee: Debuggee) -> None:
    """Of a ``command`` that looks at what is counted while that goes on. Raises UnsupportedError:
    it cannot be read then."""
    if not debuggee.is_readable_while_it_runs:
        raise UnsupportedError(f"'darc {command}' {debuggee.nature.why_unread}")


def find(
    program: Program,
    debuggee: HasCode,
    target: Target,
    request: Request,
    *,
    hint: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> int:
    """Where f0 is in the program; that of a session that is resumed by what is stored of it.
    ``hint`` is as in :meth:`~darc.code.lookup.Lookup.find`; ``progress`` is told what is done.

    Raises:
        NotFoundError: it is not there, or not yet.
        DarcError: it cannot be told.
    """
    function, stored = request.function, request.resumed
    lookup = Lookup(program, target, progress)
    if function == "main" and (main := _own_main(program, debuggee)) is not None:
        return main
    if stored is None and request.is_of_file:
        return lookup.find(_live_address(program, debuggee, function))
    if stored is None and function.startswith("*"):
        return lookup.find(_where_it_is(program, debuggee, function), hint=hint)
    if stored is None:
        return lookup.find(function, hint=hint)
    entry = refit.locate(stored.root.function, program.modules, stored.modules)
    if entry is not None and program.is_code(entry):
        return entry
    if function.startswith("*"):  # an address of another run means nothing
        named = stored.root.function
        raise NotFoundError(f"the function {named.symbol} of {named.module} is not there")
    return lookup.find(function, hint=hint)


def _own_main(program: Program, debuggee: HasCode) -> int | None:
    """The ``main`` of the program's own file, whatever its libraries call so; ``None``: it has
    none, or several."""
    entry = debuggee.entry()
    module = None if entry is None else program.module_at(entry)
    if module is None:
        return None
    image = module.image
    found = {symbol.address for symbol in image.symbols.named(("main",))}
    found |= {main for main in (image.unnamed_main,) if main is not None}
    return found.pop() + module.bias if len(found) == 1 else None


def asks_debugger(request: Request) -> bool:
    """Whether its name means what the debugger has read of the program's files so far, not only
    what is mapped."""
    function = request.function
    if function.startswith("*") or split_offset(function) is not None:
        return False
    scope, name = split_spec(function)
    return not name.isidentifier() if scope is None else not scope.endswith("!")


def debugger_knows(target: Target, request: Request) -> bool:
    """Of such a name: whether the debugger has read of it by now."""
    scope, name = split_spec(request.function)
    symbols = target.symbols
    return bool(
        symbols.functions_called(name) if scope is None else symbols.functions_in(scope, name)
    )


def find_start(
    program: Program,
    debuggee: HasCode,
    target: Target,
    *,
    request: Request,
    progress: Callable[[str], None],
) -> int:
    """As :func:`find`, in a program whose threads have begun. Where nothing is called ``main``, its
    first code will do for what begins with the threads that there are."""
    if request.needs_main or debuggee.is_at_start():
        return find(program, debuggee, target, request, progress=progress)
    try:
        return find(program, debuggee, target, request, hint=False, progress=progress)
    except NotFoundError:
        entry = debuggee.entry()
        if entry is None or not program.is_code(entry):
            raise
        return entry


def _live_address(program: Program, debuggee: HasCode, function: str) -> str:
    """Where the code is now that has this address in the program's file."""
    entry = debuggee.entry()
    module = None if entry is None else program.module_at(entry)
    if module is None:
        raise NotFoundError(f"the program's own file is not loaded: {function} cannot be found")
    return f"*{address_of(function) + module.bias:#x}"


def _where_it_is(program: Program, debuggee: HasCode, function: str) -> str:
    """An address as it was typed, or, where nothing is mapped there and it is one of code in the
    program's own file, as it is before that runs, where that is now.

    Raises:
        NotFoundError: it is neither, but one of code in other files; they are told.
    """
    address = address_of(function)
    if program.is_code(address) or any(one.start <= address < one.end for one in program.modules):
        return function
    files = (one for one in program.modules if not one.name.startswith("["))  # as is the vdso
    found = [one for one in files if _has_code(one, address)]
    if not found or not all(one.bias for one in found):
        return function
    entry = debuggee.entry()
    own = None if entry is None else program.module_at(entry)
    if own is not None and own in found:
        return f"*{address + own.bias:#x}"
    named = (f"{one.name}+{address:#x} (now {address + one.bias:#x})" for one in found)
    there = ", ".join(itertools.islice(named, _MOST_FILES))
    raise NotFoundError(f"no code is mapped at {address:#x}: in a file that is {there}")


def _has_code(module: Module, address: int) -> bool:
    """Whether a function begins at an ``address`` of a file, as far as that tells."""
    segment = module.image.segment_of(address)
    is_code = segment is not None and segment.executable
    return is_code and why_none(module.image, address) is None


def rows_called(rows: Sequence[FunctionProfile], typed: str) -> list[FunctionProfile]:
    """Those of the function that is typed by its name, as a search for it would take it: several
    where several modules have it.

    Raises:
        AmbiguousError: functions of different names are meant.
    """
    meant = fitting(typed, [one.function.symbol for one in rows])
    found = [one for one in rows if one.function.symbol in meant]
    names = {one.function.name for one in found}
    if len(names) > 1:
        raise AmbiguousError(ambiguous(typed, names))
    return found


def spelled(lookup: Lookup, found: Function) -> str:
    """What to type for a function, wherever one is asked for: its name, where that means nothing
    else, else with its file, else its address."""
    for spelling in (
        found.name,
        f"{found.module}!{found.symbol}",
        f"{found.module}+{found.offset:#x}",
    ):
        try:
            if lookup.find(spelling, hint=False) == found.address:
                return spelling
        except DarcError:
            continue
    return f"*{found.address:#x}"
