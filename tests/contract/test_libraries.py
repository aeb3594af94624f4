"""Which library a file is by its name is told in one place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.names import walk
from tests.contract.tree import ABOVE, ENGINE, parsed, python_files

FILES = [*ENGINE, *(file for package in sorted(ABOVE) for file in python_files(package))]
PLACE = Path("darc/model/libraries.py")

TOLD = re.compile(
    r"\W*(?:libc|libpthread)(?![\w+])|lib\(|\W*ld(?![\w+ ])"
    r"|_*(?:start_thread|libc_start_(?:call_)?main)$"
)
"""How a text begins by which the C library, the dynamic linker, or where threads begin is told."""
OTHERS = {("darc/model/contexts.py", "__libc_start"), ("darc/agent/build.py", "ld")}
"""Names that stay as they are where others lose what stands before them; the linker."""


def told(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in walk(tree):
        match node:
            case ast.Constant(value=str(text)) if TOLD.match(text):
                yield node.lineno, text


def test_libraries_and_where_threads_begin_are_told_in_one_place() -> None:
    wrong = [
        f"{file}:{line}: {text!r}: darc.model.libraries is asked"
        for file in FILES
        if file != PLACE
        for line, text in told(parsed(file))
        if (str(file), text) not in OTHERS
    ]
    assert not wrong, "\n".join(wrong)
    assert list(told(parsed(PLACE)))


@pytest.mark.parametrize(
    "line",
    [
        "name.startswith('libc.')",
        "name.startswith('ld')",
        "name.startswith(('ld-linux', 'x'))",
        "re.compile(r'lib(c|pthread)[.-]')",
        "re.compile(r'(libc|libpthread|ld)([-.].*)?')",
        "name == 'libc.so.6'",
        "starts = ('__libc_start_main',)",
        "name == 'start_thread'",
    ],
)
def test_what_is_seen(line: str) -> None:
    assert list(told(ast.parse(line))), line


@pytest.mark.parametrize(
    "line",
    [
        "'libc++.'",
        "'libcallscan.so'",
        "'libc6-dev'",
        "'ldd'",
        "'clone'",
        "'start_threads'",
        "'lib*'",
    ],
)
def test_what_is_none(line: str) -> None:
    assert not list(told(ast.parse(line))), line
