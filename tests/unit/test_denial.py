"""Which callees are left alone, asked of real libraries: those that the test itself has loaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.code.denial import never_returns
from darc.code.program import Program
from darc.code.x86_64 import Function
from darc.debuggee import procfs
from darc.model.ftree import CallKind
from tests.fake_target import FakeTarget


class Own(FakeTarget):
    """This process, whose memory is read as a debugger would read it."""

    def __init__(self) -> None:
        super().__init__()
        self.process = os.getpid()
        self._memory = procfs.Memory(os.getpid())

    def read(self, address: int, size: int) -> bytes:
        return self._memory.read(address, size)


@pytest.fixture
def program() -> Program:
    return Program(Own(), Path("/"), procfs.regions(os.getpid()))


def functions(program: Program) -> Iterator[Function]:
    """Every ninth function of the C library."""
    module = next(m for m in program.modules if m.name.startswith("libc.so"))
    for symbol in module.image.symbols[::9]:
        entry = symbol.address + module.bias
        extent = program.extent(entry)
        if extent is not None and extent[0] == entry:
            yield program.function(entry)


def test_only_jumps_are_followed(program: Program) -> None:
    """Bytes that only look like jumps lead from everywhere to everywhere, in large libraries for
    minutes."""
    checked = 0
    for code in functions(program):
        jumps = [
            i
            for i in code.instructions.values()
            if i.is_jcc_short_or_near or i.is_jmp_short_or_near
        ]
        assert program.far_jumps(code.entry) <= {i.near_branch_target for i in jumps}
        checked += 1
    assert checked > 100


def test_every_tail_jump_is_followed(program: Program) -> None:
    checked = 0
    for code in functions(program):
        tails = {site.target for site in code.sites if site.kind is CallKind.TAIL}
        assert tails <= set().union(*(program.far_jumps(start) for start, _ in code.parts))
        checked += bool(tails)
    assert checked > 20


@pytest.mark.parametrize(
    ("callee", "expected"),
    [
        ("_Unwind_Resume", True),
        ("__stack_chk_fail", True),
        ("std::__throw_out_of_range_fmt", True),
        ("core::panicking::panic_bounds_check", True),
        ("core::option::unwrap_failed", True),
        ("_Unwind_Find_FDE", False),
        ("core::option::unwrap", False),
        ("exit_group_of_mine", False),
        (None, False),
    ],
)
def test_calls_that_end_their_caller(callee: str | None, expected: bool) -> None:
    assert never_returns(callee) is expected
