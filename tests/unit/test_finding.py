"""Which symbols a name stands for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from darc.app import commands
from darc.app.app import App
from darc.code.demangle import without_arguments
from darc.code.program import Program
from darc.code.spelling import find_symbols, symbol_spelling
from darc.code.symbols import FunctionSymbols, Symbol
from darc.model.errors import NotFoundError, UnsupportedError
from tests.fake_target import FakeTarget, FakeWorld

GET_INT = "_ZN5CacheIiE3getIcEEvT_"  # void Cache<int>::get<char>(char)
GET_LONG = "_ZN5CacheIlE3getIcEEvT_"
TAGGED = "_ZN5Store4nameB5cxx11Ev"  # Store::name[abi:cxx11]()
OVERLOADS = ("_ZN5Store3putEi", "_ZN5Store3putEl")


class Named(list[Symbol]):
    """A file's symbols, as :class:`darc.code.symbols.FunctionSymbols` has them."""

    def may_have(self, function: str) -> bool:
        return any(function in symbol.name for symbol in self)


def found(name: str, *symbols: str) -> list[str]:
    named = Named([Symbol(s, 16 * n, 16, False, True, ()) for n, s in enumerate(symbols, 1)])
    files: list[tuple[FunctionSymbols, int]] = [(named, 0)]  # type: ignore[list-item]
    return [symbols[address // 16 - 1] for address in sorted(find_symbols(files, name))]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Cache<int>::get<char>", [GET_INT]),
        ("Cache<int>::get< char >", [GET_INT]),
        ("Cache::get", [GET_INT, GET_LONG]),
        ("get", [GET_INT, GET_LONG]),
        ("Cache<long>::get", [GET_LONG]),
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


def test_what_is_a_clone_as_a_whole_is_the_function() -> None:
    """g++ makes one of an instance that it knows all calls of. A clone beside its function is its
    callers'."""
    serve = [f"_ZN5store5serveILj{number}EEEjj" for number in (0, 1, 3)]
    clones = [serve[0], f"{serve[1]}.isra.0", f"{serve[2]}.isra.0"]
    assert found("serve", *clones) == clones
    assert found("serve<3>", *clones) == [clones[2]] or found("serve<3u>", *clones) == [clones[2]]
    assert found("work", "work", "work.part.0", "work.isra.0") == ["work"]
    assert found("work", "work.constprop.0") == ["work.constprop.0"]
    assert found("work.part.0", "work", "work.part.0") == ["work.part.0"]


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
    """A debuggee that finds no function, and never hears of code that is loaded later."""

    is_readable_while_it_runs = False
    tells_of_files = False

    def check_supported(self) -> None:
        pass

    def watch_over(self) -> Callable[[bool], None]:
        return lambda _is_there: None

    def program(self) -> Program:
        return Program(FakeTarget(), Path("/"), [])


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
    world.target.symbols.hosts = {
        "kmalloc": [f"f{n}" for n in range(40)],
        "rcu_read_lock": ["path_init"],
    }
    app = App(world.target, lambda _: Kernel())  # type: ignore[arg-type, return-value]
    with pytest.raises(NotFoundError) as error:
        commands.run(app, "start", name)
    assert str(error.value) == told
    assert not app.is_busy


@pytest.mark.parametrize("line", ["walk", "walk vfs_read", "why"])
def test_what_is_for_processes_tells_what_to_type_in_a_kernel(line: str) -> None:
    world = FakeWorld()
    world.start()
    app = App(world.target, lambda _: Kernel())  # type: ignore[arg-type, return-value]
    command, _, arguments = line.partition(" ")
    with pytest.raises(UnsupportedError, match=f"'darc {command}' is for processes: .*'darc prof"):
        commands.run(app, command, arguments)
    assert not app.is_busy


RUST_U32 = "_RINvMNtCsbFYJioi4cCO_2rs2rsINtB3_5StoreyE3putmEB5_"
RUST_F32 = "_RINvMNtCsbFYJioi4cCO_2rs2rsINtB3_5StoredE3putfEB5_"
RUST_SPEAK = "_RNvXs_NtCsbFYJioi4cCO_2rs2rsINtB4_5StoredENtB4_5Speak5speakB6_"
RUST_OLD = (
    "_ZN2rs2rs14Store$LT$T$GT$4take17h97f691b5e4358b6dE",
    "_ZN2rs2rs14Store$LT$T$GT$4take17h9cd99c00ce52d50eE",
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rs::Store<u64>::put<u32>", [RUST_U32]),
        ("rs::rs::Store<u64>::put<u64, u32>", [RUST_U32]),
        ("Store::put<f32>", [RUST_F32]),
        ("Store<u64>::put", [RUST_U32]),
        ("rs::Store::put", [RUST_U32, RUST_F32]),
        ("<rs::rs::Store<u64>>::put::<u32>", [RUST_U32]),
        ("Store::put<char>", []),
        ("rs::Store<f64>::speak", [RUST_SPEAK]),
        ("Store::take", list(RUST_OLD)),
        ("rs::Store<T>::take::h9cd99c00ce52d50e", [RUST_OLD[1]]),
        ("Cache::get<char>", [GET_INT]),
    ],
)
def test_names_in_rust(name: str, expected: list[str]) -> None:
    assert found(name, RUST_U32, RUST_F32, RUST_SPEAK, *RUST_OLD, GET_INT) == expected


@pytest.mark.parametrize("symbol", [RUST_U32, RUST_F32, RUST_SPEAK, *RUST_OLD])
def test_what_is_suggested_is_found(symbol: str) -> None:
    spelling = symbol_spelling(symbol)
    assert "$" not in spelling
    assert found(spelling, RUST_U32, RUST_F32, RUST_SPEAK, *RUST_OLD) == [symbol]
