"""Which guards are put in, and when."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest

from darc.code.landmarks import Landmark
from darc.code.program import Program
from darc.model.errors import TargetError, UnsupportedError
from darc.model.refusal import Refusal
from darc.pads.guardpads import GuardPads
from darc.pads.patching import Patch

RAISE, EXIT, JUMP, LOCK, SWITCH = 0x1000, 0x2000, 0x3000, 0x4000, 0x5000
BEHIND_ENDBR = 4


class GuardedProgram:
    """A program with some places for guards; a patcher that writes down what it does."""

    def __init__(self) -> None:
        self.places = [(Landmark.HIDE, RAISE, "_Unwind_Resume"), (Landmark.JUMP, JUMP, "longjmp")]
        self.waits = [
            (Landmark.LOCK, LOCK, "pthread_mutex_lock"),
            (Landmark.SWITCH, SWITCH, "schedule"),
        ]
        self.f0 = 0
        self.problems: dict[int, str] = {}
        self.refused: set[int] = set()
        self.replaced: set[int] = set()
        self.done: list[tuple[str, int]] = []
        self.guards = GuardPads(
            cast(Program, None),
            cast(Any, self),
            lambda _: iter(self.places),
            make=self.make,
            is_f0=lambda address: address == self.f0,
        )

    def wait_landmarks(self, program: Program) -> Iterator[tuple[Landmark, int, str]]:
        del program
        return iter(self.waits)

    def make(self, address: int, kind: Landmark) -> Patch | Refusal:
        del kind
        self.done.append(("make", address))
        if address in self.problems:
            return Refusal(self.problems[address])
        return Patch(
            address=address + BEHIND_ENDBR,
            original=b"\x90" * 5,
            bytes=b"\xe9" * 5,
            index=0,
            pad=0,
            pad_back=0,
        )

    def together(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def note(self, patches: Iterable[Patch]) -> None:
        self.done += [("note", patch.address - BEHIND_ENDBR) for patch in patches]

    def activate(self, patch: Patch) -> None:
        if patch.address - BEHIND_ENDBR in self.refused:
            raise TargetError("cannot write there")
        self.done.append(("activate", patch.address - BEHIND_ENDBR))

    def deactivate(self, patch: Patch) -> None:
        self.done.append(("deactivate", patch.address - BEHIND_ENDBR))

    def renew(self, patch: Patch) -> bool:
        return patch.address - BEHIND_ENDBR not in self.replaced

    def lead_back(self, patch: Patch) -> None:
        self.done.append(("lead back", patch.address - BEHIND_ENDBR))

    @property
    def standing(self) -> list[int]:
        return [patch.address - BEHIND_ENDBR for patch in self.guards.patches]


@pytest.fixture
def world() -> GuardedProgram:
    return GuardedProgram()


def test_each_place_gets_one(world: GuardedProgram) -> None:
    assert world.guards.put() == []
    assert world.standing == [RAISE, JUMP]
    world.places.append((Landmark.EXIT, EXIT, "_exit"))  # a file was loaded
    world.done.clear()
    assert world.guards.put() == []
    assert world.done == [("make", EXIT), ("activate", EXIT)]
    assert world.guards.has(Landmark.EXIT)
    assert not world.guards.has(Landmark.LOCK)


def test_one_place_has_one_guard_under_all_its_names(world: GuardedProgram) -> None:
    world.places.append((Landmark.JUMP, JUMP, "siglongjmp"))
    world.guards.put()
    world.places.append((Landmark.JUMP, JUMP + BEHIND_ENDBR, "behind its first instruction"))
    world.guards.put()
    assert world.standing == [RAISE, JUMP]


def test_without_an_unwinders_there_is_no_analysis(world: GuardedProgram) -> None:
    world.problems = {RAISE: "too short"}
    with pytest.raises(UnsupportedError, match="_Unwind_Resume: too short"):
        world.guards.put()


def test_without_another_one_it_is_told(world: GuardedProgram) -> None:
    world.refused = {JUMP}
    assert world.guards.put() == ["longjmp: cannot write there"]
    assert world.standing == [RAISE]


def test_waits_are_guarded_from_when_they_are_wanted(world: GuardedProgram) -> None:
    world.guards.put()
    assert not world.guards.knows_waits
    world.guards.prepare_waits(world.wait_landmarks)
    assert world.guards.knows_waits
    assert world.guards.has_waits
    world.guards.put()
    assert world.standing == [RAISE, JUMP], "they are made, and lead nowhere"
    assert {("note", LOCK), ("note", SWITCH)} <= {*world.done}, "so not at the stop"
    world.done.clear()
    assert world.guards.put_waits() == []
    assert world.done == [("activate", LOCK), ("activate", SWITCH)]


def test_a_switch_alone_tells_for_whom_nobody_waits(world: GuardedProgram) -> None:
    del world.waits[0]
    world.guards.prepare_waits(world.wait_landmarks)
    assert not world.guards.has_waits


def test_f0_is_no_place_to_watch_waits(world: GuardedProgram) -> None:
    world.f0 = LOCK
    world.guards.prepare_waits(world.wait_landmarks)
    world.guards.put_waits()
    assert world.standing == [SWITCH]


def test_what_is_taken_back_may_stand_again(world: GuardedProgram) -> None:
    world.guards.put()
    world.done.clear()
    world.guards.take_back(lambda patch: patch.address == JUMP + BEHIND_ENDBR)
    assert world.done == [("deactivate", JUMP), ("lead back", JUMP)]
    assert world.standing == [RAISE]
    world.guards.put()
    assert world.standing == [RAISE, JUMP]


def test_code_that_guards_cover_is_known_before_they_stand(world: GuardedProgram) -> None:
    world.problems = {SWITCH: "too short"}
    world.guards.prepare_waits(world.wait_landmarks)
    first = range(LOCK + BEHIND_ENDBR, LOCK + BEHIND_ENDBR + 5)
    for _ in range(2):
        assert world.guards.cover(range(first.stop - 1, first.stop + 4))
        assert world.guards.cover(range(first.start - 4, first.start + 1))
        assert not world.guards.cover(range(first.stop, first.stop + 5))
        assert not world.guards.cover(range(first.start - 5, first.start))
        assert not world.guards.cover(range(SWITCH, SWITCH + 9)), "none can stand there"
        world.guards.put_waits()


def test_where_another_file_was_loaded_a_new_one_is_made(world: GuardedProgram) -> None:
    world.guards.put()
    world.replaced.add(RAISE)
    world.done.clear()
    world.guards.put()
    assert world.done == [("deactivate", RAISE), ("make", RAISE), ("activate", RAISE)]
    assert sorted(world.standing) == [RAISE, JUMP]
