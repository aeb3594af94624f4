"""How the calls of the functions of a set come in time."""

from __future__ import annotations

from darc.analyses.setlapse import SetLapse
from tests.unit.sets import counts, function

F, G = function("f", 1), function("g", 2)


def test_without_intervals_slices_alone_are_marked() -> None:
    lapse = SetLapse([F], None)
    assert (lapse.next_interval, lapse.next_mark) == (None, 0.02)
    lapse.mark(0.01, {F: counts({5: 1})})  # it is not due
    assert lapse.next_mark == 0.02
    lapse.mark(0.03, {F: counts({5: 3})})
    assert lapse.next_mark == 0.05
    lapse.mark(0.06, {F: counts({5: 3, 6: 2})})
    assert lapse.slices_of(F, {5: 3, 6: 4}) == ({5: 3}, {6: 4})
    assert lapse.intervals_of(F) == ()


def test_a_reading_that_comes_late_ends_all_intervals_that_are_over() -> None:
    lapse = SetLapse([F, G], 1.0)
    assert lapse.next_interval == 1.0
    lapse.mark(2.5, {F: counts({5: 3})})
    assert lapse.next_interval == 3.0
    lapse.mark(3.0, {F: counts({5: 4}), G: counts({7: 1})})
    assert lapse.intervals_of(F) == ({5: 3}, {}, {5: 1})
    assert lapse.intervals_of(G) == ({}, {}, {7: 1})


def test_what_goes_out_keeps_the_slices_that_it_had() -> None:
    lapse = SetLapse([F], None)
    lapse.mark(0.03, {F: counts({5: 3})})
    lapse.mark(0.06, {F: counts({5: 5})})
    lapse.goes_out(F, {5: 6})
    before = lapse.slices_of(F, {5: 6})
    for turn in range(100):
        lapse.mark(1.0 + turn, {F: counts({5: 6})})
    assert before == lapse.slices_of(F, {5: 6}) == ({5: 3}, {5: 3})


def test_a_function_that_is_learned_later_has_slices_from_then_on() -> None:
    lapse = SetLapse([F], None)
    lapse.mark(0.03, {F: counts({5: 3})})
    assert lapse.slices_of(G, {5: 1}) == ()
