"""What ``--lookahead auto`` means: several levels at a time, but where that would cost the program
more than it saves the user."""

from __future__ import annotations

from darc.model.profile import Profile
from darc.search import decision

SHORT = 1000
"""In timed calls: of a function that takes less, probes that are ahead take a tenth and more, where
a call meets a hundred of them."""

HOT_SHARE = 0.02
"""The part of the program's time that is spent in f0, from which on the program would notice."""

FELT_LEVEL = 0.1
"""Seconds that a level takes at least before the program would notice. Below, what costs most is to
stop it at each level."""

QUICK_LEVEL = 30.0
"""Seconds that a level may take before these are what matters."""

DOMINANT_SHARE = 0.5
"""The part of the program's time from which on probes that are ahead slow the program, and with it
the search, by about as much as they save it: timed three levels at a time, a loop of ``stat`` took
2.6 times as long."""


def level_by_level(
    profile: Profile, in_peak: int, seconds: float, *, decision_ops: int | None, probe_cost: int
) -> bool:
    """Whether to time one level at a time, as f0 is short and hot.

    The profile was collected in ``seconds`` of the program, with ``in_peak`` calls inside the peak,
    none where an earlier search chose it; ``decision_ops`` are wanted for each level, ``None``
    being auto. A timed call takes ``probe_cost`` cycles.
    """
    calls, inside = sum(profile.bins.values()), profile.total
    if inside >= SHORT * probe_cost * calls:
        return False
    needed = decision.CHECKPOINTS[-1] if decision_ops is None else decision_ops
    level = needed * seconds / max(1, in_peak)
    if level < FELT_LEVEL:
        return False
    share = HOT_SHARE if level < QUICK_LEVEL else DOMINANT_SHARE
    return inside > share * seconds * profile.hz
