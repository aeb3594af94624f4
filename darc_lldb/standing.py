"""lldb's plan for a thread that stops once more where it stands.

The reason why a thread has stopped changes only where it stops anew; where that is a plan's, lldb
shows the plan. lldb makes the instance, by its name, and calls it on a thread of its own.
"""

from __future__ import annotations

import lldb

from darc_lldb import release

_TAKES_STATES = 18

NAME = f"{__name__}.StoppedByDarc"
"""As lldb looks it up; and shows it, where it does not ask for a description."""


class StoppedByDarc:
    """Ends at the next stop."""

    def __init__(self, plan: lldb.SBThreadPlan, namespace: dict[str, object]) -> None:
        self._plan = plan
        plan.SetStopOthers(True)

    def explains_stop(self, event: lldb.SBEvent) -> bool:
        """Whether the stop is the plan's."""
        return True

    def should_stop(self, event: lldb.SBEvent) -> bool:
        """Whether the program stays. lldb shows the plan in place of a signal only where it has
        failed (``Thread::GetStopInfo``)."""
        self._plan.SetPlanComplete(False)
        return True

    def should_step(self) -> int:
        """Whether the thread is to go on by one instruction, or as lldb, from 18 on, understands
        it: how it is to go on (``ScriptedThreadPlanPythonInterface::GetRunState``)."""
        return int(lldb.eStateRunning) if release.major() >= _TAKES_STATES else False

    def is_stale(self) -> bool:
        """Whether lldb has come past the plan by itself."""
        return False

    def stop_description(self, stream: lldb.SBStream) -> None:
        """What newer releases of lldb show as the reason."""
        stream.Print("darc")
