"""Names of functions as the user types them, and which symbols they stand for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from darc.code.demangle import (
    base_symbol,
    demangle_cxx,
    display_name,
    fits,
    plain_rust,
    rust_spelling,
    without_arguments,
    without_tags,
)
from darc.code.symbols import FunctionSymbols
from darc.model.errors import NotFoundError

_LONGEST_COMPARED = 1000
"""Characters of a name that is looked at for likeness, which takes the square of them."""


def find_symbols(files: Iterable[tuple[FunctionSymbols, int]], name: str) -> set[int]:
    """Addresses of the functions called ``name`` in files with these biases: the symbol itself, the
    display name, the whole C++ signature, or the last components of these (``f`` finds
    ``ns::Class::f``). Whole names win over parts, a function over the clones that a compiler made
    of it, and the version of a symbol that programs are linked with today over those before. Of a
    function that has become a clone as a whole (``f.isra.0``) that is the function."""
    found: dict[int, set[tuple[int, str, bool]]] = {}
    last = _last_word(without_tags(name))
    wanted = _spaceless(without_tags(name))
    for symbols, bias in files:
        if "operator" not in name and not symbols.may_have(last):
            continue
        for symbol in symbols:
            raw = symbol.name
            if last not in raw and "operator" not in name:
                continue
            if is_cold_name(raw):
                continue
            rank = _match(raw, name, wanted)
            if rank is not None:
                rank = 2 * rank + symbol.is_old
                base = base_symbol(raw)
                is_clone = raw not in (base, name)
                found.setdefault(rank, set()).add(
                    (symbol.address + bias, f"{bias} {base}", is_clone)
                )
    if not found:
        return set()
    best = found[min(found)]
    whole = {base for _, base, is_clone in best if not is_clone}
    return {address for address, base, is_clone in best if not (is_clone and base in whole)}


def _last_word(name: str) -> str:
    """What a symbol is sure to have in it that is called so: the function's own name."""
    plain = without_arguments(name.split("(", 1)[0]).rsplit("::", 1)[-1]
    return plain.split("<", 1)[0].strip() or name


def symbol_spelling(raw: str) -> str:
    """What to type for a symbol: its C++ signature, its name in Rust, or itself."""
    return rust_spelling(raw) or demangle_cxx(base_symbol(raw)) or raw


def _match(raw: str, name: str, wanted: str) -> int | None:
    """How well a symbol fits: 0 is best; ``None`` when it does not.

    In this order: the symbol itself, the name that is shown, the end of that (``get`` for
    ``Cache::get``), and without the arguments of templates.
    """
    if raw == name:
        return 0
    base = base_symbol(raw)
    shown = without_tags(display_name(raw))
    if _is_named(shown, wanted):
        return 0 if _spaceless(shown) == wanted else 1
    if "(" in name and (signature := demangle_cxx(base)) is not None:
        # Overloads are told apart by their parameters.
        if _spaceless(without_tags(signature)) == wanted:
            return 0
        if _spaceless(without_tags(signature)).endswith("::" + wanted):
            return 1
    spelling = rust_spelling(raw)
    if spelling is not None and _is_named(spelling, wanted):
        return 0 if _spaceless(spelling) == wanted else 1
    if "<" in shown:
        plain = shown if spelling is None else plain_rust(shown)
        if _is_named(plain, wanted.replace("::<", "<")):
            return 1
        if fits(_spaceless(plain), wanted.replace("::<", "<")):
            return 2
        if _is_named(without_arguments(plain), wanted):
            return 2
    return None


def _is_named(shown: str, wanted: str) -> bool:
    """Whether that is its name, or the last parts of it."""
    return ("::" + _spaceless(shown)).endswith("::" + wanted)


def _spaceless(text: str) -> str:
    return text.replace(" ", "")


def not_found(spec: str, names: Iterable[str]) -> str:
    """The error line for a function that does not exist, with near names."""
    return f"no function is called {spec}{near_names(split_spec(spec)[1], names)}"


def near_names(wanted: str, names: Iterable[str]) -> str:
    """Those like ``wanted``, for the end of a line."""
    shown = {display_name(name) for name in names if _worth_showing(name, wanted)}
    near = difflib.get_close_matches(wanted, shown, 3, 0.6)
    return f" (near names: {', '.join(near)})" if near else ""


_MOST_LISTED = 8


def ambiguous(spec: str, spellings: Iterable[str]) -> str:
    """The error line for a name of several functions, each with what to type for it."""
    listed = sorted(spellings)
    more = len(listed) - _MOST_LISTED
    rest = f" and {more} more: 'darc profile {spec}' times them all" if more > 0 else ""
    shown = ", ".join(listed[:_MOST_LISTED])
    return f"{spec} names {len(listed)} functions: take one of {shown}{rest}"


_MOST_HOSTS = 5


def inlined_only(spec: str, hosts: Sequence[str]) -> str:
    """The error line for a function that has no code of its own, but copies in ``hosts``."""
    named = ", ".join(hosts[:_MOST_HOSTS])
    more = f" and {len(hosts) - _MOST_HOSTS} more" if len(hosts) > _MOST_HOSTS else ""
    instead = "these" if len(hosts) > 1 else "that"
    return f"{spec} was inlined into {named}{more}: analyse {instead}"


def instead(copies: Sequence[str]) -> str:
    """What to do about a function that was not called, for the end of a line: ``copies`` is what
    compilers may have made its callers call."""
    if not copies:
        return ""
    listed = " or ".join(f"'darc start {copy}'" for copy in copies)
    return f": its callers may call a copy of it that is private to them: {listed}"


def _worth_showing(name: str, wanted: str) -> bool:
    if max(len(name), len(wanted)) > _LONGEST_COMPARED:
        return False
    return abs(len(name) - len(wanted)) < 12 or wanted[:4] in name


def address_of(spec: str) -> int:
    """``*0x401000`` as a number. Raises NotFoundError: it is none."""
    try:
        return int(spec[1:], 0)
    except ValueError:
        raise NotFoundError(f"{spec} is no address: type it as *0x401000") from None


_IN_FILE = re.compile(r"([^!*?\s]+)\+(0x[0-9a-fA-F]{1,16})")


def split_offset(spec: str) -> tuple[str, int] | None:
    """``prog+0x3060`` → (``prog!``, 0x3060): how darc calls a function that has no symbol, by the
    file that has it and its address in that; ``None``: that is none."""
    found = _IN_FILE.fullmatch(spec)
    return None if found is None else (found[1] + "!", int(found[2], 16))


def split_spec(spec: str) -> tuple[str | None, str]:
    """``lib.so!f`` → (``lib.so!``, ``f``); ``file.c:f`` → (``file.c``, ``f``)."""
    if "!" in spec and "operator!" not in spec:
        scope, name = spec.split("!", 1)
        return scope + "!", name
    head, colon, tail = spec.partition(":")
    if colon and not tail.startswith(":") and "::" not in head and "." in head:
        return head, tail
    return None, spec


def is_called(path: str, scope: str) -> bool:
    """Whether a file is the one that is meant by ``lib.so!``, with or without its version."""
    name, wanted = Path(path).name, scope.removesuffix("!")
    return wanted in (name, path) or name.split(".so", 1)[0] == wanted.split(".so", 1)[0]


def is_cold_name(name: str) -> bool:
    """Whether it is that of the part of a function that a compiler put aside as unlikely."""
    return name.endswith(".cold") or ".cold." in name
