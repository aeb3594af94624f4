"""Where darc has a say in what lldb does: what comes before lldb's own commands, and who hears of
stops and of lldb's end."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import lldb

from darc.app import monitor
from darc.app.app import App
from darc.debuggee import beside
from darc.model.errors import TargetError
from darc.target.target import State
from darc_lldb import overrides
from darc_lldb.callbacks import LldbCallbacks
from darc_lldb.debuggers import DEBUGGERS
from darc_lldb.failures import told
from darc_lldb.farewell import Farewell
from darc_lldb.inferior import Inferior
from darc_lldb.interpreter import execute
from darc_lldb.stophook import StopHook
from darc_lldb.target import LldbTarget

_DETACHING = "process detach"
_DELETING = "target delete"
_QUITTING = "quit"
_KILLING = "process kill"
_CONTINUING = ("process continue", "thread continue")
_LAUNCHING = "process launch"
_GOING_ON = (
    *_CONTINUING,
    "thread step-in",
    "thread step-inst",
    "thread step-inst-over",
    "thread step-out",
    "thread step-over",
    "thread until",
)
_LOOKING = (
    "disassemble",
    "expression",
    "frame info",
    "frame select",
    "frame variable",
    "memory find",
    "memory read",
    "process save-core",
    "process status",
    "register read",
    "thread backtrace",
    "thread info",
    "thread list",
    "thread select",
)
"""After the user's Ctrl-C lldb calls no stop hook: who looks at once is to see no probes either."""


def connect(debugger: lldb.SBDebugger, app: App, target: LldbTarget) -> None:
    """From now on darc hears of stops of this debugger's, and is asked before its own commands.

    Raises:
        KeyboardInterrupt: the user has pressed Ctrl-C, and lldb takes no stop hook.
    """
    callbacks = LldbCallbacks(
        failed=lambda error: target.screen.complain(told(app, error)),
        on_user_stop=app.observer.on_stop,
        follow_up=app.observer.follow_up,
        goes_on=app.observer.goes_on,
        went_on=app.observer.went_on,
        end=app.observer.on_exit,
        lost=app.observer.on_lost,
    )
    target.inferior.serve(lambda: app.is_busy, callbacks)
    _Before(debugger, app, target).stand()
    add = f"target stop-hook add -P {StopHook.__module__}.{StopHook.__name__}"
    execute(debugger.GetCommandInterpreter(), add)


