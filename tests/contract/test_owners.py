"""Who gives attributes to what in the engine and in what stands on it: an object's are set by its
own class, or by the file that this stands in. What others want of it they ask it for, by a word for
what happens."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from darc.model.ftree import Fnode
from tests.contract.names import walk
from tests.contract.tree import INSTALLED, parsed, python_files

MAY = {
    "what is told to ctypes, of a function in C": ("darc", {"argtypes", "restype"}),
    "what is told to gdb, of its breakpoints": (
        "darc_gdb/",
        {"commands", "condition", "enabled"},
    ),
    "the one of this gdb, which its breakpoints' commands find": (
        "darc_gdb/commands.py",
        {"TARGET"},
    ),
    "the one of this gdb, which a second load finds": ("darc_gdb/load.py", {"APP"}),
    "what a thread of its own knows, of threading.local": ("darc_lldb/inferior.py", {"asks"}),
    "words of memory of a library in C, which are written by their value": (
        "darc/app/presses.py",
        {"value"},
    ),
    "what is told to shlex": ("darc/app/options.py", {"commenters", "whitespace_split"}),
    "how a member of an enum is made": ("darc/model/parameters.py", {"_value_"}),
    "an instruction of iced's, which is made anew elsewhere": (
        "darc/",
        {"ip", "len", "memory_displ_size", "memory_displacement"},
    ),
    "a word of the agent's memory: to set it is to write it": ("darc/", {"enabled"}),
    "what is public: whoever counts sets it": ("darc/collectors/breaktiming.py", {"analyse"}),
    "what is known of a function's code, by those who read it": (
        "darc/code/x86_64.py",
        {"complete", "depths", "targets"},
    ),
    "what breakpoints at a place mean, by those who want them": (
        "darc/collectors/",
        {
            *("caller", "catches", "entry", "hits", "jumps", "leaves", "routes", "since", "site"),
            "targets",
        },
    ),
    "what a patch is for, by those who have it made": (
        "darc/pads/",
        {"cell_value", "is_guard", "site"},
    ),
    "where landings begin behind what is measured": ("darc/pads/foothold.py", {"floor"}),
    "costs in calling contexts, by those who add them up or read them": (
        "darc/",
        {"inferred", "measured"},
    ),
    "what a walk knows of a function, by its two halves: its course, and what it shows": (
        "darc/analyses/walk",
        {
            *("again", "base", "doing", "event_waits", "is_done", "is_jumper", "is_looked_at"),
            *("is_timed", "lends", "looks", "share", "whole"),
        },
    ),
}
"""Attributes that are set from elsewhere all the same, and by whom."""

FTREE = "darc/model/ftree.py"
NO_FNODES = {
    "darc/collectors/timedsites.py": {"site": "which call site a breakpoint's place is"},
    "darc/model/contexts.py": {"parent": "the trees of calling contexts"},
    "darc/pads/installer.py": {"site": "where a patch stands"},
}
"""Attributes of others that are called as one of an fnode's is."""

OWN = {"self", "cls"}
FILES = [file for package in sorted(INSTALLED) for file in python_files(package)]


def sets(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Where a file sets attributes of what is none of its own: the line, what is set, and its
    name."""
    own = _names_of_own(tree)
    return (one for one in sets_any(tree) if one[-1] not in own)


def sets_any(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Where a file sets attributes of anything but the object or class that the method is of."""
    for node in walk(tree):
        match node:
            case ast.Attribute(value=of, attr=name, ctx=ast.Store() | ast.Del()):
                if ast.unparse(of) not in OWN:
                    yield node.lineno, ast.unparse(node), name


def _names_of_own(tree: ast.Module) -> set[str]:
    """The attributes that classes of a file have."""
    found = set[str]()
    for made in (one for one in walk(tree) if isinstance(one, ast.ClassDef)):
        for node in (*made.body, *ast.walk(made)):
            match node:
                case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                    found.add(name)
                case ast.AnnAssign(target=ast.Name(id=name)) if node in made.body:
                    found.add(name)
                case ast.Assign(targets=targets) if node in made.body:
                    found.update(one.id for one in targets if isinstance(one, ast.Name))
    return found


def test_nobody_sets_what_is_anothers() -> None:
    wrong, used = [], set[str]()
    for file in FILES:
        for line, text, name in sets(parsed(file)):
            by = {why for why, (at, of) in MAY.items() if str(file).startswith(at) and name in of}
            used |= by
            wrong += [] if by else [f"{file}:{line} sets {text}"]
    assert not wrong, "what others want of an object they ask it for:\n" + "\n".join(wrong)
    assert used == set(MAY), f"no longer needed: {sorted(set(MAY) - used)}"


def test_an_fnode_alone_writes_its_fields() -> None:
    """Whatever becomes of it is told it by a method, which says what happens."""
    fields = set(Fnode.__slots__)
    found = {
        (str(file), name): f"{file}:{line} sets {text}"
        for file in FILES
        if str(file) != FTREE
        for line, text, name in sets_any(parsed(file))
        if name in fields
    }
    others = {(file, name) for file, names in NO_FNODES.items() for name in names}
    wrong = [line for where, line in found.items() if where not in others]
    assert not wrong, "an fnode is told what becomes of it:\n" + "\n".join(wrong)
    assert not others - set(found), f"no longer needed: {sorted(others - set(found))}"


@pytest.mark.parametrize(
    "text",
    [
        "target.journal = made",
        "self._target.patience = 1",
        "self._session.account.notes += [text]",
        "del known.places",
        "for one.at in places: pass",
        "with opened as one.file: pass",
        "one.first, two.last = spans",
        "class A:\n  journal = 1\n\ndef f(a):\n  a.patience = 1",
        "class A:\n  def f(self, a):\n    patience = 1\n    a.patience = patience",
    ],
)
def test_that_is_noticed(text: str) -> None:
    assert list(sets(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n  def f(self):\n    self.at = 1",
        "class A:\n  at: int\n\ndef f(a):\n  a.at = 1",
        "class A:\n  def f(self):\n    self.at = 1\n\ndef f(a):\n  a.at = 1",
        "one[2] = 1",
    ],
)
def test_who_may(text: str) -> None:
    assert not list(sets(ast.parse(text)))
