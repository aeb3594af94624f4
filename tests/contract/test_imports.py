"""Which way imports may go: down the floors of ``darc/``, and never up to a debugger.

The floors are the folders in the order of :data:`darc.FLOORS`; all else is read from the tree.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc import FLOORS
from tests.contract.compared import asked_for_words, bound_to_words, has_word, held_against_words
from tests.contract.names import name_of, names_in, walk
from tests.contract.tree import (
    ABOVE,
    ENGINE,
    INSTALLED,
    MODULES,
    OUTER,
    ROOT,
    Import,
    floor,
    groups,
    home,
    imports,
    imports_in,
    module_name,
    parsed,
    python_files,
)

DEBUGGERS = {"gdb", "lldb"}
PURE = ("model", "search")
"""Floors that are tested without any program: no clock, no process, no file."""

COMPUTING = {
    *("__future__", "abc", "bisect", "collections", "contextlib", "copy", "dataclasses", "decimal"),
    *("difflib", "enum", "fractions", "functools", "heapq", "itertools", "math", "operator", "re"),
    *("statistics", "string", "struct", "sys", "textwrap", "types", "typing"),
}
"""Modules of Python that compute: all that is imported where nothing outside is reached."""

REACHING = {"open", "exec", "eval", "compile", "__import__", "input", "print"}
"""Functions of Python's own by which one reaches out, or imports what is not seen here."""

IMPORTERS = {
    *("__main__", "builtins", "imp", "importlib", "inspect", "pkgutil", "runpy"),
    "zipimport",
}
"""Modules by which one imports what is not seen here, or has what was imported."""

IMPORTING = {
    *("__builtins__", "__import__", "__loader__", "__spec__", "compile", "eval", "exec"),
    *(
        "gc.get_objects",
        "gc.get_referents",
        "gc.get_referrers",
        "globals",
        "sys._getframe",
        "sys.meta_path",
        "sys.modules",
        "sys.path_hooks",
    ),
}
"""Names by which one does."""

PACKAGES = MODULES & {name.rpartition(".")[0] for name in MODULES}
"""Modules that have others in them."""

COMMON = {"__builtins__", "__dict__", "__getattr__", "__getattribute__", "__loader__", "__spec__"}
"""What all modules have by which one does."""

OWN_IMPORTERS = {
    "darc/agent/compiled.py": "the agent's files, as resources of their package",
    "darc_lldb/commands.py": "classes that lldb looks up by their names",
    "darc_gdb/load.py": "what a load that failed had loaded is forgotten",
    "darc_lldb/load.py": "the same",
}
"""Files that may, and for what."""


def is_up(one: Import) -> bool:
    """Whether a file of darc's imports what is above it, or one of the two stands on no floor."""
    if one.name.split(".")[0] != "darc":
        return False
    here, there = floor(module_name(one.file)), floor(one.name)
    return here is None or there is None or there > here


