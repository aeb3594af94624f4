"""What a helper reads before the search begins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.analyses import warming
from darc.analyses.warming import Warming


class Program:
    """Of these files; it notes which are read."""

    def __init__(self, *paths: str) -> None:
        self.read: list[str] = []
        self._paths = paths
        self.asked: list[int] = []

    def modules_near(self, address: int) -> Iterator[Any]:
        self.asked.append(address)
        for path in self._paths:
            image = SimpleNamespace(warm_up=partial(self.read.append, path))
            yield SimpleNamespace(is_vdso=path == "[vdso]", image=image)


def warming_of(program: Program, monkeypatch: pytest.MonkeyPatch, spent: float = 0.0) -> Warming:
    monkeypatch.setattr(warming, "time", SimpleNamespace(thread_time=lambda: spent))
    return Warming(cast(Any, program), 0x1000)


def test_one_file_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's own code, which is in no file, is not read."""
    program = Program("/bin/a", "[vdso]", "/lib/b")
    made = warming_of(program, monkeypatch)
    assert made.step()
    assert program.read == ["/bin/a"]
    assert made.step()
    assert made.step()
    assert program.read == ["/bin/a", "/lib/b"]
    assert not made.step()
    assert program.asked == [0x1000]


def test_no_file_is_read_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program("/bin/a")
    assert not warming_of(program, monkeypatch, spent=2.0).step()
    assert not program.asked
