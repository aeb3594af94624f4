"""Sessions that darc has written in each earlier format: what today's shows of one is what was
reported then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from darc.model.ops import OpClass
from darc.model.parameters import Probes
from darc.model.peaks import find_peaks
from darc.model.snapshot import Snapshot
from darc.saved import storage
from darc.saved.descents import SavedDescent, read_file
from darc.search.descent import ended_paths
from darc.views.exporters.json import to_json
from tests import sessions

NOT_SAVED = {"file", "line", "program"}
"""What the program is asked for that runs, and what one run has cost."""


def shown(saved: SavedDescent) -> Snapshot:
    """What a session shows that goes on, until the program has been heard of."""
    stored, search = saved.session, saved.session.search
    return Snapshot(
        stored.root.function.name,
        stored.status,
        Probes.PAD,
        profile=stored.profile,
        peaks=find_peaks(stored.profile.bins, stored.profile.resolution),
        peak=search.peak,
        ftree=stored.root,
        paths=ended_paths(stored.root),
        ops=saved.ops,
        waits=saved.waits.get(OpClass.IN_PEAK),
        waits_of_fastest=saved.waits.get(OpClass.FASTEST),
    )


def differences(now: Any, then: Any, where: str = "") -> Iterator[str]:
    """Where a report says otherwise, or no more, what the one before has said."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in then.keys() - NOT_SAVED:
            at = f"{where}.{key}"
            yield from differences(now[key], then[key], at) if key in now else (f"{at}: gone",)
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for number, (one, before) in enumerate(zip(now, then, strict=True)):
            yield from differences(one, before, f"{where}[{number}]")
    elif now != then:
        yield f"{where}: {now}, and it was {then}"


@pytest.fixture(params=sessions.VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    number = request.param
    assert isinstance(number, int)
    return number


@pytest.fixture
def saved(version: int, tmp_path: Path) -> SavedDescent:
    file = tmp_path / "s.json"
    file.write_bytes(sessions.session(version))
    return read_file(file)


F0_CALLS = ".ftree.calls: 20, and it was 0"
"""Of f0 itself, whose calls nobody counted beside each other: it had none in versions 2 and 3."""


def test_what_was_measured_then_is_shown(version: int, saved: SavedDescent) -> None:
    assert json.loads(sessions.session(version))["version"] == version
    then = sessions.report(version)
    assert [*differences(to_json(shown(saved)), then)] == ([F0_CALLS] if version > 1 else [])


def test_a_difference_would_be_noticed(version: int, saved: SavedDescent) -> None:
    then = sessions.report(version)
    then["root_cause_paths"][0]["maxcount"] += 1
    then["ftree"]["children"].pop()
    told = [*differences(to_json(shown(saved)), then)]
    assert len([one for one in told if "maxcount" in one or ".ftree.children" in one]) == 2


def test_what_each_version_has(version: int, saved: SavedDescent) -> None:
    """Which analysis it is of was not said, nor were there decisions and parts from the first."""
    stored = saved.session
    assert (stored.analysis, stored.spec, stored.parameters.peak) == ("start", "handle", ">1ms")
    (path,) = ended_paths(stored.root)
    assert path.nodes[-1].function.name == "clock_nanosleep"
    assert all((node.decision is None) == (version == 1) for node in path.nodes)
    assert (saved.ops is not None, bool(saved.waits)) == (version == 3, version == 3)
    assert bool(stored.search.slices) == (version > 1)


def test_it_is_written_anew_as_today_and_means_the_same(saved: SavedDescent) -> None:
    text = storage.to_text(saved.session)
    assert json.loads(text)["version"] == storage.VERSION
    assert storage.to_text(storage.from_bytes(text.encode(), "s.json")) == text
