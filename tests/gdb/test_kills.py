"""gdb is killed at random moments: a few of those that ``make kills`` tries."""

from __future__ import annotations

from pathlib import Path

from tests.kills import CLEAN_EVERY, kills


def test_some_kills(tmp_path: Path) -> None:
    for kill in kills(CLEAN_EVERY, 20, tmp_path):
        assert kill.wrong is None, kill