class _Before:
    """What darc does before lldb's own commands, in one debugger."""

    def __init__(self, debugger: lldb.SBDebugger, app: App, target: LldbTarget) -> None:
        self._debugger = debugger
        self._app = app
        self._target = target
        self._inferior = target.inferior
        self._departure = target.stopping.departure

    def stand(self) -> None:
        """From now on, for as long as the debugger is there."""
        for command in _GOING_ON:
            is_steps = command not in _CONTINUING
            action = self._target.look_at_breakpoints if is_steps else self._before_continue
            self._at_home(command, self._guarded(action, goes_on=True))
        for command in _LOOKING:
            self._at_home(command, self._guarded(lambda: None))
        self._at_home(_LAUNCHING, self._guarded(self._before_launch))
        self._at_home(_KILLING, self._guarded(self._before_kill))
        self._at_home(_DETACHING, self._before_leaving)
        overrides.before(self._debugger, _DELETING, self._before_deleting)
        overrides.before(self._debugger, _QUITTING, lambda _arguments: self._before_leaving())

    def _at_home(self, command: str, action: Callable[[], None]) -> None:
        """Where lldb's command is about the target that darc is about."""

        def run(_arguments: Sequence[str]) -> None:
            if not self._inferior.is_away:
                action()
            elif command in _CONTINUING or (command == _LAUNCHING and self._app.session is None):
                self._tell_the_way_home()

        overrides.before(self._debugger, command, run)

    def _guarded(self, action: Callable[[], None], *, goes_on: bool = False) -> Callable[[], None]:
        def run() -> None:
            with self._inferior.lock, self._inferior.staying():
                try:
                    self._target.catch_up()
                    action()
                except Exception as error:  # told to the user, in one place
                    self._inferior.callbacks.failed(error)
                if goes_on:
                    self._departure.lets_go_on()
                    self._target.screen.goes_on()

        return run

    # -------------------------------------------------------------------- it goes on

    def _before_continue(self) -> None:
        self._target.look_at_breakpoints()
        self._app.observer.goes_on()
        self._before_launch()

    def _before_launch(self) -> None:
        if self._app.is_busy:
            self._target.stopping.others.sleep()

    def _tell_the_way_home(self) -> None:
        """The user lets go on what does not run, while another target is analysed, or awaited."""
        app, inferior, session = self._app, self._inferior, self._app.session
        number = inferior.debugger.GetIndexOfTarget(inferior.target)
        back = f"in another target: 'target select {number}' first"
        if session is None:
            app.emit(f"darc: waits for {app.snapshot(lines=False).function} {back}")
        elif not inferior.lives(inferior.debugger.GetSelectedTarget().GetProcess()):
            app.emit(f"darc: {session.spec} is analysed {back}")

    # ---------------------------------------------------------------- lldb lets it go

    def _before_kill(self) -> None:
        if not self._app.observer.may_be_killed():
            self._app.observer.on_leave()

    def _before_leaving(self) -> None:
        # Where lldb reads its commands from no terminal the program may run meanwhile, or stand
        # still for darc alone.
        app, inferior = self._app, self._inferior
        with inferior.lock:
            state, goes = inferior.state, self._departure.goes_by_lldb
            runs = state is State.RUNNING or (state is State.STOPPED and goes)
            if not (runs and self._target.was_prepared):
                self._guarded(app.observer.on_leave)()
                return
        self._departure.stop_for(lambda: monitor.ring_to_leave(app.session), app.observer.on_leave)

    def _before_deleting(self, arguments: Sequence[str]) -> None:
        if _deletes(self._inferior, arguments):
            self._before_leaving()


def _deletes(inferior: Inferior, arguments: Sequence[str]) -> bool:
    """Whether 'target delete' with these deletes the target that darc is about."""
    numbers = [int(word) for word in arguments if word.isdecimal()]
    if any(re.fullmatch(r"--a(ll?)?|-[a-z]*a[a-z]*", word) for word in arguments):
        return True
    if not numbers:
        return not inferior.is_away
    return any(inferior.is_home(inferior.debugger.GetTargetAtIndex(one)) for one in numbers)


# ------------------------------------------------------------------------- lldb ends


def farewell_of_all() -> Farewell:
    """What comes before lldb's end, for all of its debuggers."""
    return Farewell(_leave_all, _let_all_go)


def hear_of_end(debugger: lldb.SBDebugger, farewell: Farewell) -> None:
    """From now on ``farewell`` hears of signals that end lldb, and of the debugger's own end."""
    farewell.watch()
    if hasattr(debugger, "SetDestroyCallback"):  # since lldb 16
        debugger.SetDestroyCallback(lambda _number: farewell.before_end())


def _leave_all(done: Callable[[], None]) -> bool:
    """For :class:`Farewell`: each program that darc has been in."""
    entered = [number for number, one in DEBUGGERS.items() if one.target.was_prepared]
    left = set(entered)

    def leave(number: int) -> None:
        known = DEBUGGERS[number]
        app, departure = known.app, known.target.stopping.departure

        def knock() -> bool:
            return monitor.ring_to_leave(app.session)

        departure.ask(knock, app.observer.on_leave, lambda: is_left(number))

    def is_left(number: int) -> None:
        left.discard(number)
        if not left:
            done()

    for number in entered:
        leave(number)
    return bool(entered)


def _let_all_go() -> bool:
    """For :class:`Farewell`: without lldb, which hangs."""
    is_clean = True
    for one in DEBUGGERS.values():
        pid = one.target.inferior.known
        if pid is not None:
            try:
                is_clean = beside.let_go(pid) and is_clean
            except TargetError:
                is_clean = False  # lldb is asked, if it answers
            except ProcessLookupError:
                pass  # it has ended
    return is_clean
