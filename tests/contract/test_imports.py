"""Which way imports may go: the engine knows no debugger, and what is pure knows no program."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEBUGGERS = {"gdb", "lldb", "darc_gdb", "darc_lldb", "kgdb"}
PURE = ("bars", "decision", "contest", "descent", "endings", "errors", "ftree", "peaks", "profile")
"""Numbers and names in, numbers and names out: tested without any program."""

NOT_PURE = {"target", "session", "app", "implant", "foothold", "procfs", "agent", "pads", "code"}
NOT_PURE |= {
    "breakpoints",
    "ground",
    "process_ground",
    "process_foothold",
    "admission",
    "analysis",
    "callees",
    "collector",
    "guards",
    "heart",
}
NOT_PURE |= {"breakpoints", "instrumentation", "pad_collector", "process_foothold"}
ENGINE = sorted(p.relative_to(ROOT) for p in (ROOT / "darc").rglob("*.py"))


def module_name(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def imported(file: Path) -> set[str]:
    """Every module that a file imports anywhere, also inside functions, by its full name."""
    package = list(file.with_suffix("").parts[:-1])
    found = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            found.update({name, *(f"{name}.{alias.name}" for alias in node.names)})
    return found


@pytest.mark.parametrize("file", ENGINE, ids=str)
def test_the_engine_knows_no_debugger(file: Path) -> None:
    assert not {name.split(".")[0] for name in imported(file)} & DEBUGGERS


@pytest.mark.parametrize("name", PURE)
def test_what_is_pure_knows_no_program(name: str) -> None:
    """Neither by itself nor by what it imports."""
    files = {module_name(file): file for file in ENGINE}
    seen: set[str] = set()
    todo = [f"darc.{name}"]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        todo += [other for other in imported(files[current]) if other in files]
    reached = {module.split(".")[1] for module in seen if module.startswith("darc.")}
    assert not reached & NOT_PURE


def test_a_target_knows_nothing_of_the_engine() -> None:
    """Debugger packages can be written against it alone."""
    own = {name for name in imported(Path("darc/target.py")) if name.startswith("darc")}
    assert not own


def test_the_engine_is_imported_without_a_debugger() -> None:
    names = [module_name(file) for file in ENGINE if file.name != "build.py"]
    program = "import sys\n" + "".join(f"import {name}\n" for name in names)
    program += f"assert not {DEBUGGERS!r} & set(sys.modules)\n"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
