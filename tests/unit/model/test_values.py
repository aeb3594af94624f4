from __future__ import annotations

import pytest

from darc.model.domains import PEAK
from darc.model.errors import UsageError
from darc.model.setdiff import Method
from darc.model.values import Kind, count, duration, fraction, named, one_of_enum


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (count(), "1000000000", 10**9),
        (count(0, 5), "0", 0),
        (duration(), "1.5", 1.5),
        (duration(), " 2min ", 120.0),
        (duration(0.05), "50ms", 0.05),
        (duration(needs_unit=True), "250us", 0.00025),
        (fraction(), "0.25", 0.25),
        (fraction(), "1", 1.0),
        (fraction(), "25%", 0.25),
        (fraction(0.01, in_percent=True), "12.5%", 0.125),
        (named({"a": 1, "b": 2}), "b", 2),
        (one_of_enum(Method), "chi2", Method.CHI2),
    ],
)
def test_a_text_stands_for_a_value(kind: Kind[object], text: str, value: object) -> None:
    assert kind.read(text, "--of") == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (count(), "0"),
        (count(), "١"),
        (count(), "9" * 5000),
        (duration(), "0"),
        (duration(), "soon"),
        (duration(), "1.2.3"),
        (duration(), "9" * 400),
        (duration(0.05), "49ms"),
        (duration(needs_unit=True), "5"),
        (duration(needs_unit=True, example="4ms"), "5"),
        (fraction(), "0%"),
        (fraction(), "101%"),
        (fraction(), "nan"),
        (fraction(), "%"),
        (fraction(0.01, in_percent=True), "1"),
        (fraction(0.01, in_percent=True), "0.5%"),
        (named({"a": 1, "b": 2}), "c"),
        (one_of_enum(Method), "CHI2"),
    ],
)
def test_a_text_that_stands_for_none_is_refused_with_what_to_type(
    kind: Kind[object], text: str
) -> None:
    with pytest.raises(UsageError) as error:
        kind.read(text, "--of")
    told = f"--of: '{text}' is not {kind.valid}; type for example '--of {kind.example}'"
    assert str(error.value) == told
    kind.read(kind.example, "--of")


@pytest.mark.parametrize(
    ("kind", "valid"),
    [
        (duration(), "a time above 0 as 10s, 2min or 500ms"),
        (duration(example="4ms"), "a time above 0 as 4ms"),
        (
            duration(needs_unit=True, example="4ms"),
            "a time above 0, with its unit, as 4ms",
        ),
        (duration(0.05), "a time of 50ms and more as 10s"),
        (duration(0.05, example="2s"), "a time of 50ms and more as 2s"),
    ],
)
def test_what_is_told_to_be_valid_is_what_is_advised(kind: Kind[float], valid: str) -> None:
    assert kind.valid == valid
    assert f" as {kind.example}" in valid


def test_what_there_is_more_to_say_of_stands_behind_what_it_was_typed_for() -> None:
    with pytest.raises(UsageError, match=r"^--of: there is no peak 0; peaks are numbered from 1"):
        PEAK.read("0", "--of")


def test_an_argument_is_refused_with_what_stands_before_it() -> None:
    with pytest.raises(UsageError) as error:
        fraction(in_percent=True).read("0.9", "SHARE", "darc mean")
    told = "SHARE: '0.9' is not a share above 0 and at most 100%, in percent as 25%; "
    assert str(error.value) == f"{told}type for example 'darc mean 25%'"
