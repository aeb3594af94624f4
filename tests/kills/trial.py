"""One debugger is killed, and the program is looked at; and again."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.debugger import WATCHDOG_SECONDS
from tests.kills.debuggers import (
    ATTACHED,
    DONE,
    GDB,
    LLDB,
    REFUSED,
    Orders,
    Session,
    clean_up,
)
from tests.kills.programs import HurtError, LeftStoppedError, Program, running, wait_until_let_go

RANDOM, BEFORE, AFTER = "random", "before", "after"
KINDS = (RANDOM, BEFORE, AFTER)
"""A kill at a random moment, before or after the n-th thing that the debugger does."""

CLEAN_EVERY = 3
SAID_NOTHING = "nothing"
_PATIENCE = 3
"""A debugger that takes so many times as long as another did does not reach its n-th write any
more: killed then."""


@dataclass(frozen=True)
class Cell:
    """What is tried: these trials may be compared with those of the bare debugger."""

    program: str
    debugger: str
    kind: str
    bare: bool


@dataclass(frozen=True)
class Kill:
    """What came of one kill."""

    cell: Cell
    where: str
    """When: so many seconds, or the number of the write."""
    said: str
    """What the debugger had said last."""
    refused: bool = False
    """darc refused to analyse this program."""
    hurt: str | None = None
    stopped: str = ""
    """How the program was left stopped; it was well when it had been let go on."""
    cleaned: bool = False
    """Whether another debugger has cleaned up."""


@dataclass(frozen=True)
class Measure:
    """What an undisturbed session takes: for each word the seconds, and the number of writes."""

    seconds: tuple[float, ...]
    writes: tuple[int, ...]


def measure(program: Program, debugger: str, *, bare: bool, folder: Path) -> Measure:
    """A session that is not killed until its end."""
    begin = time.monotonic()
    seconds, writes = [], []
    session = Session(debugger, bare=bare, pid=program.pid, folder=folder, orders=Orders())
    try:
        while (word := session.hear(WATCHDOG_SECONDS)) != DONE:
            if word is None:
                raise HurtError(f"{debugger} does not come to its end:\n{session.words}")
            if word in (ATTACHED, "started", "found", "stopped"):
                seconds.append(time.monotonic() - begin)
                writes.append(session.count)
        session.kill()
    finally:
        session.end()
    wait_until_let_go(program.pid)
    return Measure(tuple(seconds), tuple(writes))


@dataclass
class Killer:
    """Kills debuggers of one program, which is begun anew whenever it was hurt."""

    folder: Path
    random: random.Random
    measured: dict[tuple[str, bool], Measure] = field(default_factory=dict)

    def prepare(self, debugger: str, *, bare: bool) -> Measure:
        """How long a session takes here, and how much it does: in a program of four threads."""
        if (debugger, bare) not in self.measured:
            with running("threads", self.folder) as program:
                found = measure(program, debugger, bare=bare, folder=self.folder)
            self.measured[debugger, bare] = found
        return self.measured[debugger, bare]

    def kills(self, cells: list[Cell]) -> Iterator[Kill]:
        """One kill of each cell, all of them of one program."""
        (name,) = {cell.program for cell in cells}
        done = 0
        while done < len(cells):
            with running(name, self.folder) as program:
                while done < len(cells):
                    done += 1
                    last = done == len(cells)
                    kill = self._kill(program, cells[done - 1], last=last)
                    yield kill
                    if kill.hurt is not None:
                        break

    def _kill(self, program: Program, cell: Cell, *, last: bool) -> Kill:
        orders, seconds = self._choose(cell)
        session = Session(
            cell.debugger, bare=cell.bare, pid=program.pid, folder=self.folder, orders=orders
        )
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end and session.process.poll() is None:
                if session.hear(end - time.monotonic()) in (DONE, REFUSED):
                    break
            session.kill()
            said, refused = session.words, REFUSED in session.words.splitlines()
            kill = Kill(
                cell,
                f"{orders.at}" if orders.at else f"{seconds:.3f} s",
                _last_word(said),
                refused or session.process.returncode >= 0,
            )
            return self._look(program, kill, last=last)
        finally:
            session.end()

    def _choose(self, cell: Cell) -> tuple[Orders, float]:
        """When to kill: uniformly within one of the parts of a session, so that each is tried as
        often, however long it takes."""
        found = self.prepare(cell.debugger, bare=cell.bare)
        part = self.random.randrange(len(found.seconds))
        if cell.kind == RANDOM:
            low = found.seconds[part - 1] if part else 0.0
            return Orders(), self.random.uniform(low, found.seconds[part])
        low_count = found.writes[part - 1] if part else 0
        at = self.random.randint(low_count + 1, max(found.writes[part], low_count + 1))
        return Orders(at, cell.kind == AFTER), _PATIENCE * found.seconds[-1]

    def _look(self, program: Program, kill: Kill, *, last: bool) -> Kill:
        """What is wrong now; perhaps after another debugger has been there."""
        cleans = last or self.random.randrange(CLEAN_EVERY) == 0
        stopped = ""
        try:
            stopped = self._how_left_stopped(program)
            if cleans:
                stopped = self._clean(program, kill.cell) or stopped
            if last:
                program.finish()
        except HurtError as hurt:
            return replace(kill, hurt=str(hurt), stopped=stopped, cleaned=cleans)
        return replace(kill, stopped=stopped, cleaned=cleans)

    @staticmethod
    def _how_left_stopped(program: Program) -> str:
        """How it is stopped, where nobody but a user lets it go on now that no debugger is there.
        It is well."""
        wait_until_let_go(program.pid)
        try:
            program.check()
        except LeftStoppedError as error:
            program.go_on()
            program.check()
            return str(error)
        return ""

    def _clean(self, program: Program, cell: Cell) -> str:
        """Another debugger is there, and lets the program go; how that leaves it stopped."""
        cleaner = GDB if cell.debugger == GDB or self.random.randrange(2) else LLDB
        said = clean_up(cleaner, program.pid, self.folder, bare=cell.bare)
        for word in ("Traceback", "internal error"):
            if word in said:
                raise HurtError(f"'darc stop' in {cleaner}: {said}")
        try:
            stopped = self._how_left_stopped(program)
        except HurtError as hurt:
            raise HurtError(f"after 'darc stop' in {cleaner}: {hurt}") from None
        if cell.bare:
            return stopped
        if left := program.altered():
            raise HurtError(
                f"'darc stop' in {cleaner} leaves {len(left)} bytes: {' '.join(left[:6])}; "
                f"it said: {' '.join(said.split())}"
            )
        return stopped


@functools.cache
def _words() -> frozenset[str]:
    return frozenset((ATTACHED, "started", "found", "stopped", DONE, REFUSED))


def _last_word(said: str) -> str:
    heard = [line for line in said.splitlines() if line in _words()]
    return f"{heard[-1]} ({len(heard)})" if heard else SAID_NOTHING
