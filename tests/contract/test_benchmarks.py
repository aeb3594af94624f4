"""What the benchmarks say where they cannot measure, and of themselves."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import measure
from benchmarks.measure import ROOT
from benchmarks.real import subjects


def test_stops_are_told_in_seconds() -> None:
    said = "[New Thread 1]\n\nstops 1000 3000\nstopped\n"
    assert measure.stops_in(said, 1000) == (1.0, 3.0)
    assert measure.stops_in("stops\n", 1000) == ()


def test_a_search_without_stops_is_told_in_words() -> None:
    with pytest.raises(measure.MeasurementError, match="how long the stops were"):
        measure.stops_in("stopped\n", 1000)


@pytest.mark.parametrize(
    "name", [one.name for one in subjects.SUBJECTS if one.name != "80 threads"]
)
def test_a_program_that_is_not_installed_is_told_in_a_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    subject = next(one for one in subjects.SUBJECTS if one.name == name)
    with pytest.raises(measure.MeasurementError, match=r"^[a-z-]+ is not installed$"):
        subject.start(tmp_path)


def parts_of_the_project(module: str) -> Iterator[str]:
    """By what the packages of benchmarks call it: a floor of darc's, a package, or a module that
    all benchmarks share."""
    first, *rest = module.split(".")
    if first == "darc":
        yield rest[0]
    elif first == "benchmarks" and (ROOT / "benchmarks" / f"{rest[0]}.py").exists():
        yield module
    elif first in ("fixtures", "darc_gdb"):
        yield first


@pytest.mark.parametrize("package", ["real", "soak", "why"])
def test_a_package_says_what_it_imports_of_the_project(package: str) -> None:
    folder = ROOT / "benchmarks" / package
    told = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    sentence = re.search(r"Imports (.*?);", told, re.S)
    assert sentence
    imported = {
        part
        for file in folder.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom)
        for part in parts_of_the_project(node.module or "")
    }
    assert set(re.findall(r"``([\w.]+)``", sentence[1])) == imported
