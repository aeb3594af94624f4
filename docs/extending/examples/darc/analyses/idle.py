"""How much of a function's time its thread is off the processor."""

from __future__ import annotations

from dataclasses import replace

from darc.analyses.analysis import Analysis, AnalysisBrief, Step
from darc.model.ops import KeptOps, OffReason
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.search.descent import Orders

_LONGEST = (1 << 64) - 1  # cycles


class Idle(Analysis):
    """Of calls that are kept one by one, as many as ``--decision-ops`` says."""

    def __init__(self, brief: AnalysisBrief) -> None:
        super().__init__(brief)
        self._switches = brief.switches
        self._needed = self.parameters.profile_calls
        self._profile = self._collector.counting.profile()
        self._kept: KeptOps | None = None

    @property
    def needed(self) -> int:
        return self._needed

    def collect(self) -> None:
        self._profile = self._collector.counting.profile()
        keeper = self._collector.ops
        if self._status is Status.SEARCHING and keeper is not None:
            self._kept = self._switches.watched(keeper.kept_ops()).kept

    def decide(self) -> Step:
        self.collect()
        return self._keep() if self._status is Status.PROFILING else self._conclude()

    def _keep(self) -> Step:
        keeper = self._collector.ops
        if keeper is None:
            self._note("no call can be kept whole: take '--probes pad'")
            self._status = Status.INCONCLUSIVE
            return Step.END
        self._switches.begin()
        self._collector.counting.search(0, _LONGEST)
        keeper.keep_ops(0, (0, 0))
        self._collector.timing.apply(Orders(analyse=(self.root,)))
        self._needed = self.parameters.decision_ops or 20
        self._collector.counting.await_in_peak(self._needed)
        self._status = Status.SEARCHING
        return Step.GO_ON

    def _conclude(self) -> Step:
        known = [op for op in self._kept.ops if op.off is not None] if self._kept else []
        whole = sum(op.end - op.start for op in known)
        for reason in OffReason:
            share = sum(op.off_time(reason) for op in known) / max(whole, 1)
            self._note(f"{reason.value}: {share:.0%} of the time of {len(known)} calls")
        self._status = Status.DONE if known else Status.INCONCLUSIVE
        return Step.END

    def snapshot(self, alive: bool) -> Snapshot:
        if alive:
            self.collect()
        return replace(self._head(), profile=self._profile, ops=self._kept)
