"""How much one file, one class and one function may be: what grows beyond that is two things.

Those that are larger than most have ceilings of their own, which are lowered as they are divided.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.contract.names import name_of, names_in, walk
from tests.contract.tree import INSTALLED, ROOT, module_name, parsed, python_files


class Size(NamedTuple):
    """What of something is counted."""

    lines: int = 0
    methods: int = 0
    attributes: int = 0
    """Of each instance, by what its own methods set."""
    statements: int = 0
    """Of a function, with those of functions in it."""
    whole: int = 0
    """The methods of a class with all that it has of the house's classes that it is made from."""
    arguments: int = 0
    """What a function is given, but for ``self``."""


FILE = Size(500)
CLASS = Size(350, 34, 18, whole=44)
FUNCTION = Size(35, statements=28, arguments=8)
"""Ceilings of most. A function's lines are those without its docstring."""

LARGER = {
    "answers all questions of a seam, each in a few lines or by a class of its own": {
        "darc/debuggee/process.py ProcessDebuggee": Size(225, 43, 5, whole=56),
        "kgdb/debuggee.py KernelDebuggee": Size(300, 38, 2, whole=62),
    },
    "a debuggee's seam: who brings one writes one class, most of which it is given, and who asks "
    "has single duties of it, by their types": {
        "darc/debuggee/debuggee.py Debuggee": Size(whole=55),
    },
    "a collector of many functions: what it has of that by pads, and of what is asked of any": {
        "darc/collectors/set_collector.py SetCollector": Size(whole=58),
        "darc/collectors/walk_collector.py WalkCollector": Size(whole=69),
    },
    "the collector's seam by pads: makes the classes that its duties are, and hands on to them": {
        "darc/collectors/pad_collector.py PadCollector": Size(350, 37, 18),
    },
    "owns one thing that is written into a program, with its undo: these are divided together": {
        "darc/debuggee/process_foothold.py ProcessFoothold": Size(whole=50),
        "darc/pads/foothold.py Foothold": Size(300, 38, 10),
        "darc/pads/installer.py PadInstaller": Size(375, 36, 15),
        "darc/pads/returns.py ReturnLandings": Size(325, 36, 6),
    },
    "one state machine, whose states each rest on all that the search knows": {
        "darc/search/descent.py Descent": Size(400, 31, 19),
    },
    "what is asked of a processor, and the values of that, in one place for who adds another": {
        "darc/code/architecture.py": Size(600),
        "darc/code/architecture.py CodeReader": Size(350, 35, 18),
    },
    "the instructions of one processor, a function for each thing that is asked of them": {
        "darc/code/x86_64.py": Size(850),
        "darc/pads/x86_64.py": Size(750),
    },
    "one source that is read, a function for each thing that it tells": {
        "darc/debuggee/procfs.py": Size(675),
    },
    "one format, written and read: these change together": {
        "darc/debuggee/journal.py": Size(525),
        "darc/saved/storage.py": Size(575),
    },
    "rules without state, of one question, which share their thresholds": {
        "darc/search/suspects.py": Size(600),
    },
}
"""and those of others, by file, or file and class, by why they are whole all the same."""

