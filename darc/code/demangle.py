"""The names of functions as people read them, by one demangler for every debugger.

C++ names are demangled by the C++ runtime's own ``__cxa_demangle`` (ctypes: nothing is started
inside the debugger, and gdb and lldb have the library loaded), Rust's by rustc's own demangler.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Iterator

import pyderust

_LONGEST = 1 << 14
"""Characters of a symbol that is demangled; compilers' longest are some thousands."""

_LONGEST_SHOWN = 1 << 14
"""Characters of a name that is kept whole. What a symbol refers back to is written out each time:
one of 470 characters has a name of 7.5 million."""

_RUNTIMES = ("libstdc++.so.6", "libc++abi.so.1", "libc++.so.1")

_CLONE = re.compile(
    r"(?:\.(?:isra|constprop|part|cold|llvm|lto_priv|localalias|clone|__uniq|_omp_fn|actor|resume"
    r"|destroy|cleanup|warm|hot|unlikely|artificial|kcfi|str|memprof)(?:\.[0-9]+)*)+$"
)
_THUNK = re.compile(
    r"(?:non-virtual thunk|virtual thunk|covariant return thunk|transaction clone"
    r"|non-transaction clone) (?:to|for) "
)
_DATA = re.compile(
    r"(?:typeinfo|typeinfo name|vtable|VTT|construction vtable|guard variable|TLS init function"
    r"|TLS wrapper function|reference temporary #\d+) for "
)
_QUALIFIERS = re.compile(r"(?: (?:const|volatile|noexcept|&&|&))+$")
_SCOPE_QUALIFIERS = re.compile(r"(?: (?:const|volatile|noexcept|&&|&))+::")
_RUST_HASH = re.compile("17(h[0-9a-f]{16})E$")
_CUT_SHORT = re.compile(r"\{(?:invalid syntax|recursion limit reached|size limit reached)\}")
"""What rustc's demangler writes where it gives up in the middle of a name."""
_TAG = re.compile(r"\[abi:[^\]]*\]")
_ARRAY = re.compile(r"(?<=\)) ?(?:\[\d*\])+$")
_POINTER = re.compile(r"\((?:[\w:<>, ]*[*&]+)(?: const| volatile)*+\s*(?=[A-Za-z_(~])")
_OPERATOR = re.compile(
    r"(?<![\w$])operator(?![\w$])(?P<token>\(\)|\[\]|<=>|<<=|>>=|->\*|->|<<|>>|<=|>=|&&|\|\||\+\+"
    r"|--|[-+*/%^&|!=]=|[-+*/%^&|~!=<>,]| (?:new|delete)\b(?:\[\])?|\"\" ?\w+| co_await)?"
)
_BRACKET = re.compile(rf"{_OPERATOR.pattern}|->|[<>]")
_CLOSING = {")": "(", "]": "[", "}": "{", ">": "<"}


@functools.lru_cache(maxsize=65536)
def display_name(symbol: str) -> str:
    """The name to show for a raw ``symbol``.

    Demangled, without parameter list, return type, qualifiers, compiler suffixes (``.isra.0``,
    ``.cold``, ``.llvm.1``), ``@version`` and ``@plt``; template arguments stay. A name that
    cannot be demangled stays as it is, without suffixes.
    """
    if len(symbol) > _LONGEST:
        return symbol
    name = base_symbol(symbol)
    try:
        rust = demangle_rust(name)
        if rust is not None:
            return rust
        demangled = demangle_cxx(name)
        return name if demangled is None else without_signature(demangled)
    except RecursionError:  # nested on purpose: no compiler's
        return name


def base_symbol(symbol: str) -> str:
    """``symbol`` without ``@version``, ``@plt``, ``[clone …]`` and compiler suffixes."""
    symbol = symbol.partition(" [clone ")[0]
    if "@" in symbol[1:]:
        symbol = symbol[0] + symbol[1:].partition("@")[0]
    return _CLONE.sub("", symbol) or symbol


def without_tags(name: str) -> str:
    """A display name without ABI tags: ``Cache::get`` for ``Cache::get[abi:cxx11]``."""
    return _TAG.sub("", name)


