"""Somebody at a debugger, for tests of the application on a made-up program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

from darc.app import commands
from darc.app.app import App
from darc.collectors.breakpoints import BreakpointCollector
from darc.debuggee.debuggee import Debuggee
from darc.session.session import Session
from darc.target.target import Target
from tests.unit.assembly import Code
from tests.unit.machine import MS, Machine

OPTIONS = {"peak": ">10ms", "start-ops": "20", "decision-ops": "4", "lookahead": "1"}

_Debuggee = TypeVar("_Debuggee", bound=Debuggee)


class UserOf(Generic[_Debuggee]):
    """Somebody at a debugger, who looks for what makes f slow: every fifth of its calls is in w."""

    def __init__(
        self, code: Code, made: Callable[[Machine], _Debuggee], options: Mapping[str, str] = OPTIONS
    ) -> None:
        """``made`` is what the debugger has, on a machine whose process has begun."""
        self.machine = Machine(code)
        self.target = self.machine.target
        self.target.process = 1
        self.debuggee = made(self.machine)
        self.app = App(self.target, self._choose)
        for name, text in options.items():
            self.app.set_parameter(name, text)
        self.calls = 0
        self.machine.latency = lambda name: 40 * MS * (name == "w" and self.calls % 5 == 0)

    def _choose(self, _target: Target) -> _Debuggee:
        return self.debuggee

    def start(self, function: str = "f") -> Session:
        at = self.machine.code.symbols[function]
        commands.run(self.app, "start", f"*{at:#x}")
        session = self.app.session
        assert session is not None
        if isinstance(session.collector, BreakpointCollector):
            cast(Any, session.collector._clock)._read = lambda: self.machine.now
        return session

    def go_on(self, calls: int = 400) -> None:
        """'continue': up to a stop, or to one of the user's after so many calls of f."""
        self.app.observer.goes_on()
        self.machine.stopped = False
        for _ in range(calls):
            self.calls += 1
            self.call()
            if self.machine.stopped:
                break
        else:
            self.app.observer.before_stop()
        self.app.observer.on_stop()

    def call(self) -> None:
        """One call of main, which calls f."""
        self.machine.call("main")

    @property
    def said(self) -> str:
        """What was shown since the last look."""
        text = "".join(self.target.screen.emitted)
        self.target.screen.emitted.clear()
        return text

    @property
    def is_clean(self) -> bool:
        """Whether nothing of darc is in the program."""
        return not self.target.breaks.on_hit and not cast(Any, self.debuggee).begun
