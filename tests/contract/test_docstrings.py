"""Each public method says what it means, in its class or in one that this one derives from.

Modules, classes and functions are looked at by ruff, which knows nothing of bases.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("darc", "darc_gdb", "darc_lldb", "kgdb")


class Class(NamedTuple):
    """One class; ``bases`` are the names of those that it derives from."""

    place: str
    node: ast.ClassDef
    bases: tuple[str, ...]


Known = dict[str, list[Class]]
"""Classes by their names."""


def known_classes(files: dict[str, str]) -> Known:
    known: Known = {}
    for place, text in files.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                bases = (b.value if isinstance(b, ast.Subscript) else b for b in node.bases)
                names = tuple(ast.unparse(base).rpartition(".")[2] for base in bases)
                known.setdefault(node.name, []).append(Class(place, node, names))
    return known


def methods(one: Class) -> Iterator[ast.FunctionDef]:
    return (node for node in one.node.body if isinstance(node, ast.FunctionDef))


def is_told(name: str, method: str, known: Known) -> bool:
    """Whether a class of this name, or a base, has such a method, or field, that is told of."""
    return any(
        any(m.name == method and ast.get_docstring(m) for m in methods(one))
        or any(
            isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == method
            for node in one.node.body
        )
        or any(is_told(base, method, known) for base in one.bases if base != name)
        for one in known.get(name, ())
    )


def is_property(method: ast.FunctionDef) -> bool:
    return any(ast.unparse(by).endswith("property") for by in method.decorator_list)


def untold(known: Known) -> list[str]:
    """Public methods of public classes. What a protocol asks of others is told of by one of these,
    or by its type."""
    classes = [one for alike in known.values() for one in alike]
    told = {m.name for one in classes for m in methods(one) if ast.get_docstring(m)}
    return [
        f"{one.place}:{method.lineno} {one.node.name}.{method.name}"
        for one in classes
        for method in methods(one)
        if not one.node.name.startswith("_")
        and not method.name.startswith("_")
        and not any(ast.unparse(by).endswith(".setter") for by in method.decorator_list)
        and not ("Protocol" in one.bases and (method.name in told or is_property(method)))
        and not is_told(one.node.name, method.name, known)
    ]


def test_public_methods_are_told_of() -> None:
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    texts = {str(file.relative_to(ROOT)): file.read_text() for file in files}
    wrong = untold(known_classes(texts))
    assert not wrong, "no docstring:\n" + "\n".join(wrong)


_BASE = """
class Base(Protocol[T]):
    def told(self) -> None:
        "What it is."
"""


def test_what_is_untold() -> None:
    def found(text: str) -> list[str]:
        return untold(known_classes({"a.py": _BASE, "b.py": text}))

    assert found("class One(Base[int]):\n  def told(self): ...") == []
    assert found("class One(Protocol):\n  def told(self): ...") == []
    assert found("class One:\n  def _own(self): ...") == []
    assert found("class One:\n  def told(self): ...") == ["b.py:2 One.told"]
    assert found("class One(Base[int]):\n  def more(self): ...") == ["b.py:2 One.more"]
