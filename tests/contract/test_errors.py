"""Errors are of one family, as :mod:`darc.model.errors` says, but for those that it tells of."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.contract.names import name_of, names_in, walk
from tests.contract.tree import ROOT, parsed

PACKAGES = ("darc", "darc_gdb", "darc_lldb", "kgdb")
OTHERS = {"NotNowError"}
PLAIN = {
    *("AssertionError", "FileNotFoundError", "ImportError", "IndexError", "NotImplementedError"),
    *("OSError", "RuntimeError", "ValueError"),
    "GdbError",  # by which gdb's commands print what is of the family
}
"""Python's own that are raised: of what reads texts, files and the kernel's answers, of what cannot
be loaded, and of what is never to happen; and gdb's."""

TREES = {
    file.relative_to(ROOT): parsed(file)
    for package in PACKAGES
    for file in sorted((ROOT / package).rglob("*.py"))
}
CLASSES = {
    node.name: ([ast.unparse(base).rpartition(".")[2] for base in node.bases], file)
    for file, tree in TREES.items()
    for node in walk(tree)
    if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
}


def is_of_the_family(name: str) -> bool:
    bases, _ = CLASSES.get(name, ([], None))
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
    strange = {name for name in CLASSES if not is_of_the_family(name) and name[0] != "_"}
    assert strange == OTHERS
    told = ast.get_docstring(TREES[Path("darc/model/errors.py")]) or ""
    assert set(re.findall(r"``(\w+Error)``", told)) <= OTHERS | PLAIN


def test_others_stay_in_their_module() -> None:
    own = {name: file for name, (_, file) in CLASSES.items() if not is_of_the_family(name)}
    assert len(own) > 3
    for name in own.keys() - OTHERS:
        has_it = {file for file, tree in TREES.items() if name in words(tree)}
        assert has_it == {own[name]}
        text = ast.unparse(TREES[own[name]])
        assert re.search(rf"(except|suppress\() ?{name}", text), f"{own[name]}: nobody takes {name}"


def test_what_is_raised_is_told_of() -> None:
    wrong = []
    for file, tree in TREES.items():
        names = names_in(tree)
        for node in walk(tree):
            if not isinstance(node, ast.Raise) or node.exc is None:
                continue
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = name_of(raised, names).rpartition(".")[2]
            if name.endswith("Error") and name not in PLAIN and name not in CLASSES:
                wrong.append(f"{file}:{node.lineno} raises {name}")
    assert not wrong, "\n".join(wrong)
