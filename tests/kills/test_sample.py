"""A sample of ``make kills``: each second program, two debuggers killed. And that its parts do
what they are relied on to do."""

from __future__ import annotations

import functools
import os
import random
import signal
from pathlib import Path

import pytest

from fixtures.build import hazards
from tests.debugger import WATCHDOG_SECONDS
from tests.kills.debuggers import DEBUGGERS, GDB, LLDB, SERVER, Orders, Session
from tests.kills.programs import HurtError, LeftStoppedError, running, wait_until_let_go
from tests.kills.run import chance, harm, line, plan
from tests.kills.trial import AFTER, BEFORE, RANDOM, Cell, Kill, Killer, Measure

pytestmark = pytest.mark.timeout(900)

_MORE = 6
"""Kills of bare debuggers, and again of those with darc, where one with darc did harm."""
_TIMES = 5
"""So often more of both are killed, as long as the bare ones seem to do less: a bare gdb harms
``sharing`` once in ten kills, and six of them may well do nothing."""


@functools.cache
def _measured() -> dict[tuple[str, bool], Measure]:
    """Shared by the tests of a process."""
    return {}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if number % 2 else [])
        for number, name in enumerate(hazards())
    ],
)
def test_some_kills(name: str, tmp_path: Path) -> None:
    """One kill of gdb and one of lldb do no harm that bare debuggers do not do."""
    number = hazards().index(name)
    chosen = random.Random(number)
    lldb = (LLDB, SERVER)[number // 2 % 2]
    cells = [
        Cell(name, GDB, chosen.choice((BEFORE, AFTER, RANDOM)), bare=False),
        Cell(name, lldb, chosen.choice((BEFORE, AFTER, RANDOM)), bare=False),
    ]
    killer = Killer(tmp_path, chosen, _measured())
    done = list(killer.kills(cells))
    for which in sorted({kill.cell.debugger for kill in done if kill.hurt or kill.stopped}):
        same = [kill.cell for kill in done if kill.cell.debugger == which]
        bare = [Cell(name, which, kind, bare=True) for kind in (BEFORE, AFTER, RANDOM)]
        compared = list(killer.kills(bare * (_MORE // len(bare))))
        is_harm = bool(harm([*done, *compared]))
        done = [kill for kill in done if kill.cell.debugger != which]
        if is_harm:
            done += _compared_at_length(killer, same, compared)
    assert not harm(done), "\n".join(map(line, done))


def _compared_at_length(killer: Killer, same: list[Cell], compared: list[Kill]) -> list[Kill]:
    """Kills of debuggers with darc and of ``compared`` bare ones and more, until it is plain."""
    found = list(compared)
    for _ in range(_TIMES):
        found += killer.kills((same * _MORE)[:_MORE])
        if not harm(found):
            break
        found += killer.kills([kill.cell for kill in compared])
        if not harm(found):
            break
    return found


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("which", DEBUGGERS)
def test_a_debugger_is_killed_at_its_first_write(which: str, after: bool, tmp_path: Path) -> None:
    """The n-th of its writes is counted alike whether it is killed before or after it."""
    with running("signals", tmp_path) as program:
        session = Session(
            which, bare=True, pid=program.pid, folder=tmp_path, orders=Orders(1, after=after)
        )
        try:
            while session.hear(WATCHDOG_SECONDS) is not None:
                pass
            assert session.process.wait(WATCHDOG_SECONDS) == -signal.SIGKILL
            assert session.count >= 1
        finally:
            session.end()
        wait_until_let_go(program.pid)
        try:
            program.check()
        except LeftStoppedError:  # a bare debugger may: it may also be seen a moment after its end
            program.go_on()
            program.check()
        program.finish()


def test_a_program_that_is_left_stopped_is_seen(tmp_path: Path) -> None:
    with running("threads", tmp_path) as program:
        os.kill(program.pid, signal.SIGSTOP)
        with pytest.raises(LeftStoppedError, match=r"5 of 5 threads"):
            program.check()
        program.go_on()
        program.check()
        program.finish()


def test_a_program_that_was_killed_is_seen(tmp_path: Path) -> None:
    with running("threads", tmp_path) as program:
        os.kill(program.pid, signal.SIGSEGV)
        with pytest.raises(HurtError, match="killed by SIGSEGV"):
            program.check()


def test_code_that_is_not_the_files_is_seen(tmp_path: Path) -> None:
    with running("threads", tmp_path) as program:
        assert program.altered() == []
        maps = Path(f"/proc/{program.pid}/maps").read_text().splitlines()
        code = next(int(one.split("-")[0], 16) for one in maps if " r-xp " in one)
        with Path(f"/proc/{program.pid}/mem").open("r+b", buffering=0) as memory:
            memory.seek(code + 0xFFF)
            memory.write(b"\xcc")
        assert len(program.altered()) == 1
        program.finish()


def test_the_plan_is_even() -> None:
    cells = [
        cell
        for same in plan(1000, 1, programs=hazards(), debuggers=DEBUGGERS, bare=1)
        for cell in same
    ]
    assert len(cells) == 2000
    for bare in (False, True):
        mine = [cell for cell in cells if cell.bare == bare]
        counts = {cell: mine.count(cell) for cell in mine}
        assert len(counts) == len(hazards()) * 9
        assert max(counts.values()) - min(counts.values()) <= 1


def test_only_what_bare_debuggers_do_not_do_is_harm() -> None:
    def kills(hurt: int, count: int, *, bare: bool) -> list[Kill]:
        cell = Cell("threads", GDB, RANDOM, bare=bare)
        return [Kill(cell, "1", "", hurt="dead" if n < hurt else None) for n in range(count)]

    assert harm(kills(0, 4, bare=False)) == []
    assert len(harm(kills(2, 4, bare=False))) == 2
    assert len(harm([*kills(9, 10, bare=False), *kills(2, 10, bare=True)])) == 9
    assert harm([*kills(2, 4, bare=False), *kills(1, 4, bare=True)]) == []
    assert harm([*kills(1, 4, bare=False), *kills(2, 2, bare=True)]) == []


def test_what_is_likely_by_chance() -> None:
    assert chance(0, 5, 5, 5) == 1
    assert chance(3, 3, 0, 3) == pytest.approx(1 / 20)
    assert chance(2, 2, 1, 2) == pytest.approx(1 / 2)
