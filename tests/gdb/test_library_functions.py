"""The C library's own functions as f0, hand-written ones too: whatever darc says, the program does
the same as ever. Some of them are entered in the middle by another function, some are chosen by
resolvers, some are called before the program's first line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.build import build, find
from tests.debugger import IN_LLDB_AT_NIGHT, debug, undisturbed

pytestmark = IN_LLDB_AT_NIGHT

FUNCTIONS = [
    "memcpy",
    "memmove",
    "strlen",
    "malloc",
    "free",
    "printf",
    "vfprintf",
    "clock_nanosleep",
    "libc.so.6!__memcpy_avx_unaligned_erms",
    "ld-linux-x86-64.so.2!memcpy",
    "_dl_fixup",
    "_start",
    "__libc_start_main",
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_program_is_unharmed(function: str, tmp_path: Path) -> None:
    fixture, program = find("plt"), build("plt")
    commands = [f"darc start {function} --peak last --start-ops 20", "run", "continue"]
    done = debug(tmp_path, program, fixture.args, commands)
    assert done.output == undisturbed(program, fixture.args)[1]
    assert "SIG" not in done.gdb, done.gdb
    assert "internal error" not in done.gdb, done.gdb


WATCHED = {
    **dict.fromkeys(("longjmp", "siglongjmp", "__longjmp_chk", "_exit"), "it never returns"),
    **dict.fromkeys(("sigaction", "prctl"), "darc watches it itself"),
}


@pytest.mark.parametrize("function", WATCHED)
def test_what_darc_watches_itself_is_refused(function: str, tmp_path: Path) -> None:
    """By its name and why, not as code that somebody has changed."""
    fixture, program = find("plt"), build("plt")
    commands = ["tbreak handle", "run", f"darc start {function}"]
    done = debug(tmp_path, program, fixture.args, commands)
    assert f"darc: cannot time {function}: {WATCHED[function]}" in done.gdb
    assert "has changed" not in done.gdb
