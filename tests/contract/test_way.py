"""The way of one latency, as docs/architecture.md tells it: each step leads to the next one."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
STEPS = 7
T = TypeVar("T")


class NotThereError(LookupError):
    """The page names what the tree has not: its line, and the word."""


@dataclass(frozen=True)
class Place:
    """What the page names in its ``line``: ``FILE:NAME``, or ``FILE:CLASS.METHOD``."""

    file: str
    name: str
    line: int = field(default=0, compare=False)

    @property
    def called(self) -> str:
        """The word by which another place names it."""
        return self.name.rpartition(".")[2]

    @property
    def is_python(self) -> bool:
        return self.file.endswith(".py")

    @property
    def words(self) -> frozenset[str]:
        """What stands in its definition, but for its own name.

        Raises:
            NotThereError: it is not defined, or more than once.
        """
        said = f"docs/{PAGE.name}:{self.line}: `{self.file}:{self.name}`"
        if not (ROOT / self.file).exists():
            raise NotThereError(f"{said}: there is no such file")
        try:
            return _words(self.file, self.name, self.is_python)
        except LookupError as error:
            raise NotThereError(f"{said}: {error}") from None

    def leads_to(self, other: Place) -> bool:
        """Whether it names ``other``. Python knows the agent's stubs by their fields of ``Stubs``;
        it runs nothing else of the agent's, whose words mean other things."""
        if self.is_python == other.is_python:
            return other.called in self.words
        return other.called.startswith("darc_stub_") and (
            other.called.replace("darc_stub_", "stubs.") in self.words
        )


@functools.cache
def _words(file: str, name: str, is_python: bool) -> frozenset[str]:
    """Of a place in the tree: once for all tests, which name the same ones."""
    source = (ROOT / file).read_text()
    return frozenset(_python(source, name) if is_python else _agent(source, name))


def _python(source: str, name: str) -> Iterator[str]:
    """Names and attributes in a definition, by its syntax tree. LookupError where there is none, or
    several."""
    node: ast.AST = ast.parse(source)
    for part in name.split("."):
        defined = (ast.ClassDef, ast.FunctionDef)
        own = [one for one in ast.iter_child_nodes(node) if isinstance(one, defined)]
        node = the_one([one for one in own if one.name == part], part)
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
            yield ".".join(ast.unparse(one).split(".")[-2:])


def _agent(source: str, name: str) -> Iterator[str]:
    """Words in a function of C, or behind a label in assembly, without comments. LookupError where
    there is none, or several."""
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
    in_c = rf"^(?:static|ENTRY)\b[^;{{}}]*\b{name}\([^;{{}}]*\)\n(\{{\n.*?^\}}$)"
    in_assembly = rf"^{name}:\n(.*?)^    \.cfi_endproc$"
    body = the_one(re.findall(f"{in_c}|{in_assembly}", code, re.M | re.S), name)
    yield from re.findall(r"\w+", "".join(body))


def the_one(found: Sequence[T], name: str) -> T:
    """What is defined by that name, of what was found."""
    if len(found) != 1:
        raise LookupError(f"{len(found)} definitions of {name} are there, not one")
    return found[0]


def steps_of(page: str) -> list[list[Place]]:
    """The places that are named in each step."""
    before, _, section = page.partition("\n## The way of one latency\n")
    first = before.count("\n") + 3  # behind the heading
    begins = [found.end() for found in re.finditer(r"^\d+\. ", section, re.M)]
    ends = [*begins[1:], section.find("\n## ")]
    return [
        places_in(section[begin:end], first + section.count("\n", 0, begin))
        for begin, end in zip(begins, ends, strict=True)
    ]


def places_in(text: str, first: int = 1) -> list[Place]:
    """Those of ``text``, whose first line has the number ``first``."""
    return [
        Place(found[1], found[2], first + text.count("\n", 0, found.start()))
        for found in re.finditer(r"`([\w/]+\.\w+):([\w.]+)`", text)
    ]


def are_linked(one: Place, other: Place) -> bool:
    return one.leads_to(other) or other.leads_to(one)


def gaps(steps: list[list[Place]]) -> list[str]:
    """Steps of which nothing leads to the one behind them, and places that nothing is linked to in
    their own step, or in the one before."""
    found = [
        f"step {number} does not lead to step {number + 1}"
        for number, (step, following) in enumerate(itertools.pairwise(steps), 1)
        if not any(are_linked(one, other) for one in step for other in following)
    ]
    for before, step in zip([[], *steps], steps, strict=False):
        for place in step:
            if not any(are_linked(place, other) for other in (*before, *step) if other != place):
                said = f"docs/{PAGE.name}:{place.line}: {place.file}"
                found.append(f"{said}: nothing beside it names {place.name}")
    return found


def test_each_step_leads_to_the_next() -> None:
    steps = steps_of(PAGE.read_text())
    assert len(steps) == STEPS
    assert all(len(step) > 1 for step in steps)
    assert not gaps(steps)


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(range(STEPS), 2)])
def test_steps_in_another_order_are_noticed(one: int, other: int) -> None:
    steps = steps_of(PAGE.read_text())
    steps[one], steps[other] = steps[other], steps[one]
    assert gaps(steps)


def missing(places: Iterable[Place]) -> list[str]:
    """The places that are not there, as their errors tell of them."""
    found = []
    for place in places:
        try:
            _ = place.words
        except NotThereError as error:
            found.append(str(error))
    return found


def test_every_place_of_the_page_is_there() -> None:
    """Also those that other sections name."""
    places = places_in(PAGE.read_text())
    assert len(places) > sum(map(len, steps_of(PAGE.read_text())))
    assert not missing(places), "\n".join(missing(places))


def test_places_that_are_not_there_are_noticed() -> None:
    """By the page's line and the word, not by how the test looks for it."""
    there = [Place("darc/agent/bell.c", "ring"), Place("darc/model/part.py", "Part.function")]
    assert not missing(there)
    page = """
See `darc/agent/bell.c:rings`
and `darc/model/part.py:Part.function`, `darc/model/part.py:Part.rows`,
`darc/model/parts.py:Part`.
"""
    assert missing(places_in(page)) == [
        "docs/architecture.md:2: `darc/agent/bell.c:rings`: 0 definitions of rings are there, "
        "not one",
        "docs/architecture.md:3: `darc/model/part.py:Part.rows`: 0 definitions of rows are there, "
        "not one",
        "docs/architecture.md:4: `darc/model/parts.py:Part`: there is no such file",
    ]


def test_a_wrong_word_on_the_way_is_told_with_its_line() -> None:
    page = PAGE.read_text()
    right = "rootcauses.py:RootCauses.snapshot`"
    assert page.count(right) == 1
    line = page[: page.index(right)].count("\n") + 1
    steps = steps_of(page.replace(right, right.replace("`", "t`")))
    with pytest.raises(NotThereError, match=rf"^docs/architecture\.md:{line}: .*snapshott`: 0 def"):
        gaps(steps)
