"""The worked examples of ``docs/extending``, put into a copy of the tree as they say."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tests.debugger import ROOT

PAGES = ROOT / "docs" / "extending"

_BLOCK = re.compile(r"^ *```(\w+)\n(.*?)^ *```", re.M | re.S)


def blocks(page: str, kind: str = "python") -> list[str]:
    """What of that language is in a page."""
    text = (PAGES / f"{page}.md").read_text()
    return [textwrap.dedent(block) for name, block in _BLOCK.findall(text) if name == kind]


def insert(file: Path, line: str, before: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, f"{line}{before}", 1))


def inside(block: str) -> str:
    """What stands between the brackets of an example, or behind the dots of a class."""
    return re.sub(r"\A(\(|class .*\n    \.\.\.)\n|^\)\n\Z", "", block, flags=re.M)


def copied(tree: Path) -> Path:
    """A copy of the tree there."""
    ignored = shutil.ignore_patterns("__pycache__", ".*", "build", "seeds", "*.egg-info")
    shutil.copytree(ROOT, tree, ignore=ignored)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    return tree


def add_effect(search: Path, method: str) -> None:
    """What the parameter does, in the place of the method that has the name."""
    text = search.read_text()
    (name,) = re.findall(r"^def (\w+)", method)
    method = textwrap.indent(method, " " * 4)
    text, count = re.subn(
        rf"^    def {name}\(.*?\n\n(?=    def )", f"{method}\n", text, flags=re.M | re.S
    )
    assert count == 1, name
    search.write_text(text.replace("model.ftree import ", "model.ftree import CallKind, ", 1))


def add_trace(tree: Path) -> None:
    """The collector that is neither pads nor breakpoints, as a kind of probes."""
    traced, member, row, meaning, its_test = blocks("collector")[:5]
    (tree / "darc" / "collectors" / "traced.py").write_text(traced)
    insert(tree / "darc/model/parameters.py", inside(member), "\n\nclass Loops")
    imported, row = row.split("\n\n")
    ways = tree / "darc" / "collectors" / "ways.py"
    insert(ways, f"{imported}\n", "from darc.collectors.walk_collector")
    text = ways.read_text()
    ways.write_text(re.sub(r"^_ROWS = \(.*\)\n", f"{row.strip()}\n", text, count=1, flags=re.M))
    parameters = tree / "darc" / "app" / "parameters.py"
    text = parameters.read_text()
    parameters.write_text(
        re.sub(r"^PROBES_MEAN = \(\n.*?^\)\n", meaning, text, count=1, flags=re.M | re.S)
    )
    line = "| `darc/collectors/` | by a trace | what something else has recorded | `traced.py` |\n"
    insert(tree / "docs" / "architecture.md", line, "| `darc/collectors/` | many functions |")
    (tree / "tests" / "unit" / "collectors" / "test_traced.py").write_text(its_test)


def add_row(tree: Path, title: str, row: str, beside: str = "") -> None:
    """A row in a table of ``docs/safety.md``: in front of the one that says ``beside``, or at the
    end of that of the section ``title``."""
    page = tree / "docs" / "safety.md"
    before, heading, section = page.read_text().partition(f"\n## {title}\n")
    assert heading, title
    at = section.rindex("\n", 0, section.index(beside)) if beside else section.index("\n\n## ")
    page.write_text(f"{before}{heading}{section[:at]}\n{row.strip()}{section[at:]}")


def add_hazard(tree: Path) -> None:
    """The hazard with its fixture, its test and its rows."""
    (fixture,), (its_test,) = blocks("hazard", "c"), blocks("hazard")
    name = re.match(r"/\* (\w+): ", fixture)
    assert name
    (tree / "fixtures" / f"{name[1]}.c").write_text(fixture)
    with (tree / "tests" / "gdb" / "test_hazards.py").open("a") as file:
        file.write(f"\n\n{its_test}")
    seen_to_fail, hazard = blocks("hazard", "markdown")
    add_row(tree, "Tests that were seen to fail", seen_to_fail)
    add_row(tree, "Hazards", hazard, beside="it does so through a copy of the stack pointer")


@contextlib.contextmanager
def broken_cure(tree: Path) -> Iterator[None]:
    """The one line of the hazard's page is as it must not be."""
    (change,) = blocks("hazard", "diff")
    told = re.fullmatch(r"--- (.*)\n-(.*)\n\+(.*)\n", change)
    assert told
    file = tree / told[1]
    text = file.read_text()
    assert text.count(f"{told[2]}\n") == 1, "the page's line is not there"
    file.write_text(text.replace(told[2], told[3]))
    try:
        yield
    finally:
        file.write_text(text)


def run_python(tree: Path, *arguments: str, fails: bool = False) -> str:
    """What Python prints in the copy, of which all modules are; ``fails`` says that it is to end by
    an error."""
    where = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=tree, env=where, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout
