"""What pads stand on, after whatever an earlier analysis has left."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.collectors.footing import Footing
from darc.pads.foothold import Foothold

OURS, ANOTHERS = 7, 8


@dataclass
class Left:
    """What some other collector has left in a debuggee."""

    identity: int
    may_go: bool = True
    size: int = 0
    done: list[str] = field(default_factory=list)

    def is_there(self) -> bool:
        return True

    def give_back(self) -> bool:
        self.done.append("give back")
        return self.may_go

    def close(self) -> None:
        self.done.append("close")


@Foothold.register
class New:
    """A foothold that is taken."""

    def earlier(self, after: object = None, *, patient: bool = False) -> int:
        assert after is None
        return 0

    def install(self, resolution: int) -> None:
        pass


def footing(earlier: Left | None) -> Footing:
    debuggee = SimpleNamespace(identity=OURS)
    backend = SimpleNamespace(new_foothold=lambda program, room: New())
    return Footing(cast(Any, debuggee), cast(Any, backend), earlier, note=pytest.fail)


@pytest.mark.parametrize(
    ("earlier", "done"),
    [
        (Left(OURS), ["give back"]),
        (Left(OURS, may_go=False), ["give back", "close"]),
        (Left(ANOTHERS), []),
    ],
)
def test_what_others_have_left_goes_before_pads_take_a_foothold(
    earlier: Left, done: list[str]
) -> None:
    its = footing(earlier)
    assert its.remains is earlier
    assert its.foothold is None
    new = its.take(cast(Any, None), cast(Any, None), 1)
    assert earlier.done == done
    assert its.remains is its.foothold is new
