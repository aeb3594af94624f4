"""All is there for something: what nothing in the product refers to is dead, whoever tests it.

A name of a module is referred to where the module, or one that imports it from there, has it; a
method, a field or a member where its name is asked of anything, but inside methods of that name,
which hand on alone. So one that overrides another is alive where that is.
"""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.contract.names import name_of, names_in, walk
from tests.contract.tree import INSTALLED, MODULES, PROJECT, ROOT, module_name, parsed, trees

OTHERS_CALL = {
    "asked for by a name that is made of another one's": {
        "darc/agent/compiled.py": {
            *("STUB_CALL", "STUB_ENTRY", "STUB_INDIRECT", "STUB_LANDED", "STUB_LEAVE"),
            *("STUB_RETURNED", "STUB_TAIL"),
        },
    },
    "asked for by the value that a user has typed": {
        "darc/app/commands/report.py": {"ANSWER"},
    },
    "gdb calls it": {
        "darc_gdb/bell.py": {"invoke"},
        "darc_gdb/commands.py": {"get_set_string", "get_show_string", "invoke"},
        "darc_gdb/hooks.py": {"invoke"},
    },
    "gdb calls it by a line of a breakpoint's commands": {"darc_gdb/deciding.py": {"after_stop"}},
    "lldb calls it": {
        "darc_lldb/commands.py": {"get_long_help", "get_short_help"},
        "darc_lldb/load.py": {"__lldb_init_module"},
        "darc_lldb/standing.py": {
            *("explains_stop", "should_step", "should_stop", "stop_description"),
        },
        "darc_lldb/stophook.py": {"handle_stop"},
    },
}
"""What no line of this house refers to by its name, by who does, or how."""

Trees = Mapping[Path, ast.Module]


class Made(NamedTuple):
    """One thing that is made there."""

    file: Path
    line: int
    name: str
    within: str
    """The class that has it; nothing for what a module has."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {f'{self.within}.' if self.within else ''}{self.name}"


def made_in(file: Path, tree: ast.Module) -> Iterator[Made]:
    """Functions, classes and constants of a module, and the methods, fields and members of its
    classes; but for names that Python itself asks for, and for what a tool has written down of the
    compiled agent, which is all that this has."""
    is_written = "\nWritten by ``tools/" in (ast.get_docstring(tree) or "")
    for found in _made(file, tree.body, ""):
        if not (found.within and is_written) and not re.fullmatch("_.*_|_", found.name):
            yield found


def _made(file: Path, body: list[ast.stmt], within: str) -> Iterator[Made]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield Made(file, node.lineno, name, within)
                if isinstance(node, ast.ClassDef):
                    yield from _made(file, node.body, node.name)
            case ast.Assign(targets=targets):
                for target in targets:
                    for one in ast.walk(target):
                        if isinstance(one, ast.Name):
                            yield Made(file, node.lineno, one.id, within)
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield Made(file, node.lineno, name, within)
            case ast.If() | ast.Try():
                yield from _made(file, [*node.body, *node.orelse], within)


class Uses(NamedTuple):
    """What a file refers to."""

    names: frozenset[str]
    """Its own, from outside of what they name."""
    full: frozenset[str]
    """Those of other modules, by their full names; ``darc.code.x86_64.*`` where a module is handed
    to who asks it as any other value."""
    asked: frozenset[str]
    """What is asked of values, by the attribute's name."""
    words: frozenset[str]
    """Strings that may be names: those of a registry."""


@functools.cache
def uses_of(tree: ast.Module) -> Uses:
    known = names_in(tree)
    names: set[str] = set()
    full: set[str] = set()
    asked: set[str] = set()
    words: set[str] = set()
    todo: list[tuple[ast.AST, tuple[str, ...]]] = [(one, ()) for one in tree.body]
    while todo:
        node, inside = todo.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                whole = known.get(name, "")
                full.add(f"{whole}.*" if whole in MODULES else whole)
                if inside[:1] != (name,):
                    names.add(name)
            case ast.Attribute(attr=name):
                full.add(name_of(node, known))
                if name not in inside:
                    asked.add(name)
                if isinstance(node.value, ast.Name) and known.get(node.value.id) in MODULES:
                    continue  # of which nothing else is asked by that
            case ast.MatchClass(kwd_attrs=attributes):
                asked.update(attributes)
            case ast.Constant(value=str(text)) if re.fullmatch(r"[\w.]+", text):
                words.update(text.split("."))
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                inside = (*inside, name)
        todo += [(one, inside) for one in ast.iter_child_nodes(node)]
    return Uses(frozenset(names), frozenset(full), frozenset(asked), frozenset(words))


def meant_by(product: Trees, full: frozenset[str], asked: frozenset[str]) -> frozenset[str]:
    """The full names that are meant by ``full``, also where a module is ``asked`` as a value, or
    hands on what it imports."""
    imports = {
        f"{module_name(file)}.{name}": whose
        for file, tree in product.items()
        for name, whose in names_in(tree).items()
    }
    values = [one.removesuffix("*") for one in full if one.endswith(".*")]
    todo = [*full, *(f"{module}{name}" for module in values for name in asked)]
    found = set(todo)
    while todo:
        whose = imports.get(todo.pop())
        if whose is not None and whose not in found:
            found.add(whose)
            todo.append(whose)
    return frozenset(found)


def reached(name: str, ways: Mapping[str, set[str]]) -> set[str]:
    seen, todo = {name}, [name]
    while todo:
        more = ways.get(todo.pop(), set()) - seen
        seen |= more
        todo += more
    return seen


