"""Every decision rests on as many calls as were asked for, however many threads make them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.build import build
from tests import debugger

PATH = ["handle", "store", "usleep", "nanosleep", "clock_nanosleep"]
DECISION_OPS = 20


def decided(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The nodes whose callees were compared: those of the path, but for its end."""
    for child in node["children"]:
        if child["root_cause"]:
            yield node
            yield from decided(child)


@debugger.IN_LLDB_AT_NIGHT
@pytest.mark.parametrize(
    ("threads", "ops", "start_ops", "by_hand"),
    [
        (2, 4000, 640, False),
        (8, 2000, 640, False),
        (8, 2000, 640, True),
        (8, 2000, 100, False),
        (80, 900, 6400, False),
    ],
)
def test_votes_of_many_threads(
    threads: int, ops: int, start_ops: int, *, by_hand: bool, tmp_path: Path
) -> None:
    """What a thread had not told of the profile's calls is no vote; nor is a vote that a stop cut
    short."""
    start = f"darc start handle --start-ops {start_ops} --lookahead 1"
    commands = [f"{start} --peak '>800us'", "run"]
    if by_hand:  # threads have told of few of their calls when the choice comes
        commands = [start, "run", "darc peak '>800us'", "continue"]
    program = build("crowd")
    commands += [debugger.REPORT, "kill"]
    done = debugger.debug(tmp_path, program, (str(ops), str(threads)), commands)
    report = done.report
    assert report is not None, done.gdb
    assert [path["functions"] for path in done.root_causes] == [PATH], done.gdb
    nodes = list(decided(report["ftree"]))
    assert [node["function"] for node in nodes] == PATH[:-1]
    for node in nodes:
        assert node["ops"] >= DECISION_OPS, done.gdb
        assert max(child["maxcount"] for child in node["children"]) <= node["ops"]
    assert [decision["function"] for decision in report["decisions"]][: len(PATH) - 1] == PATH[:-1]
    for decision in report["decisions"]:
        assert decision["conclusive"]
        assert decision["ops"] >= decision["needed"] == DECISION_OPS, done.gdb
