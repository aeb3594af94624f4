"""Instructions that a program's own handler of faults may know by their addresses."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from iced_x86 import Instruction

from darc.code.faults import SIGBUS, SIGFPE, SIGILL, SIGSEGV
from darc.code.x86_64 import decode, read_function
from darc.code.x86_64_faults import leaves_frame, may_learn_place, may_raise
from darc.debuggee.handlers import Handler, own_handlers
from tests.unit.assembly import BASE, Code

MEMORY = frozenset((SIGSEGV,))

MAY_MISS = (
    *("mov eax, [rdi]", "mov [rbx+8], rax", "cmp byte ptr [r12], 0", "push [rdi]", "pop [rdi]"),
    *("mov eax, [rsp+rax*4]", "mov rax, fs:[rdi]", "mov eax, [rip+8]", "test [rip+8], eax"),
    *("call [rax+24]", "jmp [rdi]", "rep movsb", "lodsb", "mov eax, [rbp-8]", "hlt"),
    *("movups xmm0, [rsi]", "mov eax, [0x1000]"),
)
CANNOT_MISS = (
    *("push rbx", "pop rbx", "mov eax, [rsp+8]", "mov [rsp-16], rax", "call rax", "jmp rax"),
    *("call [rip+8]", "jmp [rip+8]", "ret", "call main", "lea rax, [rdi+8]", "nop dword ptr [rax]"),
    *("mov rax, fs:[40]", "endbr64", "xor eax, eax", "div rcx", "movaps xmm0, xmm1"),
)

Read = Callable[..., list[tuple[str, Instruction]]]


@pytest.fixture
def read(assembled: Callable[[str], Code]) -> Read:
    """Each instruction of a list, with its text."""

    def make(*texts: str) -> list[tuple[str, Instruction]]:
        code = assembled("main:\n" + "".join(f"{text}\n" for text in texts))
        found = decode(code.data, BASE)[: len(texts)]
        return list(zip(texts, found, strict=True))

    return make


def test_access_that_may_miss(read: Read) -> None:
    for text, instruction in read(*MAY_MISS):
        assert may_raise(instruction, MEMORY), text
        assert may_raise(instruction, {SIGBUS}), text
        assert not may_raise(instruction, set()), text


def test_what_cannot_miss(read: Read) -> None:
    for text, instruction in read(*CANNOT_MISS):
        assert not may_raise(instruction, MEMORY), text


def test_frame_pointer(read: Read) -> None:
    """What is found by it is on the stack, where it is one."""
    (_, plain), (_, indexed) = read("mov eax, [rbp-8]", "mov eax, [rbp+rcx*8-8]")
    assert not may_raise(plain, MEMORY, has_frame=True)
    assert may_raise(indexed, MEMORY, has_frame=True)


def test_arithmetic(read: Read) -> None:
    for text, instruction in read("div rcx", "idiv ecx", "divsd xmm0, xmm1", "fld1", "fwait"):
        assert may_raise(instruction, {SIGFPE}), text
    for text, instruction in read("add rax, rcx", "mov eax, [rdi]", "pxor xmm0, xmm0"):
        assert not may_raise(instruction, {SIGFPE}), text


def test_what_stands_before_the_patch(read: Read) -> None:
    for text, instruction in read("mov rax, [rdi]", "endbr64", "mov rsi, rdi", "lea rax, [rdi]"):
        assert leaves_frame(instruction), text
    changing = ("push rax", "sub rsp, 8", "cmp byte ptr [rdi], 0", "mov rsp, rax", "lea rsp, [rax]")
    for text, instruction in read(*changing, "jmp main", "call rax", "leave"):
        assert not leaves_frame(instruction), text


def test_what_not_every_processor_knows(read: Read) -> None:
    for text, instruction in read("vmovups ymm0, ymm1", "popcnt eax, eax", "ud2", "xgetbv"):
        assert may_raise(instruction, {SIGILL}), text
    plain = ("endbr64", "mov eax, [rdi]", "cmovz eax, ecx", "addsd xmm0, xmm1", "nop")
    for text, instruction in read(*plain):
        assert not may_raise(instruction, {SIGILL}), text


HANDLERS = """
reports: mov edi, 5
 call exits
 call other
exits: mov eax, 60
 syscall
other: ret
jumps: xor edx, edx
 lea rdi, [rip]
 jmp other
looks: test edi, edi
 je .Lover
 xor edx, edx
.Lover: mov rax, [rdx+168]
 ret
keeps: push rdx
 call other
 pop rdx
 ret
part: mov dl, 5
 mov rdi, rdx
 ret
addresses: mov rdi, [rsi+16]
 xor esi, esi
 xor edx, edx
 call other
 ret
"""


def test_handler_that_may_learn_where_an_instruction_stands(
    assembled: Callable[[str], Code],
) -> None:
    code = assembled(HANDLERS)

    def may(name: str, signal: int, *, is_told: bool) -> bool:
        handler = read_function(code.symbols[name], code)
        return may_learn_place(handler, signal, is_told=is_told)

    for told in (False, True):
        assert may("reports", SIGSEGV, is_told=told) is told  # what it calls may be handed it
        assert not may("jumps", SIGSEGV, is_told=told)
        assert not may("other", SIGSEGV, is_told=told)
        for name in ("looks", "keeps", "part"):
            assert may(name, SIGSEGV, is_told=told), name
        assert not may("addresses", SIGSEGV, is_told=told)  # where memory was missed
        assert may("addresses", SIGFPE, is_told=told)  # the instruction's own address


def test_whose_handlers() -> None:
    """What is not known to belong to a runtime is the program's own."""
    rust = "_ZN3std3sys3pal4unix14stack_overflow3imp14signal_handler17h2e9a0b0d2c3f4a5bE"
    names = {0x100: [rust], 0x200: ["my_signal_handler"], 0x300: []}
    image = SimpleNamespace(
        symbols=SimpleNamespace(names_at=lambda address: names.get(address, []))
    )
    modules = {
        address: SimpleNamespace(name=name, bias=0x10000 * number, image=image)
        for number, name in enumerate(("server", "libc.so.6", "libcrash.so", "ld-musl-x86_64.so.1"))
        for address in range(0x10000 * number, 0x10000 * number + 0x1000)
    }
    place: Any = SimpleNamespace(complete=False, sites=[])
    program: Any = SimpleNamespace(module_at=modules.get, function=lambda address: place)
    handlers = (0x100, 0x200, 0x300, 0x10100, 0x20200, 0x30100, 0x90000)

    def own(flags: int) -> list[int]:
        answers = map(Handler, handlers, itertools.repeat(flags))
        found = [own_handlers(program, [SIGSEGV], lambda _: next(answers)) for _ in handlers]
        return sorted(address for one in found for address in one.values())

    assert own(0x4000_0000) == [0x200, 0x300, 0x20200, 0x90000]
    assert not own(0xC000_0000)
