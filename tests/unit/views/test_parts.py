"""A part that no view and no command knows takes part in all of them by what it says itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import pytest
from rich.text import Text

from darc.app import commands
from darc.model.errors import DarcError, UsageError
from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.part import Part, parts_of
from darc.model.snapshot import Snapshot
from darc.views.exporters.json import to_json
from darc.views.general.histogram import histogram, of_row
from darc.views.general.live import live
from darc.views.parts import PARTS
from darc.views.parts.part import Doing, PartView
from darc.views.style import Style
from tests.fake_app import FakeApp
from tests.unit import samples
from tests.unit.sets import KNOWN

WIDE = Style(200)


@dataclass(frozen=True)
class Herd(Part):
    """What a new analysis might know."""

    key: ClassVar[str] = "herd"
    is_answer: ClassVar[bool] = True

    rows: tuple[FunctionProfile, ...] = KNOWN.rows
    moves: bool = False

    @property
    def profiles(self) -> tuple[FunctionProfile, ...]:
        return self.rows

    def function(self, number: int) -> Function | None:
        return self.rows[number - 1].function if number <= len(self.rows) else None

    def why_no_function(self, number: int) -> str:
        return f"there is no animal {number}"

    def with_row_alone(self, row: FunctionProfile) -> Self:
        return type(self)((row,))

    @property
    def why_no_answer(self) -> str:
        return "it grazes"


VIEW = PartView(
    Herd,
    lambda _snapshot, known, _style: [Text(f"herd of {len(known.rows)}")],
    lambda known: len(known.rows),
    below_histogram=lambda known, _style: [Text(f"below: {len(known.rows)}")],
    doing=lambda known: Doing("grazes", ("7 eaten",), is_all=known.moves),
)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for user in ("exporters.json", "general.status", "general.histogram", "general.live"):
        monkeypatch.setattr(f"darc.views.{user}.PARTS", {**PARTS, Herd.key: VIEW})


def snapshot(herd: Herd = Herd()) -> Snapshot:
    return samples.snapshot(parts=parts_of(herd))


def test_it_is_drawn_below_the_histogram_of_all_and_of_one_row() -> None:
    assert histogram(snapshot(), WIDE).splitlines()[-1] == "below: 2"
    one = histogram(of_row(snapshot(), 1), WIDE).splitlines()
    assert one[-1] == "below: 1"
    assert any(line.endswith("handle: 1010 calls") for line in one)


def test_the_live_line_says_what_it_does() -> None:
    shown = live(snapshot(), WIDE)
    assert shown.startswith("darc: handle: grazes · 7 eaten · 2"), shown
    assert "probes" in shown
    assert live(snapshot(Herd(moves=True)), WIDE).count(" · ") == 2


def test_commands_take_its_rows_by_their_numbers_and_names() -> None:
    app = FakeApp(snapshot())
    commands.run(app, "histogram", "2")
    assert "a_function_with_a_ra…e_that_does_not_fit: 5 calls" in app.shown[0]
    assert app.shown[0].endswith("below: 1")
    with pytest.raises(UsageError, match="there is no animal 9"):
        commands.run(app, "start", "9")


def test_a_report_may_require_its_answer() -> None:
    with pytest.raises(DarcError, match="no answer: it grazes; 'darc status' tells more"):
        commands.run(FakeApp(snapshot()), "report", "--require answer")


def test_a_report_of_another_analysis_has_no_such_key() -> None:
    assert to_json(snapshot())["herd"] == 2
    assert "herd" not in to_json(samples.snapshot())
    assert to_json(samples.snapshot())["walk"] is None
