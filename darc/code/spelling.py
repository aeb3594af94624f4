"""Names of functions as the user types them, and which symbols they stand for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from darc.code.demangle import (
    base_symbol,
    demangle_cxx,
    display_name,
    fits,
    is_rust,
    plain_rust,
    rust_spelling,
    without_arguments,
    without_tags,
)
from darc.code.symbols import FunctionSymbols
from darc.code.symscans import Symbol, is_cold_name
from darc.model.errors import NotFoundError

_LONGEST_COMPARED = 1000
"""Characters of a name that is looked at for likeness, which takes the square of them."""

_MOST_COMPARED = 5000
"""Mangled names that are."""

MANY = 1000
"""So many functions that a name may mean are as good as all: it is too short."""

_TOLD = 1000
"""Symbols between two words on how far it is."""

_LONGEST_TOLD = 50

_WORD = re.compile(r"(?<![\w$])[^\W\d][\w$]*")
_NUMBER = re.compile(r"(?<=[<, (-])(\d+)(?:u|ul|l|ll|ull)?(?=[>, ])")
"""Among the arguments of templates, but for those of enumerations, whose names may end in one."""

_ABBREVIATED = frozenset(
    (
        "void bool char short int long unsigned signed float double auto wchar_t char8_t "
        "char16_t char32_t __int128 __float128 _Float16 half decltype nullptr nullptr_t const "
        "volatile restrict __restrict noexcept true false sizeof alignof throw operator new "
        "delete co_await and or not anonymous namespace lambda unnamed type std allocator "
        "string basic_string char_traits istream ostream iostream basic_istream basic_ostream "
        "basic_iostream complex imaginary _Complex non virtual thunk to covariant return "
        "transaction guard variable for typeinfo name vtable VTT construction TLS init wrapper "
        "function reference temporary clone default arg parm template parameter object "
        "structured binding initializer module enable_if this vector block invocation dyn impl "
        "as mut fn extern unsafe closure shim crate str u8 u16 u32 u64 u128 usize i8 i16 i32 "
        "i64 i128 isize f16 f32 f64 f128 where C"
    ).split()
)
"""Words of demangled names that are not in symbols as they are."""


_OPERATORS = {
    "new": "nw", "new[]": "na", "delete": "dl", "delete[]": "da", "co_await": "aw",
    "~": "co", "+": "pl ps", "-": "mi ng", "*": "ml de", "/": "dv", "%": "rm", "&": "an ad",
    "|": "or", "^": "eo", "=": "aS", "+=": "pL", "-=": "mI", "*=": "mL", "/=": "dV", "%=": "rM",
    "&=": "aN", "|=": "oR", "^=": "eO", "<<": "ls", ">>": "rs", "<<=": "lS", ">>=": "rS",
    "==": "eq", "!=": "ne", "<": "lt", ">": "gt", "<=": "le", ">=": "ge", "<=>": "ss", "!": "nt",
    "&&": "aa", "||": "oo", "++": "pp", "--": "mm", ",": "cm", "->*": "pm", "->": "pt",
    "()": "cl", "[]": "ix", '""': "li",
}  # fmt: skip
"""How symbols call them (Itanium C++ ABI, 5.1.3.6); all others are conversions."""

_SIGNS = "|".join(
    re.escape(one) for one in sorted(_OPERATORS, key=len, reverse=True) if not one[0].isalpha()
)
_OPERATOR = re.compile(
    r"\boperator\b(?!::)\s*"  # that is a scope
    rf"(?:((?:new|delete)\b\s*(?:\[\s*\])?|co_await\b|{_SIGNS})|[\w:(])"
)


def _operator_codes(name: str) -> Sequence[str]:
    """One of these a symbol is sure to have in it that is called so; none: it is no operator."""
    found = _OPERATOR.search(name)
    if found is None:
        return ()
    known = found[1]
    return ("cv",) if known is None else _OPERATORS["".join(known.split())].split()


def _like(symbols: FunctionSymbols, last: str, codes: Sequence[str]) -> Iterable[Symbol]:
    """Those that may be called so, by the last part of the name or the ``codes`` of operators."""
    if codes:
        return (one for code in codes for one in symbols.holding(code))
    return symbols.holding(last) if symbols.may_have(last) else ()


def find_symbols(
    files: Iterable[tuple[FunctionSymbols, int]],
    name: str,
    progress: Callable[[str], None] = lambda _: None,
) -> set[int]:
    """Addresses of the functions called ``name`` in files with these biases: the symbol itself, the
    display name, the whole C++ signature, or the last components of these (``f`` finds
    ``ns::Class::f``). Whole names win over parts, a function over the clones that a compiler made
    of it, and the version of a symbol that programs are linked with today over those before. Of a
    function that has become a clone as a whole (``f.isra.0``) that is the function. Where more than
    :data:`MANY` fit in part, those beyond are looked for that fit as a whole. ``progress`` is told
    what is done."""
    found: dict[int, set[tuple[int, str, bool]]] = {}
    last = _last_word(without_tags(name))
    wanted = _spaceless(without_tags(name))
    hallmarks, codes = Hallmarks(name), _operator_codes(name)
    parts = looked_at = 0
    for symbols, bias in files:
        for symbol in _like(symbols, last, codes):
            raw = symbol.name
            if not hallmarks.may_be_in(raw) or is_cold_name(raw):
                continue
            if parts >= MANY and not hallmarks.may_be_whole(raw):
                continue
            looked_at += 1
            if looked_at % _TOLD == 0:
                progress(f"looks for {shortened(name)} among {looked_at:,} symbols like it")
            rank = _match(raw, name, wanted)
            if rank is not None:
                parts += rank > 0
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


class Hallmarks:
    """What a symbol is sure to have in it that is called ``name``: compilers write names down as
    they are, and refer to the first place where that is so. To demangle a symbol takes a tenth of a
    millisecond, and a program has up to millions."""

    def __init__(self, name: str) -> None:
        plain = without_tags(name)
        self._name = name
        self._words = tuple(
            {word for word in _WORD.findall(plain) if word.isascii() and word not in _ABBREVIATED}
        )
        numbers = set(_NUMBER.findall(plain))
        self._numbers = [(number, re.compile(rf"(?<!\d){number}[E_]").search) for number in numbers]
        scopes = plain.split("::")
        is_plain = all(scope.isidentifier() for scope in scopes)
        self._whole = "".join(f"{len(scope)}{scope}" for scope in scopes) if is_plain else None

    def may_be_in(self, raw: str) -> bool:
        """Whether ``raw`` has all of that."""
        if raw == self._name:
            return True
        for word in self._words:
            if word not in raw:
                return False
        for number, find in self._numbers:
            if number not in raw or not find(raw):
                return not raw.startswith("_Z") or is_rust(raw)  # Rust's are in base 16
        return True

    def may_be_whole(self, raw: str) -> bool:
        """Whether it may be called so, with no scope around it that was left out."""
        if self._whole is None:
            return True
        if "::" in self._name:
            return self._whole in raw
        return raw.startswith((self._name, f"_Z{self._whole}", f"_ZL{self._whole}"))


def shortened(name: str) -> str:
    """As much of it as a line has room for."""
    return name if len(name) <= _LONGEST_TOLD else name[: _LONGEST_TOLD - 1] + "…"


def _last_word(name: str) -> str:
    """What a symbol is sure to have in it that is called so: the function's own name."""
    plain = without_arguments(name.split("(", 1)[0]).rsplit("::", 1)[-1]
    return plain.split("<", 1)[0].strip() or name


