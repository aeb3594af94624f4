"""Which function a request means: in the program's file before it runs, and in the program."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from darc.analyses.analysis import Analysis, Subject
from darc.app import naming
from darc.code import runtimes
from darc.code.callers import called_by_loops, most_called, reached
from darc.code.lookup import Lookup
from darc.code.midway import why_none
from darc.code.modules import Module, load_image
from darc.code.patterns import Chosen, Pattern, choose
from darc.code.program import Program
from darc.code.spelling import address_of, split_offset, split_spec
from darc.code.stacks import under_way
from darc.collectors.collector import Way
from darc.collectors.set_collector import MOST_FUNCTIONS, SetCollector
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.duties import HasCode
from darc.model.errors import (
    DarcError,
    NotFoundError,
    UnsupportedError,
    UsageError,
)
from darc.model.ftree import Function
from darc.model.leftout import too_many
from darc.model.parameters import Parameters
from darc.model.part import Part
from darc.saved import refit
from darc.saved.storage import Stored
from darc.session.session import Session
from darc.target.target import Target
from darc.views.style import Style

_MOST_REACHED = 500
"""Functions that are taken where the program works: most of what these call is not."""

_MOST_FILES = 4
"""That are named for an address that several may have."""

_DONE_BY_LOOPS = frozenset(
    "send sendto sendmsg sendmmsg write writev pwrite pwrite64 pwritev pwritev64 fsync fdatasync "
    "pread pread64 preadv preadv64 open open64 openat openat64 close unlink rename ftruncate "
    "ftruncate64".split()
)
"""Functions of the C library that are timed as well where a loop calls them that never returns:
they do something, and wait for nothing that comes next."""


@dataclass(frozen=True)
class Members:
    """Many functions at once, as ``text`` was typed. ``analysis`` is told which of them cannot be
    timed."""

    text: str
    patterns: tuple[Pattern, ...]
    analysis: Callable[..., Analysis]
    of_processes: str | None = None
    """The command, where that looks at what is counted while it runs."""
    looks_at_stacks: bool = False
    """Whether of too many those come first that are under way now, and what these call."""
    places: tuple[int, ...] | None = None
    """Addresses in functions: where they are given, these and what they call are meant, in whatever
    file, and no pattern."""
    takes_unnamed: bool = False
    """Whether functions of the program's own file without symbols are among them."""


@dataclass(frozen=True)
class Request:
    """What the user has asked for with ``darc`` ``command``: an ``analysis`` of the calls of
    ``function``, as typed."""

    command: str
    """Its name, for messages."""
    function: str
    parameters: Parameters
    analysis: Callable[[Subject], Analysis]
    resumed: Stored | None = None
    """The session that it goes on with."""
    members: Members | None = None
    """Of many functions: which ones. Then ``function`` is what to wait for before ``run``."""
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
    describe: Callable[[Target, Session, Style], str] | None = None
    """What the user is told where the analysis shows a call that is under way, in one line."""
    parts: Mapping[str, Part] = field(default_factory=dict)
    """What is known of it before it begins."""
    is_of_file: bool = False
    """Whether the function is an address of the program's file, typed before that ran."""

    @property
    def spec(self) -> str:
        """What it is called."""
        return self.function if self.members is None else self.members.text


def check_file(
    target: Target, request: Request, progress: Callable[[str], None] = lambda _: None
) -> tuple[Request, str | None]:
    """Before 'run', what is wrong already is told at once. The request, with what the file tells of
    it, and what to say of a function that is not there yet. ``progress`` is told what is done.

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
    if (members := request.members) is not None and not members.takes_unnamed:
        naming.check_patterns(members.patterns, Path(path), progress)
    if function.startswith("*") or (function == "main" and image.unnamed_main is not None):
        return request, None
    missing = naming.missing(target, function, Path(path), progress)
    if missing is not None and not target.screen.accepts_pending(
        f"{missing}; wait for a library that has it?"
    ):
        raise NotFoundError(missing)
    return request, missing


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
    found = {s.address for s in image.symbols.if_any(("main",)) if s.name == "main"}
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


def find_members(
    program: Program,
    debuggee: Debuggee,
    target: Target,
    members: Members,
    progress: Callable[[str], None] = lambda _: None,
) -> Chosen:
    """The functions of a set: of too many those that are under way and what these call, then those
    that are called from the most places. ``progress`` is told what is done.

    Raises:
        NotFoundError: a pattern means none.
        UnsupportedError: there are no sets here.
    """
    if members.of_processes is not None:
        check_read(members.of_processes, debuggee)
    if (why := SetCollector.problem(debuggee)) is not None:
        raise UnsupportedError(why)
    entry = debuggee.entry()
    own = None if entry is None else program.module_at(entry)
    active = functools.cache(functools.partial(under_way, program, target))
    if members.places is not None:
        progress("looks for functions where the program works")
        places = members.places or active()
        return _whole(program, Chosen(tuple(reached(program, places, _MOST_REACHED))))
    unnamed = members.takes_unnamed
    first = own or program.first_file
    chosen = choose(
        program, target, patterns=members.patterns, own=first, progress=progress, unnamed=unnamed
    )
    elsewhere = chosen.elsewhere
    chosen = most_called(
        program,
        chosen,
        most=MOST_FUNCTIONS,
        progress=progress,
        active=active if debuggee.sees_all_threads else tuple,
    )
    if members.looks_at_stacks and own is not None:
        loops = called_by_loops(program, active(), own, _DONE_BY_LOOPS)
        chosen = _with_others(chosen, loops)
    chosen = _whole(program, chosen) if unnamed else chosen
    return replace(chosen, elsewhere=elsewhere)


def told_of_modules(elsewhere: Sequence[str]) -> list[str]:
    """What to say of functions that a set is without, as a kernel's modules have them."""
    if not elsewhere:
        return []
    more = len(elsewhere) - _MOST_FILES
    which = ", ".join(elsewhere[:_MOST_FILES]) + (f" and {more} others" if more > 0 else "")
    return [f"modules have more: {which}"]


def _whole(program: Program, chosen: Chosen) -> Chosen:
    """Without the parts of functions that a compiler has split off."""
    whole = tuple(one for one in chosen.functions if program.outlines.may_be_function(one.address))
    return replace(chosen, functions=whole) if whole else chosen


def _with_others(chosen: Chosen, others: Sequence[Function]) -> Chosen:
    """With ``others`` in place of the last ones, where there are too many with them."""
    room = MOST_FUNCTIONS - len(others)
    taken, rest = chosen.functions[:room], chosen.functions[room:]
    why = too_many(MOST_FUNCTIONS)
    return Chosen((*taken, *others), (*chosen.left_out, *((function, why) for function in rest)))


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
    found = [one for one in program.modules if _has_code(one, address)]
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