def kin_of(product: Trees) -> dict[str, set[Path]]:
    """For each class's name, the files in which its private methods may be called: of those that
    are made from it, with all that these are made from."""
    files: dict[str, set[Path]] = {}
    above: dict[str, set[str]] = {}
    below: dict[str, set[str]] = {}
    for file, tree in product.items():
        for node in walk(tree):
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name, set()).add(file)
                for over in node.bases:
                    name = ast.unparse(over).partition("[")[0].rpartition(".")[2]
                    above.setdefault(node.name, set()).add(name)
                    below.setdefault(name, set()).add(node.name)
    return {
        name: {
            file
            for heir in reached(name, below)
            for one in reached(heir, above)
            for file in files.get(one, ())
        }
        for name in files
    }


def dead(product: Trees, besides: Iterable[ast.Module] = ()) -> Iterator[Made]:
    """What none of the ``product`` refers to, nor what stands ``besides`` it."""
    uses = {file: uses_of(tree) for file, tree in product.items()}
    every = [*uses.values(), *map(uses_of, besides)]
    asked = frozenset[str]().union(*(one.asked for one in every))
    full = meant_by(product, frozenset[str]().union(*(one.full for one in every)), asked)
    words = frozenset[str]().union(*(one.words for one in every))
    kin = kin_of(product)
    for file, tree in product.items():
        own = uses[file].names
        for one in made_in(file, tree):
            if not one.within:
                alive = one.name in own or f"{module_name(file)}.{one.name}" in full
            elif one.name.startswith("_"):
                alive = any(one.name in uses[near].asked | own for near in kin[one.within])
            else:
                alive = one.name in asked | own
            if not alive and one.name not in words:
                yield one


def authors() -> Iterator[ast.Module]:
    """What else refers to it: the pages and examples for authors, and what builds it."""
    for page in sorted((ROOT / "docs/extending").glob("*.md")):
        for block in re.findall(r"^ *```python\n(.*?)^ *```", page.read_text(), re.M | re.S):
            yield ast.parse(textwrap.dedent(block))
    files = [*(ROOT / "docs/extending/examples").rglob("*.py"), *(ROOT / "tools").glob("*.py")]
    for file in (*files, ROOT / "setup.py"):
        yield parsed(file)


@functools.cache
def found() -> tuple[Made, ...]:
    return tuple(dead(trees(INSTALLED), authors()))


def called_by_others() -> set[tuple[str, str]]:
    return {
        (file, name)
        for held in OTHERS_CALL.values()
        for file, names in held.items()
        for name in names
    }


def test_nothing_is_dead() -> None:
    others = called_by_others()
    wrong = [str(one) for one in found() if (str(one.file), one.name) not in others]
    assert not wrong, "nothing in the product refers to it:\n" + "\n".join(wrong)


def test_what_is_a_files_own_is_there_for_that() -> None:
    """Of what is neither product nor test: what a module keeps to itself has no other use."""
    wrong = [
        str(one)
        for file, tree in trees(PROJECT - INSTALLED - {"tests"}).items()
        for one in made_in(file, tree)
        if one.name.startswith("_") and not one.within and one.name not in uses_of(tree).names
    ]
    assert not wrong, "nothing in its file refers to it:\n" + "\n".join(wrong)


def test_what_others_call_is_told_where_it_has_to_be() -> None:
    needless = called_by_others() - {(str(one.file), one.name) for one in found()}
    assert not needless, f"it is there no more, or the product refers to it: {needless}"


USER = """
import darc.x
from darc.x import Base, used
from darc.y import moved

class Heir(Base):
    def step(self): return super().step()
    def _own(self): return used(darc.x.LIMIT)

TABLE = {"by_name": moved}
Heir().begin(TABLE)
"""
OWN = """
LIMIT = 1
_USED, _UNUSED = 2, 3

def used(): return _USED
def by_name(): return 0
def dead(): return dead()

class Base:
    def begin(self): return self._own(), self.step()
    def step(self): return 0
    def _own(self): return 0
    def _other(self): return 0
    def hands_on(self, to): return to.hands_on(self)

class Alone:
    size: int
    def __init__(self): self.begin()

class Kind(Enum):
    FIRST = 1
    LAST = 2
    _missing_ = 3

Base.kind = Kind.FIRST
"""


def test_what_is_dead_is_named() -> None:
    """But not who is overridden, looked up by a word, or handed on by another module."""
    made = {
        Path("darc/x.py"): OWN,
        Path("darc/y.py"): "from darc.z import moved",
        Path("darc/z.py"): "def moved(): return 0",
        Path("darc_gdb/user.py"): USER,
    }
    told = map(str, dead({file: ast.parse(text) for file, text in made.items()}))
    assert list(told) == [
        "darc/x.py:3 _UNUSED",
        "darc/x.py:7 dead",
        "darc/x.py:13 Base._other",
        "darc/x.py:14 Base.hands_on",
        "darc/x.py:16 Alone",
        "darc/x.py:17 Alone.size",
        "darc/x.py:22 Kind.LAST",
    ]


@pytest.mark.parametrize("user", ["given = [x]", "x.asked", "def f(one=x): ..."])
def test_what_is_asked_of_a_module_is_alive(user: str) -> None:
    """Also where it is handed to who asks."""
    made = {
        Path("darc/code/processor.py"): "def asked(): return 0",
        Path("darc/user.py"): f"from darc.code import processor as x\n{user}",
        Path("darc/other.py"): "def g(one): return one.asked",
    }
    told = [one.name for one in dead({file: ast.parse(text) for file, text in made.items()})]
    assert "asked" not in told
