"""Which addresses of code stand in a file's data."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from darc.code.elf import read_image

SOURCE = r"""
.text
.globl _start, plain, labelled, twice, inside
.type _start, @function
_start: ret
.balign 16
.type plain, @function
plain:
    push %rbx
    mov %rdi, %rbx
    pop %rbx
    ret
.size plain, . - plain
.type labelled, @function
labelled:
    push %rbx
.Lhere:
    mov %rdi, %rbx
    pop %rbx
    ret
.size labelled, . - labelled
.type twice, @function
twice:
    push %rbx
.type inside, @function
inside:
    mov %rdi, %rbx
    pop %rbx
    ret
.size twice, . - twice
.size inside, . - inside
.data
.balign 8
    .quad plain, 0, .Lhere, 7, labelled
    .skip 1000
    .quad twice
.section .note.GNU-stack, "", @progbits
"""


@pytest.mark.parametrize(
    "flags",
    [
        ("-shared",),
        ("-static-pie",),
        ("-no-pie", "-static"),
        ("-shared", "-Wl,-z,pack-relative-relocs"),
    ],
    ids=" ".join,
)
def test_a_label_in_a_table_is_entered(flags: tuple[str, ...], tmp_path: Path) -> None:
    """Whether what is in the data is relocated or stands there as it is."""
    source, made = tmp_path / "labels.s", tmp_path / "labels"
    source.write_text(SOURCE)
    subprocess.run(["gcc", *flags, "-nostdlib", "-o", made, source], check=True, timeout=60)
    image = read_image(made, "labels")
    at = {one.name: one.address for one in image.symbols}
    entered = {name for name in at if image.pointers.lie_between(at[name], at[name] + 5)}
    assert entered == {"labelled"}
    assert image.symbols.next_above(at["twice"]) == at["inside"]
