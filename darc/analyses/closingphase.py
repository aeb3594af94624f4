"""While the closing round lasts: the paths are known, and ops are kept that tell what they
explain."""

from __future__ import annotations

from collections.abc import Sequence

from darc.analyses.analysis import Step
from darc.analyses.case import kept_ops
from darc.analyses.closinground import ClosingRound
from darc.analyses.pathsearch import PathSearch
from darc.analyses.phase import Early, EndPhase, Following, LaterPhase, Phase
from darc.analyses.searchend import SearchEnd
from darc.model.ftree import Fnode
from darc.model.ops import LEAST_FOR_ESTIMATES, KeptOps, OpClass
from darc.model.status import Status
from darc.search.contest import Contest


class ClosingPhase(LaterPhase):
    """Behind a ``search``, whose phase was that ``before``."""

    status = Status.SEARCHING

    def __init__(self, before: Phase, search: PathSearch, closing: ClosingRound) -> None:
        """``closing`` has begun."""
        super().__init__(before)
        self._search = search
        self._closing = closing

    @property
    def needed(self) -> int:
        return self._closing.needed

    @property
    def seconds_left(self) -> float | None:
        return self._closing.until - self.case.clock.seconds

    def begin(self) -> Following:
        return Step.GO_ON

    def decide(self) -> Following:
        kept = kept_ops(self.collector)
        if kept is not None and self._closing.lasts(kept, self.case.clock.seconds):
            self.collector.counting.await_user()  # or that time
            return Step.GO_ON
        return self._conclude(kept)

    def _conclude(
        self, kept: KeptOps | None, *, is_gone: bool = False, has_counts: bool = True
    ) -> EndPhase:
        """It is over, with these ops, if there are any."""
        if kept is not None:
            self.case.ops.take(kept, is_closing=True)
        end = SearchEnd(self.case, self.collector, self._search, is_gone=is_gone)
        return EndPhase(self, end.conclude(), has_counts=has_counts)

    def takes_peak(self, spec: str) -> bool:
        return self._before.takes_peak(spec)

    def search_for(self, spec: str) -> Following:
        return self._before.search_for(spec)

    def descend(self, nodes: Sequence[Fnode]) -> Following:
        return self._before.descend(nodes)

    def finish_early(self, why: str) -> Early:
        kept = kept_ops(self.collector)
        is_cut_short = kept is not None and len(kept.sample(OpClass.IN_PEAK)) < LEAST_FOR_ESTIMATES
        if is_cut_short:
            told = f"{why}: the last round, which tells what causes explain, was not over"
            self.case.tell([told])
        return Early(self._conclude(kept), is_cut_short)

    def close(self, status: Status, alive: bool) -> Phase:
        if not alive:
            self.case.profile.lost()
        kept = kept_ops(self.collector) if alive else None
        is_gone = not alive or status is Status.ENDED
        return self._conclude(kept, is_gone=is_gone, has_counts=alive)

    def votes(self, alive: bool) -> tuple[tuple[Contest, ...], int]:
        return self._before.votes(alive)
