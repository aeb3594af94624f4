"""The guards of one analysis: pads that stand at landmarks, and those that are ready to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

from darc.code.landmarks import Landmark
from darc.code.program import Program
from darc.model.errors import TargetError, UnsupportedError
from darc.model.refusal import Refusal
from darc.pads.patching import Patch, Patcher

LandmarksOf = Callable[[Program], Iterator[tuple[Landmark, int, str]]]
"""Where guards are to stand: what each is, its function's address, and a name."""


class GuardPads:
    """One pad at each place, from :meth:`put` on. Those where threads wait for each other may be
    made before, and stand there from :meth:`put_waits` on: their code is read when they are made,
    as that takes milliseconds, for which no call is to stand still."""

    def __init__(
        self,
        program: Program,
        patcher: Patcher,
        places: LandmarksOf,
        *,
        make: Callable[[int, Landmark], Patch | Refusal],
        is_f0: Callable[[int], bool],
    ) -> None:
        """``make`` makes the pad of the function at an address."""
        self._program = program
        self._patcher = patcher
        self._places = places
        self._make = make
        self._is_f0 = is_f0
        self._standing: dict[int, tuple[Landmark, Patch]] = {}
        """By the functions that they stand at."""
        self._wait_places: LandmarksOf | None = None
        self._puts_waits = False
        self._waits: dict[int, tuple[Landmark, str]] = {}
        """Places where threads wait for each other, by their addresses: what each is, and a
        name."""
        self._prepared: dict[int, Patch | Refusal] = {}
        """By their addresses."""

    @property
    def patches(self) -> list[Patch]:
        """Those that stand."""
        return [patch for _, patch in self._standing.values()]

    def has(self, kind: Landmark) -> bool:
        """Whether a guard of that kind was put in."""
        return any(kind is one for one, _ in self._standing.values())

    def cover(self, code: range) -> bool:
        """Whether something of that code is executed in the pad of a guard, or is to be."""
        ready = (made for made in self._prepared.values() if isinstance(made, Patch))
        places = itertools.chain(self.patches, ready)
        return any(at.address < code.stop and code.start < at.end for at in places)

    def put(self) -> list[str]:
        """Puts a pad at every place that has none yet; tells which ones could not be.

        Raises:
            UnsupportedError: an unwinder is among those: it would find pads on the stack.
        """
        self._renew()
        guarded = self._guarded()
        problems = []
        places = list(self._places(self._program))
        if self._wait_places is not None and self._puts_waits:
            places += self._wait_places(self._program)
        wanted: dict[int, tuple[Landmark, str]] = {}
        for kind, address, name in places:
            if address not in guarded and not (kind.is_of_waits and self._is_f0(address)):
                wanted.setdefault(address, (kind, name))
        for kind, name, why in self._put_all(wanted):
            if kind is Landmark.HIDE:
                raise UnsupportedError(
                    f"the program's exceptions cannot be followed: {name}: {why}"
                )
            if kind is not Landmark.END:
                problems.append(f"{name}: {why}")
        return problems

    def _renew(self) -> None:
        """Those whose files were unloaded stand again where these are back: a plugin may have
        an unwinder of its own. Where other code is there by now, none stands."""
        with self._patcher.together():
            for address, (_, patch) in list(self._standing.items()):
                if patch.cell is None and not self._patcher.renew(patch):
                    self._patcher.deactivate(patch)
                    del self._standing[address]

    def take_back(self, is_wanted: Callable[[Patch], bool]) -> None:
        """Takes those out that are wanted; :meth:`put` may put others in their places."""
        for address, (_, patch) in list(self._standing.items()):
            if is_wanted(patch):
                self._patcher.deactivate(patch)
                self._patcher.lead_back(patch)
                del self._standing[address]

    # --------------------------------------------------------------------- waits

    def prepare_waits(self, places: LandmarksOf) -> None:
        """Makes the pads of these places, where threads wait for each other."""
        self._wait_places = places
        guarded = self._guarded()
        for kind, address, name in places(self._program):
            if address in self._waits or address in guarded or self._is_f0(address):
                continue
            self._waits[address] = kind, name
            made = self._prepared[address] = self._make(address, kind)
            if isinstance(made, Patch):
                self._patcher.note([made])

    @property
    def knows_waits(self) -> bool:
        """Whether :meth:`prepare_waits` was ever asked for."""
        return self._wait_places is not None

    @property
    def has_waits(self) -> bool:
        """Whether any of those places is there that tells for whom is waited."""
        return any(kind is not Landmark.SWITCH for kind, _ in self._waits.values())

    def put_waits(self) -> list[str]:
        """From now on :meth:`put` sees to the places of :meth:`prepare_waits` as well. Tells which
        ones could not be."""
        self._puts_waits = True
        guarded = self._guarded()
        wanted = {address: one for address, one in self._waits.items() if address not in guarded}
        return [f"{name}: {why}" for _, name, why in self._put_all(wanted)]

    def _guarded(self) -> set[int]:
        return {*self._standing, *(patch.address for patch in self.patches)}

    def _put_all(
        self, wanted: Mapping[int, tuple[Landmark, str]]
    ) -> list[tuple[Landmark, str, str]]:
        """Puts a pad at each of these places; those that take none, and why. Together, as memory is
        looked through for what handlers of signals come back to: once for all."""
        with self._patcher.together():
            told = [(*one, self._put_one(at, one[0])) for at, one in wanted.items()]
        return [(kind, name, why) for kind, name, why in told if why is not None]

    def _put_one(self, address: int, kind: Landmark) -> str | None:
        made = self._prepared.pop(address, None)
        if made is None:
            made = self._make(address, kind)
        if isinstance(made, Refusal):
            return made.why
        for patch in (made, made.through):
            if patch is not None:
                patch.is_guard = True
        try:
            self._patcher.activate(made)
        except TargetError as error:
            return str(error)
        self._standing[address] = kind, made
        return None
