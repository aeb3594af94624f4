"""The contract of a target, kept by the made-up one; ``tests/gdb/test_contract.py`` tries it in the
debuggers. A check is the same for all."""

from __future__ import annotations

import pytest

from tests.contract.checks import CHECKS
from tests.fake_target import FakeWorld


@pytest.mark.parametrize("check", CHECKS)
def test_fake(check: str) -> None:
    CHECKS[check](FakeWorld())
