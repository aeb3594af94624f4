"""One analysis inside one process: its probes, its stops and its end.

What is found is the matter of :class:`~darc.analyses.analysis.Analysis`. The session owns
everything that was changed in the program (through its
:class:`~darc.collectors.collector.Collector`) and undoes it on every way out. It is driven by the
debugger: its methods are called on the debugger's own thread with all threads of the program
stopped, but for those that say "any thread", which may be called at any time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from darc.analyses.analysis import Analysis, AnalysisBrief, FallsBack, Step
from darc.code.lookup import Lookup
from darc.code.program import Program
from darc.code.spelling import instead
from darc.collectors.collector import Collector, CollectorBrief, Remains
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.switchwatch import SwitchWatch
from darc.model.errors import (
    DarcError,
    TargetError,
    UnsupportedError,
    UsageError,
)
from darc.model.ftree import Fnode
from darc.model.snapshot import Snapshot
from darc.model.status import EndedBy, Status
from darc.saved.storage import Stored
from darc.session.account import Account
from darc.session.background import Background
from darc.session.brief import Before, SessionBrief
from darc.session.collecting import Collecting
from darc.session.deadline import Deadline
from darc.session.figures import RunFigures
from darc.session.message import Message
from darc.session.pauses import Pauses
from darc.session.waysout import WaysOut
from darc.target.outcome import Outcome
from darc.target.target import Target


class Session:
    """See the module. ``changed`` is called when something worth telling has happened."""

    def __init__(
        self,
        target: Target,
        debuggee: Debuggee,
        program: Program,
        brief: SessionBrief,
        *,
        changed: Callable[[Message], None],
        before: Before | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """``brief`` is what the session is for. ``progress`` is told what is done at stops
        that may take long."""
        before = before or Before()
        self._target = target
        self.program = program
        self.spec = brief.spec
        self.parameters = brief.parameters
        self._brief = brief
        self.root = Fnode(program.names.function_at(brief.entry))
        self._pid = target.pid
        self.debuggee = debuggee
        self._figures = RunFigures(target, before.spent)
        self.account = Account(
            self,
            target=target,
            program=program,
            debuggee=debuggee,
            root=self.root,
            spec=self.spec,
            figures=self._figures,
            notes=before.notes,
        )
        """What it tells of itself."""
        self.deadline = Deadline(self, self._figures, self.parameters.max_time)
        """Until when it watches calls."""
        self._switches = SwitchWatch(debuggee.watching(), self.note)
        self.background = Background(self, debuggee, self._switches, target.turn)
        """What is done for it while the program runs."""
        collector_brief = self._collector_brief(before.remains, progress)
        self._collecting = Collecting(collector_brief, brief.way, self._switches)
        self.ways_out = WaysOut(
            self,
            self._collecting,
            debuggee=debuggee,
            program=program,
            brief=brief,
            figures=self._figures,
            account=self.account,
            background=self.background,
            changed=changed,
        )
        """How it ends."""
        self.pauses = Pauses(
            self,
            target=target,
            switches=self._switches,
            account=self.account,
            deadline=self.deadline,
            background=self.background,
            ways_out=self.ways_out,
            changed=changed,
        )
        """What becomes of it at the user's stops."""
        self._taken_out: list[str] = []
        """What is to say of what an earlier debugger had left."""
        self.analysis: Analysis
        """Since :meth:`install`."""

    def _collector_brief(
        self, remains: Remains | None, progress: Callable[[str], None]
    ) -> CollectorBrief:
        """What its collectors are made for."""
        return CollectorBrief(
            target=self._target,
            program=self.program,
            debuggee=self.debuggee,
            root=self.root,
            spec=self.spec,
            parameters=self.parameters,
            listener=self,
            note=self.note,
            remains=remains,
            progress=progress,
        )

    # ------------------------------------------------------------- begin and end

    def install(self) -> None:
        """Puts the probes into the stopped program; may call functions in it.

        Raises:
            DarcError: it cannot be; whatever was changed was undone.
        """
        if self.remains is None or self.remains.identity != self.debuggee.identity:
            # Before f0's code is read.
            self._taken_out = self.debuggee.clean_up(self.program)
            self.notes.extend(self._taken_out)
        code = self.program.function(self._brief.entry)
        if not code.ranges:
            raise UnsupportedError(f"cannot read the code of {self.spec}")
        copies: list[str] = []
        way, entry = self._brief.way, self._brief.entry
        if way is None or way.collector.is_of_one:
            copies = Lookup(self.program, self._target).private_copies(entry, live=True)
        if copies:
            self.account.say_unless_called(f"{self.spec} was not called{instead(copies)}")
        self._collecting.begin(code, self._analyse)
        self._switches.expect()

    def was_set_up(self, seconds: float) -> None:
        """All that came before, with what found the functions, took so long."""
        self._figures.was_set_up(seconds)

    @property
    def openings(self) -> list[str]:
        """What the user is to know before the program goes on."""
        found = (
            self.debuggee.opening,
            self.debuggee.absent(self.parameters),
            self.collector.opening(self._collecting.instead),
        )
        return [*self._taken_out, *(text for text in found if text is not None)]

    def _analyse(self, collector: Collector) -> None:
        """What it counts, from now on."""
        self.analysis = self._brief.analysis(
            AnalysisBrief(
                program=self.program,
                collector=collector,
                root=self.root,
                spec=self.spec,
                parameters=self.parameters,
                note=self.note,
                switches=self._switches,
                threads=len(self._target.threads.ids()),
            )
        )

    @property
    def collector(self) -> Collector:
        """What times and counts, since :meth:`install`."""
        return self._collecting.collector

    @property
    def notes(self) -> list[str]:
        """What the user should know. Any thread."""
        return self.account.notes

    @property
    def remains(self) -> Remains | None:
        """What stays in the process, for the next analysis of it."""
        return self._collecting.remains

    def modules_changed(self) -> None:
        """The program has loaded or unloaded a file, or executes another one."""
        with self.background.stands_for_a_moment():
            self._see_modules()

    def _see_modules(self) -> None:
        if not self.alive or self._target.pid is None:
            return
        if self.is_of_another():
            self.program_ended()  # it was started again
            return
        if (why := self.collector.damage()) is not None:
            self.damaged(why)
            return
        if not self.collector.is_there():
            self.account.ends(EndedBy.EXECUTED)
            self.note(EndedBy.EXECUTED.value)
            self.program_ended()
            return
        self.account.files_changed()
        try:
            self._collecting.modules_changed()
        except UnsupportedError as error:
            self.ways_out.no_more(str(error))
            self.ways_out.tell(Message.RESULT)

    def stop(self, status: Status = Status.STOPPED) -> None:
        """Takes every probe out and keeps what is known."""
        self.ways_out.stop(status)

    def is_of_another(self) -> bool:
        """Whether the debugger has another program by now."""
        return self._target.pid != self._pid

    def program_ended(self) -> None:
        """The program is gone, and everything that was in it."""
        self.ways_out.program_ended()

    def take_message(self) -> Message | None:
        """What the user is to be told at the stop that :meth:`decide` asked for."""
        message = self.ways_out.take_message()
        if message is Message.PLACE:
            self.analysis.show()
        return message

    @property
    def alive(self) -> bool:
        """Whether probes are in the program. Any thread."""
        return self._collecting.alive

    def beat(self) -> None:
        """A sign of life to the probes, several times a second, and what is to be looked after as
        they are in. Any thread.

        Raises:
            TargetError: the program has written over what is counted with.
        """
        if self.alive:
            self._switches.drain()
            if (why := self.collector.damage()) is not None:
                raise TargetError(why)
            self.collector.summons.beat()
            self.collector.summons.look_after()

    # ---------------------------------------------------------------- decisions

    def exits(self) -> None:
        """The program is about to end (see :class:`~darc.collectors.collector.Listener`)."""
        if self.alive:
            self.stop(Status.ENDED)
            self.ways_out.tell(Message.END)

    def decide(self) -> Outcome:
        """Enough was seen, or time is up: decides what comes next."""
        if self.deadline.is_called_off:
            return Outcome.STOP
        with self._figures.stop():
            self.background.stands()
            self._switches.stands()
            self.analysis.stands()
            try:
                outcome = self.ways_out.unless_damaged(self._decide, Outcome.STOP)
            except DarcError as error:
                self.analysis.fail(str(error))
                outcome = self.ways_out.found()
            if outcome is Outcome.CONTINUE:
                self.background.goes_on()
        return outcome

    def give_up(self, why: str) -> Outcome:
        """Nothing more can be seen (see :class:`~darc.collectors.collector.Listener`)."""
        self.analysis.finish_early(why)
        return self.ways_out.found()

    def damaged(self, why: str) -> Outcome:
        """See :class:`~darc.collectors.collector.Listener`."""
        return self.ways_out.damaged(why)

    def vanished(self, why: str) -> Outcome:
        """See :class:`~darc.collectors.collector.Listener`."""
        return self.ways_out.vanished(why)

    def before_resume(self) -> None:
        """See :class:`~darc.collectors.collector.Listener`."""
        self.pauses.end()

    @property
    def seconds_left(self) -> float | None:
        """See :class:`~darc.collectors.collector.Listener`. Any thread."""
        return self.deadline.seconds_left

    def is_due(self) -> bool:
        """See :class:`~darc.collectors.collector.Listener`. Any thread."""
        return self.deadline.is_due()

    def _decide(self) -> Outcome:
        if self.deadline.has_passed:
            return self.ways_out.late()
        return self._go(self.analysis.decide())

    def follow(self, request: Callable[[], Step]) -> None:
        """At a stop: what the user asks of the :attr:`analysis`, and the step that it returns.

        Raises:
            UsageError: it is over, or ``request`` says that it cannot be asked for that.
        """
        if not self.alive:
            raise UsageError("the analysis is over: begin another one with 'darc start'")
        self.ways_out.unless_damaged(lambda: self._go(request()), Outcome.STOP)

    def _go(self, after: Step) -> Outcome:
        """Does what follows from a decision."""
        if after is Step.END:
            return self.ways_out.found()
        if after is Step.FALL_BACK:
            return self._fall_back()
        if after is Step.GO_ON:
            return Outcome.CONTINUE
        if after is Step.SHOW:
            self.ways_out.tell(Message.PLACE)
            return Outcome.STOP
        self.ways_out.tell(Message.QUESTION)
        return Outcome.STOP

    def _fall_back(self) -> Outcome:
        """The next way takes the place of the one that has collected, where it does no harm."""
        analysis = self.analysis
        assert isinstance(analysis, FallsBack), "no other one says that it falls back"
        why = self._collecting.risk_of_fall_back() or analysis.why_no_fall_back()
        if why is None:
            try:
                self._collecting.fall_back(self._brief.entry)
                return self._go(analysis.fall_back(self.collector))
            except DarcError as error:
                why = str(error)
        return self._go(analysis.stay(why))

    # ------------------------------------------------------------------- reports

    def stored(self) -> Stored:
        """What a later run needs to go on from here."""
        found = self.ways_out.unless_damaged(lambda: self.analysis.stored(self.alive), None)
        return dataclasses.replace(found or self.analysis.stored(False), analysis=self.analysis.key)

    def snapshot(
        self,
        *,
        lines: bool = True,
        tree: Callable[[Fnode], Iterable[Fnode]] = lambda _root: (),
    ) -> Snapshot:
        """Everything that is known now, as it stays whatever the session does next. The debugger is
        asked where the paths are in the source, and the nodes that ``tree`` takes of the ftree;
        without ``lines`` it is asked for nothing. Any thread then."""
        known = self.ways_out.unless_damaged(lambda: self.analysis.snapshot(self.alive), None)
        known = known or self.analysis.snapshot(False)
        return self.account.whole(known, lines=lines, tree=tree)

    def note(self, text: str) -> None:
        """Keeps something that the user should know. Any thread."""
        self.notes.append(text)
