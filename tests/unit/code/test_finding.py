"""Which symbols a name stands for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from darc.app import commands
from darc.app.app import App
from darc.code import spelling
from darc.code.demangle import base_symbol, demangle_cxx, display_name, without_arguments
from darc.code.lookup import Lookup
from darc.code.modules import load_image
from darc.code.program import Program
from darc.code.spelling import (
    Hallmarks,
    ambiguous,
    find_symbols,
    near_names,
    not_found,
    symbol_spelling,
)
from darc.code.symbols import FunctionSymbols
from darc.code.symscans import Symbol
from darc.model.errors import AmbiguousError, NotFoundError, UnsupportedError
from darc.target.target import Target
from kgdb.debuggee import KERNEL
from tests.fake_target import FakeTarget, FakeWorld

GET_INT = "_ZN5CacheIiE3getIcEEvT_"  # void Cache<int>::get<char>(char)
GET_LONG = "_ZN5CacheIlE3getIcEEvT_"
TAGGED = "_ZN5Store4nameB5cxx11Ev"  # Store::name[abi:cxx11]()
OVERLOADS = ("_ZN5Store3putEi", "_ZN5Store3putEl")


class Named(list[Symbol]):
    """A file's symbols, as :class:`darc.code.symbols.FunctionSymbols` has them."""

    def may_have(self, function: str) -> bool:
        return any(function in symbol.name for symbol in self)

    def holding(self, part: str) -> list[Symbol]:
        return [symbol for symbol in self if part in symbol.name]


def found(name: str, *symbols: str) -> list[str]:
    named = Named(
        [
            Symbol(name=s, address=16 * n, size=16, ifunc=False, exported=True)
            for n, s in enumerate(symbols, 1)
        ]
    )
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


LAYERS = [
    f"_ZN5LayerILi{layer}EE5visitI4NodeILi{node}EEEEvRKT_"
    for layer in range(60)
    for node in range(60)
]
"""``void Layer<layer>::visit<Node<node> >(Node<node> const&)``"""