LARGER_FUNCTIONS = {
    "one value, and each line is one of its fields": {
        "darc/agent/memory.py AgentMemory.reset": Size(45),
        "darc/agent/memory.py AgentMemory.write_control": Size(60),
        "darc/pads/calibration.py Calibration._site": Size(40),
        "darc/saved/storage.py _Reader.session": Size(40),
        "darc/saved/storage.py to_text": Size(55),
        "darc/views/exporters/json.py to_json": Size(60),
    },
    "a patch, with what must hold before it is made": {
        "darc/pads/padmaker.py PadMaker.entry": Size(45),
        "darc/pads/x86_64.py entry_pad": Size(36),
        "darc/pads/padmaker.py PadMaker.site": Size(45),
    },
    "makes what its object consists of, each part with those before": {
        "darc/analyses/catching.py Catcher.__init__": Size(40, statements=35),
        "darc/analyses/functionset.py FunctionProfiles.__init__": Size(40),
        "darc/collectors/pad_collector.py PadCollector._take": Size(52),
        "darc/session/session.py Session.__init__": Size(70, statements=28),
        "darc_gdb/target.py GdbTarget.__init__": Size(40),
    },
    "begins something step by step, and each step rests on what is known by then": {
        "darc/app/beginning.py Beginning._find": Size(40, statements=35),
        "darc/app/beginning.py Beginning.begin": Size(65, statements=35),
    },
    "one loop, whose turns share what it has seen": {
        "darc/app/monitor.py Monitor._run": Size(40, statements=30),
        "darc/code/x86_64_return_slot.py _Scan.finds": Size(40),
        "darc/saved/kept.py _calls": Size(40),
        "darc/saved/perfscript.py read_lines": Size(45, statements=30),
        "darc_gdb/remote.py GdbRemote.run_to": Size(40),
    },
    "the cases of one question, in the order in which they are asked": {
        "darc/analyses/catching.py Catcher.look": Size(35, statements=30),
        "darc/code/x86_64.py read_function": Size(35, statements=35),
        "darc/code/x86_64_copies.py Copies._lead_to_slot": Size(35, statements=30),
        "darc/debuggee/journal.py parse": Size(45, statements=40),
        "darc/debuggee/leftbehind.py give_back_noted": Size(41),
        "darc/search/verdict.py Evidence._verdict": Size(45, statements=40),
    },
    "the lines of one view, from the top down": {
        "darc/views/contrast.py table": Size(45, statements=35),
        "darc/views/timeline.py _rest": Size(40),
        "darc/views/timeline.py _rows": Size(40, statements=35),
        "darc/views/treeview.py _line": Size(40),
        "darc/views/treeview.py draw_tree": Size(40, statements=30),
        "darc/views/waitsview.py draw_waits": Size(40, statements=35),
    },
    "made of as many things, to each of which it hands something on": {
        "darc/app/observer.py Observer.__init__": Size(arguments=10),
        "darc/session/waysout.py WaysOut.__init__": Size(arguments=9),
        "darc_gdb/handlers.py EventHandlers.__init__": Size(arguments=9),
        "darc_lldb/stopping.py Stopping.__init__": Size(arguments=9),
        "kgdb/foothold.py KernelFoothold.__init__": Size(arguments=10),
    },
    "a command line's options, one after the other": {
        "kgdb/vm/cli.py _parser": Size(55, statements=35),
    },
}
"""Ceilings of functions that are larger than most, by why they are whole all the same."""

CEILINGS = {
    name: size
    for reasons in (LARGER, LARGER_FUNCTIONS)
    for held in reasons.values()
    for name, size in held.items()
}
"""Of all that is larger than most."""


class Made(NamedTuple):
    """A class, and its file's tree."""

    file: Path
    tree: ast.Module
    node: ast.ClassDef


@functools.cache
def of_the_house() -> dict[str, Made]:
    """All classes by their full names."""
    return {one: made for file in FILES for one, made in classes_in(file, parsed(file))}


def classes_in(file: Path, tree: ast.Module) -> Iterator[tuple[str, Made]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield f"{module_name(file)}.{node.name}", Made(file, tree, node)


def methods_of(made: Made) -> set[str]:
    """The names of all methods that a class has, its own and others'."""
    found = {one.name for one in made.node.body if isinstance(one, ast.FunctionDef)}
    known, own = names_in(made.tree), dict(classes_in(made.file, made.tree))
    for base in made.node.bases:
        over = base.value if isinstance(base, ast.Subscript) else base
        beside = own.get(f"{module_name(made.file)}.{ast.unparse(over)}")
        above = beside or of_the_house().get(name_of(over, known))
        if above is not None:
            found |= methods_of(above)
    return found


def size_of(node: ast.ClassDef, file: Path, tree: ast.Module) -> Size:
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    attributes = {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Store)
        and ast.unparse(one.value) == "self"
    }
    lines = (node.end_lineno or 0) - node.lineno + 1
    whole = methods_of(Made(file, tree, node))
    return Size(lines, len(methods), len(attributes), whole=len(whole))


def size_of_function(node: ast.FunctionDef) -> Size:
    own = [*node.body[1:]] if ast.get_docstring(node) is not None else node.body
    docstring = node.body[0] if own is not node.body else None
    lines = (node.end_lineno or 0) - node.lineno + 1
    if docstring is not None:
        lines -= (docstring.end_lineno or 0) - docstring.lineno + 1
    statements = [one for part in own for one in ast.walk(part) if isinstance(one, ast.stmt)]
    given = [one for one in (*node.args.args, *node.args.kwonlyargs) if one.arg != "self"]
    return Size(lines, statements=len(statements), arguments=len(given))


