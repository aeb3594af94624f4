"""What a folder's ``__init__`` says that nothing there does, beside what it imports
(``test_imports.py``) and reaches (``test_outside.py``)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from darc import FLOORS
from tests.contract.names import name_of, names_in, walk
from tests.contract.tree import (
    ABOVE,
    ENGINE,
    INSTALLED,
    PROJECT,
    ROOT,
    imports_in,
    parsed,
    python_files,
)

Finds = Callable[[Path, ast.Module], Iterator[str]]

WRITERS = {
    "darc/pads/": "pads, and what leads there",
    "darc/debuggee/": "what a process needs for them",
    "darc/collectors/standstill.py": "return addresses, back where a stop was",
}
"""Who writes into the program, through its debugger."""

BREAKERS = {
    "darc/collectors/breakplaces.py": "those that collect",
    "darc/app/waiting.py": "where something is waited for",
}
"""Who sets breakpoints."""

DRAWERS = {"darc/views/": "text for people"}
"""Who draws."""

STYLERS = {
    "darc/views/": "a file's, and what is drawn within a drawing",
    "darc/app/app.py": "the terminal's",
}
"""Who makes a style: all that is shown on a terminal is in one, by the same parameters."""

COMMANDS = "darc/app/commands/"
OF_SESSIONS = {"alive", "analysis", "follow", "root", "spec", "stored"}
"""What commands use of a session: all else is the application's."""

MARKERS = {"darc/target/ownthread.py": "which methods are for any thread"}
"""Who gives functions attributes."""

COMPUTING = {
    *("__future__", "abc", "bisect", "collections", "contextlib", "dataclasses", "enum"),
    *("functools", "itertools", "math", "re", "statistics", "struct", "typing"),
}
"""Modules of Python by which nothing outside is reached."""

ASKING = {
    "darc/pads/": {"iced_x86"},
    "darc/analyses/": {"threading", "time"},
    "darc/session/": {"time"},
    "darc/collectors/": {"gc", "sys", "time"},
}
"""Floors that ask the system nothing, and what they import beside :data:`COMPUTING`."""

STARTING = {"tests.debugger": "WATCHDOG_SECONDS ROOT", "tests.lldb.runner": ""}
"""What starts debuggers, and what it has for those who start none."""

SCRIPTS = {Path("benchmarks/soak/scripts")}
"""Folders of programs that are run, and no packages."""

WITHOUT_DEBUGGERS = ("tests/unit/", "tests/agent/", "tests/system/", "fixtures/")


def writes(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file writes memory or registers of what is debugged."""
    for node in walk(tree):
        match node:
            case ast.Attribute(value=of, attr="write" | "write_code") if _is(of, "memory"):
                yield f"{file}:{node.lineno} has {ast.unparse(node)}"
            case ast.Attribute(attr="write_register"):
                yield f"{file}:{node.lineno} has {ast.unparse(node)}"


def _is(node: ast.expr, name: str) -> bool:
    """Whether that is called so, or is what something else has by that name."""
    last = node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)
    return last.lstrip("_") == name


def breaks(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file sets breakpoints."""
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"set_break", "break_once"}:
            yield f"{file}:{node.lineno} has {ast.unparse(node)}"


