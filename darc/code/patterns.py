"""Patterns for many functions: globs, regular expressions, files, and lists of them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from darc.code.demangle import display_name, without_arguments, without_tags
from darc.code.elf import Image
from darc.code.modules import Module
from darc.code.program import Program
from darc.code.spelling import is_cold_name, split_offset, split_spec
from darc.model.errors import NotFoundError, TargetError, UsageError
from darc.model.ftree import Function
from darc.model.leftout import LeftOut
from darc.target.target import Target

_SOURCE = re.compile(r"[^!:*?\[\]]+\.(c|cc|cpp|cxx|c\+\+|C|h|hh|hpp|rs|f|f90|d|zig|m|mm|s|S)")
_MOST_LINES = 100_000
_STRIPPED = 0.9
"""A file was stripped where less of its functions have a symbol: those that it shows to others."""
_MOST_CHARACTERS = 1 << 24
"""Of a list of functions."""

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

    functions: tuple[Function, ...]
    """By address, each once."""
    left_out: tuple[tuple[Function, LeftOut], ...] = ()
    """Those that cannot be among them, and why."""
    elsewhere: tuple[str, ...] = ()
    """What to type for more, which a kernel's modules have."""


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
    return Pattern(text, scope, expression, words)


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
    own: Module | None,
    progress: Callable[[str], None] = lambda _: None,
    *,
    unnamed: bool = False,
) -> Chosen:
    """The functions of ``program`` that the patterns mean; ``own`` is the program's own file. They
    are called by their symbols: most may not be needed, and to demangle takes long. ``unnamed``
    says that those of its own file count as well where that was stripped, and shows some to others.

    Raises:
        NotFoundError: a pattern means none.
    """
    functions: dict[int, Function] = {}
    left_out: dict[int, tuple[Function, LeftOut]] = {}
    if unnamed and own is not None:
        functions.update((function.address, function) for function in _unnamed(own))
    search = _Search(program, target, own, progress)
    elsewhere: list[str] = []
    for pattern in () if functions else patterns:
        gone: list[Function] = []
        found = search.find(pattern, gone)
        if not found and not gone:
            raise NotFoundError(_missing(pattern, search))
        elsewhere += search.in_modules(pattern, [function for function, _ in found])
        if not found:
            left_out.update((function.address, (function, GONE)) for function in gone)
        for function, is_late in found:
            if is_late:
                left_out[function.address] = function, CHOSEN_LATE
            else:
                functions.setdefault(function.address, function)
    return Chosen(
        tuple(functions[address] for address in sorted(functions)),
        tuple(left_out[address] for address in sorted(left_out)),
        tuple(dict.fromkeys(elsewhere)),
    )


def _missing(pattern: Pattern, search: _Search) -> str:
    told = f"no function is called {pattern.text}"
    if pattern.is_of_source:
        return f"{told}: for source files the debugger needs debug information"
    if pattern.scope is None or search.called(pattern.scope):
        return told
    return (
        f"{told}: the program has loaded no file {pattern.scope[:-1]} by now ('info sharedlibrary' "
        "lists what it has); if it does later, type this at a stop behind that"
    )


