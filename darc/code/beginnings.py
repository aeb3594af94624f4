"""Functions whose names begin as typed, found without reading every name of a large program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from darc.code.demangle import components, display_name
from darc.code.standard_library import is_library_name
from darc.code.symbols import FunctionSymbols

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def names_beginning(
    files: Iterable[FunctionSymbols], start: str, most: int | None, longest: int
) -> list[str]:
    """Names to show of functions that begin with ``start``, of at most ``longest`` characters; also
    such as have that behind a scope, without the scope, as a function may be named so. Of more than
    ``most`` there are so many and one more, of which the first two have no more in common than all
    that there are."""
    found: set[str] = set()
    may_be, part = _filter(start), max(_words(start), key=len, default="")
    common: str | None = None
    for symbols in files:
        for symbol in symbols.holding(part) if part else symbols:
            name = _from(start, display_name(symbol.name)) if may_be(symbol.name) else None
            if name is None or len(name) > longest:
                continue
            found.add(name)
            common = name if common is None else _in_common(common, name)
            if most is not None and len(found) > most and common == start:
                return _at_most(most, sorted(found))
    return _at_most(most, sorted(found))


def _from(start: str, name: str) -> str | None:
    """What of a name begins with ``start``: all, or what is behind a scope of the program's own."""
    if name.startswith(start):
        return name
    if not start or f"::{start}" not in name or is_library_name(name):
        return None
    parts = ["".join(part) for part in components(name)]
    tails = ("::".join(parts[number:]) for number in range(1, len(parts)))
    return next((tail for tail in tails if tail.startswith(start)), None)


def _in_common(one: str, other: str) -> str:
    for index, (mine, yours) in enumerate(zip(one, other, strict=False)):
        if mine != yours:
            return one[:index]
    return min(one, other, key=len)


def _at_most(most: int | None, names: list[str]) -> list[str]:
    return names if most is None or len(names) <= most else [names[-1], *names[:most]]


def _filter(start: str) -> Callable[[str], bool]:
    """Whether a symbol can be one of ``start``, before it is demangled, which takes a hundred times
    as long. What is in a name is in its symbol, each part by its length (``4llvm``); only ``std``
    has a short form, and comes first."""
    *scopes, _ = start.split("::")
    words = _words(start)
    first = scopes[0] if scopes else ""
    if not _WORD.fullmatch(first):
        return lambda symbol: all(word in symbol for word in words)
    length = f"{len(first)}{first}"
    begins = re.compile(rf"_Z[A-Zr]*(?:{length}|S)|_R" if first == "std" else rf"_Z.*{length}|_R")
    return lambda symbol: begins.match(symbol) is not None and all(w in symbol for w in words)


def _words(start: str) -> list[str]:
    """What the symbol of each name that begins with ``start`` has in it."""
    *scopes, last = start.split("::")
    words = [word for word in (*scopes, last) if _WORD.fullmatch(word) and word not in _SHORT]
    if last and ("operator" if scopes else "std").startswith(last):
        words.remove(last)
    return words


_SHORT = {"std", "allocator", "basic_string", "string", "istream", "ostream", "iostream"}
"""What symbols abbreviate (``St``, ``Sa``, ``Ss``, …)."""
