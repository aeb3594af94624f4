"""Which callees take the time of a function."""

from __future__ import annotations

from dataclasses import replace

from darc.analyses.analysis import Analysis, AnalysisBrief, Step
from darc.model.part import parts_of
from darc.model.snapshot import Snapshot
from darc.model.split import Shares
from darc.model.status import Status
from darc.search.descent import Orders

_LONGEST = (1 << 64) - 1  # cycles


class Split(Analysis):
    """Times what f0 calls, in as many of its calls as ``--decision-ops`` says."""

    def __init__(self, brief: AnalysisBrief) -> None:
        super().__init__(brief)
        self._needed = self.parameters.profile_calls
        self._profile = self._collector.counting.profile()
        self._shares = Shares()

    @property
    def needed(self) -> int:
        return self._needed

    def collect(self) -> None:
        self._profile = self._collector.counting.profile()
        if self._status is Status.SEARCHING:
            votes = self._collector.timing.votes()
            sums = {node: vote.totals.sum for node, vote in votes.items()}
            whole = max(sums.get(self.root, 0), 1)
            callees = self.root.children
            self._shares = Shares(tuple((n.function, sums.get(n, 0) / whole) for n in callees))

    def decide(self) -> Step:
        self.collect()
        return self._order() if self._status is Status.PROFILING else self._conclude()

    def _order(self) -> Step:
        self._collector.callees.expand(self.root)
        self._collector.counting.search(0, _LONGEST)  # all calls: they are "in the peak" now
        self._collector.timing.apply(Orders(analyse=(self.root,)))
        self._needed = self.parameters.decision_ops or 20
        self._collector.counting.await_in_peak(self._needed)
        self._status = Status.SEARCHING
        return Step.GO_ON

    def _conclude(self) -> Step:
        self._status = Status.DONE
        return Step.END

    def snapshot(self, alive: bool) -> Snapshot:
        if alive:
            self.collect()
        return replace(self._head(), profile=self._profile, parts=parts_of(self._shares))
