"""Which library a file is by its name, and which functions threads begin in."""

from __future__ import annotations

import pytest

from darc.model.libraries import (
    is_c_library,
    is_glibc,
    is_later_start,
    is_loader,
    is_thread_start,
    plain_name,
)

C, LOADER, GLIBC = "C", "the dynamic linker", "GNU's"
FILES = {
    "libc.so.6": {C, GLIBC},
    "libpthread.so.0": {C, GLIBC},
    "libc-2.31.so": {C},
    "libpthread-2.31.so": {C},
    "libc.so": {C},
    "libc.musl-x86_64.so.1": {C},
    "ld-musl-x86_64.so.1": {C, LOADER},
    "ld-linux-x86-64.so.2": {LOADER},
    "ld-2.31.so": {LOADER},
    "ld.so.1": {LOADER},
    "ld64.so.1": {LOADER},
    "libc++.so.1": set(),
    "libc-client.so.2007e": set(),
    "libcrypto.so.3": set(),
    "libcap.so.2": set(),
    "libc_malloc_debug.so.0": set(),
    "libpthreadpool.so": set(),
    "libm.so.6": set(),
    "ld": set(),
    "ldapsearch": set(),
    "libldap-2.5.so.0": set(),
    "server": set(),
    "[vdso]": set(),
    "": set(),
}


@pytest.mark.parametrize(("file", "what"), FILES.items())
def test_each_file_is_told_by_its_name(file: str, what: set[str]) -> None:
    asked = {C: is_c_library, LOADER: is_loader, GLIBC: is_glibc}
    assert {one for one, ask in asked.items() if ask(file)} == what


@pytest.mark.parametrize(
    ("symbol", "is_start", "is_later"),
    [
        ("start_thread", True, True),
        ("clone", True, True),
        ("__clone", True, True),
        ("__clone3", True, True),
        ("__libc_start_main@@GLIBC_2.34", True, False),
        ("__libc_start_call_main", True, False),
        ("_start", False, False),
        ("main", False, False),
        ("restart_thread", False, False),
    ],
)
def test_where_threads_begin(symbol: str, is_start: bool, is_later: bool) -> None:
    assert is_thread_start(symbol) is is_start
    assert is_later_start(symbol) is is_later


def test_a_plain_name_has_no_underscores_and_no_version() -> None:
    assert plain_name("__poll") == plain_name("poll@@GLIBC_2.2.5") == "poll"
