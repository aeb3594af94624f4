"""Patterns for many functions: globs, regular expressions, files, and lists of them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from darc.code.candidates import Candidates, FilePart
from darc.code.demangle import display_name, without_arguments, without_tags
from darc.code.elf import Image
from darc.code.modules import Module
from darc.code.program import Program
from darc.code.spelling import files_there, split_offset, split_spec
from darc.code.symbols import FunctionSymbols
from darc.code.symscans import is_cold_name
from darc.model.errors import NotFoundError, TargetError, UsageError
from darc.model.ftree import Function
from darc.model.leftout import LeftOut
from darc.model.leftoutmany import LeftOutMany
from darc.model.libraries import is_loader
from darc.target.target import Target

_SOURCE = re.compile(r"[^!:*?\[\]]+\.(c|cc|cpp|cxx|c\+\+|C|h|hh|hpp|rs|f|f90|d|zig|m|mm|s|S)")
_MOST_LINES = 100_000
_STRIPPED = 0.9
"""A file was stripped where less of its functions have a symbol: those that it shows to others."""
_MOST_CHARACTERS = 1 << 24
"""Of a list of functions."""

_MOST_MISSING = 4
"""Patterns that mean nothing, each of which is told."""

_TOLD = 1000
"""Symbols that are matched between two words on how far it is."""

GONE = LeftOut("its code is not there any more (a kernel gives back that of its own begin, __init)")
CHOSEN_LATE = LeftOut("the program chooses its code when it is loaded (IFUNC)")


@dataclass(frozen=True)
class Pattern:
    """One of the words of ``darc profile``."""

    text: str
    scope: str | None
    """``lib.so!``, ``lib*!``, or a source file; ``None``: the program's own file first, then its
    libraries."""
    expression: re.Pattern[str]
    """What a whole name must be."""
    words: tuple[str, ...] = ()
    """What is sure to be in the symbol, for a quick look."""
    offset: int | None = None
    """Where the only function that is meant is in the file of the scope; ``None``: names tell."""
    is_all: bool = False
    """Whether every name fits (``*``)."""

    @property
    def is_of_source(self) -> bool:
        """Whether the scope is a source file."""
        return self.scope is not None and not self.scope.endswith("!")

    def fits(self, symbol: str) -> bool:
        """Whether a function with this symbol is meant."""
        if not all(word in symbol for word in self.words):
            return False
        if self.expression.fullmatch(symbol):
            return True
        shown = display_name(symbol)
        plain = without_tags(shown)
        names = {shown, plain, without_arguments(plain)} - {symbol}
        return any(self.expression.fullmatch(name) for name in names)


@dataclass(frozen=True)
class Chosen:
    """What patterns have come to: the functions of a set."""

    functions: Sequence[Function]
    """By address, each once."""
    left_out: Sequence[tuple[Function, LeftOut]] = ()
    """Those that cannot be among them, and why."""
    elsewhere: tuple[str, ...] = ()
    """What to type for more, which a kernel's modules have."""
    missing: tuple[str, ...] = ()
    """What to say of patterns that mean no function, where others do."""


def _read(file: Path) -> str:
    """A list of functions; one that has no end, or that somebody has yet to write, is none."""
    if not file.is_file() and file.exists():
        raise ValueError("it is not a file")
    with file.open(encoding="utf-8") as stream:
        text = stream.read(_MOST_CHARACTERS + 1)
    if len(text) > _MOST_CHARACTERS:
        raise ValueError("it is far too large")
    return text


def parse_patterns(texts: Iterable[str], read: Callable[[Path], str] = _read) -> list[Pattern]:
    """The patterns that words stand for; ``@FILE`` stands for those in its lines.

    Raises:
        UsageError: one is none, or the file cannot be read.
    """
    found: list[Pattern] = []
    for text in texts:
        if text.startswith("@"):
            found += parse_patterns(_lines(text[1:], read))
        else:
            found.append(_pattern(text))
    return found


