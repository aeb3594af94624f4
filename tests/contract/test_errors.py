"""Errors are of one family, as :mod:`darc.model.errors` says, but for those that it tells of."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from tests.contract.names import name_of, names_in, walk
from tests.contract.tree import INSTALLED, trees

OTHERS = {"NotNowError"}
PLAIN = {
    *("AssertionError", "FileNotFoundError", "ImportError", "IndexError", "NotImplementedError"),
    *("OSError", "RuntimeError", "ValueError"),
    "GdbError",  # by which gdb's commands print what is of the family
}
"""Python's own that are raised: of what reads texts, files and the kernel's answers, of what cannot
be loaded, and of what is never to happen; and gdb's."""


@functools.cache
def classes() -> dict[str, tuple[list[str], Path]]:
    """Those of errors, each with what it is made from and its file."""
    return {
        node.name: ([ast.unparse(base).rpartition(".")[2] for base in node.bases], file)
        for file, tree in trees(INSTALLED).items()
        for node in walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    }


def is_of_the_family(name: str) -> bool:
    bases, _ = classes().get(name, ([], None))
    return name == "DarcError" or any(map(is_of_the_family, bases))


def words(tree: ast.Module) -> set[str]:
    """The names in a file."""
    found = set()
    for node in walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                found.add(name)
            case ast.ClassDef(name=name):
                found.add(name)
    return found


def test_errors_that_others_see_are_of_one_family() -> None:
    strange = {name for name in classes() if not is_of_the_family(name) and name[0] != "_"}
    assert strange == OTHERS
    told = ast.get_docstring(trees(INSTALLED)[Path("darc/model/errors.py")]) or ""
    assert set(re.findall(r"``(\w+Error)``", told)) <= OTHERS | PLAIN


def test_others_stay_in_their_module() -> None:
    own = {name: file for name, (_, file) in classes().items() if not is_of_the_family(name)}
    assert len(own) > 3
    for name in own.keys() - OTHERS:
        has_it = {file for file, tree in trees(INSTALLED).items() if name in words(tree)}
        assert has_it == {own[name]}
        text = ast.unparse(trees(INSTALLED)[own[name]])
        assert re.search(rf"(except|suppress\() ?{name}", text), f"{own[name]}: nobody takes {name}"


def test_what_is_raised_is_told_of() -> None:
    wrong = []
    for file, tree in trees(INSTALLED).items():
        names = names_in(tree)
        for node in walk(tree):
            if not isinstance(node, ast.Raise) or node.exc is None:
                continue
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = name_of(raised, names).rpartition(".")[2]
            if name.endswith("Error") and name not in PLAIN and name not in classes():
                wrong.append(f"{file}:{node.lineno} raises {name}")
    assert not wrong, "\n".join(wrong)


TEXTS = {
    "darc/model/domains.py:_task": "a number or a name, as it was typed",
    "darc/app/commands/views.py:_row": "a number or a name, as it was typed",
}
"""Functions that return something else or a text that is no reason."""


def values_or_texts(tree: ast.Module) -> Iterator[str]:
    """Functions of a file that return a value of some kind, or a string."""
    for node in walk(tree):
        match node:
            case ast.FunctionDef(name=name, returns=ast.BinOp() as returned):
                kinds = set(ast.unparse(returned).split(" | "))
                if "str" in kinds and kinds - {"str", "None"}:
                    yield name


def test_why_there_is_no_value_is_a_refusal() -> None:
    """A string in its place could as well be a value, and is told from another by its identity."""
    found = {
        f"{file}:{name}"
        for file, tree in trees(INSTALLED).items()
        for name in values_or_texts(tree)
    }
    assert found == TEXTS.keys(), "see darc/model/refusal.py"
