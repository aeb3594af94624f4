"""Names and sums tell of a processor as well as texts do: who may write those of x86-64."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.processorpage import told

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("darc", "darc_gdb", "darc_lldb", "kgdb")

OF_X86 = re.compile(
    r"(?<![a-z])(x86(_64)?|amd64|i386|[re]?flags|[re]([abcd]x|[sd]i|[sb]p|ip)|r(8|9|1[0-5])"
    r"|[xyz]mm\d+)(?![a-z0-9])",
    re.I,
)
STACKS = re.compile(r"slot|stack|cfa|(?<![a-z])sp(?![a-z])", re.I)
WHICH = {"darc/code/processor.py", "darc/pads/processor.py"}
"""They say which processor it is."""
NEUTRAL = {"flags"}
"""Words for other things, too."""


def words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What a file calls what it makes and uses, and its texts but for what it says of itself."""
    said = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.keyword(arg=str(name)):
                yield node.lineno, name
            case ast.Constant(value=str(name)) if id(node) not in said:
                yield node.lineno, name


def sums(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a stack's address is moved by the size of a return address."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(left, ast.Add() | ast.Sub(), ast.Constant(value=8)):
                if STACKS.search(ast.unparse(left)):
                    yield node.lineno, ast.unparse(node)


def known(tree: ast.AST) -> list[tuple[int, str]]:
    """What a file knows of x86-64."""
    named = ((line, one) for line, word in words(tree) for one in found_in(word))
    return [*named, *sums(tree)]


def found_in(word: str) -> Iterator[str]:
    """The words of x86-64 in a name or a text."""
    for one in OF_X86.finditer(word):
        if one[0].lower() not in NEUTRAL:
            yield one[0]


def test_who_knows_x86_64_is_told() -> None:
    may = told() | WHICH
    wrong = [
        f"{name}:{line}: {what}"
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        if (name := file.relative_to(ROOT).as_posix()) not in may
        for line, what in known(ast.parse(file.read_text()))
    ]
    assert not wrong, "docs/extending/architecture.md does not name:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "rsp = read(STACK_POINTER)",
        "slot = stack - 8",
        "def caught(self, rsp, end): pass",
        "find(rsp=0)",
        "call.slot + 8",
        "name = 'qemu-system-x86_64'",
        "kept = state.rbp",
        "from_r12 = 0",
    ],
)
def test_what_is_seen(line: str) -> None:
    assert known(ast.parse(line)), line


@pytest.mark.parametrize("line", ["flags = 0", "trip = 8", "ways + 8", "corsp = 1", "'r1'"])
def test_what_is_nothing_of_x86_64(line: str) -> None:
    assert not known(ast.parse(line)), line
