"""Handlers of signals that set a thread back, and what the sequences are made of that they know."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from darc.code.x86_64 import decode, read_function
from darc.code.x86_64_restarts import may_be_restarted, sets_place
from darc.debuggee.handlers import Handler, own_handlers
from tests.unit.assembly import BASE, Code

SIGALRM = 14

ACCESSES = (
    *("mov rax, [rdi]", "mov [rip+8], rax", "add qword ptr [rbx+8], 1", "mov rax, fs:[16]"),
    *("cmp dword ptr [rdi], 0", "lodsb", "push [rdi]", "mov rax, [rsp+rcx*8]", "xchg [rdi], eax"),
)
NO_ACCESS = (
    *("push rbx", "mov rax, [rsp+8]", "lea rax, [rdi+8]", "add rax, 1", "mov rax, fs:[40]"),
    *("call [rip+8]", "jmp [rdi]", "call main", "ret", "nop dword ptr [rax]", "endbr64"),
    *("cmp rsp, [r14+16]",),
)

HANDLERS = """
sets: mov rax, [rdx+168]
 mov [rdx+168], rax
 ret
reads: mov rax, [rdx+168]
 mov [rip+16], rax
 ret
other_field: mov [rdx+160], rax
 mov [rsi+168], rax
 ret
through_pointer: lea rax, [rdx+40]
 add rax, 64
 mov qword ptr [rax+64], 0
 ret
through_stack: push rbp
 mov rbp, rsp
 sub rsp, 48
 mov [rbp-24], rdx
 mov rax, [rbp-24]
 add rax, 40
 mov [rbp-8], rax
 call nothing
 mov rax, [rbp-8]
 mov [rax+128], rcx
 leave
 ret
kept: push rbx
 mov rbx, rdx
 call nothing
 mov [rbx+168], rax
 pop rbx
 ret
lost: call nothing
 mov [rdx+168], rax
 ret
other_by_then: mov rdx, rsi
 mov [rdx+168], rax
 ret
hands_on: mov rdi, rdx
 call takes
 ret
goes_on: lea rdi, [rdx+40]
 jmp takes_registers
takes: mov [rdi+168], rax
 ret
takes_registers: mov [rdi+128], rax
 ret
at_times: test edi, edi
 jne .Lon
 xor edx, edx
.Lon: mov [rdx+168], rax
 ret
circles: add rdx, 8
 cmp rdx, rcx
 jne circles
 mov [rdx+160], rax
 ret
nothing: ret
"""
SETTING = (
    *("sets", "through_pointer", "through_stack", "kept", "hands_on", "goes_on", "at_times"),
)
OTHERS = ("reads", "other_field", "lost", "other_by_then", "nothing")


def test_what_a_sequence_may_have_in_it(assembled: Callable[[str], Code]) -> None:
    for texts, expected in ((ACCESSES, True), (NO_ACCESS, False)):
        code = assembled("main:\n" + "".join(f"{text}\n" for text in texts))
        found = decode(code.data, BASE)[: len(texts)]
        for text, instruction in zip(texts, found, strict=True):
            assert may_be_restarted(instruction) == expected, text


def test_frame_pointer(assembled: Callable[[str], Code]) -> None:
    (access,) = decode(assembled("main: mov eax, [rbp-8]").data, BASE)[:1]
    assert may_be_restarted(access)
    assert not may_be_restarted(access, has_frame=True)


def test_who_sets_the_place(assembled: Callable[[str], Code]) -> None:
    code = assembled(HANDLERS)

    def sets(name: str) -> bool:
        handler = read_function(code.symbols[name], code)
        return sets_place(handler, lambda at: read_function(at, code))

    assert [name for name in (*SETTING, *OTHERS) if sets(name)] == list(SETTING)
    assert sets("circles")  # by what it may have come to


SOURCE = """
#include <signal.h>
#include <ucontext.h>
extern char begin[], end[];
volatile greg_t seen[64];
volatile int count;
static void __attribute__((noinline)) back(greg_t *registers)
{
    char *at = (char *)registers[REG_RIP];
    if (at >= begin && at < end)
        registers[REG_RIP] = (greg_t)begin;
}
void sets(int n, siginfo_t *i, void *u)
{
    ucontext_t *context = u;
    (void)n, (void)i;
    back(context->uc_mcontext.gregs);
}
void reads(int n, siginfo_t *i, void *u)
{
    ucontext_t *context = u;
    (void)n, (void)i;
    seen[count++ & 63] = context->uc_mcontext.gregs[REG_RIP];
}
int main(void) { return 0; }
char begin[8], end[8];
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_compiled_handlers(compiler: str, level: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    (tmp_path / "handlers.c").write_text(SOURCE)
    command = [compiler, level, "-D_GNU_SOURCE", "-c", "handlers.c", "-o", "handlers.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    link = ["ld", f"-Ttext={BASE:#x}", "-e", "main", "handlers.o", "-o", "handlers"]
    subprocess.run(link, cwd=tmp_path, check=True)
    subprocess.run(
        ["objcopy", "-O", "binary", "-j", ".text", "handlers", "code"], cwd=tmp_path, check=True
    )
    told = subprocess.run(["nm", "handlers"], cwd=tmp_path, check=True, capture_output=True)
    rows = [line.split() for line in told.stdout.decode().splitlines()]
    symbols = {row[-1]: int(row[0], 16) for row in rows if row[1] in "Tt"}
    data = (tmp_path / "code").read_bytes()
    starts = [*sorted(symbols.values()), BASE + len(data)]
    parts = {name: (at, starts[starts.index(at) + 1]) for name, at in symbols.items()}
    code = Code(data, symbols, parts)
    for name, expected in (("sets", True), ("reads", False)):
        handler = read_function(symbols[name], code)
        assert sets_place(handler, lambda at: read_function(at, code)) == expected, name


def test_whose_handlers(assembled: Callable[[str], Code]) -> None:
    """The C library's are none, nor what cannot be read, nor one that is for one signal."""
    code = assembled(HANDLERS)
    image = SimpleNamespace(symbols=SimpleNamespace(names_at=lambda address: []))
    name = "server"
    program: Any = SimpleNamespace(
        module_at=lambda address: SimpleNamespace(name=name, bias=0, image=image),
        is_code=code.is_code,
        function=lambda address: read_function(address, code),
    )

    def own(address: int, flags: int = 0) -> list[int]:
        return list(own_handlers(program, [SIGALRM], lambda _: Handler(address, flags)))

    assert own(code.symbols["sets"]) == [SIGALRM]
    assert own(code.symbols["reads"]) == []
    assert own(code.symbols["sets"], 0x8000_0000) == []
    assert own(0x5000) == []
    name = "libc.so.6"
    assert own(code.symbols["sets"]) == []