def draws(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file imports what draws."""
    for one in imports_in(file, tree):
        if one.name.split(".")[0] == "rich":
            yield str(one)


def drives(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a command does more with a session, or anything with a program or a debugger."""
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and node.attr not in OF_SESSIONS:
            of = node.value
            if _is(of, "session") or (isinstance(of, ast.Call) and _is(of.func, "need_session")):
                yield f"{file}:{node.lineno} has {ast.unparse(node)}"
    for one in imports_in(file, tree):
        if re.match(r"darc\.(target|debuggee|pads)\b|darc\.code\.program", one.name):
            yield str(one)


def styles(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file makes a style of its own."""
    names = names_in(tree)
    for node in walk(tree):
        if isinstance(node, ast.Call) and name_of(node.func, names) == "darc.views.style.Style":
            yield f"{file}:{node.lineno} has {ast.unparse(node)}"


def asks(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file of a floor that asks the system nothing imports more than it needs to
    compute."""
    more = next((has for floor, has in ASKING.items() if str(file).startswith(floor)), None)
    for one in imports_in(file, tree):
        if more is not None and one.name.split(".")[0] not in {*COMPUTING, *more, "darc"}:
            yield str(one)


def knows_the_project(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a fixture imports what is tried on it."""
    for one in imports_in(file, tree):
        if one.name.split(".")[0] in PROJECT - {"fixtures"}:
            yield str(one)


def needs_what_stays(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file that is installed imports one that is not."""
    for one in imports_in(file, tree):
        if one.name.split(".")[0] in PROJECT - INSTALLED:
            yield str(one)


def starts_debuggers(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file imports what starts one."""
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in STARTING:
            yield from (
                f"{file}:{node.lineno} imports {node.module}.{one.name}"
                for one in node.names
                if one.name not in STARTING[node.module].split()
            )
    for one in imports_in(file, tree):
        if one.name.split(".")[0] in {"gdb", "lldb"}:
            yield str(one)


def assigns_to_others(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file gives attributes to what is not the object or the class that it is about."""
    for node in walk(tree):
        match node:
            case ast.Attribute(value=of, ctx=ast.Store() | ast.Del()) if not _is_own(of):
                yield f"{file}:{node.lineno} assigns to {ast.unparse(node)}"
    yield from assigns_unseen(file, tree)


SETTERS = {"setattr", "delattr", "object.__setattr__", "object.__delattr__"}


def assigns_unseen(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file gives attributes by a name that is a value, to such a one."""
    for node in walk(tree):
        match node:
            case ast.Call(func=by, args=[of, *_]) if ast.unparse(by) in SETTERS:
                is_wrong = not _is_own(of)
            case ast.Subscript(value=of, ctx=ast.Store() | ast.Del()):
                is_wrong = _is_dict(of)
            case ast.Call(func=ast.Attribute(value=of, attr="update" | "setdefault" | "pop")):
                is_wrong = _is_dict(of)
            case _:
                continue
        if is_wrong:
            yield f"{file}:{node.lineno} has {ast.unparse(node)}"


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def _is_dict(node: ast.expr) -> bool:
    """Whether that is all attributes of something."""
    return ast.unparse(node).startswith("vars(") or ast.unparse(node).endswith(".__dict__")


ENGINES = [str(file) for file in ENGINE]
WHOLE = [str(file) for package in sorted(INSTALLED) for file in python_files(package)]
RULES: dict[str, tuple[Finds, list[str], tuple[str, ...]]] = {
    "writes into a program": (writes, ENGINES, ("darc/target/", *WRITERS)),
    "sets breakpoints": (breaks, ENGINES, ("darc/target/", *BREAKERS)),
    "draws": (draws, ENGINES, tuple(DRAWERS)),
    "drives a session": (drives, [file for file in ENGINES if file.startswith(COMMANDS)], ()),
    "makes a style": (styles, WHOLE, tuple(STYLERS)),
    "asks the system": (asks, ENGINES, ()),
    "assigns to what is another's": (
        assigns_to_others,
        [str(file) for package in ("kgdb", "darc/views") for file in python_files(package)],
        (),
    ),
    "assigns by names that are values": (assigns_unseen, WHOLE, tuple(MARKERS)),
    "knows what is tried on it": (
        knows_the_project,
        [str(file) for file in python_files("fixtures")],
        (),
    ),
    "needs what is not installed": (needs_what_stays, WHOLE, ()),
    "starts a debugger": (
        starts_debuggers,
        [
            str(file)
            for package in ("tests", "fixtures")
            for file in python_files(package)
            if str(file).startswith(WITHOUT_DEBUGGERS)
        ],
        (),
    ),
}
"""Who finds what is against a rule, where that is looked for, and who may."""


@pytest.mark.parametrize("rule", RULES)
def test_nobody_else(rule: str) -> None:
    finds, files, may = RULES[rule]
    assert files
    found = {file: list(finds(Path(file), parsed(Path(file)))) for file in files}
    wrong = [line for file, lines in found.items() if not file.startswith(may) for line in lines]
    assert not wrong, f"{rule}, and may not:\n" + "\n".join(wrong)
    idle = [one for one in may if not any(lines for f, lines in found.items() if f.startswith(one))]
    assert not set(idle) - {"darc/target/"}, f"no longer needed: {idle}"


@pytest.mark.parametrize(
    ("rule", "file", "text"),
    [
        ("writes into a program", "darc/analyses/walk.py", "self._target.memory.write(8, b'')"),
        ("writes into a program", "darc/session/session.py", "put = target.memory.write_code"),
        (
            "writes into a program",
            "darc/app/app.py",
            "memory = target.memory\nmemory.write(8, b'')",
        ),
        ("writes into a program", "darc/app/app.py", "target.threads.write_register(1, 'pc', 2)"),
        ("sets breakpoints", "darc/analyses/catching.py", "target.breaks.set_break(8, stop)"),
        ("sets breakpoints", "darc/session/session.py", "target.breaks.break_once(8, stop)"),
        ("draws", "darc/analyses/walk.py", "from rich.text import Text"),
        ("drives a session", "darc/app/commands/stop.py", "app.need_session().stop()"),
        ("drives a session", "darc/app/commands/peak.py", "session.pauses.end()"),
        ("drives a session", "darc/app/commands/save.py", "app.session.snapshot()"),
        ("drives a session", "darc/app/commands/save.py", "from darc.target.target import State"),
        (
            "makes a style",
            "darc/app/telling.py",
            "from darc.views.style import Style\nstyle = Style(screen.width)",
        ),
        (
            "makes a style",
            "darc_gdb/commands.py",
            "from darc.views import style\nhow = style.Style()",
        ),
        ("asks the system", "darc/pads/foothold.py", "import os"),
        ("asks the system", "darc/analyses/walk.py", "from pathlib import Path"),
        ("asks the system", "darc/collectors/tally.py", "import signal"),
        ("assigns to what is another's", "kgdb/debuggee.py", "program.cache = 1"),
        ("assigns to what is another's", "kgdb/debuggee.py", "self._target.patience += 1"),
        ("assigns to what is another's", "kgdb/image.py", "del self.image.bias"),
        ("assigns to what is another's", "darc/views/render.py", "snapshot.ftree.maxcount = 1"),
        ("assigns to what is another's", "kgdb/image.py", "setattr(program, 'cache', 1)"),
        ("assigns by names that are values", "darc/app/app.py", "setattr(program, 'cache', 1)"),
        ("assigns by names that are values", "kgdb/image.py", "object.__setattr__(one, name, 1)"),
        ("assigns by names that are values", "darc_gdb/bell.py", "vars(one)['cache'] = 1"),
        ("assigns by names that are values", "darc/app/app.py", "one.__dict__.update(cache=1)"),
        ("knows what is tried on it", "fixtures/build.py", "from darc.model import profile"),
        ("knows what is tried on it", "fixtures/build.py", "import tests.debugger"),
        ("needs what is not installed", "darc/app/app.py", "from fixtures import build"),
        ("needs what is not installed", "kgdb/image.py", "import tools.commands_page"),
        ("starts a debugger", "tests/unit/app/test_app.py", "from tests.debugger import debug"),
        ("starts a debugger", "tests/system/test_named.py", "import gdb"),
        ("starts a debugger", "fixtures/build.py", "from tests.lldb.runner import run"),
    ],
)
def test_what_is_against_a_rule_is_noticed(rule: str, file: str, text: str) -> None:
    finds, files, may = RULES[rule]
    assert file in files
    assert not file.startswith(may)
    assert list(finds(Path(file), ast.parse(text)))


def test_every_folder_says_what_it_is_for() -> None:
    """In three lines at least: what lives there, what it may touch, and what it may not."""
    folders = {file.parent for package in PROJECT for file in python_files(package)}
    for folder in sorted(folders - SCRIPTS):
        file = ROOT / folder / "__init__.py"
        assert file.exists(), f"{folder} has no __init__.py"
        text = ast.get_docstring(parsed(file)) or ""
        assert len(text.splitlines()) >= 3, f"{folder}/__init__.py does not say"


def misplaced(file: Path) -> bool:
    """Whether that is a test that lies in no folder with the name of a floor or of a package."""
    *folders, name = file.relative_to("tests/unit").parts
    at_home = len(folders) == 1 and folders[0] in {*FLOORS, *ABOVE}
    return name.startswith("test_") and not at_home


def test_unit_tests_lie_where_what_they_are_about_does() -> None:
    wrong = [str(file) for file in python_files("tests/unit") if misplaced(file)]
    assert not wrong, (
        f"{', '.join(wrong)}: to the folder of the floor or package that it is about; to "
        "tests/contract, if that is the tree itself"
    )


@pytest.mark.parametrize(
    ("file", "is_wrong"),
    [
        ("test_new.py", True),
        ("made/test_new.py", True),
        ("model/deep/test_new.py", True),
        ("model/test_new.py", False),
        ("kgdb/test_new.py", False),
        ("samples.py", False),
    ],
)
def test_a_unit_test_that_lies_elsewhere_is_noticed(file: str, *, is_wrong: bool) -> None:
    assert misplaced(Path("tests/unit") / file) == is_wrong