def test_every_folder_is_a_floor_and_says_what_it_is_for() -> None:
    strange = [str(file) for file in ENGINE if file.parts[1] not in {*FLOORS, "__init__.py"}]
    assert not strange, f"on no floor of darc.FLOORS: {', '.join(strange)}"
    folders = {file.parent for file in ENGINE}
    assert {folder.parts[1] for folder in folders if folder != Path("darc")} == set(FLOORS)
    without = [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").exists()]
    assert not without, f"without an __init__.py: {', '.join(without)}"
    for name in FLOORS:
        text = ast.get_docstring(parsed(Path("darc") / name / "__init__.py"))
        assert len((text or "").splitlines()) >= 3, f"darc/{name}/__init__.py does not say"


def own_files(package: str) -> list[Path]:
    """Those of a package, without those of another one in it."""
    return [file for file in python_files(package) if home(module_name(file)) == named(package)]


def named(package: str) -> str:
    """What others call it where they say that they import it."""
    return package.removeprefix("darc/")


def declared(package: str) -> set[str]:
    """What the ``__init__`` of a package says that it imports, of this project: what is quoted in
    the sentence that begins so."""
    text = ast.get_docstring(parsed(Path(package) / "__init__.py")) or ""
    sentence = re.search(r"Imports .*?\.\s", text + " ", re.S)
    assert sentence, f"{package}/__init__.py does not say what it imports"
    return set(re.findall(r"``([\w/]+)``", sentence[0])) - DEBUGGERS


@pytest.mark.parametrize("package", [*(f"darc/{name}" for name in FLOORS), *sorted(OUTER)])
def test_a_package_imports_what_it_says(package: str) -> None:
    known = {*FLOORS, *OUTER, "fixtures", "tests"}
    found = [one for file in own_files(package) for one in imports(file)]
    says = declared(package)
    more = [str(one) for one in found if home(one.name) in known - says - {named(package)}]
    assert not more, f"{package}/__init__.py does not say that it imports:\n" + "\n".join(more)
    less = says - {home(one.name) for one in found}
    assert not less, f"{package}/__init__.py says so, but nothing there imports {', '.join(less)}"


def test_imports_go_down() -> None:
    up = [str(one) for file in ENGINE for one in imports(file) if is_up(one)]
    assert not up, "\n".join(up)


@pytest.mark.parametrize("folder", ["code", "collectors"])
def test_groups_of_a_floor_import_those_above_them_alone(folder: str) -> None:
    told = groups(folder)
    names = [name for _, files in told for name in files]
    files = {file.stem: file for file in python_files(f"darc/{folder}") if file.stem != "__init__"}
    assert len(told) > 3
    assert sorted(names) == sorted(files), "docs/architecture.md, 'Groups within a floor'"
    place = {
        f"darc.{folder}.{name}": number
        for number, (_, members) in enumerate(told)
        for name in members
    }
    wrong = [
        f"{one}: that is of '{told[place[one.name]][0]}'"
        for file in files.values()
        for one in imports(file)
        if place.get(one.name, 0) > place[module_name(file)]
    ]
    assert not wrong, "\n".join(wrong)


def test_what_reads_instructions_knows_nothing_but_values() -> None:
    """What is asked of a processor, and who answers, has bytes alone: no file, no program."""
    own = {f"darc.code.{name}" for _, names in groups("code")[:3] for name in names}
    wrong = [
        str(one)
        for name in own
        for one in imports(Path(f"{name.replace('.', '/')}.py"))
        if one.name not in own
        and one.name.split(".")[0] not in COMPUTING | {"iced_x86", "typing_extensions"}
        and (home(one.name) != "model" or not one.name.startswith("darc."))
    ]
    assert not wrong, "\n".join(wrong)


def test_what_is_for_all_collectors_knows_no_pads() -> None:
    """They are one way to count: the seam has no word of theirs. What comes above these floors
    has none either, as its folders say."""
    (name, seam), *_ = groups("collectors")
    assert name == "for all"
    wrong = [
        str(one)
        for file in seam
        for one in imports(Path(f"darc/collectors/{file}.py"))
        if home(one.name) == "pads" or one.name == "darc.collectors.footing"
    ]
    assert not wrong, "\n".join(wrong)


def test_breakpoints_know_nothing_of_pads() -> None:
    """Nor these of them: two ways to count, behind one seam."""
    of = {
        f"darc.collectors.{name}": group for group, names in groups("collectors") for name in names
    }
    both = {"by pads", "by breakpoints"}
    assert both < set(of.values())
    wrong = [
        str(one)
        for name in of
        for one in imports(Path(f"{name.replace('.', '/')}.py"))
        if {of[name], of.get(one.name)} == both
        or (of[name] == "by breakpoints" and home(one.name) == "pads")
    ]
    assert not wrong, "\n".join(wrong)


def check_no_circle(reached: dict[str, dict[str, Import]]) -> None:
    """``reached`` are the names that each name leads to, with an import that does."""
    on_the_way: list[str] = []
    done: set[str] = set()

    def visit(name: str) -> None:
        if name in on_the_way:
            circle = [*on_the_way[on_the_way.index(name) :], name]
            steps = (str(reached[one][other]) for one, other in itertools.pairwise(circle))
            raise AssertionError(" -> ".join(circle) + "\n" + "\n".join(steps))
        if name in done:
            return
        on_the_way.append(name)
        for other in sorted(reached.get(name, {})):
            visit(other)
        done.add(on_the_way.pop())

    for name in reached:
        visit(name)


@pytest.mark.parametrize("package", ["darc", "darc_gdb", "darc_lldb", "kgdb", "benchmarks"])
def test_no_circles(package: str) -> None:
    """Whatever is imported, at the top of a file or in a function, is never a way back to it."""
    files = {module_name(file): file for file in python_files(package)}
    reached = {
        name: {i.name: i for i in imports(file) if i.name in files and i.name != name}
        for name, file in files.items()
    }
    check_no_circle(reached)


@pytest.mark.parametrize("package", ["darc", "darc_gdb", "darc_lldb", "kgdb", "benchmarks"])
def test_no_circles_between_folders(package: str) -> None:
    """As floors are, so are the folders within one: of two, one is below the other."""
    files = {module_name(file): file for file in python_files(package)}
    reached: dict[str, dict[str, Import]] = {}
    for file in files.values():
        here = str(file.parent)
        for one in imports(file):
            if one.name in files and (there := str(files[one.name].parent)) != here:
                reached.setdefault(here, {})[there] = one
    check_no_circle(reached)


def test_a_circle_is_told_with_the_lines_that_make_it() -> None:
    first, second = Import(Path("a.py"), 3, "b"), Import(Path("b.py"), 7, "a")
    with pytest.raises(AssertionError, match=r"a -> b -> a\na\.py:3 imports b\nb\.py:7 imports a"):
        check_no_circle({"a": {"b": first}, "b": {"a": second}})


@pytest.mark.parametrize(
    ("package", "strange"),
    [
        ("darc", DEBUGGERS | ABOVE),
        ("kgdb", DEBUGGERS | {"darc_gdb", "darc_lldb"}),
        ("darc_gdb", {"lldb", "darc_lldb"}),
        ("darc_lldb", {"gdb", "darc_gdb", "kgdb"}),
    ],
)
def test_who_knows_a_debugger(package: str, strange: set[str]) -> None:
    wrong = [
        str(one)
        for file in python_files(package)
        for one in imports(file)
        if one.name.split(".")[0] in strange
    ]
    assert not wrong, "\n".join(wrong)


READERS = {
    "target": "which threads of a process live",
    "debuggee": "what is debugged",
}
"""Floors that may look into ``/proc``, and for what."""


ITS_READERS = {"darc.target.living", "darc.debuggee.procfs"}
"""What these have made of it, for themselves."""


def looks_into_proc(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file asks the system of a process, or names where that tells."""
    for one in imports_in(file, tree):
        if one.name in ITS_READERS:
            yield str(one)
    for node in walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os")), args=[whose, *_]):
                is_own = ast.unparse(whose) == "process.pid"  # that darc has started itself
                if re.search(r"(^|[._])pid$", ast.unparse(whose)) and not is_own:
                    yield f"{file}:{node.lineno} asks the system of {ast.unparse(whose)}"
            case ast.Constant(value=str(text)) if _is_of_proc(text):
                yield f"{file}:{node.lineno} names {text}"
            case ast.Constant(value=bytes(raw)) if _is_of_proc(raw.decode("latin-1")):
                yield f"{file}:{node.lineno} names {raw!r}"


def _is_of_proc(text: str) -> bool:
    """Whether a path leads there, or goes on so from the root."""
    return re.match(r"/?proc(/|$)", text) is not None


def test_what_is_debugged_may_have_no_proc() -> None:
    """What stands on the seam asks that, and not the system, of what is debugged, as does what
    reads its code."""
    wrong = [
        line
        for file in ENGINE
        if home(module_name(file)) not in READERS
        for line in looks_into_proc(file, parsed(file))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "from darc.target import living",
        "from darc.target.living import folder",
        "import darc.target.living as its",
        "import darc.target\ndarc.target.living.folder(1)",
        "from darc.debuggee import procfs",
        "open(f'/proc/{pid}/maps')",
        "Path('/') / 'proc'",
        "Path('/') / 'proc/1/maps'",
        "open(b'/proc/self/stat')",
        "os.sched_getaffinity(pid)",
        "os.getpriority(target.pid, 0)",
    ],
)
def test_a_look_into_proc_is_noticed(text: str) -> None:
    assert list(looks_into_proc(Path("darc/session/figures.py"), ast.parse(text)))


GENERAL = (
    *("darc/session/", "darc/views/general/", "darc/views/words.py", "darc/views/render.py"),
    *("darc/analyses/analysis.py", "darc/analyses/question.py", "darc/model/part.py"),
    *("darc/model/snapshot.py", "darc/model/status.py", "darc/saved/storage.py", "darc/app/"),
)
"""What is for all analyses, and knows no particular one;"""

OF_ONE = {
    "darc/app/whypursuit.py": "the pursuit of 'darc why'",
    "darc/app/commands/peak.py": "what the descent asks",
    "darc/app/commands/ops.py": "the descent's ops, and two sets",
}
"""what of these is one's own, beside the commands that begin one."""


def is_general(file: Path) -> bool:
    """Whether a file is for all analyses."""
    is_own = str(file) in OF_ONE or begins_one(file)
    return str(file).startswith(GENERAL) and not is_own


def begins_one(file: Path) -> bool:
    """Whether it is a command's that begins an analysis of its own, which it says as it asks for
    it."""
    return str(file).startswith("darc/app/commands/") and any(
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Request", "Pursuit"))
        for node in walk(parsed(file))
    )


@functools.cache
def parts() -> frozenset[str]:
    """The modules that say what one analysis knows beside the descent."""
    return frozenset(
        module_name(file)
        for file in python_files("darc/model")
        for node in walk(parsed(file))
        if isinstance(node, ast.ClassDef) and "Part" in map(ast.unparse, node.bases)
    )


SEAMS = {"darc.analyses.analysis", "darc.analyses.question", "darc.views.parts.part"}
"""What stands between these and single analyses."""

NAMES_ONE = {"key", "analysis", "command", "parts"}
"""What tells which analysis one is: its own name, the command that has begun it, or the names of
its parts. Whoever compares that with a word knows one."""

ENDINGS = {"NO_PEAK", "FOUND", "MAX_DEPTH"}
"""How far a descent alone can be."""

SHOWING = "darc/views/"
"""Who has words for these."""


def collectors_of_one() -> set[str]:
    """Those that count for one analysis alone, as the page groups them."""
    (names,) = [names for group, names in groups("collectors") if group == "many functions"]
    return {f"darc.collectors.{name}" for name in names}


def told_by_name(node: ast.AST, bound: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Where the name of an analysis, or of a part, is compared with a word, or with what is
    ``bound`` to words."""
    for side in (*held_against_words(node, bound), *asked_for_words(node, bound)):
        if isinstance(side, ast.Attribute) and side.attr in NAMES_ONE:
            yield side.lineno, ast.unparse(side)


def told_by_what_it_has(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Where it is asked which class something is of, by its name or by an attribute of its own, or
    for the part of one analysis."""
    match node:
        case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[whose, word, *_]):
            is_told = has_word(word) and ast.unparse(whose) != "error"
        case ast.Attribute(attr="__class__" | "__name__" | "__qualname__"):
            is_told = True
        case (
            ast.Call(func=ast.Attribute(value=ast.Attribute(attr="parts")), args=[word, *_])
            | ast.Subscript(value=ast.Attribute(attr="parts"), slice=word)
        ):
            is_told = has_word(word)
        case _:
            return
    if is_told:
        yield node.lineno, ast.unparse(node)


def of_one_analysis(file: Path, tree: ast.Module) -> Iterator[str]:
    """What a file imports that is one analysis's own, or how it tells one from others."""
    own = (*parts(), "darc.analyses.", "darc.views.parts.", "darc.saved.sets")
    own += ("darc.saved.descents", "darc.saved.kept", "darc.saved.waits")
    own += tuple(module_name(Path(name)) for name in OF_ONE if "/commands/" not in name)
    own += tuple(sorted(collectors_of_one()))
    for one in imports_in(file, tree):
        is_seam = any(one.name == seam or one.name.startswith(f"{seam}.") for seam in SEAMS)
        if one.name.startswith(own) and not is_seam:
            yield str(one)
    bound = bound_to_words(tree)
    for node in walk(tree):
        told = (*told_by_name(node, bound), *told_by_what_it_has(node))
        yield from (f"{file}:{line} asks {what}" for line, what in told)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Status":
            is_ending = node.attr in ENDINGS and not str(file).startswith(SHOWING)
            if is_ending and file != Path("darc/model/status.py"):
                yield f"{file}:{node.lineno} has Status.{node.attr}"


def test_what_is_for_all_analyses_knows_no_particular_one() -> None:
    assert "darc.model.why" in parts()
    general = {file.stem for file in python_files("darc/app/commands") if is_general(file)}
    assert {"analysing", "completion", "report", "resume", "save", "views"} <= general
    wrong = [
        line for file in ENGINE if is_general(file) for line in of_one_analysis(file, parsed(file))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "from darc.analyses.rootcauses import RootCauses",
        "from darc.analyses import walk",
        "from darc.model.why import Why",
        "import darc.model.walk as known",
        "def f():\n    from darc.saved import sets",
        "from darc.app.whypursuit import WhyPursuit",
        "analysis.status is Status.NO_PEAK",
        "from darc.collectors.set_collector import SetCollector",
        "def f():\n    from darc.collectors import walk_collector",
        "from darc.collectors.manyduties import TimesSets",
        "session.analysis.key == 'walk'",
        "if 'why' != request.command: pass",
        "stored.analysis in ('profile', 'why')",
        "match analysis.key:\n    case 'walk': pass",
        "_CONST = 'walk'\nif session.analysis.key == _CONST: pass",
        "_SOME = ('walk', 'why')\nif request.command in _SOME: pass",
        "analysis.key.startswith('wa')",
        "{'walk': 1}.get(analysis.key)",
        "{'walk': 1}[request.command]",
        "_TURNS = {'walk': 1}\n_TURNS[request.command]",
        "hasattr(session.analysis, 'peaks')",
        "getattr(session.analysis, 'peaks', ())",
        "type(session.analysis).__name__ == name",
        "session.analysis.__class__ is known",
        "'walk' in snapshot.parts",
        "snapshot.parts.get('walk')",
        "snapshot.parts['walk']",
    ],
)
def test_who_knows_a_particular_analysis_is_noticed(text: str) -> None:
    assert list(of_one_analysis(Path("darc/session/figures.py"), ast.parse(text)))


EXPORTERS = Path("darc/views/exporters")


def exporters() -> frozenset[str]:
    """The modules that are each a format of the report."""
    return frozenset(
        module_name(file)
        for file in python_files(str(EXPORTERS))
        for node in parsed(file).body
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Exporter(")
    )


def of_one_exporter(file: Path, tree: ast.Module) -> Iterator[str]:
    """What a file beside their registry imports from single formats."""
    if file != EXPORTERS / "__init__.py":
        found = (one for one in imports_in(file, tree) if one.name != module_name(file))
        yield from (str(one) for one in found if one.name.startswith(tuple(exporters())))


def test_a_format_is_known_to_the_registry_alone() -> None:
    """It is one file, and can be left out: what others make of the same values is no exporter's."""
    assert {"darc.views.exporters.json", "darc.views.exporters.text"} <= exporters()
    files = [file for package in sorted(INSTALLED) for file in python_files(package)]
    wrong = [line for file in files for line in of_one_exporter(file, parsed(file))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "from darc.views.exporters.text import report",
        "from darc.views.exporters import json",
        "def f():\n    import darc.views.exporters.dot",
    ],
)
def test_who_knows_a_format_is_noticed(text: str) -> None:
    assert list(of_one_exporter(Path("darc/views/output.py"), ast.parse(text)))


def reaches(file: Path, tree: ast.Module) -> Iterator[str]:
    """What reaches out of a pure floor; ``darc`` is for :func:`is_up`."""
    for one in imports_in(file, tree):
        if one.name.split(".")[0] not in COMPUTING | {"darc"}:
            yield str(one)
    for node in walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in REACHING:
            yield f"{file}:{node.lineno} has {node.id}"


@pytest.mark.parametrize("name", PURE)
def test_what_is_pure_reaches_nothing_outside(name: str) -> None:
    wrong = [line for file in python_files(f"darc/{name}") for line in reaches(file, parsed(file))]
    assert not wrong, "\n".join(wrong) + f"\nwhat computes: {', '.join(sorted(COMPUTING))}"


def hidden_imports(file: Path, tree: ast.Module) -> Iterator[str]:
    """What may import by a name that is made while it runs, or take what others have imported."""
    for one in imports_in(file, tree):
        if one.name.split(".")[0] in IMPORTERS:
            yield str(one)
    names = names_in(tree)
    for node in walk(tree):
        if isinstance(node, ast.expr) and (name := name_of(node, names)) in IMPORTING:
            yield f"{file}:{node.lineno} has {name}"
    yield from whole_packages(file, tree)


def whole_packages(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a package of the project is a value: by its names (``vars``) one gets whatever anybody
    has imported of it. And where a module is asked for what all modules have (``__dict__``)."""
    names = names_in(tree)
    named = [node for node in walk(tree) if isinstance(node, ast.Name | ast.Attribute)]
    asked = {id(node.value) for node in named if isinstance(node, ast.Attribute)}
    for node in named:
        first = next(one for one in ast.walk(node) if not isinstance(one, ast.Attribute))
        if not isinstance(first, ast.Name) or first.id not in names:
            continue
        if id(node) not in asked and (name := name_of(node, names)) in PACKAGES:
            yield f"{file}:{node.lineno} has {name}"
        is_common = isinstance(node, ast.Attribute) and node.attr in COMMON
        if is_common and (name := name_of(node, names)).rpartition(".")[0] in MODULES:
            yield f"{file}:{node.lineno} has {name}"


def test_what_is_imported_is_written_as_an_import() -> None:
    """Else none of these tests sees it."""
    found = {
        str(file): lines
        for package in ("darc", *sorted(ABOVE), "benchmarks")
        for file in python_files(package)
        if (lines := list(hidden_imports(file, parsed(file))))
    }
    wrong = [line for file, lines in found.items() if file not in OWN_IMPORTERS for line in lines]
    assert not wrong, "\n".join(wrong) + f"\nthose that may: {', '.join(OWN_IMPORTERS)}"
    assert found.keys() == OWN_IMPORTERS.keys(), "no longer needed"


@pytest.mark.parametrize(
    "text",
    [
        "from importlib import import_module as im",
        "def f():\n    import importlib.util",
        "import importlib; getattr(importlib, 'import_' + 'module')",
        "import pkgutil; pkgutil.resolve_name('darc.app.app:App')",
        "import runpy; runpy.run_module('darc.app.app')",
        "import builtins as b; b.__import__('darc.app.app')",
        "import sys; sys.modules['darc.app.app']",
        "from sys import modules as known; known['darc.app.app']",
        "import sys; s = sys; getattr(s, 'modules')",
        "exec('from darc.app.app import App')",
        "do = exec; do('from darc.app.app import App')",
        "eval('App')",
        "__import__('darc.app.app')",
        "__builtins__['__import__']('darc.app.app')",
        "__loader__.load_module('darc.app.app')",
        "import __main__; __main__.gdb",
        "import darc; vars(darc)['app']",
        "import darc; darc.__dict__['app']",
        "import darc as d; d.__dict__['app']",
        "import darc; d = darc; d.app.app.App",
        "import darc; getattr(darc, name)",
        "import darc; darc.__getattribute__('app')",
        "import darc; object.__getattribute__(darc, 'app')",
        "import darc; operator.attrgetter('app.app')(darc)",
        "import darc; f(darc)",
        "import darc.code; [darc.code, 1]",
        "from darc import code; vars(code)",
        "globals()['darc']",
        "import inspect; inspect.getmembers(f)",
        "import gc; gc.get_objects()",
        "import sys; sys._getframe(1).f_globals",
    ],
)
def test_an_import_that_is_written_as_none_is_noticed(text: str) -> None:
    (line, *_) = hidden_imports(Path("darc/code/elf.py"), ast.parse(text))
    assert re.match(r"darc/code/elf\.py:[12] (has|imports) ", line)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("model/profile.py", "from darc.search.descent import Orders"),
        ("code/elf.py", "from ..session import session"),
        ("code/elf.py", "from .. import session"),
        ("code/elf.py", "import darc; darc.session.session.Session"),
        ("code/elf.py", "import darc as d; d.session.session.Session"),
        ("__init__.py", "from darc.app.app import App"),
        ("__init__.py", "from darc.model.status import Status"),
        ("attic/room.py", "from darc.app.app import App"),
        ("app/app.py", "from darc.attic.room import Room"),
        ("code/sub/__init__.py", "from darc.app.app import App"),
    ],
)
def test_a_way_up_is_noticed(file: str, text: str) -> None:
    """Also of ``darc`` itself, and of a folder that is no floor."""
    assert any(map(is_up, imports_in(Path("darc") / file, ast.parse(text))))


@pytest.mark.parametrize(
    "text",
    [
        "from darc import FLOORS",
        "from darc.model.status import Status",
        "from darc.code.elf import Elf",
        "import os",
    ],
)
def test_a_way_down_is_none(text: str) -> None:
    assert not any(map(is_up, imports_in(Path("darc/code/names.py"), ast.parse(text))))


@pytest.mark.parametrize(
    "text",
    [
        *("import time", "import logging", "import http.client", "import sqlite3, re"),
        *("import secrets", "from os import getpid", "from pathlib import Path"),
        *("open('x')", "o = open", "import rich"),
    ],
)
def test_what_reaches_outside_is_noticed(text: str) -> None:
    assert list(reaches(Path("darc/model/profile.py"), ast.parse(text)))


def test_values_are_frozen() -> None:
    wrong = [
        f"{file}:{node.lineno} {node.name}"
        for file in python_files("darc/model")
        for node in walk(parsed(file))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        for by in map(ast.unparse, node.decorator_list)
        if by.startswith("dataclass") and "frozen=True" not in by
    ]
    assert not wrong, "\n".join(wrong)


def test_the_kernel_and_machines_to_try_it_on_do_not_know_each_other() -> None:
    both = {"kgdb", "kgdb/vm"}
    wrong = [
        str(one)
        for file in python_files("kgdb")
        for one in imports(file)
        if {home(module_name(file)), home(one.name)} == both
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", sorted(ABOVE))
def test_what_may_be_imported_outside_a_debugger(package: str) -> None:
    """That is what the rest of the tree does import, where no debugger is."""
    text = ast.get_docstring(parsed(Path(package) / "__init__.py")) or ""
    if "outside" not in text:
        return
    may = {package, *re.findall(rf":mod:`({package}\.\w+)`", text)}
    used = {
        one.name
        for file in python_files("tests/unit")
        for one in imports(file)
        if one.name.startswith(f"{package}.")
    }
    assert used <= may


def test_the_engine_is_imported_without_a_debugger() -> None:
    names = [module_name(file) for file in ENGINE if file.name != "build.py"]
    program = "import sys\n" + "".join(f"import {name}\n" for name in names)
    program += f"assert not {DEBUGGERS | ABOVE!r} & set(sys.modules)\n"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_the_engine_knows_no_particular_debuggee() -> None:
    """The debuggers' packages say what may be one."""
    kinds = {
        module_name(file)
        for file, _, bases in _classes("darc/debuggee")
        if not {"Debuggee", "PadBackend"}.isdisjoint(bases)
    }
    assert "darc.debuggee.process" in kinds
    wrong = [
        str(one)
        for file in ENGINE
        if home(module_name(file)) != "debuggee"
        for one in imports(file)
        if one.name in kinds
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", ["darc_gdb", "darc_lldb"])
def test_parts_of_a_target_have_the_names_of_what_is_asked_of_them(package: str) -> None:
    """Who knows one debugger's package finds the way in the other's."""
    parts = set(re.findall(r"^    \w+: (\w+)$", (ROOT / "darc/target/target.py").read_text(), re.M))
    asked = {name: file.stem for file, name, _ in _classes("darc/target") if name in parts}
    found = {
        base: file.stem for file, _, bases in _classes(package) for base in bases if base in asked
    }
    assert {"Breaks", "Threads"} <= found.keys()
    assert found == {base: asked[base] for base in found}


def _classes(folder: str) -> Iterator[tuple[Path, str, list[str]]]:
    """Each class of the files of a folder, and what it is made from."""
    for file in sorted((ROOT / folder).glob("*.py")):
        for node in walk(parsed(file)):
            if isinstance(node, ast.ClassDef):
                yield file.relative_to(ROOT), node.name, list(map(ast.unparse, node.bases))


def test_folders_have_no_code_of_their_own() -> None:
    """A package says what lives there, and hands on names; code has a file with a name."""
    packages = ("darc", *sorted(ABOVE), "benchmarks", "fixtures", "tests")
    for file in (one for package in packages for one in (ROOT / package).rglob("__init__.py")):
        code = [
            node.name
            for node in parsed(file).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        assert not code, f"{file.relative_to(ROOT)}: {', '.join(code)}"


def test_tests_import_no_test() -> None:
    """What tests share has a file that is none: whoever changes a test changes that alone."""
    wrong = [
        str(one)
        for file in sorted((ROOT / "tests").rglob("*.py"))
        for one in imports(file.relative_to(ROOT))
        if one.name.startswith("tests.") and ".test_" in one.name
    ]
    assert not wrong, "\n".join(wrong)
