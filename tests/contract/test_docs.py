"""The documentation names only what there is."""

from __future__ import annotations

import ast
import functools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc import FLOORS
from darc.app.commands import COMMANDS
from darc.app.parameters import PARAMETERS
from darc.model import values
from darc.model.status import Status
from tests.contract.tree import parsed

ROOT = Path(__file__).resolve().parents[2]
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]
IDS = [str(page.relative_to(ROOT)) for page in PAGES]

TREE = [
    file.relative_to(ROOT).as_posix()
    for folder in (
        "darc",
        "darc_gdb",
        "darc_lldb",
        "kgdb",
        "benchmarks",
        "fixtures",
        "tests",
        "tools",
    )
    for file in (ROOT / folder).rglob("*.*")
]


def blocks(page: Path) -> Iterator[str]:
    """The code blocks of a page."""
    yield from re.findall(r"^```[a-z]*\n(.*?)^```", page.read_text(), re.M | re.S)


def darc_commands(page: Path) -> Iterator[str]:
    """Every darc command that is typed in a page, in blocks, in -ex and in running text."""
    text = page.read_text()
    yield from re.findall(r"^\(gdb\) (darc .*)$", text, re.M)
    yield from re.findall(r"-ex '(darc [^']*)'", text)
    yield from re.findall(r"`(darc [a-z][^`]*)`", text)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_glossary_has_every_command(name: str) -> None:
    lines = (ROOT / "docs" / "glossary.md").read_text().splitlines()
    words = {line.split("|")[1].strip() for line in lines if line.startswith("| ")}
    is_there = any(re.search(rf"`{name}`", word) for word in words)
    assert is_there, f"docs/glossary.md, 'Of the commands', has no line for `{name}`"


@pytest.mark.parametrize("name", ["commands", "modules"])
def test_pages_are_those_of_the_registry_and_the_tree(name: str) -> None:
    page = ROOT / "docs" / f"{name}.md"
    writer = "import runpy, sys; print(runpy.run_path(sys.argv[1])['page'](), end='')"
    script = ROOT / "tools" / f"{name}_page.py"
    made = subprocess.run(
        [sys.executable, "-c", writer, script], capture_output=True, text=True, check=True
    )
    assert page.read_text() == made.stdout, f"run '.venv/bin/python tools/{name}_page.py'"


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_commands_are_of_the_right_form(page: Path) -> None:
    if page.parent.name == "extending":
        return  # what is added there is tested in tests/gdb/test_extending.py
    for typed in darc_commands(page):
        _, name, *rest = typed.replace("[", " ").replace("]", " ").split()
        assert name in COMMANDS, typed
        options = {option.name for option in COMMANDS[name].options}
        for word in rest:
            option = word.partition("=")[0]
            if re.fullmatch(r"--?[a-z][a-z-]*", option):
                assert option in options, typed
        is_pattern = any(re.search(r"\b[A-Z]{2,}\b|\b[A-Z]$|…", word) for word in rest)
        if rest and not is_pattern:
            COMMANDS[name].read(typed.split(None, 2)[2])


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_parameters_exist(page: Path) -> None:
    names = {parameter.name for parameter in PARAMETERS}
    for name in re.findall(r"(?:set|show) darc ([a-z][a-z-]*)", page.read_text()):
        assert name in names


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_make_targets_and_scripts_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    typed = "\n".join(_typed(page))
    for target in re.findall(r"\bmake ([a-z]+)(?=[`\n ]|$)", typed):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for module in re.findall(r"python -m ([a-z.]+)", typed):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


def _typed(page: Path) -> Iterator[str]:
    text = page.read_text()
    yield from re.findall(r"`([^`\n]+)`", text)
    for block in blocks(page):
        yield from block.splitlines()


def test_every_thread_has_a_name_of_its_own_and_is_told_of() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    made = [
        (re.escape(file.relative_to(ROOT).as_posix()), name)
        for file in sorted(ROOT.glob("darc*/**/*.py"))
        for name in re.findall(r'begin_thread\(.*, "(.+)"\)', file.read_text())
    ]
    named = {file: name for file, name in made if not file.endswith("farewell\\.py")}
    assert len(named) > 5
    assert len({name for _, name in made}) >= len(named)
    for file, name in named.items():
        assert re.search(rf"^\| {name} \| `{file}` \|", text, re.M), f"{file}: {name}"


