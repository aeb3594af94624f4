"""Which part of a variable an address in it means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.code.fields import field_at, is_waited_for
from darc.target.shapes import Field, Shape
from tests.fake_target import FakeShape

WORD = FakeShape("int", 4)
LOCK = FakeShape("pthread_mutex_t", 40, (Field("__data", 0, WORD),))
GUARD = FakeShape("std::mutex", 40, (Field("_M_mutex", 0, LOCK),))


def structure(*fields: tuple[str, Shape], name: str = "S") -> FakeShape:
    """One after the other."""
    placed, size = [], 0
    for called, shape in fields:
        placed.append(Field(called, size, shape))
        size += shape.size
    return FakeShape(name, size, tuple(placed))


def array(element: Shape, count: int) -> FakeShape:
    return FakeShape("", element.size * count, array_of=element)


STRIPE = structure(("name", array(FakeShape("char", 1), 8)), ("lock", LOCK))


@pytest.mark.parametrize(
    ("shape", "offset", "written"),
    [
        (LOCK, 0, ""),
        (LOCK, 8, ""),  # it is one thing, whatever it is made of
        (GUARD, 0, ""),
        (WORD, 0, ""),
        (WORD, 2, None),
        (array(LOCK, 4), 80, "[2]"),
        (
            structure(("sold", WORD), ("stripes", array(STRIPE, 4))),
            4 + 48 * 3 + 8,
            ".stripes[3].lock",
        ),
        (structure(("lock", LOCK), ("lines", WORD)), 0, ".lock"),
        (structure(("lines", WORD), ("", structure(("guard", GUARD)))), 4, ".guard"),  # a base
        (structure(("_M_elems", array(GUARD, 2)), name="std::array<std::mutex, 2>"), 40, "[1]"),
        (structure(("lines", WORD)), 4, None),  # beyond its end
        (FakeShape("opaque", 64), 8, None),
    ],
)
def test_what_is_written_behind_a_variables_name(
    shape: Shape, offset: int, written: str | None
) -> None:
    assert field_at(shape, offset) == written


def test_the_field_of_a_union_that_is_a_lock() -> None:
    raw = Field("raw", 0, array(FakeShape("char", 1), 64))
    other = structure(("count", FakeShape("long", 8)), ("lock", LOCK))
    union = FakeShape("U", 64, (Field("inner", 0, other), raw))
    assert field_at(union, 8) == ".inner.lock"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pthread_rwlock_t", True),
        ("sem_t", True),
        ("std::__1::recursive_mutex", True),
        ("std::counting_semaphore<8l>", True),
        ("std::sys::sync::mutex::futex::Mutex", True),
        ("lock_api::mutex::Mutex<parking_lot::raw_mutex::RawMutex, u32>", True),
        ("std::vector<std::mutex>", False),
        ("mutex", False),  # anybody's
        ("struct server", False),
        ("", False),
    ],
)
def test_what_threads_wait_for_as_a_whole(name: str, expected: bool) -> None:
    assert is_waited_for(name) == expected


def shapes() -> st.SearchStrategy[FakeShape]:
    leaves = st.sampled_from([WORD, LOCK, GUARD, FakeShape("char", 1)])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(array, inner, st.integers(1, 4)),
            st.lists(inner, min_size=1, max_size=4).map(
                lambda some: structure(*((f"m{i}", one) for i, one in enumerate(some)))
            ),
        ),
        max_leaves=12,
    )


def place_of(shape: Shape, written: str) -> int:
    """In bytes, what is written so."""
    rest = written.replace("[", ".[").split(".")[1:]
    offset = 0
    for part in rest:
        element = shape.element()
        if part.startswith("["):
            assert element is not None
            offset, shape = offset + int(part[1:-1]) * element.size, element
        else:
            (field,) = (one for one in shape.fields() if one.name == part)
            offset, shape = offset + field.offset, field.shape
    return offset


@given(shapes(), st.data())
def test_what_is_written_is_where_it_was(shape: FakeShape, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, shape.size - 1))
    written = field_at(shape, offset)
    if written is not None:
        assert 0 <= offset - place_of(shape, written) < 40


@given(shapes())
def test_the_begin_of_a_variable_always_has_a_name(shape: FakeShape) -> None:
    assert field_at(shape, 0) is not None
