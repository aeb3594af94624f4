"""Periods, and what the numbers of calls let one suppose."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet
from darc.model.hints import CallsAnother, Comes, Contended, LongTail, Tick, hints, period
from darc.model.part import parts_of
from darc.views.exporters.json import to_json
from darc.views.general.histogram import histogram, of_row
from darc.views.general.status import status
from darc.views.style import Style
from tests.unit import ops
from tests.unit.setrows import row


def train(every: float, intervals: int, calls: int = 1, jitter: float = 0.0) -> list[int]:
    """Calls that come at equal distances, in intervals of 1."""
    found, chance = [0] * intervals, random.Random(1)
    at = every / 2
    while at < intervals:
        found[min(int(max(at + chance.uniform(-jitter, jitter), 0)), intervals - 1)] += calls
        at += every
    return found


@pytest.mark.parametrize("every", [5, 6.3, 7.5, 12.2, 30])
@pytest.mark.parametrize("jitter", [0, 0.4])
def test_a_period_is_found_to_a_part_of_an_interval(every: float, jitter: float) -> None:
    assert period(train(every, 120, jitter=jitter)) == pytest.approx(every, rel=0.03)


def test_a_period_in_noise_is_found() -> None:
    chance = random.Random(2)
    noisy = [n + (chance.random() < 0.2) for n in train(10, 200, calls=3)]
    assert period(noisy) == pytest.approx(10, rel=0.03)


def test_chance_has_hardly_ever_a_period() -> None:
    """Calls at random, evenly spread, or in bursts."""
    chance, told = random.Random(3), 0
    for _ in range(300):
        share = chance.choice((0.02, 0.1, 0.3))
        length = chance.choice((20, 50, 120, 400))
        told += period([int(chance.random() < share) for _ in range(length)]) is not None
        level, drift = 50.0, []
        for _ in range(length):
            level = max(0.0, level + chance.gauss(0, 10))
            drift.append(round(level))
        told += period(drift) is not None
    assert told <= 12


@given(st.lists(st.integers(0, 1000), max_size=60))
def test_a_period_fits_in_three_times(calls: list[int]) -> None:
    found = period(calls)
    assert found is None or 2 <= found <= len(calls) / 3 + 1


@pytest.mark.parametrize("calls", [[], [5], [5] * 50, [0] * 50, list(range(50))])
def test_no_period(calls: list[int]) -> None:
    assert period(calls) is None


def lapsed(one: FunctionProfile, every: int) -> FunctionProfile:
    """Its slow calls come each ``every`` intervals of 60."""
    slow = max(one.profile.bins)
    lapse = [{10: 100, slow: 1} if n % every == 0 else {10: 100} for n in range(60)]
    return dataclasses.replace(one, lapse=tuple(lapse))


def test_a_peak_that_comes_every_second() -> None:
    one = lapsed(row("flush", {10: 6000, 24: 12}), 5)
    known = FunctionSet((one,), seconds=12.0, every=0.2)
    (hint,) = hints(known, 20)
    assert isinstance(hint, Comes)
    assert (hint.row, hint.peak.number) == (1, 2)
    assert hint.seconds == pytest.approx(1.0, rel=0.03)
    snapshot = dataclasses.replace(ops.snapshot(), function="*", parts=parts_of(known))
    text = status(snapshot, Style(100))
    assert "1 flush: peak 2 (6.5ms – 13ms) comes every 1.0s" in text
    drawn = histogram(of_row(snapshot, 1), Style(100))
    assert "calls by latency and time, 200ms a column" in drawn
    (line,) = [line for line in drawn.splitlines() if line.startswith("6.5ms │")]
    assert line.split("│")[1].rstrip() == "    ".join("▂" * 12)
    narrow = histogram(of_row(snapshot, 1), Style(40))
    assert "400ms a column" in narrow
    (told,) = to_json(snapshot)["set"]["hints"]
    assert (told["kind"], told["peak"]) == ("period", 2)


def test_peaks_whose_calls_are_those_of_another_function() -> None:
    caller = row("readdir", {8: 5000, 14: 300, 20: 250})
    callee = row("readpage", {13: 300, 19: 250})
    (hint,) = hints(FunctionSet((caller, callee), seconds=5.1), 1)
    assert isinstance(hint, CallsAnother)
    assert (hint.first.number, hint.last.number, hint.other.name) == (2, 3, "readpage")
    longer = row("other", {24: 550})
    assert list(hints(FunctionSet((caller, longer), seconds=5.1), 1)) == []


def test_the_timer() -> None:
    known = FunctionSet((row("f", {8: 90_000, 14: 1250}),), seconds=5.0)
    (hint,) = hints(known, 1)
    assert isinstance(hint, Tick)
    assert (hint.peak.number, hint.seconds) == (2, 0.004)
    assert list(hints(dataclasses.replace(known, tick=0.004), 1)) == [hint]
    assert list(hints(dataclasses.replace(known, tick=0.01), 1)) == [], "its kernel's is another"


def test_a_lock_that_is_found_held() -> None:
    known = FunctionSet((row("pager_lock", {8: 7500, 14: 2500}),), seconds=5.0)
    hint = next(h for h in hints(known, 1) if isinstance(h, Contended))
    assert hint.share == 0.25
    assert hint.waited == pytest.approx(1.5 * 2**14)
    for name, slow in (("pager_unlock", 14), ("clock", 14), ("read", 14), ("pager_lock", 10)):
        other = FunctionSet((row(name, {6: 7500, slow: 2500}),), seconds=5.0)
        assert not any(isinstance(h, Contended) for h in hints(other, 1))


def test_a_tail_is_told_though_it_is_no_excess() -> None:
    """It goes on from the only peak without a valley: by excess its function comes behind all that
    have a slow peak, however short that is."""
    fades = {10 + n: 4096 >> n for n in range(13)}
    slight, long = row("slight", {8: 5000, 14: 300}), row("answer", fades)
    known = FunctionSet((slight, long), seconds=0.5)
    assert long.excess == 0
    (hint,) = (one for one in hints(known, 1) if isinstance(one, LongTail))
    slow = {b: n for b, n in fades.items() if b >= hint.first_bin}
    assert (hint.row, hint.slow) == (2, sum(slow.values()))
    others = (long.profile.total - sum(n * 1.5 * 2**b for b, n in slow.items())) / (
        long.profile.count - hint.slow
    )
    assert hint.delay == pytest.approx(sum(n * (1.5 * 2**b - others) for b, n in slow.items()))
    snapshot = dataclasses.replace(ops.snapshot(), function="*", parts=parts_of(known))
    text = status(snapshot, Style(200))
    assert f"2 answer: no slow peak, but {hint.slow} of" in text
    assert "'darc start 2 --peak last'" in text
    assert to_json(snapshot)["set"]["hints"][-1]["kind"] == "tail"
    assert "no slow peak" not in histogram(of_row(snapshot, 2), Style(200)), "it says so itself"


def test_tails_that_are_not_worth_a_look() -> None:
    """Of next to no time, or beside an excess that is far larger; three are told at most."""
    fades = {10 + n: 4096 >> n for n in range(13)}
    short = FunctionSet((row("answer", fades),), seconds=1000.0)
    assert not list(hints(short, 20))
    much = FunctionSet((row("serve", {10: 500, 26: 30}), row("answer", fades)), seconds=0.5)
    assert not any(isinstance(one, LongTail) for one in hints(much, 20))
    many = FunctionSet(tuple(row(f"f{n}", fades) for n in range(5)), seconds=0.5)
    assert sum(isinstance(one, LongTail) for one in hints(many, 20)) == 3
