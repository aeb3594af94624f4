"""What of a search outlives its run: the session that it goes on with, and the one that is saved.

The ftree of a saved session is built anew in the program as it runs now (paper section 3.4).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Sequence

from darc.analyses.peakprofile import PeakProfile
from darc.analyses.roundops import RoundOps
from darc.code.program import Program
from darc.collectors.callees import Callees
from darc.collectors.collector import Collector
from darc.model.errors import TargetError
from darc.model.ftree import Fnode, Function, RootCausePath
from darc.saved import refit
from darc.saved.descents import SavedDescent, to_parts
from darc.saved.storage import SearchState, Stored
from darc.search.contest import Contest
from darc.search.descent import Descent

_OF_BEFORE = (
    "what of the peak's time causes explain is that of the run that was saved, and so are threads "
    "and waits"
)


class Resumption:
    """Of a search below ``root``, which goes on with the session ``before``, if that is not
    ``None``."""

    def __init__(self, before: SavedDescent | None, root: Fnode, program: Program) -> None:
        self._before = before.session if before is not None else None
        """Until the search begins anew, or its tree is taken up."""
        self._root = root
        self._program = program
        self._doubts = before.doubts if before is not None else ()
        """What users were told of its ops."""
        self._parts = before.others if before is not None else {}
        self._contests: tuple[Contest, ...] = ()
        """The votes for a decision that did not come."""
        self.in_peak = before.session.search.in_peak_calls if before is not None else 0
        """All calls inside the peak, in each of the runs."""
        self.has_changed = False
        """Whether the calls of the peak are others than those of the session."""
        self._changes: tuple[str, ...] = ()

    def saw(self, calls: int) -> None:
        """So many calls inside the peak were seen for a decision."""
        self.in_peak += calls

    @property
    def waiting(self) -> Stored | None:
        """The session whose tree is to be taken up, once f0's profile is known again."""
        before = self._before
        return before if before is not None and before.search.peak is not None else None

    def compare(self, profile: PeakProfile) -> tuple[str, ...]:
        """f0's profile is known: how it differs from that of the session, if there is one. One
        that had no peak has told with that all it had."""
        before = self._before
        if before is None:
            return ()
        self._before = self.waiting
        search = before.search
        slices = search.slices, profile.slices
        compared = refit.compare(before.profile, profile.at_choice, *slices)
        if search.peak is not None:
            self.has_changed = compared.has_changed(search.peak)
        self._changes = compared.notes
        return self._changes

    def take_up(self, callees: Callees) -> refit.Fitted | None:
        """Builds below f0 what of the session's tree fits the program, whose ``callees`` are
        learned on the way; ``None``: there is none."""
        before, self._before = self._before, None
        if before is None:
            return None

        def is_same_build(old: Function, new: Function) -> bool:
            module = self._program.module_at(new.address)
            same = module is not None and module.image.identity == before.modules.get(old.module)
            return same and new.offset == old.offset

        relearn = functools.partial(callees.relearn, before.modules)
        live = refit.Live(callees.expand, is_same_build, callees.call_sites, relearn)
        return refit.fit(before, self._root, live)

    @property
    def left(self) -> tuple[tuple[Contest, ...], int]:
        """The votes for a decision that did not come, and all calls inside the peak: what is known
        of them without what is being counted."""
        return self._contests, self.in_peak

    def keep_votes(self, descent: Descent, collector: Collector, alive: bool) -> None:
        """The search ends before its next decision: what was counted for it is not lost, and is
        shown."""
        with contextlib.suppress(TargetError):  # the program may be gone
            self._contests, self.in_peak = self.votes(descent, collector, alive)
        contests = {one.node: one for one in self._contests}
        for one in self._contests:
            one.show(contests)

    def votes(
        self, descent: Descent, collector: Collector, alive: bool
    ) -> tuple[tuple[Contest, ...], int]:
        """Those that did not suffice for a decision yet, and all calls inside the peak: with what
        the ``collector`` has counted for the ``descent``, which has not ended, where that can be
        read still (``alive``)."""
        if not alive:
            return descent.open_contests({}, 0), self.in_peak
        votes, counted = collector.timing.votes(), collector.counting.voted
        return descent.open_contests(votes, counted), self.in_peak + counted

    def doubts(self, own: Sequence[str], ops: RoundOps) -> tuple[str, ...]:
        """The search's ``own`` with those of the ops before, as long as there are no others."""
        before = self._doubts if ops.of_this_run is None else ()
        return tuple(dict.fromkeys((*before, *own)))

    def warnings(
        self, own: Sequence[str], ops: RoundOps, paths: Sequence[RootCausePath]
    ) -> tuple[str, ...]:
        """The doubts; what has changed since the session, or may have; and whether what the
        ``paths`` explain is known of another run alone."""
        is_before = ops.kept is not None and ops.of_this_run is None
        of_before = (_OF_BEFORE,) if is_before and paths else ()
        return (*self.doubts(own, ops), *self._changes, *of_before)

    def stored(
        self,
        f0: Stored,
        *,
        profile: PeakProfile,
        callees: Callees,
        ops: RoundOps,
        doubts: Sequence[str],
        votes: tuple[tuple[Contest, ...], int],
    ) -> Stored:
        """What the next run goes on with: ``f0`` and its profile, with all that is known of it and
        of the tree below. ``doubts`` are the search's own; ``votes`` as of
        :meth:`votes`."""
        contests, in_peak = votes
        places = [(node.function.address, node.function.module) for node in self._root.walk()]
        return dataclasses.replace(
            f0,
            root=self._root,
            modules={
                name: module.image.identity
                for address, name in dict.fromkeys(places)
                if (module := self._program.module_at(address)) is not None
            },
            search=SearchState(
                in_peak, contests, callees.positions(), peak=profile.peak, slices=profile.slices
            ),
            parts={**self._parts, **to_parts(ops.kept, ops.waits(), self.doubts(doubts, ops))},
        )