def _lines(name: str, read: Callable[[Path], str]) -> list[str]:
    if not name:
        raise UsageError("the name of a file with a list of functions stands behind '@'")
    try:
        lines = read(Path(name).expanduser()).splitlines()
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read the list of functions {name}: {why}") from None
    plain = (line.split("#", 1)[0].strip() for line in lines[:_MOST_LINES])
    patterns = [line for line in plain if line]
    if any(line.startswith("@") for line in patterns):
        raise UsageError(f"{name}: a list of functions names no other list")
    return patterns


def _pattern(text: str) -> Pattern:
    if _SOURCE.fullmatch(text):
        return Pattern(text, text, re.compile(".*", re.DOTALL))
    if text.startswith("/"):
        return Pattern(text, None, _expression(text, text))
    if (place := split_offset(text)) is not None:
        return Pattern(text, place[0], re.compile(re.escape(text)), offset=place[1])
    scope, name = split_spec(text)
    if not name:
        raise UsageError(f"'{text}' names no function: type '{text}*' for all")
    if name.startswith("/"):
        return Pattern(text, scope, _expression(name, text))
    # The names of classes and namespaces before it may be left out.
    expression = re.compile(rf"(?:.*::)?(?:{fnmatch.translate(name)})", re.DOTALL)
    plain = without_arguments(name)  # 'int' is 'i' in a symbol
    words = () if "operator" in name or "[" in name else tuple(re.findall(r"\w+", plain))
    return Pattern(text, scope, expression, words, is_all=not name.strip("*"))


def _expression(name: str, text: str) -> re.Pattern[str]:
    if len(name) < 3 or not name.endswith("/"):
        raise UsageError(f"'{text}': a regular expression stands between slashes, as /^read_/")
    try:
        return re.compile(rf".*(?:{name[1:-1]}).*", re.DOTALL)
    except re.error as error:
        raise UsageError(f"'{text}' is no regular expression: {error}") from None


def choose(
    program: Program,
    target: Target,
    patterns: Sequence[Pattern],
    *,
    own: Module | None,
    progress: Callable[[str], None] = lambda _: None,
    unnamed: bool = False,
) -> Chosen:
    """The functions of ``program`` that the patterns mean; ``own`` is the program's own file. They
    are called by their symbols: most may not be needed, and to demangle takes long. Where its own
    file was stripped and shows some symbols to others, or none, the pattern that means all takes
    what has none as well; ``unnamed`` says so of any, and that nothing else is meant then.

    Raises:
        NotFoundError: no pattern means any.
    """
    left_out: dict[int, tuple[Function, LeftOut]] = {}
    known = Candidates()
    if own is not None and (unnamed or _means_all_of(own, patterns)):
        known = _unnamed(own)
    search = _Search(program, target, own, progress)
    meant, elsewhere, missing = [known], list[str](), list[str]()
    for pattern in () if known and unnamed else patterns:
        if known and _means_all(pattern):
            continue
        found = search.find(pattern)
        if not found and not found.gone:
            missing.append(_missing(pattern, search))
            continue
        elsewhere += search.in_modules(pattern, found)
        if not found:
            left_out.update((one.address, (one, GONE)) for one in found.gone)
        left_out.update((one.address, (one, CHOSEN_LATE)) for one in found.late)
        meant.append(found.functions)
    if missing and len(missing) == len(patterns):
        raise NotFoundError(missing[0])
    return Chosen(
        Candidates.joined(meant),
        LeftOutMany.of(left_out[address] for address in sorted(left_out)),
        tuple(dict.fromkeys(elsewhere)),
        tuple(dict.fromkeys(missing)),
    )


def _means_all_of(own: Module, patterns: Sequence[Pattern]) -> bool:
    """Whether all functions of that file are meant, and their names do not tell which these are."""
    return any(map(_means_all, patterns)) and own.image.symbols.is_stripped


def _means_all(pattern: Pattern) -> bool:
    """Whether all functions of the program's own file are meant."""
    return pattern.is_all and pattern.scope is None


