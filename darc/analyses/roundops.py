"""The ops that are kept of a search: those of its latest round, and what else is known of them."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import replace

from darc.analyses.behind import Behind
from darc.analyses.waitnames import ProgramNames
from darc.analyses.waits import merge, stacks_of
from darc.analyses.wakeups import sleeps_of, waits_and_sleeps_of
from darc.code.program import Program
from darc.collectors.duties import KeepsOps
from darc.debuggee.switchwatch import SwitchWatch
from darc.model.ftree import Fnode
from darc.model.ops import LEAST_FOR_ESTIMATES, KeptOps, OpClass
from darc.model.waits import Waits
from darc.saved.descents import SavedDescent

ENDED = "the program ended before the search's last round, which asks that: a longer run tells"
"""Why it is not known what ops waited for."""

FEW = (
    "too few calls came in the search's last round, which asks that: the same search again may tell"
)
"""The same where another round's ops are kept for that."""


def _nobodys(_word: int) -> int | None:
    """Where no probes are that calls come back to."""
    return None


class RoundOps:
    """Whole ops of f0: the latest round's, and before there is one, those of the session that is
    resumed.

    When their threads were off their processors is asked late (:meth:`watch`): ops of a round
    behind which another one comes are hardly ever looked at.
    """

    def __init__(
        self,
        program: Program,
        switches: SwitchWatch,
        root: Fnode,
        *,
        resumed: SavedDescent | None,
        keeper: KeepsOps | None = None,
    ) -> None:
        """``keeper`` keeps those of the first collector, where it can."""
        self._program = program
        self._keeper = keeper
        self._switches = switches
        self._root = root
        self._kept = resumed.ops if resumed is not None else None
        self._waits_of_file = resumed.waits if resumed is not None else {}
        self._is_of_file = True
        self._unwatched: KeptOps | None = None
        """What was taken, as long as it is not known when their threads were off."""
        self._notes: tuple[str, ...] = ()
        self.may_be_held = False
        """Whether most of the time that counts as blocked may be the debugger's."""
        self._waits: dict[OpClass, tuple[KeptOps, bool, Waits]] = {}
        """With the ops that each is of, and whether the debugger was asked for names."""

    @property
    def kept(self) -> KeptOps | None:
        """The ops; ``None``: there are none yet."""
        return self._kept

    @property
    def of_this_run(self) -> KeptOps | None:
        """The same, where they are not those of a file."""
        return None if self._is_of_file else self._kept

    def fit(self, nodes: Mapping[Fnode, Fnode]) -> None:
        """Those of the file are of the ``nodes`` that fit, as they are now."""
        if self._is_of_file and self._kept is not None:
            self._kept = self._kept.with_nodes(nodes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of when their threads were off their processors."""
        return self._notes

    def take(self, kept: KeptOps, *, is_closing: bool) -> None:
        """A round is over, and these are its ops. Those of the closing round, which no decision
        rests on, take the place of others only where they are as many, or enough; so it is with
        those of a file, which tell of paths that may be searched for no more."""
        before = 0 if self._kept is None else len(self._kept.sample(OpClass.IN_PEAK))
        sample = len(kept.sample(OpClass.IN_PEAK))
        keeps = is_closing or self._is_of_file
        if not keeps or sample >= min(before, LEAST_FOR_ESTIMATES):
            self._kept = self._unwatched = kept
            self._is_of_file = False
        elif self._kept is not None and kept.sees_waits and not self._kept.sees_waits:
            self._kept = replace(self._kept, why_no_waits=FEW)
            self._unwatched = None if self._unwatched is None else self._kept

    def forget(self, nodes: Collection[Fnode]) -> None:
        """They call what was not timed in the ops, and may be in what these call their own."""
        if nodes and self._kept is not None:
            self._kept = replace(self._kept, compared=self._kept.compared.difference(nodes))

    def watch(self) -> None:
        """Says of the ops when their threads were off their processors, if that is not known yet.
        It takes a while. The program stands still, or is gone."""
        kept, self._unwatched = self._unwatched, None
        if kept is not None:
            watched = self._switches.watched(kept)
            self._kept, self._notes = watched.kept, watched.notes
            self.may_be_held = watched.is_mostly_doubtful

    def ended(self) -> None:
        """The program is gone, and nobody can be asked any more what the ops waited for."""
        kept = self.of_this_run
        if kept is not None and not kept.sees_waits and kept.why_no_waits is None:
            self._kept = replace(kept, why_no_waits=ENDED)

    def waits(self) -> Mapping[OpClass, Waits]:
        """Who kept them waiting, by their class, where that was watched."""
        if self._kept is None or not self._kept.sees_waits:
            return {}
        found = {kept_as: self.waits_of(kept_as) for kept_as in OpClass}
        return {kept_as: one for kept_as, one in found.items() if one is not None}

    def waits_of(self, kept_as: OpClass) -> Waits | None:
        """Who kept ops of this class waiting. Names are looked up once, while what has them is
        there, but for those that only the debugger's thread may ask for."""
        if self._kept is None:
            return None
        if self._is_of_file:
            return self._waits_of_file.get(kept_as)
        asks = self._program.asks_debugger
        of, asked, known = self._waits.get(kept_as, (None, False, None))
        if known is None or of is not self._kept or (asks and not asked):
            kept = self._kept
            namer = ProgramNames(
                self._program,
                kept.threads,
                kept.outsiders,
                own_back=_nobodys if self._keeper is None else self._keeper.own_back,
                name_of=self._switches.name_of,
                stacks=stacks_of(kept.ops),
            )
            divide = functools.partial(waits_and_sleeps_of, off_of=self._switches.slept)
            if self._kept.sees_wake_ups:
                divide = functools.partial(sleeps_of, behind=Behind(self._kept))
            sample = self._kept.sample(kept_as)
            known = merge(sample, self._root.function.name, namer, divide)
            self._waits[kept_as] = self._kept, asks, known
        return known
