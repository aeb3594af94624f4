"""The analyses that another run goes on with, once: what ``darc resume`` knows."""

from __future__ import annotations

from collections.abc import Mapping

from darc.analyses.analysis import Resumable
from darc.analyses.rootcauses import RootCauses
from darc.model.errors import UsageError
from darc.saved.checked import short_key
from darc.saved.storage import Stored

RESUMABLE: Mapping[str, type[Resumable]] = {one.key: one for one in (RootCauses,)}
"""By what session files call them."""


def resumable(stored: Stored, file: str) -> type[Resumable]:
    """The analysis that a session is of, which messages call ``file``.

    Raises:
        UsageError: no run goes on with that.
    """
    found = RESUMABLE.get(stored.analysis)
    if found is None:
        key = stored.analysis
        what = f"'darc {short_key(key)}'" if key else "an analysis that has no name"
        raise UsageError(f"{file} is of {what}, which begins anew in each run")
    return found