def _missing(pattern: Pattern, search: _Search) -> str:
    told = f"no function is called {pattern.text}"
    if pattern.is_of_source:
        return f"{told}: for source files the debugger needs debug information"
    if pattern.scope is None or search.called(pattern.scope):
        return told
    return (
        f"{told}: the program has loaded no file {pattern.scope[:-1]} by now "
        f"({files_there(one.name for one in search.program.modules)}); if it does later, type this "
        "at a stop behind that"
    )


def told_of_missing(missing: Sequence[str]) -> list[str]:
    """What to say of patterns that mean no function: each, in the words of ``missing``, or how many
    there are, as of a list that is another version's."""
    more = len(missing) - _MOST_MISSING
    others = [f"{more} other patterns mean no function"] if more > 1 else missing[_MOST_MISSING:]
    return [*missing[:_MOST_MISSING], *others]


@dataclass(frozen=True)
class _Found:
    """What a pattern means."""

    functions: Candidates = field(default_factory=Candidates)
    late: Sequence[Function] = ()
    """Those whose code the program chooses late."""
    gone: Iterable[Function] = ()
    """Where it means nothing else: those of which nothing is left, as of a kernel's ``__init``
    functions."""

    def __bool__(self) -> bool:
        return bool(self.functions or self.late)

    @property
    def modules(self) -> set[str]:
        """The names of the files that have them."""
        files = {part.module for part in self.functions.parts}
        return files | {function.module for function in self.late}


@dataclass(frozen=True)
class _Meant:
    """The symbols of a file that a pattern means, by their numbers, which ascend."""

    module: Module
    numbers: Sequence[int]

    def function(self, number: int) -> Function:
        """That of a symbol."""
        module, symbol = self.module, self.module.image.symbols[number]
        return Function(
            name=symbol.name,
            symbol=symbol.name,
            module=module.name,
            address=symbol.address + module.bias,
            offset=symbol.address,
        )

    def found(self, program: Program) -> _Found:
        """What they are in the program now."""
        firsts = self.module.image.symbols.firsts(self.numbers, self.module.bias)
        live = [
            FilePart(self.module.name, firsts.addresses[low:high], _made(self, numbers))
            for low, high in program.code_among(firsts.addresses)
            for numbers in (firsts.numbers[low:high],)
        ]
        late = tuple(map(self.function, firsts.late))
        gone = () if live or late else map(self.function, self.numbers)
        return _Found(Candidates(live), late, tuple(gone))


def _made(meant: _Meant, numbers: Sequence[int]) -> Callable[[int], Function]:
    return lambda number: meant.function(numbers[number])


