"""Which callees are left alone, asked of real libraries: those that the test itself has loaded."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.code.architecture import FunctionCode
from darc.code.backlooks import LOOKS_BACK
from darc.code.frame_rule import FrameRule
from darc.code.notrace import entered_otherwise, never_returns, why_notrace
from darc.code.program import Program
from darc.code.x86_64 import Instruction, decode, read_function
from darc.code.x86_64_depth import frame_rules
from darc.code.x86_64_return_slot import is_looked_at
from darc.debuggee import procfs
from darc.model.ftree import CallKind, Function
from tests.unit.owntarget import own_target


@pytest.fixture
def program() -> Program:
    return Program(own_target(), Path("/"), procfs.regions(os.getpid()))


def functions(program: Program) -> Iterator[FunctionCode[Instruction]]:
    """Every ninth function of the C library."""
    module = next(m for m in program.modules if m.name.startswith("libc.so"))
    for symbol in list(module.image.symbols)[::9]:
        entry = symbol.address + module.bias
        extent = program.outlines.extent(entry)
        if extent is not None and extent[0] == entry:
            yield read_function(entry, program)


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
        assert tails <= set().union(*(program.jumps.out_of(start) for start, _ in code.ranges))
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
    unnamed = Function(name="sub", symbol="sub", module="libc.so.6", address=address, offset=0)
    assert why_notrace(program, unnamed) == LOOKS_BACK
    assert why_notrace(program, program.names.function_at(address, name)) == LOOKS_BACK


@pytest.mark.parametrize(
    "name",
    ["printf", "malloc", "qsort", "read", "getenv", "fork", "pthread_create", "swapcontext"],
)
def test_functions_that_do_not(name: str, program: Program) -> None:
    assert why_notrace(program, program.names.function_at(find(program, name), name)) is None


def test_nearly_no_function_does(program: Program) -> None:
    """Stack arguments, saved registers and lists of arguments stand right beside it."""
    all_of_them = [code.entry for code in functions(program)]
    looking = [entry for entry in all_of_them if program.back_looks.at_caller(entry)]
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
        ("c8 00 00 00 48 8b 45 08 c9 c3", True),  # enter 0, 0; mov rax, [rbp + 8]; leave
        ("c8 20 00 02 48 8b 44 24 38 c9 c3", True),  # enter 32, 2; mov rax, [rsp + 56]; leave
        ("c8 00 00 00 48 8b 45 10 c9 c3", False),
        ("c8 20 00 02 48 8b 44 24 30 c9 c3", False),
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
    ("code", "expected"),
    [
        ("48 89 e1 48 8b 01 c3", True),  # mov rcx, rsp; mov rax, [rcx]
        ("48 8b cc 48 8b 01 c3", True),  # the same, in the other way to write it
        ("48 89 e1 48 8d 11 48 8b 02 c3", True),  # mov rcx, rsp; lea rdx, [rcx]; mov rax, [rdx]
        ("48 89 e1 48 89 ca 48 8b 02 c3", True),  # mov rcx, rsp; mov rdx, rcx; mov rax, [rdx]
        ("48 89 e1 48 83 e9 10 48 8b 41 10 c3", True),  # sub rcx, 16; mov rax, [rcx + 16]
        ("48 89 e1 48 83 e9 10 48 8b 41 08 c3", False),  # sub rcx, 16; mov rax, [rcx + 8]
        ("48 89 e1 48 8b 41 08 c3", False),  # the first argument on the stack
        ("48 89 e1 48 83 c1 08 48 8b 41 f8 c3", True),  # add rcx, 8; mov rax, [rcx - 8]
        ("48 8d 44 24 08 48 8b 40 f8 c3", True),  # lea rax, [rsp + 8]; mov rax, [rax - 8]
        ("48 8d 44 24 08 48 8b 00 c3", False),  # lea rax, [rsp + 8]; mov rax, [rax]
        ("48 8d 44 24 f0 48 8b 40 10 c3", True),  # lea rax, [rsp - 16]; mov rax, [rax + 16]
        ("48 8d 44 24 f0 48 83 c0 10 48 8b 00 c3", True),  # … add rax, 16; mov rax, [rax]
        ("48 8d 44 24 f0 48 8b 40 08 c3", False),  # lea rax, [rsp - 16]; mov rax, [rax + 8]
        ("48 8d 44 24 f0 48 89 f8 48 8b 40 10 c3", False),  # … mov rax, rdi; mov rax, [rax + 16]
        ("48 83 ec 18 48 89 e1 48 8b 41 18 48 83 c4 18 c3", True),  # with a frame below
        ("48 83 ec 18 48 89 e1 48 8b 41 10 48 83 c4 18 c3", False),
        ("54 59 48 8b 01 c3", True),  # push rsp; pop rcx; mov rax, [rcx]
        ("54 59 48 8b 41 08 c3", False),  # push rsp; pop rcx; mov rax, [rcx + 8]
        ("48 89 e1 48 87 ca 48 8b 02 c3", True),  # mov rcx, rsp; xchg rdx, rcx; mov rax, [rdx]
        ("48 89 e1 48 89 4c 24 f0 48 8b 54 24 f0 48 8b 02 c3", True),  # by a word of its frame
        ("48 89 e1 48 89 4c 24 f0 48 8b 4c 24 e8 48 8b 01 c3", False),  # another word
        ("48 89 e1 48 89 0f c3", True),  # mov rcx, rsp; mov [rdi], rcx: where others find it
        ("48 89 27 c3", True),  # mov [rdi], rsp
        ("53 48 89 27 5b c3", False),  # push rbx; mov [rdi], rsp
        ("48 89 e6 48 83 ec 08 e8 00 00 00 00 48 83 c4 08 c3", True),  # mov rsi, rsp; call
        ("48 83 ec 08 48 89 e6 e8 00 00 00 00 48 83 c4 08 c3", False),  # of a local variable
        ("48 89 e6 e9 00 10 00 00", True),  # mov rsi, rsp; jmp elsewhere
        ("49 89 e1 85 c0 0f 85 00 10 00 00 c3", False),  # mov r9, rsp; jne: OpenSSL's assembler
        ("48 89 e1 eb 00 48 8b 01 c3", True),  # behind a jump
        ("48 89 e1 75 03 48 8b 0f 48 8b 01 c3", True),  # jne over mov rcx, [rdi]
        ("48 89 e1 48 8b 0f 48 8b 01 c3", False),  # mov rcx, rsp; mov rcx, [rdi]; mov rax, [rcx]
        ("48 89 e0 48 83 ec 40 48 89 44 24 10 48 8b 74 24 10 48 8d 26 c3", False),  # rsp restored
        ("31 c9 48 8b 04 cc c3", True),  # xor ecx, ecx; mov rax, [rsp + 8 * rcx]
        ("b9 01 00 00 00 48 8b 04 cc c3", False),  # mov ecx, 1
        ("b9 01 00 00 00 48 8b 44 cc f8 c3", True),  # mov ecx, 1; mov rax, [rsp + 8 * rcx - 8]
        ("48 8b 04 cc c3", False),  # an index that is not known
        ("55 48 89 e5 48 89 e8 48 8b 40 08 5d c3", True),  # __builtin_frame_address(0)[1]
        ("55 48 89 e5 48 89 e8 48 8b 00 5d c3", False),  # __builtin_frame_address(1)
        ("55 48 89 e5 48 89 ef e8 00 00 00 00 5d c3", True),  # it is handed to who may look
        ("55 48 89 e5 48 8d 45 10 48 8b 40 f8 5d c3", True),  # __builtin_dwarf_cfa()[-1]
        ("55 48 89 e5 48 89 6d f8 48 8b 45 f8 48 8b 40 08 5d c3", True),  # the same, by a variable
        ("48 89 6c 24 f8 48 8b 44 24 f8 48 8b 40 08 c3", False),  # a register that is kept
        ("48 89 e8 48 8b 40 08 c3", False),  # rbp is no frame pointer
        ("48 89 e5 48 8b 45 00 c3", True),  # mov rbp, rsp; mov rax, [rbp]
    ],
)
def test_code_that_looks_through_a_copy_of_the_stack_pointer(code: str, expected: bool) -> None:
    """With frame information as without."""
    decoded = decode(bytes.fromhex(code), 0x1000)
    own = frame_rules(0x1000, {one.ip: one for one in decoded})
    assert is_looked_at(0x1000, decoded, None) is expected
    assert is_looked_at(0x1000, decoded, own.get) is expected


def test_a_realigned_frame() -> None:
    """As gcc makes it: it copies the return address itself, to above the caller's rbp, and reads
    that one where it looks."""
    begins = "4c 8d 54 24 08 48 83 e4 e0 41 ff 72 f8 55 48 89 e5 41 52"
    ends = "41 5a 5d 49 8d 62 f8 c3"

    def rule(address: int) -> FrameRule:
        at = address - 0x1000
        known = {0: FrameRule("rsp", 8), 5: FrameRule("r10", 0), 19: FrameRule("rbp", 0, -8)}
        return known[max(one for one in known if one <= at)]

    def looks(code: str) -> bool:
        decoded = decode(bytes.fromhex(f"{begins} {code} {ends}"), 0x1000)
        return is_looked_at(0x1000, decoded, rule)

    assert not looks("90")
    assert looks("48 8b 45 08")  # mov rax, [rbp + 8]
    assert looks("48 89 e8 48 8b 40 08")  # mov rax, rbp; mov rax, [rax + 8]


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


@pytest.mark.parametrize("symbol", ["__syscall_cp_asm", "__syscall_cancel_arch"])
def test_code_in_which_a_thread_is_cancelled_by_its_place_is_not_run_elsewhere(
    symbol: str, program: Program
) -> None:
    function = program.names.function_at(find(program, "getpid"), "getpid")
    assert entered_otherwise(program, function) is None
    why = entered_otherwise(program, dataclasses.replace(function, symbol=symbol))
    assert why == "whether its thread may be cancelled is told by where it stands in it"
