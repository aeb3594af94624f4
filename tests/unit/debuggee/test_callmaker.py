"""What a call of a stopped thread borrows is noted before it is written, and given back on every
way out; it is left as it is where the thread cannot be led back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from darc.code.architecture import Call, Detour
from darc.code.processor import DETOURS
from darc.debuggee import cgroups
from darc.debuggee.callmaker import CallMaker, Turns, able
from darc.debuggee.detour import (
    HANDLER_AT_STAKE,
    IN_32_BITS,
    AwayError,
    DispatchedError,
    EndedError,
    WaitsError,
)
from darc.model.errors import TargetError
from darc.target.target import Journal, Passage

PLACE = 0x7F00_0000_1000
RESULT = 42


class Steps(Journal, CallMaker):
    """A journal and a debugger that tell in what order they are used; ``failing`` are the steps
    that do not succeed."""

    def __init__(self, *failing: str, error: type[BaseException] = TargetError) -> None:
        registers = dict.fromkeys(DETOURS.REGISTERS, 1 << 40)
        super().__init__(os.getpid(), os.getpid(), registers=registers, mask=0)
        self.steps: list[str] = []
        self._failing = failing
        self._error = error
        self._gone = self._away = False

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name in self._failing:
            raise AwayError(1) if self._error is AwayError else self._error(name)

    def borrows(self, passage: Passage) -> None:
        assert passage.place.address == PLACE
        assert not any(passage.place.original)
        self._step("borrows")

    def gives_back(self) -> None:
        self._step("gives back")

    def read(self, address: int, size: int) -> bytes:
        self._step("read")
        return RESULT.to_bytes(size, "little")

    def write(self, address: int, data: bytes) -> None:
        assert address == PLACE
        self._step("write" if any(data) else "restore")

    def follow(self, way: Detour) -> None:
        self._gone = self._error is EndedError
        self._away = self._error is AwayError
        self._step("follow")

    def lead_back(self) -> None:
        self._step("lead back")

    def is_gone(self) -> bool:
        return self._gone

    def is_stopped(self) -> bool:
        return not self._away


BEGIN = ["borrows", "write", "follow"]
END = ["lead back", "restore", "gives back"]


def test_a_call() -> None:
    steps = Steps()
    assert steps.make(Call(0, ()), PLACE, steps) == RESULT
    assert steps.steps == [*BEGIN, "read", *END]


@pytest.mark.parametrize("error", [TargetError, KeyboardInterrupt, ZeroDivisionError])
def test_whatever_ends_the_call(error: type[BaseException]) -> None:
    for failing, end in (("follow", BEGIN), ("read", [*BEGIN, "read"])):
        steps = Steps(failing, error=error)
        with pytest.raises(error, match=failing):
            steps.make(Call(0, ()), PLACE, steps)
        assert steps.steps == [*end, *END]


def test_a_thread_that_is_gone() -> None:
    steps = Steps("follow", error=EndedError)
    with pytest.raises(EndedError):
        steps.make(Call(0, ()), PLACE, steps)
    assert steps.steps == BEGIN


@pytest.mark.parametrize("failing", [("lead back",), ("follow", "lead back")])
def test_a_thread_that_cannot_be_led_back_keeps_its_way(failing: tuple[str, ...]) -> None:
    steps = Steps(*failing)
    with pytest.raises(TargetError, match="lead back"):
        steps.make(Call(0, ()), PLACE, steps)
    assert steps.steps[-1] == "lead back"


def test_a_thread_that_cannot_be_stopped_keeps_its_way() -> None:
    steps = Steps("follow", error=AwayError)
    with pytest.raises(AwayError, match="nor stops"):
        steps.make(Call(0, ()), PLACE, steps)
    assert steps.steps == BEGIN


def test_nothing_is_written_that_cannot_be_noted() -> None:
    steps = Steps("borrows")
    with pytest.raises(TargetError):
        steps.make(Call(0, ()), PLACE, steps)
    assert steps.steps == ["borrows"]


# -- which thread makes it ---------------------------------------------------------------------

CS_64, CS_32 = 0x33, 0x23


def those_able(
    segments: list[int], *, room: tuple[int, ...] = (), at_stake: tuple[int, ...] = ()
) -> list[int]:
    return list(
        able(
            range(len(segments)),
            segment=lambda one: segments[one],
            has_room=lambda one: one in room,
            is_at_stake=lambda one: one in at_stake,
        )
    )


def test_threads_that_can_make_a_call() -> None:
    assert those_able([CS_64, CS_32, CS_64, CS_64], room=(0, 1, 2), at_stake=(2,)) == [0]


@pytest.mark.parametrize(
    ("segments", "at_stake", "message"),
    [
        ([CS_32, CS_32], (), IN_32_BITS),
        ([CS_64, CS_32], (0,), HANDLER_AT_STAKE),
        ([CS_64, CS_64], (0,), "no thread of the program has room on its stack"),
    ],
)
def test_why_none_can(segments: list[int], at_stake: tuple[int, ...], message: str) -> None:
    with pytest.raises(TargetError) as error:
        those_able(segments, at_stake=at_stake)
    assert str(error.value).startswith(message)
    assert isinstance(error.value, DispatchedError) == (message == HANDLER_AT_STAKE)


def test_a_thread_that_waits_for_others_is_asked_once_at_a_stop() -> None:
    turns, asked = Turns(), list[int]()

    def make(thread: int) -> str:
        asked.append(thread)
        if thread in (1, 2):
            raise WaitsError(f"{thread} waits")
        return f"{thread} has made it"

    threads = [(one, one) for one in (1, 2, 3)]
    assert turns.take(os.getpid(), 7, threads, make) == "3 has made it"
    assert turns.take(os.getpid(), 7, threads, make) == "3 has made it"
    assert asked == [1, 2, 3, 3]
    with pytest.raises(WaitsError, match="1 waits"):
        turns.take(os.getpid(), 8, threads[:2], make)
    with pytest.raises(TargetError, match="every thread of the program waits for another one"):
        turns.take(os.getpid(), 8, threads[:2], make)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("freezer.state", "FROZEN"),
        ("freezer.state", "FREEZING"),
        ("cgroup.events", "populated 1\nfrozen 1"),
    ],
)
def test_nothing_is_called_in_a_program_that_is_frozen(
    file: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "groups_of", lambda _pid, _kind: [tmp_path / "none", tmp_path])
    (tmp_path / file).write_text(f"{text}\n")
    turns, steps = Turns(), Steps()

    def call() -> int:
        return turns.take(
            os.getpid(), 7, [(1, steps)], lambda one: one.make(Call(0, ()), PLACE, one)
        )

    with pytest.raises(TargetError, match="is frozen by its control group: thaw it"):
        call()
    assert steps.steps == []
    (tmp_path / file).write_text("THAWED\nfrozen 0\n")
    assert call() == RESULT


@pytest.mark.parametrize(("stops", "looks"), [([7, 7, 8, 8, 7], 3), ([None, None], 2)])
def test_whether_it_is_frozen_is_looked_at_once_at_a_stop(
    stops: list[int | None], looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()

    def groups(pid: int, _kind: str) -> list[Path]:
        asked.append(pid)
        return []

    monkeypatch.setattr(cgroups, "groups_of", groups)
    turns = Turns()
    for stop in stops:
        turns.take(os.getpid(), stop, [(1, 1)], lambda one: one)
    assert asked == [os.getpid()] * looks