def test_every_status_is_told_of() -> None:
    text = (ROOT / "docs" / "method.md").read_text()
    for status in Status:
        assert f"`{status.value}`" in text


def test_what_is_written_where_is_in_the_order_that_it_states() -> None:
    text = (ROOT / "docs" / "safety.md").read_text()
    section = text.partition("\n## What is written where\n")[2].partition("\n## ")[0]
    stated, _, table = section.partition("| --- |")
    order = re.findall(r"\*(\w+)\*", stated)
    rows = [line.split(" | ")[1] for line in table.splitlines() if line.startswith("| ")]
    places = [order.index(re.split(r"\W", where)[0]) for where in rows]
    assert set(places) == set(range(len(order))), "a place without a row"
    assert places == sorted(places)


def public() -> dict[str, set[str] | None]:
    """The modules that CONTRIBUTING.md says are public, with what is of each, where that is not
    all of it."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## What is public\n")[2]
    told: dict[str, set[str] | None] = {}
    for name, some in re.findall(r"`(darc\.[\w.]+)`(?:\s*\(([^)]*)\))?", section):
        module, _, last = name.rpartition(".")
        if last[0].isupper():
            told[module] = {*(told.get(module) or ()), last}
        else:
            told[name] = set(re.findall(r"`(\w+)`", some)) or None
    return told


def is_public(told: dict[str, set[str] | None], module: str, name: str | None) -> bool:
    """Of a package that is public all that lies in it is."""
    if module in told:
        return name is None or name in (told[module] or {name})
    return any(not some and module.startswith(f"{one}.") for one, some in told.items())


def used_by_authors(text: str) -> Iterator[tuple[str, str | None]]:
    """What a page has its reader import, or leads to: modules, each with a name in it, if one is
    told."""
    for block in re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.M | re.S):
        for module, names in re.findall(r"^ *from (darc[\w.]*) import (.+)$", block, re.M):
            for name in names.split(", "):
                is_module = (ROOT / module.replace(".", "/") / name).is_dir()
                yield (f"{module}.{name}", None) if is_module else (module, name)
    for name in re.findall(r"`(darc(?:\.[a-z]\w*)+)`", text):
        yield name, None
    for name in re.findall(r"\]\(\.\./\.\./(darc/[\w/]+)\.py\)", text):
        yield name.replace("/", "."), None


EXTENDING = [page for page in PAGES if page.parent.name == "extending"]
EXAMPLES = sorted((ROOT / "docs" / "extending" / "examples").rglob("*.py"))


@pytest.mark.parametrize(
    "text",
    [
        *(page.read_text() for page in EXTENDING),
        "".join(f"```python\n{file.read_text()}```\n" for file in EXAMPLES),
    ],
    ids=[*(page.stem for page in EXTENDING), "examples"],
)
def test_what_authors_use_is_public(text: str) -> None:
    """But for what they write themselves."""
    told = public()
    own = set(re.findall(r"^ *class (\w+)", text, re.M))
    private = {
        module if name is None else f"{module}.{name}"
        for module, name in used_by_authors(text)
        if name not in own and not is_public(told, module, name)
    }
    assert not private, f"CONTRIBUTING.md, 'What is public', has no {', '.join(sorted(private))}"


def test_what_is_public_is_there() -> None:
    for module, names in public().items():
        path = ROOT / module.replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        for name in names or ():
            assert re.search(rf"\b{name}\b", file.read_text()), f"{module}: {name}"
        assert file.exists(), module


def for_heirs(tree: ast.Module) -> dict[str, set[str]]:
    """What the classes of a seam have that begins with an underscore, by the one that all of these
    are made from."""
    found: dict[str, set[str]] = {}
    whole: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            over = [ast.unparse(one) for one in node.bases]
            first = next((whole[name] for name in over if name in whole), None)
            if first is None and "ABC" not in over:
                continue
            whole[node.name] = first or node.name
            own = found.setdefault(whole[node.name], set())
            own.update(one.name for one in node.body if isinstance(one, ast.FunctionDef))
            own.update(
                one.target.id
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            )
            own.update(
                one.attr
                for one in ast.walk(node)
                if isinstance(one, ast.Attribute)
                and isinstance(one.ctx, ast.Store)
                and ast.unparse(one.value) == "self"
            )
    mine = {name: {one for one in own if re.match("_[a-z]", one)} for name, own in found.items()}
    return {name: own for name, own in mine.items() if own}


def test_what_stays_for_heirs_is_told() -> None:
    """All of it, for each class of a public seam that is there to be derived from."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## What is public\n")[2]
    told = {
        name: set(re.findall(r"`(_\w+)`", rest))
        for name, rest in re.findall(r"^- `(\w+)`: ((?:.+\n)+?)(?=- |\n)", section, re.M)
    }
    has: dict[str, set[str]] = {}
    for module, names in public().items():
        path = ROOT / module.replace(".", "/")
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        for file in () if names else files:
            has.update(for_heirs(parsed(file)))
    wrong = {name: has.get(name, set()) ^ told.get(name, set()) for name in {*has, *told}}
    assert has == told, f"CONTRIBUTING.md, 'What is public': {wrong}"


