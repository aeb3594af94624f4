"""Addresses that a function begins at, and such as lie in the middle of one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from darc.code.elf import Image
from darc.code.midway import why_none
from darc.code.modules import load_image
from darc.code.spelling import find_symbols

SOURCE = r"""
#include <stdio.h>

__attribute__((noinline)) int pushing(int a, int b)
{
    return printf("%d", a) + printf("%d", b);
}

__attribute__((noinline)) int leaf(int x)
{
    return x / 3 + x / 5 + x / 7;
}

int unframed(int), second(int), third(int), guarded(int);

__asm__(
    ".text\n.globl unframed\n.type unframed, @function\nunframed:\n"
    " push %rbx\n mov %edi, %ebx\n call hidden\n add %ebx, %eax\n pop %rbx\n ret\n nop\n nop\n"
    "hidden: mov %edi, %eax\n inc %eax\n ret\n.size unframed, . - unframed\n"
    ".globl second\n.globl third\n.type second, @function\n.type third, @function\n"
    ".cfi_startproc\nsecond: mov %edi, %eax\n ret\n.size second, . - second\n"
    "third: mov %edi, %eax\n nop\n nop\n ret\n.size third, . - third\n.cfi_endproc\n"
    ".globl guarded\n.globl label\n.type guarded, @function\n.type label, @function\n"
    ".cfi_startproc\nguarded: push %rbx\n.cfi_adjust_cfa_offset 8\n mov %edi, %ebx\n"
    "label: mov %ebx, %eax\n pop %rbx\n.cfi_adjust_cfa_offset -8\n ret\n"
    ".size guarded, . - guarded\n.cfi_endproc\n"
    ".type guarded.cold, @function\n.cfi_startproc\n.cfi_def_cfa_offset 16\n"
    "guarded.cold: inc %ebx\n jmp label\n"
    ".size guarded.cold, . - guarded.cold\n.cfi_endproc\n"
);

int main(int argc, char **argv)
{
    return pushing(argc, 1) + leaf(argc) + unframed(argc) + second(1) + third(2) + guarded(3);
}
"""

FUNCTIONS = ("pushing", "leaf", "main", "unframed", "second", "third", "guarded")


def built(folder: Path) -> Path:
    source, program = folder / "program.c", folder / "program"
    source.write_text(SOURCE)
    flags = ["-O2", "-no-pie", "-fno-inline"]
    subprocess.run(["gcc", *flags, "-o", program, source], check=True, timeout=60)
    return program


def stripped(program: Path) -> Image:
    bare = program.with_name("bare")
    subprocess.run(["strip", "-s", "-o", bare, program], check=True, timeout=60)
    return load_image(bare)


def place(image: Image, name: str) -> int:
    """Where a symbol is, whatever it is of."""
    (found,) = (symbol.address for symbol in image.symbols if symbol.name == name)
    return found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("midway"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_begin_where_their_symbols_are(program: Path, name: str) -> None:
    image = load_image(program)
    at = place(image, name)
    assert why_none(image, at) is None
    for behind in (1, 2):
        if (why := why_none(image, at + behind, 0x1000)) is None:
            pytest.fail(f"{name}+{behind} was taken for a function")
        assert why == (
            f"{at + behind + 0x1000:#x}, {name}+{behind}, lies within {name}: "
            f"take *{at + 0x1000:#x}, where that begins"
        )


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("third", "unframed")])
def test_functions_begin_where_frame_descriptions_do(program: Path, name: str) -> None:
    at, image = place(load_image(program), name), stripped(program)
    assert why_none(image, at) is None
    told = f"lies within the function at {at:#x}: take *{at:#x}, where that begins"
    assert why_none(image, at + 1) == f"{at + 1:#x} {told}"


def test_a_function_is_what_calls_lead_to(program: Path) -> None:
    """In the middle of one with a name, and behind another one in one frame description."""
    named = load_image(program)
    bare = stripped(program)
    assert why_none(named, place(named, "hidden")) is None
    assert why_none(bare, place(named, "third")) is None
    assert why_none(bare, place(named, "third") + 1) is not None


def test_of_code_that_nothing_tells_of_nothing_is_said(program: Path) -> None:
    named = load_image(program)
    assert why_none(stripped(program), place(named, "unframed")) is None


def test_a_label_with_a_frame_of_its_function_is_none(program: Path) -> None:
    image = load_image(program)
    why = why_none(image, place(image, "label"))
    assert why is not None
    assert "lies within guarded: " in why


@pytest.mark.parametrize(("is_stripped", "whose"), [(False, "guarded"), (True, "a function")])
def test_what_was_put_aside_is_no_function(program: Path, is_stripped: bool, whose: str) -> None:
    named = load_image(program)
    image = stripped(program) if is_stripped else named
    at = place(named, "guarded.cold")
    for behind in (0, 1):
        why = why_none(image, at + behind)
        assert why is not None
        assert f"lies in a part of {whose} that its compiler put aside: " in why


PADDED = """
int work(int x) { return x; }
int other(int x) { return x + 1; }
int __pfx_work(int) __attribute__((alias("other")));
__asm__(
    ".section .text.padded,\\"ax\\"\\n.globl read_it\\n"
    ".type __pfx_read_it, @function\\n.type __cfi_read_it, @function\\n"
    ".type read_it, @function\\n"
    "__pfx_read_it: .skip 16, 0x90\\n.size __pfx_read_it, . - __pfx_read_it\\n"
    "__cfi_read_it = __pfx_read_it\\n.size __cfi_read_it, 16\\n"
    "read_it: mov %edi, %eax\\n ret\\n.size read_it, . - read_it\\n"
);
"""


def test_the_room_before_a_function_is_none(tmp_path: Path) -> None:
    """As in kernels and with clang's checks; a function that only is called so is one."""
    source, made = tmp_path / "padded.c", tmp_path / "padded.so"
    source.write_text(PADDED)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, source], check=True, timeout=60)
    image = load_image(made)
    assert find_symbols([(image.symbols, 0)], "read_it")
    assert not find_symbols([(image.symbols, 0)], "__pfx_read_it")
    assert not find_symbols([(image.symbols, 0)], "__cfi_read_it")
    assert find_symbols([(image.symbols, 0)], "__pfx_work")
