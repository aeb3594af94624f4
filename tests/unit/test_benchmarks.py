"""What the benchmarks say where they cannot measure."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import measure
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