def test_what_is_not_public_is_noticed() -> None:
    told = public()
    page = """
   ```python
   from darc.analyses.walk import CallWalk
   from darc.app.commands.analysing import parse_function, Typed
   from darc.model.ops import Op
   ```
[`seen`](../../darc/collectors/losses.py), `darc.app.options`"""
    private = [one for one in used_by_authors(page) if not is_public(told, *one)]
    assert private == [
        ("darc.analyses.walk", "CallWalk"),
        ("darc.app.commands.analysing", "Typed"),
        ("darc.collectors.losses", None),
    ]


SAFETY = (ROOT / "docs" / "safety.md").read_text()
HAZARDS = {file.stem for file in (ROOT / "fixtures/hazards").glob("*.c*")}
PROGRAMS = {
    name
    for path in (ROOT / "fixtures").rglob("*")
    for name in (path.stem, path.relative_to(ROOT / "fixtures").with_suffix("").as_posix())
}
MADE_BY_TESTS = {"hazards", "journals", "program", "spin", "tables"}
"""What rows name for a program that is no single one of ``fixtures/``."""


def declared_tests() -> dict[str, set[str]]:
    """The tests of each file, by its name."""
    found: dict[str, set[str]] = {}
    for file in (ROOT / "tests").rglob("test_*.py"):
        names = re.findall(r"^ *def (test_\w+)", file.read_text(), re.M)
        found.setdefault(file.name, set()).update(names)
    return found


def last_cells(text: str) -> Iterator[str]:
    """Where the two tables of hazards say which test it is."""
    for title in ("Hazards", "Tests that were seen to fail"):
        section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        for row in re.findall(r"^\| (.*) \|$", section, re.M):
            yield row.split(" | ")[-1]


def wrong_tests(text: str) -> list[str]:
    """Tests that are named and that there are not, or not in the file that is named before."""
    declared = declared_tests()
    every = set[str]().union(*declared.values())
    wrong = [
        name
        for name, dots in re.findall(r"`(test_\w+?)(_?…)?`", text)
        if not any(one == name or (dots and one.startswith(name)) for one in every)
    ]
    for file, names in re.findall(r"`(?:[\w/]*/)?(test_\w+\.py)`: ((?:`test_\w+`(?:, )?)+)", text):
        own = declared.get(file, set())
        wrong += [f"{file}: {n}" for n in re.findall(r"test_\w+", names) if n not in own]
    return wrong


def wrong_programs(text: str) -> list[str]:
    wrong = []
    for cell in last_cells(text):
        for inside in re.findall(r"\(([^()]*)\)", cell):
            words = re.split(r"[,;] ", inside.partition(":")[0])
            names = [word for word in words if re.fullmatch(r"[a-z][\w/]*", word)]
            wrong += [name for name in names if name not in PROGRAMS | MADE_BY_TESTS]
    return wrong


def test_rows_of_hazards_name_what_there_is() -> None:
    assert not wrong_tests(SAFETY)
    assert not wrong_programs(SAFETY)
    row = "\n## Hazards\n| a | b | `test_kills.py`: `test_it_all` (mixtur, hazards/locks, `-O2`) |"
    assert wrong_tests(row) == ["test_it_all", "test_kills.py: test_it_all"]
    assert wrong_programs(row) == ["mixtur"]


