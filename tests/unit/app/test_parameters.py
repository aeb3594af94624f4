import contextlib
import dataclasses
from dataclasses import replace
from typing import Any, cast

import pytest

from darc.app.commands.start import START
from darc.app.parameters import PARAMETERS, Parameter, by_field, find_parameter, with_text
from darc.model.domains import DOMAINS, Domain
from darc.model.errors import UsageError
from darc.model.parameters import OnFinish, Parameters, Probes
from darc.model.values import duration, fraction
from darc.saved.refit import new_parameters
from tests.unit.stored import sample


def test_every_field_is_declared_once() -> None:
    fields = [field.name for field in dataclasses.fields(Parameters)]
    assert [domain.field for domain in DOMAINS] == fields
    assert [parameter.field for parameter in PARAMETERS] == fields


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter.name)
def test_defaults_and_completions_can_be_typed(parameter: Parameter) -> None:
    assert parameter.read(parameter.default_text) == parameter.default
    assert with_text(Parameters(), parameter.name, parameter.example) is not None
    for word in parameter.values:
        parameter.read(word)


def other_than_default(parameter: Parameter) -> object:
    for text in (parameter.example, *parameter.values, "7", "70 %", "last", "off", "on"):
        with contextlib.suppress(UsageError):
            if (value := parameter.read(text)) != parameter.default:
                return value
    raise AssertionError(f"no value for {parameter.name} is found here")


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter.name)
def test_what_is_of_one_run_is_not_taken_over_by_another(parameter: Parameter) -> None:
    before = other_than_default(parameter)
    changed = replace(Parameters(), **cast(Any, {parameter.field: before}))
    found = new_parameters(replace(sample(), parameters=changed), {})
    kept = getattr(found, parameter.field)
    assert kept == (parameter.default if parameter.is_of_one_run else before)


_OTHERS = (
    Domain("slow_above", duration(needs_unit=True), unit="s"),
    Domain("part", fraction(in_percent=True), unit="%"),
)


@pytest.mark.parametrize("domain", [*DOMAINS, *_OTHERS], ids=lambda domain: domain.name)
def test_what_is_written_is_read_as_it_was(domain: Domain) -> None:
    """By the user, and from files, which have every digit."""
    example = domain.read(domain.kind.example)
    values = [example] if domain.none is None else [example, None]
    for value in [*values, 1 / 3] if isinstance(example, float) else values:
        whole, short = (domain.read(of(value)) for of in (domain.whole_text, domain.text))
        if isinstance(value, float):
            assert (whole, short) == (pytest.approx(value, rel=1e-15), pytest.approx(value, 1e-5))
        else:
            assert whole == short == value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("start-ops", "2000", 2000),
        ("start_ops", "1", 1),
        ("start-ops", "auto", None),
        ("start-time", "10s", 10.0),
        ("start-time", "none", None),
        ("decision-ops", "auto", None),
        ("decision-ops", "1000000000", 10**9),
        ("maxcount-percentage", "0.25", 0.25),
        ("maxcount-percentage", "50%", 0.5),
        ("max-time", "30s", 30.0),
        ("max-time", "2min", 120.0),
        ("max-time", "500ms", 0.5),
        ("max-time", "1.5", 1.5),
        ("max-time", "none", None),
        ("lookahead", "3", 3),
        ("thread", "all", None),
        ("task", "all", None),
        ("task", "kworker", "kworker"),
        ("thread", "1234", 1234),
        ("probes", "pad", Probes.PAD),
        ("on-finish", "continue", OnFinish.CONTINUE),
        ("auto", "off", False),
        ("verbose", "on", True),
        ("peak", "17-19", "17-19"),
        ("peak", ">4ms", ">4ms"),
        ("peak", "p99", "p99"),
        ("peak", "none", None),
    ],
)
def test_with_text(name: str, text: str, value: object) -> None:
    parameters = with_text(Parameters(), name, text)
    assert getattr(parameters, find_parameter(name).field) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("start-ops", "0"),
        ("start-ops", "-5"),
        ("start-time", "0"),
        ("decision-ops", "1000000001"),
        ("start-ops", "many"),
        ("start-ops", "9" * 5000),
        ("start-ops", "١"),
        ("resolution", "9"),
        ("maxcount-percentage", "0"),
        ("maxcount-percentage", "nan"),
        ("maxcount-percentage", "50"),
        ("max-depth", ""),
        ("max-time", "0"),
        ("max-time", "-1s"),
        ("max-time", "9" * 400),
        ("max-time", "3 fortnights"),
        ("thread", "4194305"),
        ("probes", "magic"),
        ("on-finish", "panic"),
        ("auto", "maybe"),
    ],
)
def test_a_refusal_names_the_value_the_range_and_what_to_type(name: str, text: str) -> None:
    with pytest.raises(UsageError) as error:
        with_text(Parameters(), name, text)
    message = str(error.value)
    parameter = find_parameter(name)
    assert message.count("\n") == 0
    assert f"'{text}' is not {parameter.domain.valid}" in message
    assert "type for example" in message


