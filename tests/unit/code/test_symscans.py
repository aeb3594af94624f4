"""The functions' symbols of tables, found by C, against a plain reading of the same tables."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from darc.code.symscans import FunctionRows, Symbol, Table, is_cold_name

NAMES = [
    b"f",
    b"_f",
    b"__pfx_f",
    b"long_one",
    b"f@V1",
    b"f@@V2",
    b"f_end",
    b"g_start",
    b"f.cold",
    b"f.cold.1",
    b"f.colder",
    b"@",
    b"\xff",
]
STRINGS = b"\0" + b"\0".join(NAMES) + b"\0"
CODE = {1, 3}

ROWS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, len(STRINGS) + 3), st.just(0xFFFFFFFF)),
        st.tuples(st.sampled_from([0, 1, 2, 10]), st.integers(0, 2)),
        st.sampled_from([0, 1, 2, 3, 0xFFF1]),
        st.sampled_from([0, 16, 32, 48]),
        st.sampled_from([0, 16, 32, 1 << 40]),
    ),
    max_size=12,
)
TABLES = st.lists(
    st.tuples(
        ROWS, st.binary(max_size=30), st.booleans(), st.sampled_from([b"", b"\1", b"\0" * 23])
    ),
    max_size=3,
)


def made(rows: list[tuple[int, tuple[int, int], int, int, int]]) -> bytes:
    return b"".join(
        struct.pack("<IBBHQQ", name, kind | binding << 4, 0, section, address, size)
        for name, (kind, binding), section, address, size in rows
    )


def text_at(at: int) -> bytes:
    return STRINGS[at:].split(b"\0", 1)[0] if at < len(STRINGS) else b""


def read(tables: list[Table]) -> Iterator[tuple[tuple[object, ...], Symbol]]:
    """As in the rules of :class:`FunctionRows`, with the rank."""
    seen = set()
    for table in tables:
        for number, row in enumerate(
            struct.iter_unpack("<IBBHQQ", table.rows[: len(table.rows) // 24 * 24])
        ):
            name, info, _, section, address, size = row
            kind, whole = info & 15, text_at(name)
            text, mark, version = whole.partition(b"@")
            is_code = kind in (2, 10) or (kind == 0 and section in table.code and name)
            if not (is_code and section and address and text) or (text, address) in seen:
                continue
            seen.add((text, address))
            is_old = table.versions[2 * number + 1 : 2 * number + 2] >= b"\x80"
            is_old = is_old or (bool(mark) and not version.startswith(b"@"))
            rank = (
                *(kind == 0, kind == 0 and text.endswith((b"_end", b"_start"))),
                *(not table.is_dynamic, len(text) - len(text.lstrip(b"_"))),
                *({1: 0, 2: 1}.get(info >> 4, 2), len(text)),
            )
            shown = text.decode("utf-8", "surrogateescape")
            yield (
                (address, rank),
                Symbol(*(shown, address, size, kind == 10, table.is_dynamic, is_old, kind != 0)),
            )


def one_for_each(found: FunctionRows, expected: list[Symbol], bias: int) -> bool:
    """Whether of each second symbol one is found for each address, and all that are late."""
    numbers = range(0, len(expected), 2)
    firsts = found.firsts(numbers, bias)
    first: dict[int, int] = {}
    for number in numbers:
        if not expected[number].ifunc:
            first.setdefault(expected[number].address + bias, number)
    late = [number for number in numbers if expected[number].ifunc]
    return (list(firsts.addresses), list(firsts.numbers), list(firsts.late)) == (
        *(list(first), list(first.values())),
        late,
    )


@given(TABLES)
def test_each_name_is_there_once_and_the_best_is_first(
    drawn: list[tuple[list[tuple[int, tuple[int, int], int, int, int]], bytes, bool, bytes]],
) -> None:
    tables = [
        Table(made(rows) + rest, STRINGS, versions, CODE, is_dynamic)
        for rows, versions, is_dynamic, rest in drawn
    ]
    expected = [symbol for _, symbol in sorted(read(tables), key=lambda one: one[0])]
    found = FunctionRows(tables)
    assert list(found) == expected
    assert list(found.addresses) == [symbol.address for symbol in expected]
    for part in ("f", "_", "ng_o", "\udcff", "no such"):
        holding = found.holding(part.encode("utf-8", "surrogateescape"))
        assert [found[number] for number in holding] == [s for s in expected if part in s.name]
    assert [found[number] for number in found.whole()] == [
        s for s in expected if not is_cold_name(s.name)
    ]
    assert one_for_each(found, expected, 1 << 62)
    assert [found[number] for number in found.untyped()] == [s for s in expected if not s.has_type]
    places = {(symbol.name, symbol.address) for symbol in expected}
    left = [
        symbol
        for symbol in expected
        if not symbol.name.startswith("__pfx_")
        or not symbol.size
        or (symbol.name.removeprefix("__pfx_"), symbol.address + symbol.size) not in places
    ]
    assert list(FunctionRows(tables, [b"__pfx_"])) == left


def test_names_that_nothing_ends_are_read_to_the_end() -> None:
    rows = made([(1, (2, 1), 1, 16, 4), (5, (2, 1), 1, 32, 4)])
    (found,) = FunctionRows([Table(rows, b"\0abc", b"", CODE, False)])
    assert found.name == "abc"


def test_there_may_be_no_table() -> None:
    found = FunctionRows()
    assert len(found) == 0
    assert not list(found)
    assert not list(found.holding(b"f"))
