"""Which callees are left alone, asked of real libraries: those that the test itself has loaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.code.architecture import FunctionCode
from darc.code.frames import FrameRule
from darc.code.looks import LOOKS
from darc.code.notrace import never_returns, why_notrace
from darc.code.processor import decode
from darc.code.program import Program
from darc.code.return_slot import is_looked_at
from darc.debuggee import procfs
from darc.model.ftree import CallKind, Function
from darc.target.ownthread import Turn
from tests.fake_target import FakeMemory, FakeTarget


class OwnMemory(FakeMemory):
    """That of this process, read as a debugger would read it."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(turn)
        self._memory = procfs.MemoryFile(os.getpid())

    def read(self, address: int, size: int) -> bytes:
        return self._memory.read(address, size)


def own_target() -> FakeTarget:
    """This process."""
    target = FakeTarget()
    target.process = os.getpid()
    target.memory = OwnMemory(target.turn)
    return target


@pytest.fixture
def program() -> Program:
    return Program(own_target(), Path("/"), procfs.regions(os.getpid()))


def functions(program: Program) -> Iterator[FunctionCode]:
    """Every ninth function of the C library."""
    module = next(m for m in program.modules if m.name.startswith("libc.so"))
    for symbol in list(module.image.symbols)[::9]:
        entry = symbol.address + module.bias
        extent = program.outlines.extent(entry)
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
        assert program.jumps.out_of(code.entry) <= {i.near_branch_target for i in jumps}
        checked += 1
    assert checked > 100


def test_every_tail_jump_is_followed(program: Program) -> None:
    checked = 0
    for code in functions(program):
        tails = {site.target for site in code.sites if site.kind is CallKind.TAIL}
        assert tails <= set().union(*(program.jumps.out_of(start) for start, _ in code.parts))
        checked += bool(tails)
    assert checked > 20


def find(program: Program, name: str) -> int:
    """Where the C library has that function."""
    module = next(m for m in program.modules if m.name.startswith("libc.so"))
    return module.image.symbols.exported(name)[0].address + module.bias


@pytest.mark.parametrize(
    "name",
    ["dlsym", "dlvsym", "dlopen", "dlmopen", "dl_iterate_phdr", "mcount", "__fentry__"],
)
def test_functions_that_look_at_their_return_address(name: str, program: Program) -> None:
    """The code itself tells, as nothing else does in a stripped program."""
    address = find(program, name)
    unnamed = Function("sub", "sub", "libc.so.6", address, 0)
    assert why_notrace(program, unnamed) == LOOKS
    assert why_notrace(program, program.names.function_at(address, name)) == LOOKS


@pytest.mark.parametrize(
    "name",
    ["printf", "malloc", "qsort", "read", "getenv", "fork", "pthread_create", "swapcontext"],
)
def test_functions_that_do_not(name: str, program: Program) -> None:
    assert why_notrace(program, program.names.function_at(find(program, name), name)) is None


def test_nearly_no_function_does(program: Program) -> None:
    """Stack arguments, saved registers and lists of arguments stand right beside it."""
    all_of_them = [code.entry for code in functions(program)]
    looking = [entry for entry in all_of_them if program.looks.at_caller(entry)]
    assert len(all_of_them) > 100
    assert len(looking) <= len(all_of_them) // 50


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("48 8b 04 24 c3", True),  # mov rax, [rsp]
        ("53 48 8b 44 24 08 5b c3", True),  # push rbx; mov rax, [rsp + 8]
        ("53 48 8b 04 24 5b c3", False),  # push rbx; mov rax, [rsp]
        ("55 48 89 e5 48 8b 45 08 5d c3", True),  # push rbp; mov rbp, rsp; mov rax, [rbp + 8]
        ("55 48 89 e5 48 8b 45 10 5d c3", False),  # the first argument on the stack
        ("48 83 ec 18 48 8d 44 24 18 48 83 c4 18 c3", True),  # its address
        ("48 83 ec 18 48 8d 44 24 20 48 83 c4 18 c3", False),  # the address of the arguments
        ("48 83 04 24 08 c3", True),  # add qword [rsp], 8
        ("8b 44 24 04 c3", True),  # half of it
        ("48 89 04 24 c3", True),  # another one in its place
        ("58 ff e0", True),  # pop rax; jmp rax
        ("50 58 c3", False),  # push rax; pop rax
        ("53 48 8d 64 24 08 c3", False),  # lea rsp, [rsp + 8]
        ("48 8b 44 24 f8 c3", False),  # in the red zone
        ("66 0f 1f 44 24 00 c3", False),  # padding that looks like it
    ],
)
def test_code_that_looks_at_its_return_address(code: str, expected: bool) -> None:
    """Without frame information, from what the code itself does."""
    assert is_looked_at(0x1000, decode(bytes.fromhex(code), 0x1000), None) is expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (FrameRule("rsp", 8, 152), False),  # OpenSSL's: rbp is a pointer to a table
        (FrameRule("rbp", 0, -8), True),  # gcc's realigned frame, with a copy above rbp
        (FrameRule("rbp", 16), True),
    ],
)
def test_frames_whose_place_is_kept_in_memory(rule: FrameRule, expected: bool) -> None:
    code = decode(bytes.fromhex("48 8b 45 08"), 0x1000)  # mov rax, [rbp + 8]
    assert is_looked_at(0x1000, code, lambda _: rule) is expected


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
