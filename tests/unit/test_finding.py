"""Which symbols a name stands for."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from darc.code.elf import Image, Symbol
from darc.code.program import find_symbols
from darc.demangle import without_arguments

GET_INT = "_ZN5CacheIiE3getIcEEvT_"  # void Cache<int>::get<char>(char)
GET_LONG = "_ZN5CacheIlE3getIcEEvT_"
TAGGED = "_ZN5Store4nameB5cxx11Ev"  # Store::name[abi:cxx11]()
OVERLOADS = ("_ZN5Store3putEi", "_ZN5Store3putEl")


@dataclass(frozen=True)
class Named:
    """An image of which only the symbols matter."""

    symbols: list[Symbol]

    def may_name(self, part: str) -> bool:
        return any(part in symbol.name for symbol in self.symbols)


def found(name: str, *symbols: str) -> list[str]:
    image = Named([Symbol(s, 16 * n, 16, False, True, ()) for n, s in enumerate(symbols, 1)])
    images: list[tuple[Image, int]] = [(image, 0)]  # type: ignore[list-item]
    return [symbols[address // 16 - 1] for address in sorted(find_symbols(images, name))]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Cache<int>::get<char>", [GET_INT]),
        ("Cache<int>::get< char >", [GET_INT]),
        ("Cache::get", [GET_INT, GET_LONG]),
        ("get", [GET_INT, GET_LONG]),
        ("Cache<long>::get", []),
        ("Store::name", [TAGGED]),
        ("Store::name[abi:cxx11]", [TAGGED]),
        ("name", [TAGGED]),
        ("Store::put", list(OVERLOADS)),
        ("Store::put(int)", [OVERLOADS[0]]),
        ("put(long)", [OVERLOADS[1]]),
        ("ut", []),
    ],
)
def test_names(name: str, expected: list[str]) -> None:
    assert found(name, GET_INT, GET_LONG, TAGGED, *OVERLOADS) == expected


def test_a_name_as_it_stands_wins_over_templates() -> None:
    assert found("get", GET_INT, "get") == ["get"]


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("rs::Store::put<u64>", "rs::Store::put"),
        ("Cache<T>::get::<char>", "Cache::get"),
        ("std::map<int, std::pair<a, b> >::operator[]", "std::map::operator[]"),
        ("ns::operator<", "ns::operator<"),
        ("ns::operator->", "ns::operator->"),
        ("broken<", "broken<"),
        ("f", "f"),
    ],
)
def test_names_without_arguments(name: str, plain: str) -> None:
    assert without_arguments(name) == plain
