"""The tree's files: on which floor each is, and what it imports."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from darc import FLOORS
from tests.contract.names import name_of, names_in, walk

ROOT = Path(__file__).resolve().parents[2]
ABOVE = {"darc_gdb", "darc_lldb", "kgdb"}
"""Packages that are written on ``darc`` and that it must not know."""

OUTER = {*ABOVE, "kgdb/vm", "benchmarks"}
"""Packages around the floors; one in another is a package of its own."""

INSTALLED = {"darc", *ABOVE}
PROJECT = {*INSTALLED, "benchmarks", "fixtures", "tests", "tools"}
"""Those that users have, and all packages."""

ENGINE = sorted(p.relative_to(ROOT) for p in (ROOT / "darc").rglob("*.py"))


class Import(NamedTuple):
    """One import in one line; ``name`` is the module's full name."""

    file: Path
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.name}"


def module_name(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


MODULES = {
    module_name(file.relative_to(ROOT))
    for package in sorted(PROJECT)
    for file in (ROOT / package).rglob("*.py")
}
"""Whatever ``from package import name`` may mean by a name that is a module."""


def parsed(file: Path) -> ast.Module:
    """The text of a file of the tree. It is parsed once for all tests, of which none changes it."""
    return _parsed(ROOT / file)


@functools.cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(), str(file))


def trees(packages: Iterable[str]) -> dict[Path, ast.Module]:
    """Each file of the packages with its text. A test asks for them when it runs: that all tests of
    the tree did so where they are collected took longer than the rest of that."""
    return {file: parsed(file) for package in sorted(packages) for file in python_files(package)}


def imports(file: Path) -> tuple[Import, ...]:
    """Every module that a file imports anywhere, also inside functions."""
    return imports_in(file, parsed(file))


@functools.cache
def imports_in(file: Path, tree: ast.Module) -> tuple[Import, ...]:
    """Those of the text of a file; a module that is named behind its package is one as well."""
    return tuple(_imports(file, tree))


def _imports(file: Path, tree: ast.Module) -> Iterator[Import]:
    package = list(file.with_suffix("").parts[:-1])
    names = names_in(tree)
    for node in walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{name}.{alias.name}"
                yield Import(file, node.lineno, full if full in MODULES else name)
        elif isinstance(node, ast.Attribute) and (full := name_of(node, names)) in MODULES:
            yield Import(file, node.lineno, full)


HOUSE = -1
"""Below all floors: what ``darc`` itself has, each of them may import."""


def floor(module: str) -> int | None:
    """The floor that a module of darc's stands on; ``None``: on none, or it is not darc's."""
    parts = module.split(".")
    if parts == ["darc"]:
        return HOUSE
    if parts[0] != "darc" or parts[1] not in FLOORS:
        return None
    return FLOORS.index(parts[1])


def python_files(package: str) -> list[Path]:
    return sorted(p.relative_to(ROOT) for p in (ROOT / package).rglob("*.py"))


def home(name: str) -> str:
    """The floor, or the package above them, that a module is of."""
    parts = name.split(".")
    if "/".join(parts[:2]) in OUTER:
        return "/".join(parts[:2])
    return parts[1] if parts[0] == "darc" and len(parts) > 1 else parts[0]


def groups(folder: str) -> list[tuple[str, list[str]]]:
    """In which groups the files of a floor are read, the lowest first, as the page tells."""
    page = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(rf"^\| `darc/{folder}/` \| ([\w ,-]+) \| .* \| (`[^|]*`) \|$", page, re.M)
    return [(group, re.findall(r"`(\w+)\.py`", files)) for group, files in rows]
