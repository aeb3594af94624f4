"""What darc does where the program ends, or gdb lets it go or is to end itself."""

from __future__ import annotations

import contextlib

import gdb

from darc.app import monitor
from darc.app.app import App
from darc_gdb import later
from darc_gdb.analysed import at_home, is_analysed
from darc_gdb.farewell import Farewell
from darc_gdb.target import GdbTarget


class Departure:
    """Of ``target``'s program."""

    def __init__(self, app: App, target: GdbTarget) -> None:
        self._app = app
        self._target = target
        self.farewell = Farewell(self._begin_to_leave)

    def undisturbed(self) -> contextlib.AbstractContextManager[None]:
        """gdb does not leave a program that it has attached to in the middle of this."""
        return self.farewell.blocking() if self._target.attached else contextlib.nullcontext()

    def on_exit(self, event: gdb.ExitedEvent) -> None:
        """The program has ended, or another one that gdb has."""
        if not self._target.inferiors.is_home(event.inferior):
            return  # a child that gdb had as well
        self.farewell.rest()
        self._target.handlers.ended()
        self._target.inferiors.callbacks.guarded(self._app.observer.on_exit)

    def on_leave(self) -> None:
        """Before gdb lets the program go or kills it: takes darc's probes out of it."""

        def leave() -> None:
            with at_home(self._app, self._target):
                self._app.observer.on_leave()

        self._target.inferiors.callbacks.guarded(leave)

    def check(self) -> None:
        """The user wants gdb to let the program go.

        Raises:
            UsageError: probes would stay in it.
        """
        with at_home(self._app, self._target):
            self._app.observer.check_leaving()

    def on_kill(self) -> None:
        """Before gdb kills the program, if the user agrees to that."""
        if self._app.observer.may_be_killed():
            return  # it has no probe in its code, and may live on
        self.on_leave()

    def on_exiting(self, _event: object) -> None:
        """gdb itself is about to end."""
        self.farewell.end()
        self._target.threads.settle_selection()
        self.on_leave()

    def on_new_inferior(self, event: gdb.NewInferiorEvent) -> None:
        """gdb has one more program: a child, for which it may leave the parent."""
        self._target.inferiors.callbacks.guarded(lambda: self._leave_parent(event.inferior))

    def _leave_parent(self, inferior: gdb.Inferior) -> None:
        forked = is_analysed(self._app) and self._target.inferiors.has_forked(inferior)
        if forked and str(gdb.parameter("follow-fork-mode")) == "child":
            self._app.observer.on_leave(
                stopped=True
            )  # gdb will let the parent go, or keep it as it is

    def _begin_to_leave(self, _pid: int) -> bool:
        """See :class:`Farewell`."""

        def prepare() -> None:
            self._target.bell.leave(self._leave_at_bell)

        def interrupt() -> None:
            """It stops as at Ctrl-C, and gdb leaves there."""
            later.post(lambda: gdb.execute("interrupt", to_string=True))

        return monitor.ring_to_leave(self._app.session, prepare, interrupt)

    def _leave_at_bell(self) -> None:
        try:
            self._app.observer.stop_to_leave()
        finally:
            self.farewell.out()
