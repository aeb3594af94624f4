"""What names mean in a file of Python: what was imported, also by another name."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping

Names = Mapping[str, str]
"""What a name means that was imported, or given to what was: ``{"Work": "threading.Thread", "osp":
"os.path", "o": "os"}``."""

UNKNOWN = "?"
"""The attribute that is taken by a name that is made while the program runs."""


@functools.cache
def walk(tree: ast.AST) -> tuple[ast.AST, ...]:
    """As :func:`ast.walk`, once for all tests: a tree is one of those that are kept."""
    return tuple(ast.walk(tree))


@functools.cache
def names_in(tree: ast.AST) -> Names:
    """What names mean in it."""
    found: dict[str, str] = {}
    for node in walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                whole = one.name if one.asname else one.name.split(".")[0]
                found[one.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.update(
                {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
            )
    _add_others(tree, found)
    return found


def _add_others(tree: ast.AST, found: dict[str, str]) -> None:
    """Names that are given to what another one means: ``o = os``, ``end = o.kill``."""
    given = [
        (target.id, node.value)
        for node in walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    for _ in given:
        more = {
            name: name_of(value, found)
            for name, value in given
            if name not in found and name_of(value, found).split(".")[0] in found.values()
        }
        if not more:
            break
        found.update(more)


def name_of(node: ast.expr, names: Names) -> str:
    """``os.open``, ``open``; of a method of what is no name, ``.open``; by ``getattr`` as well."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value, names)}.{node.attr}"
    if isinstance(node, ast.Call) and name_of(node.func, names) in ("getattr", "builtins.getattr"):
        whose, *word = node.args[:2]
        text = word[0].value if word and isinstance(word[0], ast.Constant) else None
        return f"{name_of(whose, names)}.{text if isinstance(text, str) else UNKNOWN}"
    return ""


def imported(tree: ast.AST) -> list[tuple[int, str]]:
    """The lines that import, and the full name of what each does, but of relative ones."""
    found = []
    for node in walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, one.name) for one in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found += [(node.lineno, f"{node.module}.{one.name}") for one in node.names]
    return found
