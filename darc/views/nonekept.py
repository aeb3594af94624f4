"""Why no call was kept whole, for whoever asks for the calls, or for what these waited for: by how
the search has ended, and by what was said at its end."""

from __future__ import annotations

from darc.model.snapshot import Snapshot
from darc.model.status import EndedBy, Status
from darc.views.words import start_text


def why_none_by_end(snapshot: Snapshot) -> str | None:
    """Of an analysis that is at its end, and what to do; ``None``: it goes on, or its end is no
    reason."""
    if snapshot.status is Status.ENDED:
        if snapshot.profile is None or not snapshot.profile.count:
            return f"the program ended before a call of {snapshot.function} was seen"
        return "the program ended before a call inside the peak was kept: a longer run may"
    if not snapshot.status.is_final:
        return None
    goes_on = _looks_on(snapshot)
    if snapshot.ended_by is EndedBy.TIME:
        more = goes_on or "give a longer --max-time, or choose a peak that is frequent"
        return f"no call inside the peak was kept before the time was up: {more}"
    if snapshot.status is Status.DONE:
        more = goes_on or "'darc start' looks for root causes, and keeps some"
        return f"no call was kept: {more}"
    return None


def _looks_on(snapshot: Snapshot) -> str | None:
    """The command by which what is known beside the search offers to look on."""
    offers = (part.offer for part in snapshot.parts.values())
    offer = next((one for one in offers if one is not None), None)
    return None if offer is None else f"{start_text(offer)} looks longer"
