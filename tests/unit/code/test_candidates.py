"""Functions by the million, of which few are made, against a plain reading of all of them."""

from __future__ import annotations

from array import array
from collections import Counter
from types import SimpleNamespace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from darc.code.callers import most_called
from darc.code.candidates import Candidates, FilePart, Picked
from darc.code.patterns import Chosen
from darc.code.program import Program
from darc.model.ftree import Function
from darc.model.leftout import LeftOut, too_many
from darc.model.leftoutmany import LeftOutMany
from tests.fake_symbols import FakeSymbols

SIZE = 64


def function(address: int, module: str, name: str = "f") -> Function:
    return Function(name=name, symbol=name, module=module, address=address, offset=address)


FUNCTIONS = st.lists(
    st.builds(function, st.integers(0, 40), st.sampled_from("ab"), st.sampled_from("fgh")),
    max_size=12,
)


@given(st.lists(FUNCTIONS, max_size=4))
def test_where_two_are_at_an_address_the_one_that_comes_first_is_there(
    some: list[list[Function]],
) -> None:
    known: dict[int, Function] = {}
    for one in some:
        for two in one:
            known.setdefault(two.address, two)
    plain = [known[address] for address in sorted(known)]
    joined = Candidates.joined([Candidates.of(one) for one in some])
    assert list(joined) == plain
    assert [joined[number] for number in range(len(joined))] == plain
    assert list(joined[1:3]) == plain[1:3]
    assert list(joined.addresses) == [one.address for one in plain]
    places = {one.address: number for number, one in enumerate(plain)}
    assert [joined.number_of(at) for at in range(42)] == [places.get(at) for at in range(42)]
    assert list(Picked(joined, range(len(joined))[::-1])) == plain[::-1]


def test_none_is_made_before_it_is_asked_for() -> None:
    made: list[int] = []

    def make(number: int) -> Function:
        made.append(number)
        return function(number, "a")

    some = Candidates([FilePart("a", range(1000), make)])
    rest = LeftOutMany((Picked(some, array("I", range(10, 1000))), too_many(9)))
    assert len(rest) == 990
    assert rest.reasons == Counter({too_many(9): 990})
    assert made == []
    assert rest[5] == (function(15, "a"), too_many(9))
    assert made == [15]


@given(
    st.lists(
        st.tuples(
            st.builds(function, st.just(1), st.just("a")),
            st.sampled_from([LeftOut("x"), LeftOut("y"), too_many(9)]),
        )
    )
)
def test_what_is_left_out_is_what_was_said(pairs: list[tuple[Function, LeftOut]]) -> None:
    found = LeftOutMany.of(iter(pairs))
    assert found == tuple(pairs)
    assert [found[number] for number in range(len(pairs))] == pairs
    assert list((found + pairs)[2:]) == [*pairs, *pairs][2:]
    plain = Counter(why for _, why in pairs)
    assert found.reasons.most_common() == plain.most_common()


CALLS = st.lists(st.integers(0, SIZE - 1), max_size=40)


@given(st.sets(st.integers(0, SIZE - 1)), CALLS, st.integers(1, 10), st.integers(0, 2 * SIZE))
def test_the_most_called_come_first(
    addresses: set[int], calls: list[int], most: int, runtime_from: int
) -> None:
    """Those of a language's runtime, from an address on, come last."""
    code = b"".join(
        b"\xe8" + (to - 5 * (number + 1) & 0xFFFFFFFF).to_bytes(4, "little")
        for number, to in enumerate(calls)
    )
    image = SimpleNamespace(
        symbols=FakeSymbols([]),
        frames=SimpleNamespace(starts=[]),
        segments=(SimpleNamespace(address=0, size=len(code), executable=True),),
        loaded=lambda address, size: code[address : address + size],
    )
    module = SimpleNamespace(start=0, end=SIZE, bias=0, image=image, name="a")
    program = SimpleNamespace(
        module_at=lambda _: module,
        names=SimpleNamespace(function_at=lambda at: function(at, "a", "named")),
    )
    plain = [function(at, "libc.so.6" if at >= runtime_from else "a") for at in sorted(addresses)]
    found = most_called(cast("Program", program), Chosen(plain), most)
    if len(plain) > most:
        led = Counter(
            at + 5 + int.from_bytes(code[at + 1 : at + 5], "little", signed=True)
            for at in range(len(code) - 4)
            if code[at] == 0xE8
        )
        has_own = any(one.module == "a" for one in plain)
        plain.sort(key=lambda f: (has_own and f.module != "a", -led[f.address], f.address))
    assert [one.address for one in found.functions] == [one.address for one in plain[:most]]
    assert found.left_out == tuple((one, too_many(most)) for one in plain[most:])
