"""What both debuggers' ``load.py`` share: any Python 3 takes it, and darc is found by it."""

from __future__ import annotations

import ast
import configparser
import sys
from pathlib import Path

import pytest

from darc.app import loading

ROOT = Path(__file__).resolve().parents[3]
FOR_ANY_PYTHON = (
    *("darc_gdb/load.py", "darc_lldb/load.py"),
    *("darc/__init__.py", "darc/app/__init__.py", "darc/app/loading.py"),
    "darc/app/sigactions.py",
)
"""What is read before it is known which Python it is; the first of them with f-strings is 3.6."""


@pytest.mark.parametrize("name", FOR_ANY_PYTHON)
def test_an_old_python_can_read_it(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    tree = ast.parse(text, feature_version=(3, 6))
    assert text.isascii()
    assert "annotations" not in {
        one.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    }, "3.6 has no 'from __future__ import annotations'"


def test_the_oldest_python_is_that_of_the_package() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    oldest = ".".join(map(str, loading.OLDEST_PYTHON))
    assert setup["options"]["python_requires"] == f">={oldest}"


def test_which_python_is_too_old() -> None:
    told = "this gdb has Python 3.10; darc needs 3.11 or newer"
    assert loading.too_old("this gdb", (3, 10)) == told
    assert loading.too_old("this gdb", loading.OLDEST_PYTHON) is None
    assert loading.too_old("this gdb", (4, 0)) is None


def test_where_packages_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the launcher says, first; then in the environment of the folder. None stands twice."""
    version = "python{}.{}".format(*sys.version_info[:2])
    own, another = (tmp_path / f".venv/lib/{n}/site-packages" for n in (version, "python3.99"))
    for folder in (own, another):
        folder.mkdir(parents=True)
    monkeypatch.setenv("DARC_PYTHONPATH", "/told")
    monkeypatch.setattr(sys, "path", ["/before"])
    for _ in range(2):
        loading.add_packages(str(tmp_path))
    assert sys.path == ["/before", "/told", str(own), str(another)]
