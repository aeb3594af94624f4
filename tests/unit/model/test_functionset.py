"""Profiles of many functions: what is interesting, which ones a pattern means, table and file."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import pytest

from darc.analyses.setheat import hottest
from darc.app.commands.start import as_profiled
from darc.code.patterns import parse_patterns
from darc.model.errors import NotFoundError, UsageError
from darc.model.functionset import FunctionSet, ranked
from darc.model.leftout import CALLED_OFF, NO_TIME, LeftOut, too_many
from darc.model.parameters import Parameters
from darc.model.part import parts_of
from darc.saved import sets
from darc.saved.checked import DamagedFileError
from darc.views.exporters.json import to_json
from darc.views.exporters.text import report
from darc.views.general.histogram import histogram, of_row
from darc.views.general.status import status
from darc.views.style import Style
from tests.unit import ops
from tests.unit.sets import KNOWN, function, row


def test_excess_is_what_calls_right_of_the_fastest_peak_took_beyond_its_mean() -> None:
    bimodal = row("f", {10: 1000, 20: 10})
    assert bimodal.excess == pytest.approx(10 * (1.5 * 2**20 - 1.5 * 2**10))
    assert row("g", {20: 1000}).excess == 0
    assert row("h", {}).excess == 0


def test_excess_rests_on_the_sum_that_was_measured() -> None:
    """Bins tell a latency to a factor of two; the sum is exact."""
    low = row("f", {10: 1000, 20: 10}, mean=1.1)
    assert low.excess == pytest.approx(10 * (1.1 * 2**20 - 1.1 * 2**10))


def test_a_rare_slow_call_beats_a_function_that_is_always_slow() -> None:
    slow, rare, fast = row("slow", {25: 500}), row("rare", {8: 9000, 22: 40}), row("fast", {6: 9})
    assert [one.function.name for one in ranked([fast, slow, rare])] == ["rare", "slow", "fast"]


@pytest.mark.parametrize(
    "symbol",
    [
        *("nanosleep", "__poll", "epoll_wait@@GLIBC_2.3.2", "pthread_cond_wait", "recv"),
        *("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE", "__x64_sys_epoll_wait"),
    ],
)
def test_what_waits_for_what_comes_next_is_no_first_row(symbol: str) -> None:
    """However long: as long as its caller says, or until there is work."""
    wait, slow = row(symbol, {21: 25, 28: 24}), row("slow", {10: 100, 15: 5})
    always, uncalled = row("always", {14: 8}), dataclasses.replace(row("begun", {}), dropped=2)
    found = ranked([uncalled, wait, always, slow])
    assert [one.function.name for one in found] == ["slow", "always", symbol, "begun"]


def test_a_wait_that_is_not_shown_any_more_is_told_with_its_number() -> None:
    known = FunctionSet(ranked([row("poll", {28: 9}), row("f", {9: 5}), row("g", {8: 5})]), top=1)
    snapshot = dataclasses.replace(ops.snapshot(), function="*", parts=parts_of(known))
    text = status(snapshot, Style(80))
    assert re.search(r"^1 .* f$", text, re.M), text
    assert "sleeps and waits for what comes next are the last of these: 3 poll" in text
    longer = dataclasses.replace(snapshot, parts=parts_of(dataclasses.replace(known, top=3)))
    assert "the last of these" not in status(longer, Style(80))


def test_the_tail_of_a_wait_is_not_told_and_does_not_keep_others_from_it() -> None:
    tail = {15: 800, 16: 2000, 17: 900, 18: 400, 19: 200, 20: 100, 21: 50, 22: 40, 23: 30}
    idle = row("nanosleep", {21: 25, 31: 24})
    known = FunctionSet(ranked([row("reply", tail), row("epoll_wait", tail), idle]), seconds=5.0)
    snapshot = dataclasses.replace(ops.snapshot(), function="*", parts=parts_of(known))
    text = status(snapshot, Style(120))
    assert "reply: no slow peak, but" in text
    assert "epoll_wait: no slow peak" not in text


def test_rows_without_a_counted_call_are_not_shown() -> None:
    rows = [dataclasses.replace(row(name, {}), dropped=1) for name in ("begun", "open")]
    known = FunctionSet(ranked([row("f", {9: 5}), row("left", {}, left=3), *rows]), seconds=2.0)
    snapshot = dataclasses.replace(ops.snapshot(), function="*", parts=parts_of(known))
    for style in (Style(80), Style(80, verbose=True)):
        text = status(snapshot, style)
        assert "calls of 2 functions in 2.0s" in text
        assert not re.search(r"^ *\d .* (begun|open)$", text, re.M), text
        assert "left (3 left)" in text
        assert "2 were called, and no call of theirs was counted" in text
    alone = dataclasses.replace(snapshot, parts=parts_of(FunctionSet(tuple(rows))))
    assert "no call of these functions was counted yet" in status(alone, Style(80))


def test_no_function_is_too_hot_and_all_together_are_not() -> None:
    shares = {function(f"f{n}", n): 0.004 for n in range(1, 50)}
    few, hot = dict(list(shares.items())[:20]), function("hot", 99)

    assert hottest(few, lambda _: True, in_all=0.1) == frozenset()
    assert hottest(few | {hot: 0.02}, lambda _: True, in_all=0.2) == {hot}
    assert hottest(few | {hot: 0.02}, lambda one: one != hot, in_all=0.2) == frozenset()
    gone = hottest(shares | {hot: 0.02}, lambda _: True, in_all=0.11)
    assert hot in gone
    assert len(gone) == 1 + 22
    stay = set(few)
    assert hottest(shares, lambda one: one not in stay, in_all=0.01) == shares.keys() - stay


def test_quantiles_are_those_of_bins_and_no_call_is_longer_than_the_longest() -> None:
    one = row("f", {10: 99, 20: 1})
    assert one.quantile(0.5) == 1.5 * 2**10
    assert dataclasses.replace(one, longest=2**20 + 1).quantile(1) == 2**20 + 1


RARE = {6: 99_800, 21: 200}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"peak": "last"}, {"peak": "last of 21-64", "start_ops": 5000}),
        ({"peak": "2"}, {"peak": "21-64", "start_ops": 5000}),
        ({"peak": "1", "resolution": 2}, {"peak": "12-13", "start_ops": 100, "resolution": 2}),
        ({}, {"start_ops": 5000}),
        ({"peak": ">1ms"}, {"peak": ">1ms", "start_ops": 5000}),
        ({"peak": "last", "start_ops": 7}, {"peak": "last of 21-64", "start_ops": 7}),
        ({"start_time": 2.0}, {"start_time": 2.0}),
    ],
)
def test_a_search_of_a_row_has_its_peaks(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """And takes as many calls before as show them."""
    assert as_profiled(Parameters(**asked), row("f", RARE)) == Parameters(**expected)


TAILED = {18: 900, 19: 400, 20: 200, 21: 90, 22: 40, 23: 20, 24: 9}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"peak": "last"}, {"peak": "last of 23-64", "start_ops": 573}),
        ({"peak": ">4ms"}, {"peak": ">4ms", "start_ops": 105}),
        ({"peak": "22-64", "start_ops": 7}, {"peak": "22-64", "start_ops": 7}),
        ({"peak": ">9s"}, {"peak": ">9s"}),
        ({}, {}),
    ],
)
def test_the_tail_of_a_row_is_meant_as_its_peaks_are(
    asked: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert as_profiled(Parameters(**asked), row("f", TAILED)) == Parameters(**expected)


def test_a_search_of_a_row_with_one_peak_is_as_any_other() -> None:
    asked = Parameters(peak="last")
    assert as_profiled(asked, row("f", {6: 100})) == asked
    with pytest.raises(UsageError, match="there is no peak 3: that row has 2"):
        as_profiled(Parameters(peak="3"), row("f", RARE))


@pytest.mark.parametrize(
    ("pattern", "symbol", "fits"),
    [
        ("name", "_ZN5Store4nameB5cxx11Ev", True),  # Store::name[abi:cxx11]()
        ("Store::*", "_ZN5Store4nameB5cxx11Ev", True),
        ("nam", "_ZN5Store4nameB5cxx11Ev", False),
        ("get", "_ZN5CacheIiE3getIcEEvT_", True),  # void Cache<int>::get<char>(char)
        ("Cache::get", "_ZN5CacheIiE3getIcEEvT_", True),
        ("Cache<int>::get<char>", "_ZN5CacheIiE3getIcEEvT_", True),
        ("read_*", "read_page", True),
        ("read_*", "pread_page", False),
        ("*", "anything", True),
        ("Cache::*", "_ZN2ns5Cache4findEi", True),
        ("find", "_ZN2ns5Cache4findEi", True),
        ("Cache::*", "_ZN2ns5Other4findEi", False),
        ("/^read|write$/", "read_page", True),
        ("/^read$/", "read_page", False),
        ("libz.so!inf*", "inflate", True),
        ("file.c:re[ap]*", "read", True),
        ("read?", "reads", True),
    ],
)
def test_what_a_pattern_means(pattern: str, symbol: str, fits: bool) -> None:
    (one,) = parse_patterns([pattern])
    assert one.fits(symbol) is fits


def test_scopes_of_patterns() -> None:
    found = parse_patterns(["libz.so!inf*", "file.c", "dir/file.cc:f*", "f", "A::b"])
    scopes = [(one.scope, one.is_of_source) for one in found]
    assert scopes == [
        ("libz.so!", False),
        ("file.c", True),
        ("dir/file.cc", True),
        (None, False),
        (None, False),
    ]


def test_a_list_of_patterns(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("# those\nread_*  # pages\n\nlibz.so!inflate\n")
    found = parse_patterns([f"@{tmp_path}/list", "more"])
    assert [one.text for one in found] == ["read_*", "libz.so!inflate", "more"]
    (tmp_path / "again").write_text(f"@{tmp_path}/list\n")
    with pytest.raises(UsageError, match="names no other list"):
        parse_patterns([f"@{tmp_path}/again"])
    with pytest.raises(UsageError, match="cannot read the list"):
        parse_patterns([f"@{tmp_path}/nowhere"])
    with pytest.raises(UsageError, match="stands behind '@'"):
        parse_patterns(["@"])


def test_a_list_that_is_none(tmp_path: Path) -> None:
    """Nobody waits for who writes a pipe, or reads what has no end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(bytes(range(256)))
    (tmp_path / "long").write_bytes(b"")
    os.truncate(tmp_path / "long", 1 << 33)
    for name in (tmp_path / "pipe", tmp_path, "/dev/zero", tmp_path / "bytes", tmp_path / "long"):
        with pytest.raises(UsageError, match="cannot read the list"):
            parse_patterns([f"@{name}"])


