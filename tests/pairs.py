"""Cases of two kinds, of which each is to be tried with each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def by_turns(first: Sequence[str], second: Sequence[str]) -> list[Any]:
    """All pairs, as parameters: the first of the ``first`` with all of the ``second``, each of the
    others with one of them in turn; all other pairs are for the night."""
    pairs = []
    for number, one in enumerate(first):
        for at, other in enumerate(second):
            is_by_day = number == 0 or at == number % len(second)
            pairs.append(pytest.param(one, other, marks=[] if is_by_day else pytest.mark.long))
    return pairs