def test_a_time_takes_the_place_of_a_number_of_calls_unless_that_is_given() -> None:
    assert Parameters().profile_calls == 100
    assert Parameters(start_ops=7).profile_calls == 7
    assert Parameters(start_time=10.0).profile_calls > 10**18
    assert Parameters(start_time=10.0, start_ops=7).profile_calls == 7


@pytest.mark.parametrize("text", ["first", "0", "19-17", "600-601", ">4parsecs", "p100", ""])
def test_a_peak_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"give|no peak 0|last bin|write for example"):
        with_text(Parameters(), "peak", text)


def test_bins_that_the_resolution_does_not_have_are_refused() -> None:
    with pytest.raises(UsageError, match="last bin at resolution 1 is 64"):
        with_text(Parameters(), "peak", "70-80")
    finer = with_text(Parameters(resolution=2), "peak", "70-80")
    with pytest.raises(UsageError, match="last bin at resolution 1 is 64"):
        with_text(finer, "resolution", "1")


def test_unknown_parameters_name_the_near_ones() -> None:
    with pytest.raises(UsageError, match="no parameter 'max-deep'; did you mean max-depth"):
        find_parameter("max-deep")


@pytest.mark.parametrize(
    ("line", "function", "overrides"),
    [
        ("handle", "handle", {}),
        ("handle --peak last", "handle", {"peak": "last"}),
        ("--peak=last handle", "handle", {"peak": "last"}),
        (
            "handle --peak '>4ms' --start-ops=7",
            "handle",
            {"peak": ">4ms", "start_ops": 7},
        ),
        ("ns::Class<int>::f", "ns::Class<int>::f", {}),
        ("'ns::Map<int, char>::f' --max-depth 3", "ns::Map<int, char>::f", {"max_depth": 3}),
        ("ns::Map<int, char>::f --max-depth 3", "ns::Map<int, char>::f", {"max_depth": 3}),
        (
            "(anonymous namespace)::f --max-depth 3",
            "(anonymous namespace)::f",
            {"max_depth": 3},
        ),
        ("A::operator< --max-depth 3", "A::operator<", {"max_depth": 3}),
        ("A::operator()(int, int)", "A::operator()(int, int)", {}),
        ("A::operator new --max-depth 3", "A::operator new", {"max_depth": 3}),
        ("A::operator-> --max-depth 3", "A::operator->", {"max_depth": 3}),
        ("server.c:handle", "server.c:handle", {}),
        ("libz.so!inflate", "libz.so!inflate", {}),
        ("*0x1234", "*0x1234", {}),
        ("f --decision-ops auto --lookahead 1", "f", {"decision_ops": None, "lookahead": 1}),
        ("f --start-ops 1 --start-ops 2", "f", {"start_ops": 2}),
    ],
)
def test_parse_start_options(line: str, function: str, overrides: dict[str, object]) -> None:
    parsed = START.read(line)
    assert (parsed.arguments, by_field(parsed.overrides)) == ((function,), overrides)
    assert not parsed.own


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "darc start needs a function"),
        ("--peak last", "darc start needs a function"),
        ("f g", "one function, not 'f' and 'g'; put quotes"),
        ("'f", "a quote is not closed"),
        ('f "g \\"', "a quote is not closed"),
        ("f \\", "nothing stands behind"),
        ("f 'g' \"h\\", "nothing stands behind"),
        ("f --paek last", "no option '--paek'; did you mean --peak"),
        ("f -peak last", "no option '-peak'; did you mean --peak"),
        ("f --zzzzzz", "see 'help darc start'"),
        ("f --peak", "--peak needs a value: --peak P"),
        ("f --peak --start-ops 3", "--peak needs a value: --peak P"),
        ("f --start-ops 0", "--start-ops: '0' is not a whole number from 1"),
    ],
)
def test_start_options_that_are_not_right(line: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        START.read(line)


def test_another_command_with_these_options_says_its_own_name() -> None:
    for line in ("", "f g", "f --zzzzzz"):
        with pytest.raises(UsageError, match="darc rate") as met:
            dataclasses.replace(START, name="rate", usage="darc rate FUNCTION").read(line)
        assert "darc start" not in str(met.value)