def functions(node: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """All of them, by what leads to their name."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.expr):
            continue
        inside = within
        if isinstance(one, ast.FunctionDef | ast.ClassDef):
            inside = f"{within}{one.name}."
        if isinstance(one, ast.FunctionDef):
            yield f"{within}{one.name}", one
        yield from functions(one, inside)


def sizes(file: Path, tree: ast.Module) -> Iterator[tuple[str, int, Size, Size]]:
    """What a file has, by name, with its line, size and usual ceiling."""
    yield str(file), 1, Size(max((one.end_lineno or 0 for one in tree.body), default=0)), FILE
    for node in walk(tree):
        if isinstance(node, ast.ClassDef):
            yield f"{file} {node.name}", node.lineno, size_of(node, file, tree), CLASS
    for name, function in functions(tree):
        yield f"{file} {name}", function.lineno, size_of_function(function), FUNCTION


def too_large(file: Path, tree: ast.Module) -> Iterator[str]:
    for name, line, size, usual in sizes(file, tree):
        ceiling = CEILINGS.get(name, usual)
        for what, has, own, of_most in zip(Size._fields, size, ceiling, usual, strict=True):
            most = own or of_most
            if has > most and most:
                told = "methods with those that it is given" if what == "whole" else what
                yield f"{file}:{line} {name.rpartition(' ')[2]} has {has} {told}, above {most}"


FILES = [file for package in sorted(INSTALLED) for file in python_files(package)]


def test_nothing_grows_unseen() -> None:
    wrong = [line for file in FILES for line in too_large(file, parsed(file))]
    assert not wrong, "divide it, by what it is for:\n" + "\n".join(wrong)


_C_FUNCTION = re.compile(r"^([A-Za-z_][^;{}=#]*\))\s*\{\n.*?^\}", re.M | re.S)


def too_long(file: Path, text: str) -> Iterator[str]:
    """Functions of C have as many lines as others, from what they return to their last brace."""
    for found in _C_FUNCTION.finditer(text):
        lines = found[0].count("\n") + 1
        if lines > FUNCTION.lines:
            name = next(one for one in re.findall(r"(\w+)\(", found[1]) if one != "__attribute__")
            line = text.count("\n", 0, found.start()) + 1
            yield f"{file}:{line} {name} has {lines} lines, above {FUNCTION.lines}"


def test_functions_of_c_are_as_short() -> None:
    files = [
        file for package in sorted(INSTALLED) for file in sorted((ROOT / package).rglob("*.[ch]"))
    ]
    wrong = [line for file in files for line in too_long(file.relative_to(ROOT), file.read_text())]
    assert not wrong, "divide it, by what it is for:\n" + "\n".join(wrong)


def test_a_ceiling_of_its_own_is_needed() -> None:
    found = {
        name: (size, usual) for file in FILES for name, _, size, usual in sizes(file, parsed(file))
    }
    small = [
        name
        for name in CEILINGS
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
        (
            "def f():\n    x = [\n" + "        0,\n" * 33 + "    ]\n",
            "darc/x.py:1 f has 36 lines, above 35",
        ),
        (
            "class A:\n    def f(self):\n" + "        x = 0\n" * 29,
            "darc/x.py:2 A.f has 29 statements, above 28",
        ),
        (
            "class B:\n"
            + "".join(f"    def f{n}(self): ...\n" for n in range(30))
            + "class A(B):\n"
            + "".join(f"    def g{n}(self): ...\n" for n in range(15)),
            "darc/x.py:32 A has 45 methods with those that it is given, above 44",
        ),
        (
            "from darc.debuggee.debuggee import Debuggee\nclass A(Debuggee): ...\n",
            "darc/x.py:2 A has 55 methods with those that it is given, above 44",
        ),
        (
            "def f(a, b, c, d, *, e, f, g, h, i): ...\n",
            "darc/x.py:1 f has 9 arguments, above 8",
        ),
        (
            "def f():\n    def g():\n" + "        x = 0\n" * 28,
            "darc/x.py:1 f has 29 statements, above 28",
        ),
    ],
)
def test_what_has_grown_is_told(text: str, told: str) -> None:
    assert list(too_large(Path("darc/x.py"), ast.parse(text))) == [told]


def test_what_a_function_says_of_itself_is_no_part_of_its_size() -> None:
    text = 'def f():\n    """' + "Words.\n" * 40 + '    """\n    return 0\n'
    assert not list(too_large(Path("darc/x.py"), ast.parse(text)))


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("int f(int x)\n{", "f"),
        ("int f(int x) {", "f"),
        ("static __attribute__((noinline, cold)) u64 f(struct a *a,\n    u64 b)\n{", "f"),
    ],
)
def test_what_of_c_has_grown_is_told(head: str, name: str) -> None:
    def text(lines: int) -> str:
        return f"struct s {{\n    u64 a;\n}};\n\n{head}\n" + "    x();\n" * lines + "}\n"

    most = FUNCTION.lines - head.count("\n") - 2
    assert not list(too_long(Path("x.c"), text(most)))
    assert list(too_long(Path("x.c"), text(most + 1))) == [f"x.c:5 {name} has 36 lines, above 35"]
