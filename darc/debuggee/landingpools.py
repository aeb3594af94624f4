"""The memory of return landings in a process: which of it an area uses, and more of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from darc.code.program import Program
from darc.debuggee.gaps import gaps, without
from darc.debuggee.leftbehind import areas_of
from darc.debuggee.mappings import Mappings
from darc.model.errors import PadsImpossibleError
from darc.pads import processor as pads
from darc.pads import returns
from darc.pads.areas import Area
from darc.pads.returns import ReturnLandings
from darc.target.target import Target

MOST_POOLS = 4
"""Of landings, in reach of one library or program: some 4,000 call sites."""


class LandingPools:
    """Those of all analyses in one process, of this debugger and of earlier ones. All its threads
    stand still."""

    def __init__(
        self,
        target: Target,
        mappings: Mappings,
        program: Callable[[], Program],
        mark: Callable[[int, int], None],
    ) -> None:
        """``program`` tells what is mapped now; ``mark`` writes the header of landings, whose base
        and size it gets: they have an owner from then on."""
        self._target = target
        self._mappings = mappings
        self._program = program
        self._mark = mark

    def complete(self) -> None:
        """Maps those pages of landings that an earlier analysis has given back.

        Raises:
            PadsImpossibleError: something else is there by now.
        """
        mapped = [range(r.start, r.end) for r in self._program().regions]
        for base, _, _ in areas_of(self._target, self._program().regions):
            words = range(base + returns.WRITABLE.start, base + returns.WRITABLE.stop)
            for part in without(range(base, words.start), mapped):
                if not self._mappings.map_code(part.start, len(part)):
                    raise _no_room()
            for part in without(words, mapped):
                if not self._mappings.map_words(part.start, len(part)):
                    raise _no_room()

    def take(self, area: Area, low: int, high: int, known: Iterable[ReturnLandings]) -> None:
        """Those in reach of the area and the module in [low, high): the first that have room, of
        whichever analysis. Where none has, there are more of them, up to a limit. Areas share what
        each of the ``known`` ones has found of its cells."""
        pools = []
        by_base = {one.base: one for one in known}
        for base, size, control in areas_of(self._target, self._program().regions):
            if max(high, area.base + area.size, base + returns.SIZE) - min(low, base) < pads.NEAR:
                if not control:  # else its owner is still there, and must be found
                    self._mark(base, size)
                pools.append(by_base.get(base) or ReturnLandings(self._target, base))
        if len(pools) < MOST_POOLS and not any(one.has_room for one in pools):
            pools += self.more(area, {one.base for one in pools}, low, high)
        area.use(pools)

    def more(
        self, area: Area, known: AbstractSet[int], low: int, high: int
    ) -> list[ReturnLandings]:
        """One more than the ``known`` ones: at the area's front, where that is free, else in memory
        of its own; none where there is no such memory.

        Raises:
            PadsImpossibleError: the program may not write there.
        """
        base, size = area.base, area.size
        if base in known:
            size = returns.SIZE
            places = gaps(self._program().regions, low, high, size)
            found = next((at for at in places if self._mappings.map_code(at, size)), None)
            if found is None:
                return []
            base = found
        words = range(base + returns.WRITABLE.start, base + returns.WRITABLE.stop)
        if error := self._mappings.make_writable(words):
            raise PadsImpossibleError(f"the program may not write to its own memory ({-error})")
        self._mappings.populate(words)
        self._mark(base, size)
        return [ReturnLandings(self._target, base)]


def _no_room() -> PadsImpossibleError:
    return PadsImpossibleError("found no room for pads near the program's code")
