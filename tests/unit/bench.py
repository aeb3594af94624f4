"""An analysis on a made-up machine."""

from __future__ import annotations

from collections.abc import Callable

from darc.analyses.analysis import Analysis, AnalysisBrief
from darc.analyses.rootcauses import RootCauses
from darc.collectors.breakpoints import BreakpointCollector
from darc.debuggee.switchwatch import OffWatch
from darc.model.parameters import Parameters, Probes
from darc.session.brief import Before, SessionBrief
from darc.session.message import Message
from darc.session.session import Session
from tests.unit.assembly import Code
from tests.unit.keptcalls import KeptCalls
from tests.unit.machine import MS, Debuggee, Machine
from tests.unit.movedtime import MovedTime


class Bench:
    """A machine with a session of an ``analysis``; calls of f are slow in w every fifth time. How
    long these take is told by ``machine.now``, for how long the program runs by ``time``: without
    one, for no time at all."""

    def __init__(
        self,
        code: Code,
        analysis: Callable[[AnalysisBrief], Analysis] = RootCauses,
        spent: float = 0.0,
        *,
        watch: OffWatch | None = None,
        time: MovedTime | None = None,
        **parameters: object,
    ) -> None:
        defaults = Parameters(
            peak=">10ms", start_ops=20, decision_ops=4, lookahead=1, probes=Probes.BREAKPOINT
        )
        self.machine = machine = Machine(code)
        machine.target.process = 1
        self.debuggee = Debuggee(machine.target, machine.code)
        self.debuggee.off_watch = watch
        self.told: list[Message] = []
        self.session = Session(
            machine.target,
            self.debuggee,
            machine.code,  # type: ignore[arg-type]
            SessionBrief(
                entry=machine.code.symbols["f"],
                spec="f",
                parameters=defaults.overridden(parameters),
                analysis=analysis,
            ),
            changed=self.told.append,
            before=Before(notes=["first of all"], spent=spent),
        )
        self.time = time
        self.calls = 0
        self.kept = KeptCalls()
        """What :meth:`keep_ops` keeps."""
        machine.latency = lambda name: 40 * MS * (name == "w" and self.calls % 5 == 0)

    def install(self) -> Bench:
        self.session.install()
        collector = self.session.collector
        assert isinstance(collector, BreakpointCollector)
        collector._clock._read = lambda: self.machine.now
        return self

    def keep_ops(self) -> Bench:
        """After :meth:`install`: calls are kept whole, as pads keep them."""
        self.session.collector.ops = self.kept
        return self

    def run(self, calls: int) -> None:
        """Calls f, until the program is stopped for the user."""
        self.machine.stopped = False
        if self.time is not None:
            self.session.background.goes_on()
        for _ in range(calls):
            self.calls += 1
            begin = self.machine.now
            self.machine.call("main")
            self.kept.called(begin, self.machine.now)
            if self.machine.stopped:
                return

    @property
    def is_clean(self) -> bool:
        return not self.machine.target.breaks.on_hit and not self.debuggee.begun