@pytest.mark.parametrize(
    ("name", "expected", "most"),
    [
        ("Layer<2>::visit", 60, 120),  # and those of Node<2>
        ("Layer<2>::visit<Node<7> >", 1, 3),
        ("void Layer<2>::visit<Node<7> >(Node<7> const&)", 1, 3),
        ("Layer<60>::visit", 0, 0),
        ("Layer<2>::visited", 0, 0),
        ("visit", 1000, 1000),
        ("Layer::visit", 1000, 1000),
    ],
)
def test_few_of_many_symbols_are_demangled(
    name: str, expected: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of hundreds of thousands that are alike to demangle each takes half a minute."""
    looked_at: list[str] = []
    match = spelling._match

    def counted(raw: str, *rest: str) -> int | None:
        looked_at.append(raw)
        return match(raw, *rest)

    monkeypatch.setattr(spelling, "_match", counted)
    assert len(found(name, *LAYERS)) == expected
    assert len(looked_at) <= most


OPERATORS = {
    "operator new(unsigned long)": "_Znwm",
    "operator new[]": "_Znam",
    "operator delete [] (void*)": "_ZdaPv",
    "Op::operator new": "_ZN2OpnwEm",
    "Op::operator()": "_ZNK2OpclEi",
    "operator[]": "_ZN2OpixEi",
    "Op::operator<<": "_ZN2OplsEi",
    "Op::operator< <int>": "_ZNK2OpltIiEEbT_",
    "operator->*": "_ZN2OppmEi",
    "Op::operator,": "_ZN2OpcmEi",
    "Op::operator int*": "_ZN2OpcvPiEv",
    "Class<void (*)(int, char)>::operator bool": "_ZNK2ns5ClassIPFvicEEcvbEv",
    'operator"" _km': "_Zli3_kme",
    "operator::run": "_ZN8operator3runEv",
    "operator_table": "operator_table",
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_found_by_how_symbols_call_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 70,000 symbols none but those with that in them is demangled."""
    looked_at: list[str] = []
    match = spelling._match

    def counted(raw: str, *rest: str) -> int | None:
        looked_at.append(raw)
        return match(raw, *rest)

    monkeypatch.setattr(spelling, "_match", counted)
    assert OPERATORS[name] in found(name, *OPERATORS.values(), *LAYERS)
    assert len(looked_at) <= 8, looked_at


def test_a_long_search_tells_how_far_it_is() -> None:
    told: list[str] = []
    named = Named(
        [
            Symbol(name=s, address=16 * n, size=16, ifunc=False, exported=True)
            for n, s in enumerate(LAYERS, 1)
        ]
    )
    find_symbols([(cast(FunctionSymbols, named), 0)], "visit", told.append)
    assert told == ["looks for visit among 1,000 symbols like it"]


def test_few_of_the_functions_that_a_name_may_mean_are_spelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To spell one, all symbols are looked at."""
    spelled: list[int] = []

    def note(_: Lookup, address: int) -> str:
        spelled.append(address)
        return f"f{address}"

    lookup = Lookup(cast(Program, None), cast(Target, None))
    monkeypatch.setattr(Lookup, "_spelling", note)
    monkeypatch.setattr(Lookup, "_real_entry", lambda _, address: address)
    with pytest.raises(AmbiguousError, match=r"f names 400 functions: .* and 392 more"):
        lookup._one("f", set(range(400)), hint=True)
    assert spelled == list(range(8))


@pytest.mark.parametrize("whole", ["visit", "_Z5visiti", "_ZL5visiti"])
def test_a_whole_name_is_found_behind_many_parts(whole: str) -> None:
    assert found("visit", *LAYERS, whole) == [whole]
    assert found("Layer::visit", *LAYERS, "_ZN5Layer5visitEi") == ["_ZN5Layer5visitEi"]


@pytest.mark.parametrize("library", ["libstdc++.so.6", "libboost_regex.so.1.74.0"])
def test_a_symbol_has_what_its_names_need(library: str) -> None:
    """Whatever is shown of it may be typed."""
    path = Path("/usr/lib/x86_64-linux-gnu", library)
    if not path.exists():
        pytest.skip(f"there is no {path}")
    for raw in {symbol.name for symbol in load_image(path).symbols}:
        for name in {display_name(raw), demangle_cxx(base_symbol(raw)), symbol_spelling(raw)}:
            assert name is None or Hallmarks(name).may_be_in(raw), name


@pytest.mark.parametrize(
    "raw",
    [
        "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
        "_ZN49_$LT$fi..Foo$u20$as$u20$core..clone..Clone$GT$5clone17h0123456789abcdefE",
        "_ZN2fi3foo28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
        "_RNvMs_Cs1234_7mycrateINtB4_3FooKj10_E3bar",  # mycrate::Foo<16>::bar
        "_ZN1AIL1E12EE1fEv",  # A<(E1)2>::f()
        "_ZN1AILin2EE1fEv",  # A<-2>::f()
        "_ZN1AILb1EE1fEPA4_i",  # A<true>::f(int (*) [4])
        "_ZN5StoreD1Ev",
        "_ZN5StorecvbEv",  # Store::operator bool()
        "_Zli3_kby",  # operator""_kb
    ],
)
def test_what_languages_write_otherwise_is_not_needed(raw: str) -> None:
    for name in {display_name(raw), demangle_cxx(base_symbol(raw)), symbol_spelling(raw)}:
        assert name is None or Hallmarks(name).may_be_in(raw), name


def test_an_ambiguous_name_is_told_with_some_of_what_it_means() -> None:
    assert ambiguous("f", ["b::f", "a::f"]) == "f names 2 functions: take one of a::f, b::f"
    few = ambiguous("f", [f"{n}::f" for n in range(8)], 90)
    assert few.startswith("f names 90 functions: take one of 0::f, ")
    assert few.endswith("7::f and 82 more: 'darc profile f' times them all")
    assert "f names 1,000 functions or more, among them " in ambiguous("f", ["a::f"], 1000)


def test_near_names_of_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all of them are demangled for a name that is not there."""
    shown: list[str] = []

    def note(raw: str) -> str:
        shown.append(raw)
        return raw

    monkeypatch.setattr(spelling, "display_name", note)
    names = [f"_ZN5Paint{number}Ev" for number in range(20000)]
    near_names("Layer::visit", [*names, *LAYERS])
    assert len(shown) <= 5000
    assert set(LAYERS) <= set(shown)


@pytest.mark.parametrize(
    ("own", "near"),
    [(["handle"], " (near names: handle)"), (["other"], " (near names: handler)")],
)
def test_near_names_are_those_of_the_first_place_that_has_some(own: list[str], near: str) -> None:
    told = not_found("handel", own, ["handler"])
    assert told == f"no function is called handel{near}"


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
    nature = KERNEL
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


@pytest.mark.parametrize("line", ["walk", "walk vfs_read", "why", "catch vfs_read --above 4ms"])
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
