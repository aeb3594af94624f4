"""``darc contexts``: what changed between runs, in the contexts where it did (IntroPerf 5.2)."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path
from typing import Any

import pytest

from darc.model.contexts import Context
from darc.saved import contexts
from fixtures.build import build
from tests.debugger import IN_BOTH, IN_LLDB_AT_NIGHT, attempt, debug

RECORDED = Path(__file__).parents[1] / "recorded"
"""What perf recorded of ``fixtures/plugin``, forty operations with and without the delay."""

START = "darc start handle --start-ops 100 --peak"
PATH = ["handle", "respond", "deflate_out"]


def tree_of(file: Path) -> Context:
    return contexts.from_json(json.loads(file.read_text()))


def ranks(made: dict[str, Any], function: str) -> list[int]:
    """Of the paths through a function, from 1 on (the paper's p_min is the first)."""
    return [n for n, path in enumerate(made["paths"], 1) if function in path["functions"]]


def distance(path: dict[str, Any], function: str) -> int:
    """Calls between a path's hottest function and another one (the paper's f_min)."""
    hottest, functions = int(path["hottest"]), list(path["functions"])
    return abs(hottest - functions.index(function))


def recorded(folder: Path, name: str) -> Path:
    file = folder / f"{name}.txt"
    file.write_bytes(lzma.decompress((RECORDED / f"{name}.txt.xz").read_bytes()))
    return file


@IN_BOTH
def test_a_delay_in_a_plugin_is_what_changed(tmp_path: Path) -> None:
    """Two runs, measured by probes: check takes as long in both, the plugin's function does not."""
    program = build("plugin")
    before = [f"{START} 1", "run", "darc contexts -o base.json", "darc save saved.json", "kill"]
    done = debug(tmp_path, program, ("40000", "0"), before)
    base = tree_of(tmp_path / "base.json")
    assert base.children, done.gdb
    view = "darc contexts --base base.json"
    now = [f"{START} '>300us'", "run", view, f"{view} --format json -o now.json", "kill"]
    done = debug(tmp_path, program, ("40000", "1"), now)
    made = json.loads((tmp_path / "now.json").read_text())
    rank = ranks(made, "deflate_out")[0]
    assert rank <= 3, done.gdb
    first = made["paths"][rank - 1]
    assert first["functions"][:3] == PATH, done.gdb
    assert distance(first, "deflate_out") == 0, done.gdb
    assert not first["new"]
    node = made["nodes"][first["nodes"][2]]
    assert node["inferred"] is None
    assert node["measured"]["ns"] / node["measured"]["calls"] > 100_000
    assert re.search(rf"^{rank} +\S+ms +.*█0", done.gdb, re.M), done.gdb
    shown = rf"^ +{rank}  handle → respond → \[deflate_out\].*measured$"
    assert re.search(shown, done.gdb, re.M), done.gdb
    saved = [view.replace("base.json", "base.json saved.json"), "darc contexts saved.json"]
    done = debug(tmp_path, None, (), saved)
    assert "nothing takes longer than there" in done.gdb
    assert "measured: the calls of handle" in done.gdb


@IN_LLDB_AT_NIGHT
def test_trees_of_several_functions_become_one(tmp_path: Path) -> None:
    """The one of respond stands where handle calls it."""
    commands = [
        "darc start respond --start-ops 100 --decision-ops 5 --peak '>300us' --max-depth 1",
        "run",
        f"{START} '>300us'",
        "continue",
        "darc contexts --format json -o all.json",
        "kill",
    ]
    done = debug(tmp_path, build("plugin"), ("40000", "1"), commands)
    (handle,) = tree_of(tmp_path / "all.json").children.values()
    assert handle.function.name == "handle", done.gdb
    names = {node.function.name for node in handle.children.values()}
    assert {"check", "respond"} <= names


@IN_LLDB_AT_NIGHT
def test_two_records_of_perf(tmp_path: Path) -> None:
    """The stacks of system calls show the same, without any probe."""
    now, base = recorded(tmp_path, "plugin-delay"), recorded(tmp_path, "plugin")
    command = f"darc contexts --import {now} --base {base}"
    done = debug(tmp_path, None, (), [command, f"{command} -o made.json"])
    made = json.loads((tmp_path / "made.json").read_text())
    assert min(ranks(made, "deflate_out")) <= 3, done.gdb
    first = made["paths"][ranks(made, "deflate_out")[0] - 1]
    assert distance(first, "deflate_out") == 0, done.gdb
    assert first["functions"][3:6] == ["main", *PATH[:2]]
    assert re.search(r"inferred: by \d+ events of 1 thread in \S+s", done.gdb), done.gdb
    assert re.search(r"^ +1 .*\[deflate_out\].*, inferred$", done.gdb, re.M), done.gdb
    again = tree_of(tmp_path / "made.json")
    assert len(list(again.walk())) == len(made["nodes"])


def test_measured_and_inferred_contexts_are_one_tree(tmp_path: Path) -> None:
    """What stacks show of main is above, what probes have measured below; where both are, the
    measured figures count. How much stacks have shown of what was measured is told."""
    text = recorded(tmp_path, "plugin-delay")
    commands = [f"{START} '>300us'", "run", f"darc contexts --import {text}", "kill"]
    done = debug(tmp_path, build("plugin"), ("4000", "1"), commands)
    assert re.search(r"^ +1 .* → main → handle → .*\[deflate_out\].*measured$", done.gdb, re.M)
    shown = re.search(
        r"of the measured contexts stacks have shown (\d+)% .* slowest 1% 100%", done.gdb
    )
    assert shown is not None, done.gdb
    assert int(shown[1]) >= 50


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("darc contexts", "nothing was measured yet: 'darc start FUNCTION'"),
        ("darc contexts none.json", "there is no file none.json"),
        ("darc contexts --import none.txt", "there is no file none.txt"),
        ("darc contexts --import .", "is not a file"),
        ("darc contexts --import broken.txt", "line 2 is none of an event or of its stack"),
        ("darc contexts broken.json", "broken.json is not a darc session"),
        ("darc contexts --base broken.json --import plugin.txt", "is not a darc session"),
        ("darc contexts odd.json", "odd.json is damaged: nodes[0] is not complete"),
        ("darc contexts --top 0", "'0' is not a whole number from 1"),
        ("darc contexts --format svg", "'svg' is not one of text, json"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, line: str, said: str) -> None:
    recorded(tmp_path, "plugin")
    (tmp_path / "broken.txt").write_text("\nhello\n")
    (tmp_path / "broken.json").write_text('{"hello": 1}')
    odd = {"format": "darc contexts", "version": 1, "nodes": [{"parent": None}]}
    (tmp_path / "odd.json").write_text(json.dumps(odd))
    done = debug(tmp_path, None, (), [attempt(line)])
    assert said in done.gdb
    assert "Traceback" not in done.gdb
