"""Programs whose code no processor executes are known by the files that are mapped."""

from __future__ import annotations

import pytest

from darc.debuggee.emulators import emulator

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/usr/libexec/valgrind/none-amd64-linux", "Valgrind"),
        ("/usr/libexec/valgrind/vgpreload_core-amd64-linux.so", "Valgrind"),
        ("/opt/DynamoRIO/lib64/release/libdynamorio.so", "DynamoRIO"),
        ("/opt/pin/intel64/bin/pinbin", "Intel's Pin"),
        ("/run/rosetta/rosetta", "Rosetta"),
        ("/home/me/valgrind", None),
        ("/usr/bin/server-amd64-linux", None),
        ("/usr/bin/qemu-x86_64", None),
        ("/home/me/rosettacode/server", None),
    ],
)
def test_what_is_mapped(file: str, expected: str | None) -> None:
    assert emulator([LIBC, file]) == expected
    assert emulator([LIBC]) is None
