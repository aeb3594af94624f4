"""What 'make soak' has found, each on the smallest program that shows it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.debugger import EXIT, debug, undisturbed

ENDLESS = "--start-ops 1000000000"

LABELS = """
#include <stdio.h>
__asm__(
    ".globl twice, again\\n"
    ".type twice, @function\\n"
    ".type again, @function\\n"
    "twice: sub $8, %rsp; movq $7, (%rsp); call add_one\\n"
    "again: mov (%rsp), %rdx; lea (%rdx,%rdx), %rdx; mov %rdx, %rax; add $8, %rsp; ret\\n");
long counter;
void add_one(void) { counter++; }
long twice(void);
int main(void)
{
    long sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += twice();
    printf("%ld %ld\\n", sum, counter);
    return 0;
}
"""


@pytest.mark.parametrize("function", ["_start", "again"])
def test_code_that_no_call_enters(function: str, tmp_path: Path) -> None:
    """On top of the stack is a number of the program there, which must not be taken for a return
    address: refused in words."""
    program, source = tmp_path / "labels", tmp_path / "labels.c"
    source.write_text(LABELS)
    subprocess.run(["gcc", "-O2", "-o", program, source], check=True)
    start = f'eval "darc start *%p {ENDLESS}", &{function}'
    done = debug(tmp_path, program, (), ["starti", start, "continue", EXIT])
    assert (done.program_status, done.output) == undisturbed(program, ())
    assert re.search("not called|looks at its own return address", done.gdb), done.gdb


VERSIONS = """
#include <spawn.h>
#include <stdio.h>
int main(void)
{
    printf("%d\\n", posix_spawn != 0);
    return 0;
}
"""


def test_a_function_of_two_versions(tmp_path: Path) -> None:
    """The C library has two of posix_spawn, in one file: that which programs are linked with today
    is meant."""
    program, source = tmp_path / "versions", tmp_path / "versions.c"
    source.write_text(VERSIONS)
    subprocess.run(["gcc", "-O2", "-o", program, source], check=True)
    commands = ["break main", "run", "darc start posix_spawn", "darc stop"]
    done = debug(tmp_path, program, (), commands)
    assert "analyses posix_spawn: 'continue'" in done.gdb
    assert "every probe is out" in done.gdb