def without_arguments(name: str) -> str:
    """A display name without the arguments of templates: ``Cache::get`` for
    ``Cache<int>::get<char>``, and for Rust's ``Cache<T>::get::<char>``. Those of operators stay
    (``operator<``)."""
    kept: list[str] = []
    depth = index = 0
    while index < len(name):
        operator = _OPERATOR.match(name, index) if name[index] == "o" else None
        if operator is not None and operator["token"]:
            kept.append(operator[0] if depth == 0 else "")
            index = operator.end()
            continue
        char = name[index]
        if char == "<":
            depth += 1
        elif char == ">" and depth and name[index - 1] != "-":
            depth -= 1
        elif depth == 0:
            kept.append(char)
        index += 1
    return name if depth else "".join(kept).replace("::::", "::").removesuffix("::")


def components(name: str) -> list[tuple[str, str]]:
    """The parts of a display name between ``::``, each with the arguments of its template in
    brackets: ``Cache<int>::get`` has ``Cache`` with ``<int>`` and ``get`` with none."""
    found: list[tuple[str, str]] = []
    word, arguments = "", ""
    angles = others = index = 0
    while index < len(name):
        operator = _OPERATOR.match(name, index) if name[index] == "o" and not angles else None
        if operator is not None:
            word += operator[0]
            index = operator.end()
            continue
        char = name[index]
        if name.startswith("::", index) and not angles and not others:
            found.append((word, arguments))
            word, arguments = "", ""
            index += 2
            continue
        others += (char in "([{") - (char in ")]}")
        if char == "<":
            angles += 1
        if angles:
            arguments += char
        else:
            word += char
        if char == ">" and angles and name[index - 1] != "-":
            angles -= 1
        index += 1
    return [*found, (word, arguments)]


def fits(shown: str, wanted: str) -> bool:
    """Whether ``wanted`` are the last parts of the display name ``shown``, both without spaces.
    Arguments of templates may be left out; behind the last part those of the part before may stand,
    as debuggers write Rust's."""
    has, wants = components(shown), components(wanted)
    if len(wants) > len(has):
        return False
    for at in range(1, len(wants) + 1):
        (word, arguments), (wanted_word, wanted_arguments) = has[-at], wants[-at]
        parent = has[-at - 1][1] if at < len(has) else ""
        if word != wanted_word:
            return False
        joined = f"{parent[:-1]},{arguments[1:]}" if parent and arguments else parent or arguments
        if wanted_arguments not in ("", arguments, joined):
            return False
    return True


def plain_rust(shown: str) -> str:
    """A display name of Rust's as debuggers write it: ``Store<u64>::put<u32>`` for
    ``<Store<u64>>::put::<u32>``, and the type's name for its implementation of a trait."""
    shown = shown.replace("::<", "<")
    if not shown.startswith("<"):
        return shown
    depth = 0
    end = within = None
    for index, char in enumerate(shown):
        depth += (char in "<([{") - (char in ")]}" or (char == ">" and shown[index - 1] != "-"))
        if depth == 1 and within is None and shown.startswith(" as ", index):
            within = index
        if depth == 0:
            end = index
            break
    if end is None:
        return shown
    return shown[1 : end if within is None else within] + shown[end + 1 :]


def rust_spelling(symbol: str) -> str | None:
    """What tells a Rust ``symbol`` from others: its name with all arguments, or with the hash that
    is in place of these; ``None`` for other languages'."""
    base = base_symbol(symbol)
    shown = demangle_rust(base)
    if shown is None:
        return None
    digest = _RUST_HASH.search(base)
    return plain_rust(shown) if digest is None else f"{plain_rust(shown)}::{digest[1]}"


def demangle_rust(symbol: str) -> str | None:
    """The path that a Rust ``symbol`` (without suffixes) stands for, v0 (RFC 2603) or legacy,
    without crates' disambiguators, the legacy hash and the types of constants: these tell a reader
    nothing and change with every build.

    ``None`` when it is not one of Rust's, or not well formed. The hash alone tells Rust's legacy
    names from C++'s.
    """
    if not is_rust(symbol):
        return None
    try:
        shown: str = pyderust.demangle(symbol)
    except ValueError:  # its own errors, and text that is no UTF-8
        return None
    return None if _CUT_SHORT.search(shown) else shown


