"""The worked examples of ``docs/extending``, put into a copy of the tree as they say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.debugger import ROOT

PAGES = ROOT / "docs" / "extending"

_BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```", re.M | re.S)


def blocks(page: str) -> list[str]:
    """The Python in a page."""
    text = (PAGES / f"{page}.md").read_text()
    return [textwrap.dedent(block) for _, block in _BLOCK.findall(text)]


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
    (tree / "tests" / "unit" / "test_traced.py").write_text(its_test)


def run_python(tree: Path, *arguments: str) -> str:
    """What Python prints in the copy, of which all modules are."""
    where = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=tree, env=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