def test_each_hazard_has_a_row() -> None:
    """So has each test of them, and each program that one of these tests runs. That a test was seen
    to fail is no such row."""
    begin, _, rest = SAFETY.partition("\n## Tests that were seen to fail\n")
    rows = begin + rest.partition("\n## ")[2]
    tests = (ROOT / "tests/gdb/test_hazards.py").read_text()
    patterns = re.findall(r"`(test_\w+?)_?…`", rows)
    missing = [
        name
        for name in re.findall(r"^def (test_\w+)", tests, re.M)
        if f"`{name}`" not in rows and not name.startswith(tuple(patterns))
    ]
    inside = " ".join(re.findall(r"\(([^()]*)\)", rows))
    named = {*re.findall(r"[\w/]+", inside), *re.findall(r"`(\w+)`", rows)}
    programs = set(re.findall(r"\bbuild\(\"(\w+)\"", tests)) | HAZARDS
    missing += sorted(one for one in programs if not {one, f"hazards/{one}"} & named)
    assert not missing, f"docs/safety.md has no row of {', '.join(missing)}"


GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
OWN_WORDS = re.findall(
    r"^\| (.*?) \| (.*) \| (.*?) \|$",
    GLOSSARY.partition("\n## Of this house\n")[2].partition("\n## ")[0],
    re.M,
)[2:]
"""Of the house: the word, its meaning, and where it is from."""


def test_the_glossary_names_what_there_is() -> None:
    for word, _, where in OWN_WORDS:
        for one in where.split(", "):
            place = re.fullmatch(
                r"`((?:darc|darc_gdb|darc_lldb|kgdb|tests)/\S+\.(?:py|c|h|S))`", one
            )
            assert place, f"{word}: {where} is no list of modules"
            assert (ROOT / place[1]).exists(), f"{word}: {place[1]}"


def test_the_glossary_names_classes_that_there_are() -> None:
    sources = [file.read_text() for file in ROOT.glob("[dkt]*/**/*.py")]
    defined = set(re.findall(r"^(?:class )?([A-Z]\w+)\b(?=[(:]| =)", "\n".join(sources), re.M))
    for name in re.findall(r"`(_?[A-Z]\w+)(?:\.\w+)?`", GLOSSARY):
        assert name in defined, name


def test_the_glossary_is_in_order() -> None:
    words = [word.replace("`", "").casefold() for word, *_ in OWN_WORDS]
    assert len(words) > 100
    assert words == sorted(set(words))


def base(word: str) -> str:
    """What forms of a word have in common: ``landing``, ``landings`` and ``lands``."""
    word = word.casefold()
    for _ in range(2):
        word = re.sub("(?<=...)(ing|ion|ed|er|es|s|e|y)$", "", word)
    return word


@functools.cache
def bases(text: str) -> str:
    """Those of the words of a text, or of a class's name, each between two blanks."""
    words = re.findall("[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", text)
    return f" {' '.join(map(base, words))} "


TERMS = {
    bases(term)
    for words, meaning in re.findall(r"^\| (.*?) \| (.*) \|$", GLOSSARY, re.M)
    for term in (
        *re.split(r"[,()]", words.replace("`", "")),
        *re.findall(r"(?<!\*)\*([\w ]+)\*(?!\*)", meaning),
        *re.findall(r"`([A-Z]\w+)", meaning),
    )
    if term.strip("- ")
}
"""The words that the glossary explains, beside others as well."""

EVERYDAY = {
    bases(word)
    for word in (
        *("answer", "behind", "beside", "call", "cut", "end", "ending", "find", "group", "header"),
        *("helper", "hold", "holder", "idle", "itself", "kind", "later", "left", "look", "mapping"),
        *("member", "memory", "moment", "name", "names", "needed", "note", "part", "place", "read"),
        *("ready", "row", "running", "server", "set", "share", "side", "stand", "standing"),
        *("start", "state", "step", "stop", "stopped", "tail", "thread", "time", "timed", "turn"),
        *("wait", "waits", "way", "why", "word"),
    )
}
"""Those that everybody uses: in a class's name they are the glossary's, elsewhere they tell
nothing."""


def public_classes(file: Path) -> Iterator[tuple[str, str]]:
    """Those of a file that are no errors and no mere shape of others' methods; each with what says
    first what it is, which may be the file's own line."""
    tree = parsed(file)
    of_all = (ast.get_docstring(tree) or "").partition("\n\n")[0]
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            over = [ast.unparse(one) for one in node.bases]
            if not any("Protocol" in one or one.endswith(("Error", "Exception")) for one in over):
                own = (ast.get_docstring(node) or "").partition("\n\n")[0]
                yield node.name, own.replace("See the module.", of_all)


def explained(name: str, told: str, terms: set[str]) -> bool:
    """Whether a class has one of the ``terms`` in its name, or in what says what it is."""
    return any(term in bases(name) for term in terms) or any(
        term in bases(told) for term in terms - EVERYDAY
    )


def test_the_glossary_has_a_word_for_each_class() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}: {name}"
        for package in ("darc", "darc_gdb", "darc_lldb", "kgdb")
        for file in sorted((ROOT / package).rglob("*.py"))
        for name, told in public_classes(file)
        if not explained(name, told, TERMS)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "told", "has_one"),
    [
        ("WeightOfLandings", "One.", True),
        ("Gadget", "What a collector is given.", True),
        ("Gadget", "Something that is given.", False),
        ("Gadget", "A place of its own.", False),
        ("GadgetPlace", "A place of its own.", True),
    ],
)
def test_a_class_without_a_word_is_noticed(name: str, told: str, has_one: bool) -> None:
    terms = {bases(term) for term in ("return landing", "landing", "collector", "place")}
    assert explained(name, told, terms) == has_one


def types_in(tree: ast.Module) -> Iterator[str]:
    """The classes of a file, and the names for types that it hands on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript(value=ast.Name())):
                if name[0].isupper() and not name.isupper():
                    yield name


def test_a_type_has_a_name_of_its_own() -> None:
    """But for what both debuggers have, each for its own, in files of one name."""
    homes: dict[str, set[str]] = {}
    for file in (*ROOT.glob("darc*/**/*.py"), *ROOT.glob("kgdb/**/*.py")):
        home = re.sub("^darc_[a-z]+/", "each debugger's/", str(file.relative_to(ROOT)))
        for name in types_in(parsed(file)):
            homes.setdefault(name, set()).add(home)
    twice = {name: sorted(files) for name, files in homes.items() if len(files) > 1}
    assert not twice


def test_the_floors_are_those_of_the_tree() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert tuple(re.findall(r"^\| `(\w+)/` \|", text, re.M)) == FLOORS
    drawn = re.findall(rf"^  ({'|'.join(FLOORS)}) +\w", text, re.M)
    assert tuple(reversed(drawn)) == FLOORS, "the picture has another order"


ELSEWHERE = {
    *("linux-nat.c", "dl-lookup.c"),  # gdb's, glibc's
    *("file.c", "pager.c"),  # of the user's program
    *("sparing.py", "split.py", "traced.py", "whence.c", "NAME.c"),  # what the reader is to write
}
"""Files that pages name, and that are none of this tree."""

TOLD_IN_CODE = sorted(
    {*(ROOT / "darc").rglob("__init__.py"), *(ROOT / "darc").rglob("architecture.py")}
)


@pytest.mark.parametrize(
    "page", [*PAGES, *TOLD_IN_CODE], ids=lambda page: str(page.relative_to(ROOT))
)
def test_files_that_are_named_are_there(page: Path) -> None:
    text = page.read_text()
    for name in re.findall(r"`([\w/.-]*\w\.(?:py|c|cpp|h|S))(?=[:` ])", text):
        assert any(f"/{file}".endswith(f"/{name}") for file in TREE) or (
            name.rpartition("/")[2] in ELSEWHERE
        ), f"{page.relative_to(ROOT)} names {name}"


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in link:
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_no_path_of_one_machine(page: Path) -> None:
    text = page.read_text()
    assert not re.findall(r"(?<![\w.])/(?:root|work|home)/\S*", text)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_shell_lines_can_be_read(page: Path) -> None:
    for block in blocks(page):
        for line in re.sub(r"\\\n", " ", block).splitlines():
            if line.startswith("$ "):
                assert shlex.split(line[2:])


@pytest.mark.parametrize("page", ["command.md", "parameter.md"])
def test_kinds_of_values_that_are_named_are_there(page: str) -> None:
    """Where a page links what makes them, the words in code behind it until the end of that
    sentence, and those that are called, are its functions."""
    text = (ROOT / "docs" / "extending" / page).read_text()
    said = " ".join(re.findall(r"darc/model/values\.py\)(.*?)`FILE`", text, re.S))
    named = set(re.findall(r"`(\w+)`", said)) - {"TEXT"}
    called = set(re.findall(r"`(\w+)\(\w*(?:=\w+)?\)`", text))
    made = {name for name in vars(values) if not name.startswith("_")}
    assert called & {"count", "duration", "fraction"}, "the pages show how one is made"
    assert named | called <= made
