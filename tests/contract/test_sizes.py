"""How much one file, and one class, may be: what grows beyond that is two things.

Those that are larger than most have ceilings of their own, which are lowered as they are divided.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.contract.names import walk
from tests.contract.tree import INSTALLED, ROOT, parsed, python_files


class Size(NamedTuple):
    """What of something is counted."""

    lines: int
    methods: int = 0
    attributes: int = 0
    """Of each instance, by what its own methods set."""


FILE = Size(500)
CLASS = Size(350, 34, 18)
"""Ceilings of most."""

LARGER = {
    "darc/analyses/functionset.py FunctionProfiles": Size(350, 30, 22),
    "darc/analyses/rootcauses.py": Size(625),
    "darc/analyses/rootcauses.py RootCauses": Size(525, 46, 20),
    "darc/analyses/walk.py CallWalk": Size(300, 23, 24),
    "darc/app/app.py App": Size(400, 40, 11),
    "darc/code/architecture.py": Size(575),
    "darc/code/x86_64.py": Size(850),
    "darc/collectors/callees.py Callees": Size(400, 35, 12),
    "darc/collectors/pad_collector.py PadCollector": Size(350, 37, 21),
    "darc/debuggee/perf.py": Size(525),
    "darc/debuggee/process.py ProcessDebuggee": Size(225, 46, 3),
    "darc/debuggee/process_foothold.py ProcessFoothold": Size(400, 36, 9),
    "darc/debuggee/procfs.py": Size(675),
    "darc/pads/foothold.py Foothold": Size(425, 48, 10),
    "darc/pads/installer.py PadInstaller": Size(375, 36, 15),
    "darc/pads/returns.py ReturnLandings": Size(325, 36, 6),
    "darc/pads/x86_64.py": Size(750),
    "darc/saved/storage.py": Size(575),
    "darc/search/descent.py": Size(625),
    "darc/search/descent.py Descent": Size(475, 39, 20),
    "darc/search/suspects.py": Size(600),
    "darc_gdb/target.py GdbTarget": Size(350, 45, 20),
    "darc_lldb/stopping.py Stopping": Size(375, 25, 19),
    "kgdb/debuggee.py KernelDebuggee": Size(300, 37, 2),
}
"""and those of others, by file, or file and class."""


def size_of(node: ast.ClassDef) -> Size:
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    attributes = {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Store)
        and ast.unparse(one.value) == "self"
    }
    return Size((node.end_lineno or 0) - node.lineno + 1, len(methods), len(attributes))


def sizes(file: Path, tree: ast.Module) -> Iterator[tuple[str, int, Size, Size]]:
    """What a file has, by name, with its line, size and usual ceiling."""
    yield str(file), 1, Size(max((one.end_lineno or 0 for one in tree.body), default=0)), FILE
    for node in walk(tree):
        if isinstance(node, ast.ClassDef):
            yield f"{file} {node.name}", node.lineno, size_of(node), CLASS


def too_large(file: Path, tree: ast.Module) -> Iterator[str]:
    for name, line, size, usual in sizes(file, tree):
        ceiling = LARGER.get(name, usual)
        for what, has, most in zip(Size._fields, size, ceiling, strict=True):
            if has > most and most:
                yield f"{file}:{line} {name.rpartition(' ')[2]} has {has} {what}, above {most}"


FILES = [file for package in sorted(INSTALLED) for file in python_files(package)]


def test_nothing_grows_unseen() -> None:
    wrong = [line for file in FILES for line in too_large(file, parsed(file))]
    assert not wrong, "divide it, by what it is for:\n" + "\n".join(wrong)


def test_a_ceiling_of_its_own_is_needed() -> None:
    found = {
        name: (size, usual) for file in FILES for name, _, size, usual in sizes(file, parsed(file))
    }
    small = [
        name
        for name in LARGER
        if name not in found or all(has <= most for has, most in zip(*found[name], strict=True))
    ]
    assert not small, f"no larger than others: {', '.join(small)}"


def test_no_file_is_left_out_of_a_rule_that_lines_can_be() -> None:
    """Lines say by themselves why they are not as others."""
    options = tomllib.loads((ROOT / "ruff.toml").read_text())
    of_files = options["lint"]["per-file-ignores"]
    assert all(rules == ["D"] for rules in of_files.values()), "ruff.toml, per-file-ignores"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 0\n" * 501, "darc/x.py:1 darc/x.py has 501 lines, above 500"),
        ("class A:\n" + "    x = 0\n" * 350, "darc/x.py:1 A has 351 lines, above 350"),
        ("class A:\n" + "    def f(self): ...\n" * 35, "darc/x.py:1 A has 35 methods, above 34"),
        (
            "class A:\n    def f(self):\n" + "".join(f"        self.a{n} = 0\n" for n in range(19)),
            "darc/x.py:1 A has 19 attributes, above 18",
        ),
    ],
)
def test_what_has_grown_is_told(text: str, told: str) -> None:
    assert list(too_large(Path("darc/x.py"), ast.parse(text))) == [told]
