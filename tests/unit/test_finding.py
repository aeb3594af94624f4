"""Which symbols a name stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from darc.app import App
from darc.code.elf import Image, Symbol
from darc.code.program import find_symbols
from darc.demangle import without_arguments
from darc.errors import NotFoundError
from tests.fake_target import FakeWorld

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


class Kernel:
    """A ground that finds no function, and never hears of code that is loaded later."""

    tells_of_files = False

    def check_supported(self) -> None:
        pass

    def watch_over(self) -> Callable[[], None]:
        return lambda: None

    def program(self) -> Kernel:
        return self

    def find(self, spec: str) -> int:
        raise NotFoundError(f"no function is called {spec}")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("kmalloc", "kmalloc was inlined into f0, f1, f2, f3, f4 and 35 more: analyse these"),
        ("rcu_read_lock", "rcu_read_lock was inlined into path_init: analyse that"),
        ("no_such_function", "no function is called no_such_function"),
    ],
)
def test_nothing_is_waited_for_in_a_kernel(name: str, told: str) -> None:
    world = FakeWorld()
    world.start()
    world.target.hosts = {"kmalloc": [f"f{n}" for n in range(40)], "rcu_read_lock": ["path_init"]}
    app = App(world.target, lambda _: Kernel())  # type: ignore[arg-type, return-value]
    with pytest.raises(NotFoundError) as error:
        app.start(name, {})
    assert str(error.value) == told
    assert not app.is_busy
