"""lldb's stop hook. lldb makes an instance for each target that it adds the hook to."""

from __future__ import annotations

import lldb

from darc.target.outcome import Outcome
from darc_lldb.debuggers import DEBUGGERS


class StopHook:
    """Asks darc at each stop whether the program goes on."""

    def __init__(
        self, target: lldb.SBTarget, arguments: lldb.SBStructuredData, namespace: dict[str, object]
    ) -> None:
        """What lldb passes is not needed: each stop says where it is."""

    def handle_stop(self, context: lldb.SBExecutionContext, stream: lldb.SBStream) -> bool:
        """True: the program stays stopped."""
        known = DEBUGGERS.get(context.target.GetDebugger().GetID())
        if known is None:
            return True
        target = known.target
        try:
            return target.at_stop(context.thread) is Outcome.STOP
        except Exception as error:  # told to the user, in one place
            target.inferior.callbacks.failed(error)
            return True
