"""A floor names no file of what is above it: where its strings did, it could read, build or import
what no test of imports sees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc import FLOORS
from tests.contract.names import walk
from tests.contract.tree import ABOVE, ENGINE, floor, module_name, parsed


def told(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """The strings of a file's code, and whether each is a part of a path; docstrings and what
    stands below a name to describe it are none."""
    described = {
        id(node.value)
        for node in walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    parts = {
        id(one)
        for node in walk(tree)
        for one in (
            [node.left, node.right]
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            else node.args
            if isinstance(node, ast.Call)
            and re.search(r"(^|\.)(\w*[Pp]ath|with_name)$", ast.unparse(node.func))
            else []
        )
    }
    for node in walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in described:
                yield node.lineno, text, id(node) in parts
            case ast.Constant(value=bytes(raw)):
                yield node.lineno, raw.decode("latin-1"), id(node) in parts


def upwards(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file names one of a floor above its own, or of a package above all."""
    here = floor(module_name(file))
    assert here is not None
    higher = "|".join(FLOORS[here + 1 :])
    above = "|".join(sorted(ABOVE))
    patterns = [rf"(?<![\w-])({above})(?![\w-])"]
    if higher:
        patterns += [rf"(?<!\w)darc[./]({higher})(?!\w)", rf"(?<![\w.-])({higher})/\w+\.\w"]
    for line, text, is_part in told(tree):
        is_folder = is_part and re.fullmatch(rf"\W*({higher or above}|{above})\W*", text)
        if is_folder or any(re.search(pattern, text) for pattern in patterns):
            yield f"{file}:{line} names {text!r}"


def test_no_floor_names_files_of_higher_ones() -> None:
    wrong = [line for file in ENGINE for line in upwards(file, parsed(file))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "SCANS = ('debuggee/wordscan.c', 'code/callscan.c')",
        "HERE.parent / 'app' / 'presses.c'",
        "HERE.parent.joinpath('app', 'presses.c')",
        "HERE.with_name('app') / 'presses.c'",
        "open('../app/presses.c')",
        "open(b'darc/app/presses.c')",
        "resources.files('darc.app')",
        "f'darc.app.{name}'",
        "known['darc_gdb']",
        "open('kgdb/vm/cli.py')",
    ],
)
def test_a_way_up_is_noticed(text: str) -> None:
    (line,) = upwards(Path("darc/agent/build.py"), ast.parse(text))
    assert line.startswith("darc/agent/build.py:1 ")


@pytest.mark.parametrize(
    "text",
    [
        "'model/values.py'",
        "'no code/symbols there'",
        '"""``darc.app`` says so."""',
        "limit = 3\n'''As darc/app/app.py has it.'''",
        "'darc walk'",
    ],
)
def test_what_is_none(text: str) -> None:
    assert not list(upwards(Path("darc/agent/build.py"), ast.parse(text)))
