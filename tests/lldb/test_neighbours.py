"""Stop hooks of others beside darc's."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import LLDB, NEWEST
from tests.lldb.runner import debug, mark

pytestmark = pytest.mark.debuggers(LLDB, NEWEST)

SCRIPTED = """
class Hook:
    def __init__(self, target, arguments, namespace):
        pass

    def handle_stop(self, context, stream):
        print("hooked")
        return True
"""


@pytest.mark.parametrize("kind", ["command", "class"])
def test_stop_hooks_of_others(kind: str, tmp_path: Path) -> None:
    """None of darc's own stops is one for the user, though the others have nothing against that;
    afterwards they are awake again."""
    (tmp_path / "others.py").write_text(SCRIPTED)
    added = {
        "command": ["target stop-hook add -o \"script print('hooked')\""],
        "class": ["command script import others.py", "target stop-hook add -P others.Hook"],
    }[kind]
    commands = [
        *added,
        *("darc start handle --start-ops 1000", mark("profile"), "run", mark("peak")),
        *("darc peak >1ms", mark("result"), "continue", mark("end")),
        *("target stop-hook list", "darc stop", "breakpoint set -o true -n flush"),
        *(mark("awake"), "continue"),
    ]
    done = debug(tmp_path, build("mixture"), ("20000",), commands)
    assert "choose a peak" in done.section("profile")
    assert "root cause of bins" in done.section("result")
    for name in ("profile", "result"):
        assert done.section(name).count("hooked") <= 1, done.gdb
    assert "disabled" not in done.section("end")
    assert "hooked" in done.section("awake")
