"""A sample of ``make fuzz``: the first inputs of every fuzzer."""

from __future__ import annotations

import importlib

import pytest

from tests.fuzz.__main__ import FUZZERS, SAMPLE
from tests.fuzz.trials import run


@pytest.mark.parametrize("name", FUZZERS)
def test_no_input_ends_in_a_traceback(name: str) -> None:
    trial = importlib.import_module(f"tests.fuzz.{name}").trial
    result = run(name, trial, SAMPLE[name], seed=2)
    assert not result.failed, "\n".join(text for _, text in result.failures.values())