@dataclass(frozen=True)
class _Search:
    """Where functions are looked for; ``own`` is the program's own file."""

    program: Program
    target: Target
    own: Module | None
    progress: Callable[[str], None]

    def find(self, pattern: Pattern, gone: list[Function]) -> list[tuple[Function, bool]]:
        """What a pattern means: each, and whether the program chooses its code late. Of the rest of
        the program only where it means nothing else. Those of which nothing is left, as of a
        kernel's ``__init`` functions, come to ``gone``."""
        found = self._live(self._known(pattern), gone)
        if not found and pattern.scope is None:
            operations = self.program.names.operations(pattern.text)
            found = [(self.program.names.function_at(address), False) for address in operations]
        if found or not self.program.has_more:
            return found
        self.program.look_further()
        return self._live(self._known(pattern), gone)

    def _live(
        self, found: Iterable[tuple[Function, bool]], gone: list[Function]
    ) -> list[tuple[Function, bool]]:
        live = []
        for function, is_late in found:
            if is_late or self.program.is_code(function.address):
                live.append((function, is_late))
            else:
                gone.append(function)
        return live

    def _known(self, pattern: Pattern) -> Iterable[tuple[Function, bool]]:
        """The same of what is known of the program by now."""
        if pattern.is_of_source:
            assert pattern.scope is not None
            addresses = _of_source(self.target, pattern.scope, pattern)
            return ((self.program.names.function_at(address), False) for address in addresses)
        if pattern.scope is not None and pattern.offset is not None:
            return self._at(self.called(pattern.scope), pattern.offset)
        if pattern.scope is not None:
            return self._in(self.called(pattern.scope), pattern)
        if self.own is not None and (found := list(self._in([self.own], pattern))):
            return found
        others = (m for m in self.program.modules if m is not self.own and m.name != "[vdso]")
        return self._in([m for m in others if not m.name.startswith("ld")], pattern)

    def in_modules(self, pattern: Pattern, found: Sequence[Function]) -> list[str]:
        """What to type for functions of a kernel's modules that have such names, too, where those
        were ``found`` that the kernel itself has."""
        first = self.program.first_file
        if first is None or pattern.scope is not None or not found:
            return []
        if any(function.module != first.name for function in found):
            return []
        if self.program.has_more:
            self.program.look_further()
        modules = [module for module in self.program.modules if module is not first]
        having = [m.name for m in modules if next(iter(self._in([m], pattern)), None) is not None]
        return [f"{name}!{pattern.text}" for name in having]

    def called(self, scope: str) -> list[Module]:
        """The files that ``lib.so!`` means, or a glob for their names (``lib*!``)."""
        name = scope[:-1]
        if not any(character in name for character in "*?["):
            return self.program.names.modules_called(scope)
        modules = self.program.modules
        return [m for m in modules if fnmatch.fnmatchcase(PurePath(m.path).name, name)]

    def _at(self, modules: Sequence[Module], offset: int) -> Iterator[tuple[Function, bool]]:
        for module in modules:
            address = module.bias + offset
            if self.program.is_code(address) and self.program.outlines.may_be_function(address):
                yield self.program.names.function_at(address), False

    def _in(self, modules: Sequence[Module], pattern: Pattern) -> Iterator[tuple[Function, bool]]:
        for number, module in enumerate(modules, 1):
            self.progress(f"looks for functions in file {number} of {len(modules)}")
            for symbol in module.image.symbols:
                name = symbol.name
                if not is_cold_name(name) and pattern.fits(name):
                    address = symbol.address + module.bias
                    yield (
                        Function(
                            name=name,
                            symbol=name,
                            module=module.name,
                            address=address,
                            offset=symbol.address,
                        ),
                        symbol.ifunc,
                    )


def _named(image: Image) -> dict[int, str]:
    return {symbol.address: symbol.name for symbol in image.symbols if not symbol.ifunc}


def unnamed_starts(image: Image) -> Iterator[int]:
    """Where functions without a symbol begin in a file, by its frame information; parts that a
    compiler split off are among them."""
    named = _named(image)
    return (start for start in image.frames.starts if start not in named)


def _unnamed(own: Module) -> Iterator[Function]:
    """The functions of a file that was stripped, by its frame information, and those that have a
    symbol all the same. Parts that a compiler split off are among them. There are tens of
    thousands, and none is looked at more closely."""
    image = own.image
    named = _named(image)
    starts = set(image.frames.starts)
    if len(named.keys() & starts) >= _STRIPPED * len(starts):
        return
    for offset in sorted(starts | named.keys()):
        name = named.get(offset) or f"{own.name}+{offset:#x}"
        yield Function(
            name=name, symbol=name, module=own.name, address=offset + own.bias, offset=offset
        )


def _of_source(target: Target, file: str, pattern: Pattern) -> Iterator[int]:
    for name in target.symbols.functions_of(file, ""):
        plain = name.split("(", 1)[0]
        if pattern.expression.fullmatch(plain):
            try:
                yield from target.symbols.functions_in(file, name)
            except TargetError:
                continue
