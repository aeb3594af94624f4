"""Two sets beside each other: what is dropped, what is told, what is an alarm."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import sets as runs
from darc.model.comparison import ChangeVerdict
from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet
from darc.model.setdiff import Fate, Method, difference, rate
from darc.views import setdiff as view
from darc.views.jsonvalues import difference_to_json
from darc.views.style import Style
from tests.unit.samples import HZ
from tests.unit.setrows import row


def known(*rows: FunctionProfile, seconds: float = 5.0) -> FunctionSet:
    return FunctionSet(rows, seconds=seconds)


QUICK, SLOW = {10: 100_000}, {10: 100_000, 20: 2000}
PROFILES = st.dictionaries(st.integers(0, 40), st.integers(20, 10**6), min_size=1, max_size=8)
SETS = st.lists(PROFILES, min_size=1, max_size=5).map(
    lambda found: known(*(row(f"f{n}", bins) for n, bins in enumerate(found)))
)
METHODS = st.sampled_from(Method)


@given(SETS, METHODS)
def test_a_set_and_itself_are_the_same(one: FunctionSet, method: Method) -> None:
    found = difference(one, one, method)
    assert (found.rows, found.alarms) == ((), 0)
    assert found.small + found.similar == len(one.rows)
    assert (found.only_before, found.only_now) == ((), ())


@given(SETS, SETS, METHODS)
def test_there_and_back_are_the_same(a: FunctionSet, b: FunctionSet, method: Method) -> None:
    there, back = difference(a, b, method), difference(b, a, method)
    assert (there.small, there.similar) == (back.small, back.similar)
    assert (there.only_before, there.only_now) == (back.only_now, back.only_before)
    opposite = {
        Fate.CAME: Fate.WENT,
        Fate.WENT: Fate.CAME,
        Fate.GREW: Fate.SHRANK,
        Fate.SHRANK: Fate.GREW,
        Fate.MOVED: Fate.MOVED,
    }
    others = {one.function.symbol: one for one in back.rows}
    for one in there.rows:
        other = others[one.function.symbol]
        assert one.is_alarm is other.is_alarm
        assert one.rating == pytest.approx(other.rating)
        assert [opposite[one.fate(change)] for change in one.notable] == [
            other.fate(change) for change in other.notable
        ]


@given(PROFILES, PROFILES, METHODS)
def test_ratings(a: dict[int, int], b: dict[int, int], method: Method) -> None:
    one, other = row("f", a), row("f", b)
    assert rate(method, one, one) == 0
    assert rate(method, one, other) == pytest.approx(rate(method, other, one))
    assert method is Method.EMD or 0 <= rate(method, one, other) <= 1 + 1e-9


def test_a_slow_peak_that_came_is_told_and_comes_first() -> None:
    before = known(row("f", QUICK), row("g", QUICK), row("h", {12: 100_000}))
    now = known(row("f", QUICK), row("g", SLOW), row("h", {12: 50_000}))
    found = difference(before, now, Method.OPS)
    assert [one.function.name for one in found.rows] == ["g", "h"]
    assert (found.alarms, found.similar) == (1, 1)
    came = found.rows[0].peaks[-1]
    assert (found.rows[0].fate(came), came.verdict, came.before) == (
        Fate.CAME,
        ChangeVerdict.CHANGED,
        0,
    )
    back = difference(now, before).rows[0]
    assert back.fate(back.peaks[-1]) is Fate.WENT


@pytest.mark.parametrize(
    ("before", "now", "what"),
    [
        ({10: 1000, 20: 4000}, {10: 4000, 20: 1000}, [Fate.GREW, Fate.SHRANK]),
        ({20: 4000}, {21: 4000}, [Fate.MOVED]),
        ({10: 4000}, {10: 4000, 20: 400}, [Fate.SHRANK, Fate.CAME]),
    ],
)
def test_what_has_become_of_peaks(
    before: dict[int, int], now: dict[int, int], what: Sequence[Fate]
) -> None:
    (found,) = difference(known(row("f", before)), known(row("f", now))).rows
    assert [found.fate(change) for change in found.notable] == what


def test_what_hardly_counts_is_dropped_unless_it_counts_in_one_of_them() -> None:
    large, tiny = row("large", {20: 100_000}), row("tiny", {10: 20})
    found = difference(known(large, tiny), known(large, row("tiny", {15: 20})))
    assert (found.rows, found.small) == ((), 1)
    grown = difference(known(large, tiny), known(large, row("tiny", {30: 400})))
    assert [one.function.name for one in grown.rows] == ["tiny"]


def test_runs_of_other_lengths_are_alike() -> None:
    short = known(row("f", QUICK), seconds=5)
    long = known(row("f", {10: 200_000}), seconds=10)
    assert difference(short, long).rows == ()
    assert difference(short, long, Method.OPS).similar == 1


def test_calls_that_came_all_at_once_are_no_alarm() -> None:
    """How much they come in bursts is not known: there was one."""
    quick = dataclasses.replace(row("f", QUICK), slices=(QUICK,))
    slow = dataclasses.replace(row("f", SLOW), slices=(SLOW,))
    (found,) = difference(known(quick), known(slow)).rows
    assert not found.is_alarm
    assert {one.verdict for one in found.notable} == {ChangeVerdict.CANNOT_TELL}


def test_functions_are_told_apart_by_module_symbol_and_order() -> None:
    before = known(row("f", QUICK, 16), row("f", SLOW, 32), row("f", QUICK, 16, "lib.so"))
    now = known(row("f", SLOW, 48), row("f", QUICK, 24))
    found = difference(before, now)
    assert (found.rows, found.similar) == ((), 2)
    assert [one.module for one in found.only_before] == ["lib.so"]


def test_no_alarm_where_nothing_has_changed() -> None:
    """Of 200 pairs of runs of 500 functions five may be told (``python -m benchmarks.sets``):
    of these ten there is hardly ever one."""
    everything, chance = runs.recorded(), random.Random(7)
    assert len(everything.rows) == 500
    told = [runs.alarms(everything, chance) for _ in range(10)]
    assert sum(map(sum, told)) <= 1


def test_the_table_and_its_json() -> None:
    before = known(row("handle", QUICK), row("idle", QUICK), row("gone", QUICK))
    now = known(row("handle", SLOW), row("idle", QUICK), row("new", SLOW))
    made = difference(before, now)
    text = view.table(made, ("a.json", "now"), Style(80))
    assert text.splitlines()[0] == "darc: a.json → now: 1 of 2 compared functions changed"
    assert "came 404µs – 808µs: 0 % → 2 % of the calls" in text
    assert "called only before: gone" in text
    assert "called only now: new" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    narrow = view.table(made, ("a", "b"), Style(40)).splitlines()
    assert any(line.endswith("handle") for line in narrow)
    assert all(len(line) <= 40 for line in narrow if "compared functions" not in line), narrow
    values = difference_to_json(made, ("a.json", "now"))
    (one,) = values["functions"]
    assert (one["function"], one["alarm"], one["peaks"][-1]["fate"]) == ("handle", True, "came")
    assert (values["by"], values["similar"]) == ("emd", 1)
    same = view.table(difference(before, before), ("a", "b"), Style(80))
    assert same.splitlines()[0] == "darc: a → b: no change seen in 3 compared functions"


def test_clocks_that_differ_are_told() -> None:
    other = row("handle", QUICK)
    other = dataclasses.replace(other, profile=dataclasses.replace(other.profile, hz=2 * HZ))
    text = view.table(difference(known(row("handle", QUICK)), known(other)), ("a", "b"), Style(80))
    assert "bins stand for other times" in text
