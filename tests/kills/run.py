"""A run of kills: which, in what order; and what came of them."""

from __future__ import annotations

import concurrent.futures
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fixtures.build import build_hazard, hazards
from tests.kills.debuggers import DEBUGGERS, killer
from tests.kills.trial import KINDS, SAID_NOTHING, Cell, Kill, Killer


def plan(
    count: int, seed: int, programs: Sequence[str], *, debuggers: Sequence[str], bare: int
) -> list[list[Cell]]:
    """The kills of each program, in the order in which they are tried: ``count`` with darc, spread
    evenly over all cells, and one of the bare debugger for each ``bare`` of them."""
    chosen = random.Random(seed)
    cells = [
        Cell(program, debugger, kind, bare=False)
        for program in programs
        for debugger in debuggers
        for kind in KINDS
    ]
    wanted: list[Cell] = []
    while len(wanted) < count:
        chosen.shuffle(cells)
        wanted += cells[: count - len(wanted)]
    compared = [Cell(c.program, c.debugger, c.kind, bare=True) for c in wanted[:: max(bare, 1)]]
    by_program = defaultdict(list)  # bare debuggers have others, as they leave their breakpoints
    for cell in [*wanted, *(compared if bare else [])]:
        by_program[cell.program, cell.bare].append(cell)
    for same in by_program.values():
        chosen.shuffle(same)
    return list(by_program.values())


def kills(
    count: int,
    seed: int,
    folder: Path,
    *,
    programs: Sequence[str] = (),
    debuggers: Sequence[str] = DEBUGGERS,
    bare: int = 1,
    jobs: int = 1,
) -> Iterator[Kill]:
    """So many kills, and those of bare debuggers that they are compared with."""
    killer()
    for name in programs or hazards():
        build_hazard(name)
    planned = plan(count, seed, programs=programs or hazards(), debuggers=debuggers, bare=bare)
    measured = Killer(folder, random.Random(seed))
    for debugger in debuggers:
        for is_bare in (False, True)[: 2 if bare else 1]:
            measured.prepare(debugger, bare=is_bare)

    def one(number: int) -> list[Kill]:
        place = folder / f"{number}"
        place.mkdir()
        own = Killer(place, random.Random(f"{seed} {number}"), measured.measured)
        return list(own.kills(planned[number]))

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        trials = [pool.submit(one, number) for number in range(len(planned))]
        try:
            for done in concurrent.futures.as_completed(trials):
                yield from done.result()
        finally:  # else what one of them raises is told when all others are over
            pool.shutdown(wait=False, cancel_futures=True)


def table(done: Sequence[Kill]) -> list[str]:
    """A row for each program, debugger and kind of kill: what came of it, with darc and bare."""
    rows = [
        f"{'program':<12}{'debugger':<13}{'kill':<8}{'kills':>6}{'hurt':>6}{'stopped':>9}"
        f"{'refused':>9}{'cleaned':>9} | {'bare':>5}{'hurt':>6}{'stopped':>9}"
    ]
    cells = sorted({(k.cell.program, k.cell.debugger, k.cell.kind) for k in done})
    counted: dict[Cell, list[Kill]] = defaultdict(list)
    for kill in done:
        counted[kill.cell].append(kill)
    for program, debugger, kind in [*cells, ("", "", "")]:
        with_darc, bare = (
            [
                kill
                for kill in done
                if kill.cell.bare == is_bare
                and (not program or kill.cell == Cell(program, debugger, kind, is_bare))
            ]
            for is_bare in (False, True)
        )
        rows.append(
            f"{program or 'all':<12}{debugger:<13}{kind:<8}{len(with_darc):>6}{_hurt(with_darc):>6}"
            f"{_stopped(with_darc):>9}{sum(k.refused for k in with_darc):>9}"
            f"{sum(k.cleaned for k in with_darc):>9} | {len(bare):>5}{_hurt(bare):>6}"
            f"{_stopped(bare):>9}"
        )
    return rows


def _hurt(some: Sequence[Kill]) -> int:
    return sum(kill.hurt is not None for kill in some)


def _stopped(some: Sequence[Kill]) -> int:
    return sum(bool(kill.stopped) for kill in some)


def harm(done: Sequence[Kill]) -> list[Kill]:
    """The kills that did harm: they hurt a program, or left it stopped, and bare debuggers never
    did that to it, or so much less often that it is no chance."""
    beyond: list[Kill] = []
    harms: tuple[Callable[[Kill], bool], ...] = (
        lambda k: k.hurt is not None,
        lambda k: bool(k.stopped) and k.hurt is None,
    )
    for is_harm in harms:
        tried: Counter[tuple[str, str, bool]] = Counter()
        found: dict[tuple[str, str, bool], list[Kill]] = defaultdict(list)
        for kill in done:
            key = (kill.cell.program, kill.cell.debugger, kill.cell.bare)
            tried[key] += 1
            # Before it says that it is attached, a debugger has not been told anything of darc.
            if is_harm(kill) and (kill.cell.bare or kill.said != SAID_NOTHING):
                found[key].append(kill)
        for (program, debugger, bare), some in found.items():
            if bare:
                continue
            other = (program, debugger, True)
            theirs = len(found.get(other, ()))
            own = tried[program, debugger, False]
            if theirs == 0 or chance(len(some), own, theirs, tried[other]) < _CHANCE:
                beyond += some
    return beyond


_CHANCE = 0.05


def chance(own: int, tried: int, theirs: int, tried_by_them: int) -> float:
    """How likely so many of one's own are, or more, if it made no difference who tried (Fisher's
    exact test)."""
    both, of_all = own + theirs, tried + tried_by_them
    ways = [
        math.comb(tried, number) * math.comb(tried_by_them, both - number)
        for number in range(own, min(tried, both) + 1)
        if both - number <= tried_by_them
    ]
    return sum(ways) / math.comb(of_all, both)


def line(kill: Kill) -> str:
    """One kill, and what came of it."""
    cell = kill.cell
    what = ", then ".join(filter(None, (kill.stopped, kill.hurt))) or "no harm"
    bare = "bare " if cell.bare else ""
    return (
        f"{cell.program}: {bare}{cell.debugger} killed ({cell.kind} {kill.where}), it had said"
        f" '{kill.said}': {what}"
    )