@pytest.mark.parametrize("text", ["/(/", "//", "/abc", "libz.so!"])
def test_patterns_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_patterns([text])


def test_the_table_fits_and_tells_what_is_not_in_it() -> None:
    snapshot = dataclasses.replace(ops.snapshot(), function="*", parts=parts_of(KNOWN))
    for width in (90, 120):
        text = status(snapshot, Style(width))
        assert all(len(line) <= width for line in text.splitlines()), text
    assert re.search(r"^1 +16ms +1010 +\S+ .* handle \(3 left\) \(out at 0.5s\)$", text, re.M), text
    assert "1 was not called" in text
    assert "3 calls left by an exception or a longjmp" in text
    assert "1 not timed: the function is shorter than a jump" in text
    first = dataclasses.replace(snapshot, parts=parts_of(dataclasses.replace(KNOWN, top=1)))
    assert "1 more was called: '--top 2'" in report(first, Style(80))


def test_rows_have_histograms() -> None:
    snapshot = dataclasses.replace(ops.snapshot(), function="*", parts=parts_of(KNOWN))
    text = histogram(of_row(snapshot, 1), Style(80))
    assert "handle: 1010 calls" in text
    assert histogram(of_row(snapshot, "handle"), Style(80)) == text
    with pytest.raises(NotFoundError, match="no profile of nobody"):
        of_row(snapshot, "nobody")
    with pytest.raises(NotFoundError, match="1 to 2"):
        of_row(snapshot, 3)
    with pytest.raises(UsageError, match="darc profile"):
        of_row(ops.snapshot(), 1)


def test_a_set_in_a_file_and_in_the_report() -> None:
    again = sets.from_part(sets.to_part(KNOWN))
    assert again == KNOWN
    report = to_json(dataclasses.replace(ops.snapshot(), parts=parts_of(KNOWN)))["set"]
    assert report["functions"][0]["function"] == "handle"
    assert report["functions"][0]["excess"] == round(KNOWN.rows[0].excess)
    assert to_json(ops.snapshot())["set"] is None


def test_why_functions_were_left_out_is_known_of_a_file() -> None:
    """Also of one that was written where another number of them could be timed."""
    reasons = (NO_TIME, CALLED_OFF, too_many(1000), LeftOut("it walks the stack"))
    left_out = tuple((function(reason.text), reason) for reason in reasons)
    known = dataclasses.replace(KNOWN, left_out=left_out)
    assert sets.from_part(sets.to_part(known)) == known


def test_a_damaged_set_is_refused() -> None:
    part = sets.to_part(KNOWN)
    functions = part["functions"]
    assert isinstance(functions, list)
    functions[0]["calls"] += 1
    with pytest.raises(DamagedFileError, match="sum of the bins"):
        sets.from_part(part)
