"""The ftree of a session that is resumed, in the program as it runs now (paper section 3.4)."""

from __future__ import annotations

import functools

from darc.code.program import Program
from darc.collectors.callees import Callees
from darc.model.ftree import Fnode, Function
from darc.saved import refit
from darc.saved.storage import Stored


def take_up(stored: Stored, root: Fnode, program: Program, callees: Callees) -> refit.Fitted:
    """Builds below f0 (``root``) what of the ``stored`` tree fits the ``program``, whose
    ``callees`` are learned on the way."""

    def is_same_build(old: Function, new: Function) -> bool:
        module = program.module_at(new.address)
        identity = stored.modules.get(old.module)
        return module is not None and module.image.identity == identity and new.offset == old.offset

    relearn = functools.partial(callees.relearn, stored.modules)
    live = refit.Live(callees.expand, is_same_build, callees.call_sites, relearn)
    return refit.fit(stored, root, live)