def is_rust(symbol: str) -> bool:
    """Whether a ``symbol`` without suffixes looks like one of Rust's."""
    if symbol.startswith("_R"):
        return True
    return symbol.startswith("_ZN") and _RUST_HASH.search(symbol) is not None


def demangle_cxx(symbol: str) -> str | None:
    """The full C++ declaration of an Itanium ``symbol``.

    ``None`` when it is not one, or when no C++ runtime is there to tell. One of excessive length is
    without the arguments of templates: ``Cache<…>::get(int)``.
    """
    if not symbol.startswith("_Z"):
        return None
    demangler = _runtime()
    found = demangler(symbol) if demangler is not None else None
    return found if found is None or len(found) <= _LONGEST_SHOWN else _abridged(found)


def _abridged(declaration: str) -> str:
    kept: list[str] = []
    depth = end = 0
    for found in _BRACKET.finditer(declaration):
        if found[0] == "<":
            if not depth:
                kept.append(declaration[end : found.end()] + "…")
            depth += 1
        elif found[0] == ">" and depth:
            depth -= 1
            end = end if depth else found.start()
    return "".join(kept) + declaration[end:]


@functools.cache
def _runtime() -> Callable[[str], str | None] | None:
    for library in _RUNTIMES:
        try:
            return _bind(ctypes.CDLL(library), ctypes.CDLL(None))
        except (OSError, AttributeError):
            continue
    return None


def _bind(runtime: ctypes.CDLL, process: ctypes.CDLL) -> Callable[[str], str | None]:
    demangle, free = runtime.__cxa_demangle, process.free
    status_pointer = ctypes.POINTER(ctypes.c_int)
    demangle.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, status_pointer)
    demangle.restype = ctypes.c_void_p
    free.argtypes = (ctypes.c_void_p,)
    free.restype = None

    def call(symbol: str) -> str | None:
        try:
            encoded = symbol.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # no symbol of a file
            return None
        result = demangle(encoded, None, None, ctypes.byref(ctypes.c_int()))
        if not result:
            return None
        try:
            return ctypes.string_at(result).decode("utf-8", "replace")
        finally:
            free(result)

    return call


def without_signature(declaration: str) -> str:
    """The qualified name in a demangled C++ ``declaration``.

    Parameter list, return type and qualifiers go; template arguments and the parameters of
    enclosing functions (``f(int)::{lambda()#1}::operator()``) stay, as ``c++filt -p`` has it.
    """
    if _DATA.match(declaration):
        return declaration
    thunk = _THUNK.match(declaration)
    if thunk is not None:
        return thunk[0] + without_signature(declaration[thunk.end() :])
    text = _QUALIFIERS.sub("", declaration)
    element = _ARRAY.sub("", text)
    parameters = wrapped = _last_group(element)
    if parameters is None:
        return declaration
    if element == text:
        text = element = text[:parameters]
        wrapped = _last_group(text)
    if wrapped is not None and not element[:wrapped].endswith("operator"):
        pointer = _POINTER.match(element, wrapped)
        if pointer is not None:
            return without_signature(element[pointer.end() : -1])
    return text[_name_start(text) :]


def _last_group(text: str) -> int | None:
    if not text.endswith(")"):
        return None
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[index], 0)
        if depth == 0:
            return index
    return None


def _name_start(text: str) -> int:
    start = 0
    for index, is_operator in _outer_spaces(text):
        if is_operator:
            return start
        start = index + 1
    return start


def _outer_spaces(text: str) -> Iterator[tuple[int, bool]]:
    stack: list[str] = []
    index = 0
    while index < len(text):
        char = text[index]
        operator = _OPERATOR.match(text, index) if char == "o" else None
        if operator is not None:
            if operator["token"] is None and not stack:
                yield index, True
            index = operator.end()
            if text.startswith(" <", index):
                index += 1
            continue
        if char in "<([{":
            stack.append(char)
        elif text.startswith("->", index):
            index += 1
        elif char in _CLOSING and _CLOSING[char] in stack:
            if char != ">" or stack[-1] == "<":
                while stack.pop() != _CLOSING[char]:
                    pass
        elif char == " " and not stack:
            scope = _SCOPE_QUALIFIERS.match(text, index)
            if scope is not None:
                index = scope.end()
                continue
            yield index, False
        index += 1
