"""Inside gdb, beside ``darc catch``: tells of each late call how late it was found, and how long
after that darc decided at the stop, in microseconds (``benchmarks/waits.py``)."""

from __future__ import annotations

import time

from benchmarks.catch_words import LateCall
from darc.analyses.analysis import Step
from darc.analyses.catching import Catcher

_look, _decide = Catcher.look, Catcher.decide
_found: dict[Catcher, tuple[float, float]] = {}


def _timed_look(self: Catcher) -> float:
    before = self.found
    wait = _look(self)
    now, found = time.monotonic(), self.found
    if before is None and found is not None:
        _found[self] = now, found[1] - self.seconds
    return wait


def _timed_decide(self: Catcher) -> Step:
    now, found = time.monotonic(), _found.pop(self, None)
    after = _decide(self)
    if found is not None:
        what = LateCall.CAUGHT if after is Step.SHOW else LateCall.MISSED
        print(f"{what.value} {1e6 * found[1]:.0f} {1e6 * (now - found[0]):.0f}", flush=True)
    return after


Catcher.look, Catcher.decide = _timed_look, _timed_decide  # type: ignore[method-assign]
