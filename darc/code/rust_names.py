"""Rust symbol names, v0 (RFC 2603) and legacy, as ``rustc-demangle``'s ``{:#}`` prints them.

Crate disambiguators, the legacy hash and the types of constants are left out: they tell a reader
nothing and change with every build.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_BASIC_TYPES = {
    **{"a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32", "h": "u8"},
    **{"i": "isize", "j": "usize", "l": "i32", "m": "u32", "n": "i128", "o": "u128", "s": "i16"},
    **{"t": "u16", "u": "()", "v": "...", "x": "i64", "y": "u64", "z": "!", "p": "_"},
}
_PREFIXES = {"R": "&", "Q": "&mut ", "P": "*const ", "O": "*mut "}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MAX_DEPTH = 200
_MAX_LENGTH = 20_000
_ESCAPES = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}


def demangle_rust(symbol: str) -> str | None:
    """The path that a Rust ``symbol`` (without suffixes) stands for.

    ``None`` when it is not one of Rust's, or not well formed.
    """
    try:
        if symbol.startswith("_R"):
            return _V0(symbol[2:]).demangle()
        if symbol.startswith("_ZN"):
            return _legacy(symbol[3:])
    except (ValueError, IndexError, OverflowError):
        pass
    return None


def _legacy(text: str) -> str | None:
    parts: list[str] = []
    while text[0] != "E":
        match = re.match(r"[1-9][0-9]*", text)
        if match is None:
            return None
        length = int(match[0])
        parts.append(text[match.end() : match.end() + length])
        text = text[match.end() + length :]
    if text != "E" or not re.fullmatch("h[0-9a-f]{16}", parts.pop()):
        return None
    return "::".join(_unescape(part) for part in parts)


def _unescape(part: str) -> str:
    if part.startswith("_$"):
        part = part[1:]
    part = re.sub(r"\$u([0-9a-f]{1,6})\$", lambda match: chr(int(match[1], 16)), part)
    part = re.sub(r"\$([A-Z]{1,2})\$", lambda match: _ESCAPES.get(match[1], match[0]), part)
    return part.replace("..", "::")


class _V0:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self.length = 0
        self.silent = 0
        self.depth = 0
        self.lifetimes = 0

    def demangle(self) -> str:
        self.path(in_value=True)
        return "".join(self.out)

    def emit(self, text: str) -> None:
        if not self.silent:
            self.out.append(text)
            self.length += len(text)
            if self.length > _MAX_LENGTH:
                raise ValueError("too long")

    def next(self) -> str:
        self.at += 1
        return self.text[self.at - 1]

    def eat(self, tag: str) -> bool:
        found = self.text.startswith(tag, self.at)
        self.at += found
        return found

    def base62(self) -> int:
        if self.eat("_"):
            return 0
        value = 0
        while not self.eat("_"):
            value = value * 62 + _DIGITS.index(self.next())
        return value + 1

    def optional62(self, tag: str) -> int:
        return self.base62() + 1 if self.eat(tag) else 0

    def identifier(self) -> str:
        punycode = self.eat("u")
        match = re.compile("0|[1-9][0-9]*").match(self.text, self.at)
        if match is None:
            raise ValueError("no length")
        self.at = match.end()
        self.eat("_")
        name = self.text[self.at : self.at + int(match[0])]
        self.at += int(match[0])
        if self.at > len(self.text):
            raise ValueError("truncated")
        if punycode:
            plain, _, coded = name.rpartition("_")
            return f"{plain}-{coded}".encode().decode("punycode") if plain else _punycode(coded)
        return name

    def backref(self, read: Callable[[], None]) -> None:
        start = self.at - 1
        target = self.base62()
        if target >= start:
            raise ValueError("forward reference")
        if not self.silent:
            after, self.at = self.at, target
            self.nested(read)
            self.at = after

    def nested(self, read: Callable[[], None]) -> None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ValueError("too deep")
        read()
        self.depth -= 1

    def until_end(self, read: Callable[[], None], separator: str) -> int:
        count = 0
        while not self.eat("E"):
            if count:
                self.emit(separator)
            read()
            count += 1
        return count

    def path(self, in_value: bool) -> None:
        self.nested(lambda: self._path(in_value))

    def _path(self, in_value: bool) -> None:
        tag = self.next()
        if tag == "C":
            self.optional62("s")
            self.emit(self.identifier())
        elif tag == "N":
            self._nested_path(in_value)
        elif tag in "MXY":
            if tag != "Y":
                self.optional62("s")
                self.silent += 1
                self.path(in_value=False)
                self.silent -= 1
            self.emit("<")
            self.type()
            if tag != "M":
                self.emit(" as ")
                self.path(in_value=False)
            self.emit(">")
        elif tag == "I":
            self.path(in_value)
            self.emit("::<" if in_value else "<")
            self.until_end(self.generic_argument, ", ")
            self.emit(">")
        elif tag == "B":
            self.backref(lambda: self.path(in_value))
        else:
            raise ValueError(tag)

    def _nested_path(self, in_value: bool) -> None:
        namespace = self.next()
        self.path(in_value)
        number = self.optional62("s")
        name = self.identifier()
        if namespace.isupper():
            kind = {"C": "closure", "S": "shim"}.get(namespace, namespace)
            self.emit(f"::{{{kind}{':' if name else ''}{name}#{number}}}")
        elif name:
            self.emit(f"::{name}")

    def generic_argument(self) -> None:
        if self.eat("L"):
            self.lifetime(self.base62())
        elif self.eat("K"):
            self.constant()
        else:
            self.type()

    def lifetime(self, index: int) -> None:
        if index == 0:
            self.emit("'_")
            return
        depth = self.lifetimes - index
        if depth < 0:
            raise ValueError("lifetime without binder")
        self.emit("'" + (chr(ord("a") + depth) if depth < 26 else f"_{depth}"))

    def type(self) -> None:
        self.nested(self._type)

    def _type(self) -> None:
        tag = self.next()
        if tag in _BASIC_TYPES:
            self.emit(_BASIC_TYPES[tag])
        elif tag in _PREFIXES:
            self.emit("&" if tag in "RQ" else "")
            if tag in "RQ" and self.eat("L") and (index := self.base62()):
                self.lifetime(index)
                self.emit(" ")
            self.emit(_PREFIXES[tag].removeprefix("&"))
            self.type()
        elif tag in "AS":
            self.emit("[")
            self.type()
            if tag == "A":
                self.emit("; ")
                self.constant()
            self.emit("]")
        elif tag == "T":
            self.emit("(")
            self.emit(",)" if self.until_end(self.type, ", ") == 1 else ")")
        elif tag == "F":
            self.bound(self._function)
        elif tag == "D":
            self.emit("dyn ")
            self.bound(lambda: self.until_end(self._trait, " + "))
            if not self.eat("L"):
                raise ValueError("no lifetime")
            if index := self.base62():
                self.emit(" + ")
                self.lifetime(index)
        elif tag == "B":
            self.backref(self.type)
        else:
            self.at -= 1
            self.path(in_value=False)

    def bound(self, read: Callable[[], object]) -> None:
        count = self.optional62("G")
        if count > _MAX_DEPTH:
            raise ValueError("too many lifetimes")
        if count:
            self.emit("for<")
            for number in range(count):
                self.lifetimes += 1
                self.emit(", " if number else "")
                self.lifetime(1)
            self.emit("> ")
        read()
        self.lifetimes -= count

    def _function(self) -> None:
        self.emit("unsafe " if self.eat("U") else "")
        if self.eat("K"):
            abi = "C" if self.eat("C") else self.identifier().replace("_", "-")
            self.emit(f'extern "{abi}" ')
        self.emit("fn(")
        self.until_end(self.type, ", ")
        self.emit(")")
        if not self.eat("u"):
            self.emit(" -> ")
            self.type()

    def _trait(self) -> None:
        is_open = self._open_path()
        while self.eat("p"):
            self.emit(", " if is_open else "<")
            is_open = True
            self.emit(f"{self.identifier()} = ")
            self.type()
        self.emit(">" if is_open else "")

    def _open_path(self) -> bool:
        if self.eat("B"):
            opened: list[bool] = []
            self.backref(lambda: opened.append(self._open_path()))
            return bool(opened and opened[0])
        if not self.eat("I"):
            self.path(in_value=False)
            return False
        self.path(in_value=False)
        self.emit("<")
        self.until_end(self.generic_argument, ", ")
        return True

    def constant(self) -> None:
        self.nested(self._constant)

    def _constant(self) -> None:
        tag = self.next()
        if tag == "B":
            self.backref(self.constant)
            return
        if tag == "p":
            self.emit("_")
            return
        if tag not in "ablhmnosityjxc":
            raise ValueError(tag)
        sign = "-" if self.eat("n") else ""
        end = self.text.index("_", self.at)
        value = int(self.text[self.at : end] or "0", 16)
        self.at = end + 1
        if tag == "b":
            self.emit(("false", "true")[value])
        elif tag == "c":
            self.emit(
                "'" + {"'": "\\'", "\\": "\\\\", "\n": "\\n"}.get(chr(value), chr(value)) + "'"
            )
        else:
            self.emit(f"{sign}{value}")


def _punycode(coded: str) -> str:
    return coded.encode().decode("punycode")