def symbol_spelling(raw: str) -> str:
    """What to type for a symbol: its C++ signature, its name in Rust, or itself."""
    return rust_spelling(raw) or demangle_cxx(base_symbol(raw)) or raw


def fitting(name: str, symbols: Iterable[str]) -> list[str]:
    """Those of ``symbols`` that ``name`` stands for: that fit it as well as any."""
    wanted = _spaceless(without_tags(name))
    ranks = {symbol: _match(symbol, name, wanted) for symbol in symbols}
    best = min((rank for rank in ranks.values() if rank is not None), default=None)
    return [symbol for symbol, rank in ranks.items() if rank == best is not None]


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


def not_found(spec: str, *places: Iterable[str]) -> str:
    """The error line for a function that does not exist, with near names: those of the first of
    ``places``, each the names that there are, that has some."""
    near = (near_names(split_spec(spec)[1], names) for names in places)
    return f"no function is called {spec}{next(filter(None, near), '')}"


def near_names(wanted: str, names: Iterable[str]) -> str:
    """Those like ``wanted``, for the end of a line."""
    worth = [name for name in names if _worth_showing(name, wanted)]
    mangled = [name for name in worth if name.startswith(("_Z", "_R"))]
    if len(mangled) > _MOST_COMPARED:
        begin = _last_word(wanted)[:4]
        mangled.sort(key=lambda name: begin not in name)
        worth = [name for name in worth if not name.startswith(("_Z", "_R"))]
        worth += mangled[:_MOST_COMPARED]
    shown = {display_name(name) for name in worth}
    near = difflib.get_close_matches(wanted, shown, 3, 0.6)
    return f" (near names: {', '.join(near)})" if near else ""


def files_there(names: Iterable[str]) -> str:
    """Which files are loaded, or modules of a kernel's, some of them: how a debugger lists them,
    and whether it knows of a kernel's, differs."""
    there = list(dict.fromkeys(names))
    more = f" and {len(there) - _MOST_FILES} more" if len(there) > _MOST_FILES else ""
    return f"there are {', '.join(there[:_MOST_FILES])}{more}" if there else "there are none"


_MOST_FILES = 6

MOST_LISTED = 8
"""Functions that an error line shows."""


def ambiguous(spec: str, spellings: Iterable[str], count: int | None = None) -> str:
    """The error line for a name of several functions, each with what to type for it; or of
    ``count`` functions, of which these are some."""
    listed = sorted(spellings)
    count = len(listed) if count is None else count
    shown = listed[:MOST_LISTED]
    more = count - len(shown)
    rest = f" and {more} more: 'darc profile {spec}' times them all" if more > 0 else ""
    if count >= MANY:
        return f"{spec} names {MANY:,} functions or more, among them {', '.join(shown)}"
    return f"{spec} names {count} functions: take one of {', '.join(shown)}{rest}"


_MOST_OUTERS = 5


def inlined_only(spec: str, outers: Sequence[str]) -> str:
    """The error line for a function that has no code of its own, but copies in ``outers``."""
    named = ", ".join(outers[:_MOST_OUTERS])
    more = f" and {len(outers) - _MOST_OUTERS} more" if len(outers) > _MOST_OUTERS else ""
    instead = "these" if len(outers) > 1 else "that"
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
        address = int(spec[1:], 0)
    except ValueError:
        address = -1
    if not 0 <= address < 1 << 64:
        raise NotFoundError(f"{spec} is no address: type it as *0x401000")
    return address


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