@dataclass(frozen=True)
class _Search:
    """Where functions are looked for; ``own`` is the program's own file."""

    program: Program
    target: Target
    own: Module | None
    progress: Callable[[str], None]

    def find(self, pattern: Pattern) -> _Found:
        """What a pattern means. Of the rest of the program only where it means nothing else."""
        found = self._known(pattern)
        if not found and pattern.scope is None:
            operations = self.program.names.operations(pattern.text)
            functions = Candidates.of(map(self.program.names.function_at, operations))
            found = replace(found, functions=functions)
        if found or not self.program.has_more:
            return found
        self.program.look_further()
        again = self._known(pattern)
        return replace(again, gone=(*found.gone, *again.gone))

    def _known(self, pattern: Pattern) -> _Found:
        """The same of what is known of the program by now."""
        if pattern.is_of_source:
            assert pattern.scope is not None
            return self._live(_of_source(self.target, pattern.scope, pattern))
        if pattern.scope is not None and pattern.offset is not None:
            return self._live(self._at(self.called(pattern.scope), pattern.offset))
        if pattern.scope is not None:
            return self._in(self.called(pattern.scope), pattern)
        found = _Found() if self.own is None else self._in([self.own], pattern)
        if found or found.gone:
            return found
        others = (m for m in self.program.modules if m is not self.own and m.name != "[vdso]")
        return self._in([m for m in others if not is_loader(m.name)], pattern)

    def _live(self, addresses: Iterable[int]) -> _Found:
        functions = list(map(self.program.names.function_at, addresses))
        live = [one for one in functions if self.program.is_code(one.address)]
        return _Found(Candidates.of(live), gone=() if live else functions)

    def in_modules(self, pattern: Pattern, found: _Found) -> list[str]:
        """What to type for functions of a kernel's modules that have such names, too, where those
        were ``found`` that the kernel itself has."""
        first = self.program.first_file
        if first is None or pattern.scope is not None or not found:
            return []
        if found.modules != {first.name}:
            return []
        if self.program.has_more:
            self.program.look_further()
        modules = [module for module in self.program.modules if module is not first]
        having = [one.module.name for one in self._fitting(modules, pattern)]
        return [f"{name}!{pattern.text}" for name in having]

    def called(self, scope: str) -> list[Module]:
        """The files that ``lib.so!`` means, or a glob for their names (``lib*!``)."""
        name = scope[:-1]
        if not any(character in name for character in "*?["):
            return self.program.names.modules_called(scope)
        modules = self.program.modules
        return [m for m in modules if fnmatch.fnmatchcase(PurePath(m.path).name, name)]

    def _at(self, modules: Sequence[Module], offset: int) -> Iterator[int]:
        for module in modules:
            address = module.bias + offset
            if self.program.is_code(address) and self.program.outlines.may_be_function(address):
                yield address

    def _in(self, modules: Sequence[Module], pattern: Pattern) -> _Found:
        some = [one.found(self.program) for one in self._fitting(modules, pattern)]
        return _Found(
            Candidates.joined([one.functions for one in some]),
            [function for one in some for function in one.late],
            [function for one in some for function in one.gone],
        )

    def _fitting(self, modules: Sequence[Module], pattern: Pattern) -> Iterator[_Meant]:
        """The files that have symbols which are meant."""
        for number, module in enumerate(modules, 1):
            doing = f"looks for functions in file {number} of {len(modules)}"
            self.progress(doing)
            symbols = module.image.symbols
            found = symbols.numbers() if pattern.is_all else self._matching(symbols, pattern, doing)
            if found:
                yield _Meant(module, found)

    def _matching(self, symbols: FunctionSymbols, pattern: Pattern, doing: str) -> list[int]:
        """The numbers of those that a pattern means which not every name fits."""
        found = []
        sure = max(pattern.words, key=len, default=None)
        for looked_at, number in enumerate(symbols.numbers(sure)):
            if looked_at % _TOLD == _TOLD - 1:
                self.progress(doing)
            name = symbols[number].name
            if not is_cold_name(name) and pattern.fits(name):
                found.append(number)
        return found


def unnamed_starts(image: Image) -> Iterator[int]:
    """Where functions without a symbol begin in a file, by its frame information; parts that a
    compiler split off are among them."""
    named = set(image.symbols.firsts(None, 0).addresses)
    return (start for start in image.frames.starts if start not in named)


def _unnamed(own: Module) -> Candidates:
    """The functions of a file that was stripped, by its frame information, and those that have a
    symbol all the same. Parts that a compiler split off are among them. There are tens of
    thousands, and none is looked at more closely."""
    image = own.image
    named, starts = image.symbols.firsts(None, 0).addresses, set(image.frames.starts)
    if len(starts.intersection(named)) >= _STRIPPED * len(starts):
        return Candidates()
    offsets = sorted(starts.union(named))

    def make(number: int) -> Function:
        offset = offsets[number]
        names = [symbol.name for symbol in image.symbols.all_at(offset) if not symbol.ifunc]
        name = names[-1] if names else f"{own.name}+{offset:#x}"
        return Function(
            name=name, symbol=name, module=own.name, address=offset + own.bias, offset=offset
        )

    return Candidates([FilePart(own.name, [offset + own.bias for offset in offsets], make)])


def _of_source(target: Target, file: str, pattern: Pattern) -> Iterator[int]:
    for name in target.symbols.functions_of(file, ""):
        plain = name.split("(", 1)[0]
        if pattern.expression.fullmatch(plain):
            try:
                yield from target.symbols.functions_in(file, name)
            except TargetError:
                continue
