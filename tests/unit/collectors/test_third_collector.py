"""A collector that is neither pads nor breakpoints: that of the page for its authors, put into a
copy of the tree as the page says, finds a root cause there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contract.tree import groups
from tests.extending import add_trace, blocks, copied, run_python


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = copied(tmp_path_factory.mktemp("extended") / "tree")
    add_trace(made)
    return made


@pytest.mark.timeout(600)  # it copies the tree, and runs two files of tests there
def test_it_goes_from_start_to_a_root_cause(tree: Path) -> None:
    tests = [f"tests/unit/collectors/test_{name}.py" for name in ("traced", "ways")]
    run_python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)


def test_it_needs_what_is_for_all_alone() -> None:
    """It is derived from the seam itself."""
    traced = blocks("collector")[0]
    (name, for_all), *_ = groups("collectors")
    assert name == "for all"
    assert "(Collector):" in traced
    assert {*re.findall(r"darc\.collectors\.(\w+) import", traced)} <= {*for_all}
    assert not re.search(r"darc\.(pads|agent)\b", traced)
