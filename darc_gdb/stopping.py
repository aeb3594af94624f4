"""What darc does where the program stops and goes on, and at gdb's prompt."""

from __future__ import annotations

import gdb

from darc.app.app import App
from darc.target.outcome import Outcome
from darc.target.target import State
from darc_gdb import ctrlc
from darc_gdb.analysed import at_home, is_analysed
from darc_gdb.farewell import Farewell
from darc_gdb.target import GdbTarget


class Stopping:
    """Of ``target``'s program."""

    def __init__(self, app: App, target: GdbTarget, farewell: Farewell) -> None:
        self._app = app
        self._target = target
        self._farewell = farewell
        self._on_stop_last = ctrlc.patient(self._settle_last)
        self._hears_last = False
        """Whether that is to hear of the next stop, in place of :meth:`on_stop`."""

    # --------------------------------------------------------------------- it stops

    def before_others(self) -> None:
        """The program has stopped, and nobody has heard of it: a stop for the user, as a rule."""
        target = self._target
        if not is_analysed(self._app) or target.deciding.is_concerned or self._hears_last:
            return
        if target.state is not State.STOPPED or target.user_breaks.hits.all_go_on():
            return  # if anybody looks all the same, it is settled behind them
        target.threads.moved()
        with at_home(self._app, target):
            self._app.observer.before_stop()

    def on_stop(self, event: gdb.StopEvent) -> None:
        """The program has stopped, and those hear of it who asked gdb to tell them."""
        # Before the handlers of those that came later, which may clear the screen.
        if not self._hears_last:
            self._take_stop(event)

    def hears_stops_last(self) -> None:
        """See :class:`~darc_gdb.callbacks.GdbCallbacks`."""
        self._hear_no_more()
        self._hears_last = True
        gdb.events.stop.connect(self._on_stop_last)

    def _hear_no_more(self) -> None:
        if self._hears_last:
            self._hears_last = False
            gdb.events.stop.disconnect(self._on_stop_last)

    def _settle_last(self, event: gdb.StopEvent) -> None:
        self._hear_no_more()
        self._take_stop(event)

    def _take_stop(self, event: gdb.StopEvent) -> None:
        target = self._target
        target.handlers.stands(event)
        if target.handlers.take_stop(event) is Outcome.CONTINUE:
            return
        try:
            with at_home(self._app, target):
                is_passed = (
                    target.user_breaks.hits.will_go_on(event) and self._app.observer.passes()
                )
        except Exception as error:
            target.inferiors.callbacks.failed(error)
            is_passed = False
        if not is_passed:
            self.on_user_stop(may_go_on=target.user_breaks.hits.may_go_on(event))

    def before_stop(self) -> None:
        """See :meth:`~darc.app.observer.Observer.before_stop`."""
        with at_home(self._app, self._target):
            self._app.observer.before_stop()

    def follow_up(self) -> Outcome:
        """See :meth:`~darc.app.observer.Observer.follow_up`."""
        with at_home(self._app, self._target):
            return self._app.observer.follow_up()

    def on_user_stop(self, *, may_go_on: bool = False) -> None:
        """``may_go_on``: it may go on without the user."""
        self._target.handlers.at_prompt()
        try:
            with at_home(self._app, self._target):
                self._app.observer.on_stop(may_go_on=may_go_on)
        except Exception as error:
            self._target.inferiors.callbacks.failed(error)
        finally:
            if not may_go_on:
                self._farewell.rest()

    def before_prompt(self, *_event: object) -> None:
        """Not patient: the program runs meanwhile, and Ctrl-C stops it."""
        try:
            self._target.deciding.before_prompt()
        except gdb.error as error:
            self._target.inferiors.callbacks.failed(error)

    def at_prompt(self) -> None:
        """gdb waits for the user's next command, perhaps while the program runs."""
        self._target.screen.clear()
        if self._app.observer.is_passing:
            self.on_user_stop()  # what was to let it go on has not come to that
        elif self._target.state is State.STOPPED:
            self._app.observer.rest()
            self._farewell.rest()
        self._target.handlers.at_prompt(runs=self._target.state is State.RUNNING)
        self._farewell.release(at_prompt=True)

    # ------------------------------------------------------------------- it goes on

    def goes_on(self) -> None:
        """Before it does, and not step by step."""
        target = self._target
        target.inferiors.callbacks.hears_stops_first()
        with at_home(self._app, target):
            target.bell.see_to_it()
            if target.handlers.dies:
                target.handlers.goes_to_its_end()
            else:
                if is_analysed(self._app):
                    target.check_goes_on()
                if self._is_watched:
                    self._farewell.block()
                if self._farewell.is_wanted():  # gdb ends as soon as it runs
                    self._app.observer.on_leave()
                    self._farewell.release()
                self._app.observer.goes_on()

    @property
    def _is_watched(self) -> bool:
        """Whether gdb is to leave the program only when no probe is in it; or, in a script, when it
        was told what is known."""
        leaves = self._target.attached or self._target.screen.is_script
        return leaves and is_analysed(self._app)

    def on_continue(self, _event: object) -> None:
        """gdb tells that it runs."""
        self._target.inferiors.callbacks.guarded(self.went_on)

    def went_on(self) -> None:
        """It runs, and was not run step by step."""
        with self._target.inferiors.at_children() as children:
            for _ in children:
                self._app.observer.on_child()
        pid = self._target.pid
        if pid is not None and self._is_watched:
            self._farewell.watch(pid)  # before the monitor, which is not to get the signals either
        with at_home(self._app, self._target):
            self._app.observer.went_on()
