"""A kind is compared with a kind, and never with the word for it: where the members of an enum are
strings, mypy takes one for the other."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.compared import held_against_words
from tests.contract.names import walk
from tests.contract.tree import INSTALLED, trees

WORDS = frozenset({"plural", "value"})
"""What has the word for a kind, for people and in files."""


def kinds_in(tree: ast.Module) -> Iterator[str]:
    """The enums of a file whose members are strings."""
    for node in walk(tree):
        if isinstance(node, ast.ClassDef) and {"str", "Enum"} <= set(map(ast.unparse, node.bases)):
            yield node.name


def named_in(tree: ast.Module, kinds: frozenset[str]) -> Iterator[str]:
    """What a file calls values of these ``kinds``, as it says by their types."""
    for node in walk(tree):
        match node:
            case (
                ast.AnnAssign(target=ast.Name(id=name), annotation=kind)
                | ast.AnnAssign(target=ast.Attribute(attr=name), annotation=kind)
                | ast.arg(arg=name, annotation=ast.expr() as kind)
                | ast.FunctionDef(name=name, returns=ast.expr() as kind)
            ):
                plain = ast.unparse(kind).removeprefix("ClassVar[").removesuffix("]")
                if plain.removesuffix(" | None") in kinds:
                    yield name


@functools.cache
def all_kinds() -> frozenset[str]:
    return frozenset(kind for tree in trees(INSTALLED).values() for kind in kinds_in(tree))


@functools.cache
def all_names() -> frozenset[str]:
    kinds = all_kinds()
    return frozenset(name for tree in trees(INSTALLED).values() for name in named_in(tree, kinds))


def told_by_words(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file compares a kind with a word: a plain name is one where it says so itself."""
    own = frozenset(named_in(tree, all_kinds()))
    for node in walk(tree):
        for side in held_against_words(node):
            match side:
                case ast.Attribute(attr=name) if name in all_names() | WORDS:
                    yield f"{file}:{side.lineno} compares {ast.unparse(side)}"
                case ast.Name(id=name) if name in own:
                    yield f"{file}:{side.lineno} compares {name}"


def test_kinds_are_no_words() -> None:
    assert {"kind", "probes", "status", "verdict"} <= all_names()
    wrong = [line for file, tree in trees(INSTALLED).items() for line in told_by_words(file, tree)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "collector.plural == 'pads'",
        "collector.kind == 'pad'",
        "kind.value != 'pad'",
        "snapshot.status in ('done', 'found')",
        "'pad' is parameters.probes",
        "def f(kind: Probes | None) -> bool:\n    return kind == 'pad'",
        "match snapshot.status:\n    case 'done': pass",
    ],
)
def test_a_kind_that_is_compared_with_a_word_is_noticed(text: str) -> None:
    assert list(told_by_words(Path("darc/x.py"), ast.parse(text)))
