"""What a helper reads before the search begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.analyses import warming
from darc.analyses.warming import Warming
from tests.unit.cases import ProgramOfFiles


def warming_of(
    program: ProgramOfFiles, monkeypatch: pytest.MonkeyPatch, spent: float = 0.0
) -> Warming:
    monkeypatch.setattr(warming, "time", SimpleNamespace(thread_time=lambda: spent))
    return Warming(cast(Any, program), 0x1000)


def test_one_file_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's own code, which is in no file, is not read."""
    program = ProgramOfFiles("/bin/a", "[vdso]", "/lib/b")
    made = warming_of(program, monkeypatch)
    assert made.step()
    assert program.read == ["/bin/a"]
    assert made.step()
    assert made.step()
    assert program.read == ["/bin/a", "/lib/b"]
    assert not made.step()
    assert program.asked == [0x1000]


def test_no_file_is_read_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ProgramOfFiles("/bin/a")
    assert not warming_of(program, monkeypatch, spent=2.0).step()
    assert not program.asked
