"""The way of one latency, as docs/architecture.md tells it: each step leads to the next one."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = 7


@dataclass(frozen=True)
class Place:
    """What the page names: ``FILE:NAME``, or ``FILE:CLASS.METHOD``."""

    file: str
    name: str

    @property
    def called(self) -> str:
        """The word by which another place names it."""
        return self.name.rpartition(".")[2]

    @property
    def is_python(self) -> bool:
        return self.file.endswith(".py")

    @property
    def words(self) -> frozenset[str]:
        """What stands in its definition, but for its own name. Fails where it is not defined."""
        return _words(self.file, self.name, self.is_python)

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
    """Names and attributes in a definition, by its syntax tree."""
    node: ast.AST = ast.parse(source)
    for part in name.split("."):
        defined = (ast.ClassDef, ast.FunctionDef)
        own = [one for one in ast.iter_child_nodes(node) if isinstance(one, defined)]
        (node,) = [one for one in own if one.name == part]
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
            yield ".".join(ast.unparse(one).split(".")[-2:])


def _agent(source: str, name: str) -> Iterator[str]:
    """Words in a function of C, or behind a label in assembly, without comments."""
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
    in_c = rf"^(?:static|ENTRY)\b[^;{{}}]*\b{name}\([^;{{}}]*\)\n(\{{\n.*?^\}}$)"
    in_assembly = rf"^{name}:\n(.*?)^    \.cfi_endproc$"
    (body,) = re.findall(f"{in_c}|{in_assembly}", code, re.M | re.S)
    yield from re.findall(r"\w+", "".join(body))


def steps_of(page: str) -> list[list[Place]]:
    """The places that are named in each step."""
    section = page.partition("\n## The way of one latency\n")[2].partition("\n## ")[0]
    return [places_in(step) for step in re.split(r"^\d+\. ", section, flags=re.M)[1:]]


def places_in(text: str) -> list[Place]:
    return [Place(*found) for found in re.findall(r"`([\w/]+\.\w+):([\w.]+)`", text)]


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
                found.append(f"{place.file}: nothing beside it names {place.name}")
    return found


PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_each_step_leads_to_the_next() -> None:
    steps = steps_of(PAGE)
    assert len(steps) == STEPS
    assert all(len(step) > 1 for step in steps)
    assert not gaps(steps)


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(range(STEPS), 2)])
def test_steps_in_another_order_are_noticed(one: int, other: int) -> None:
    steps = steps_of(PAGE)
    steps[one], steps[other] = steps[other], steps[one]
    assert gaps(steps)


def test_every_place_of_the_page_is_there() -> None:
    """Also those that other sections name."""
    places = places_in(PAGE)
    assert len(places) > sum(map(len, steps_of(PAGE)))
    for place in places:
        assert isinstance(place.words, frozenset)


def test_places_that_are_not_there_are_noticed() -> None:
    for place in (Place("darc/agent/bell.c", "ring"), Place("darc/model/part.py", "Part.function")):
        assert place.words
    for place in (Place("darc/agent/bell.c", "rings"), Place("darc/model/part.py", "Part.rows")):
        with pytest.raises(ValueError, match="not enough values"):
            _ = place.words
