"""Where breakpoints stand, and what a hit there may mean."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from darc.code.architecture import Site
from darc.model.errors import TargetError
from darc.model.ftree import Fnode
from darc.target.outcome import OnHit, Outcome
from darc.target.target import Target


@dataclass
class Timed:
    """A call site that is timed: by the fnode of its caller, its callee; ``None`` where running
    has to tell the callee."""

    site: Site
    routes: dict[Fnode, Fnode | None] = field(default_factory=dict)
    targets: list[int] = field(default_factory=list)
    hits: int = 0


@dataclass
class BreakPlace:
    """What a hit at one address may mean."""

    site: Timed | None = None
    returns: list[Timed] = field(default_factory=list)
    entry: bool = False
    leaves: bool = False
    """f0's own frame ends here: one of its return instructions."""
    caller: bool = False
    """f0 returns to here."""
    catches: bool = False
    jumps: bool = False
    hits: int = 0
    since: int = 0
    """Calls of f0 that were over when its hits began to be counted."""

    @property
    def sites(self) -> list[Timed]:
        """All call sites that a hit there may belong to."""
        return [*([self.site] if self.site else []), *self.returns]

    @property
    def is_needed(self) -> bool:
        """Whether it means anything."""
        return bool(self.site or self.returns) or self.is_fixed

    @property
    def is_fixed(self) -> bool:
        """Whether it stays as long as f0 is watched."""
        return self.entry or self.leaves or self.caller or self.catches or self.jumps


class BreakPlaces:
    """All places of one analysis. ``on_hit`` is called with the address and the thread;
    ``is_wanted`` tells of an address that is wanted though nothing is meant by it; ``cannot`` is
    told where no breakpoint can be set, and why."""

    def __init__(
        self,
        target: Target,
        on_hit: Callable[[int, int], Callable[[], Outcome] | None],
        *,
        is_wanted: Callable[[int], bool],
        cannot: Callable[[BreakPlace, str], None],
    ) -> None:
        self._target = target
        self._on_hit = on_hit
        self._is_wanted = is_wanted
        self._cannot = cannot
        self._places: dict[int, BreakPlace] = {}
        self._breaks: dict[int, Callable[[], None]] = {}
        self.paused = False
        """Whether none is to stand there for now."""

    def at(self, address: int) -> BreakPlace:
        """The place at an address, made where there is none."""
        return self._places.setdefault(address, BreakPlace())

    def find(self, address: int) -> BreakPlace | None:
        """The place at an address."""
        return self._places.get(address)

    @property
    def are_set(self) -> bool:
        """Whether any breakpoint stands."""
        return bool(self._breaks)

    def has(self, address: int) -> bool:
        """Whether a breakpoint stands at the address."""
        return address in self._breaks

    @property
    def callers(self) -> int:
        """To how many of them f0 returns."""
        return sum(place.caller for place in self._places.values())

    def set_all(self) -> None:
        """Sets the breakpoints that are wanted, as far as they can be, and no others."""
        for address in [a for a in self._breaks if not self.is_wanted(a)]:
            self._breaks.pop(address)()
        for address, place in self._places.items():
            if address in self._breaks or not self.is_wanted(address):
                continue
            try:
                on_hit: OnHit = functools.partial(self._on_hit, address)
                self._breaks[address] = self._target.breaks.set_break(address, on_hit)
            except TargetError as error:
                self._cannot(place, str(error))

    def set_again(self) -> Outcome:
        """:meth:`set_all`, in consequence of a hit."""
        self.set_all()
        return Outcome.CONTINUE

    def is_wanted(self, address: int) -> bool:
        """Whether a breakpoint is to stand there now."""
        if self.paused or address not in self._places:
            return False
        return self._places[address].is_needed or self._is_wanted(address)

    def pause(self) -> None:
        """None is to stand there until :meth:`resume`: those that do are taken back."""
        self.paused = True
        self.take_back_all()

    def resume(self) -> None:
        """Those that are wanted stand there again."""
        self.paused = False
        self.set_all()

    def take_back_all(self) -> None:
        """No breakpoint stands any more."""
        breaks, self._breaks = self._breaks, {}
        for take_back in breaks.values():
            take_back()

    def drop_unless(self, is_code: Callable[[int], bool]) -> None:
        """Forgets the places where no code is any more."""
        for address in [a for a in self._places if not is_code(a)]:
            if address in self._breaks:
                self._breaks.pop(address)()
            del self._places[address]
