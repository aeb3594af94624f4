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
from enum import Enum, auto
from typing import TypeVar

from darc.agent.damage import DamagedError
from darc.analyses.analysis import Analysis, Step, Subject
from darc.code.lookup import Lookup
from darc.code.program import Program
from darc.code.spelling import instead
from darc.collectors.collector import Assignment, Collector, Remains, Way
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.switchwatch import SwitchWatch
from darc.model.errors import (
    DarcError,
    TargetError,
    UnsupportedError,
    UsageError,
)
from darc.model.ftree import Fnode
from darc.model.parameters import OnFinish, Parameters
from darc.model.snapshot import Snapshot
from darc.model.status import EXECUTED, TIME_IS_UP, Status
from darc.saved.storage import Stored
from darc.session.account import Account
from darc.session.background import Background
from darc.session.collecting import Collecting
from darc.session.deadline import Deadline
from darc.session.figures import RunFigures
from darc.target.outcome import Outcome
from darc.target.target import Target

_T = TypeVar("_T")


class Message(Enum):
    """What the user is to be told at a stop."""

    CHOOSE_PEAK = auto()
    CHOOSE_NODES = auto()
    CAUGHT = auto()
    RESULT = auto()
    END = auto()
    """The program has ended, or is about to: the debugger may be asked for nothing."""


class Session:
    """See the module. ``changed`` is called when something worth telling has happened."""

    def __init__(
        self,
        target: Target,
        debuggee: Debuggee,
        program: Program,
        *,
        entry: int,
        spec: str,
        parameters: Parameters,
        analysis: Callable[[Subject], Analysis],
        changed: Callable[[Message], None],
        remains: Remains | None = None,
        notes: Iterable[str] = (),
        way: Way | None = None,
        progress: Callable[[str], None] = lambda _: None,
        spent: float = 0.0,
    ) -> None:
        """``entry`` is the address of f0, which the user knows as ``spec``. ``analysis`` makes what
        the session is for; ``remains`` are what an earlier one has left; ``notes`` are told
        first. ``way`` is how to collect, where that is one for that analysis alone: it takes the
        place of that of its kind. ``progress`` is told what is done at stops that may take long.
        ``spent`` seconds of its time limit are over."""
        self._target = target
        self.program = program
        self.spec = spec
        self.parameters = parameters
        self._changed = changed
        self._entry = entry
        self._message: Message | None = None
        self.root = Fnode(program.names.function_at(entry))
        self._pid = target.pid
        self.debuggee = debuggee
        self._new_analysis = analysis
        self._figures = RunFigures(target, spent)
        self.account = Account(
            self,
            target=target,
            program=program,
            debuggee=debuggee,
            root=self.root,
            spec=spec,
            figures=self._figures,
            notes=notes,
        )
        """What it tells of itself."""
        self.deadline = Deadline(self, self._figures, parameters.max_time)
        """Until when it watches calls."""
        self._switches = SwitchWatch(debuggee.watch_switches, self.note)
        self.background = Background(self, debuggee, self._switches, target.turn)
        """What is done for it while the program runs."""
        assignment = Assignment(
            target=target,
            program=program,
            debuggee=debuggee,
            root=self.root,
            spec=spec,
            parameters=parameters,
            listener=self,
            note=self.note,
            remains=remains,
            progress=progress,
        )
        self._collecting = Collecting(assignment, way, self._switches)
        self._takes_copies = way is None
        self._taken_out: list[str] = []
        """What is to say of what an earlier debugger had left."""
        self.left_behind: str | None = None
        """Why probes of it are still in a program that lives, and what to do about it."""
        self.analysis: Analysis
        """Since :meth:`install`."""

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
        code = self.program.function(self._entry)
        if not code.parts:
            raise UnsupportedError(f"cannot read the code of {self.spec}")
        copies: list[str] = []
        if self._takes_copies:
            copies = Lookup(self.program, self._target).private_copies(self._entry, live=True)
        if copies:
            self.account.unless_called = f"{self.spec} was not called{instead(copies)}"
        self._collecting.begin(code, self._analyse)

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
        self.analysis = self._new_analysis(
            Subject(
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
            self.note(EXECUTED)
            self.program_ended()
            return
        self.account.files_changed()
        try:
            self.notes.extend(self.collector.modules_changed())
        except UnsupportedError as error:
            self.note(f"{self.spec} is not timed any more: {error}")
            self.stop(Status.STOPPED)
            self._message = Message.RESULT

    def stop(self, status: Status = Status.STOPPED) -> None:
        """Takes every probe out and keeps what is known."""
        self.background.stands()
        if not self.alive:
            return
        self._is_unloaded()
        self._close(status)
        if self.alive:
            self._end_figures()
            self._collecting.take_out()

    def _close(self, status: Status) -> None:
        """What is known stays, while the program lives."""

        def close() -> None:
            self.analysis.collect()
            self.analysis.close(status, alive=True)

        self._unless_damaged(close, None)

    def _end_figures(self) -> None:
        self._figures.count_stops()
        self._figures.end()

    def is_of_another(self) -> bool:
        """Whether the debugger has another program by now."""
        return self._target.pid != self._pid

    def program_ended(self) -> None:
        """The program is gone, and everything that was in it."""
        if not self.alive:
            return
        self._end_figures()
        self._message = Message.END
        self._collecting.gone(self._close_without_program)

    def _close_without_program(self) -> None:
        outlives = self.collector.outlives
        if outlives:
            self.analysis.collect()
        self.analysis.close(Status.ENDED, alive=outlives)

    def abandon(self, why: str) -> None:
        """The debugger has lost the program, which lives on."""
        if not self.alive:
            return
        self.note(why)
        self.left_behind = why
        self._close(Status.STOPPED)
        if self.alive:
            self._end_figures()
            self._collecting.abandon()

    @property
    def alive(self) -> bool:
        """Whether probes are in the program. Any thread."""
        return self._collecting.alive

    # -------------------------------------------------------------- user's stops

    def breakpoints_changed(self) -> None:
        """The user has set a breakpoint: darc's probes make way for it."""
        with self.background.stands_for_a_moment():
            self._make_way()

    def _make_way(self) -> None:
        if not self.alive:
            return
        why = self._unless_damaged(self.collector.make_way, None)
        if why is not None:
            self.note(f"{self.spec} is not timed any more: {why}")
            self.stop(Status.STOPPED)
            self._changed(Message.RESULT)

    def stands(self) -> None:
        """The program has just stopped for the user."""
        self.background.stands()
        if self.alive:
            self._switches.stands()
            self.collector.stops.stands()

    def on_user_stop(self) -> None:
        """The program stopped for the user: show it as if no probe were there."""
        self.background.stands()
        if self.alive and (why := self.collector.lost()) is not None:
            self.vanished(why)
        elif self.alive and self._is_unloaded():
            self._message = Message.RESULT
            self.stop()
        elif self.alive:
            self._switches.stands()
            self.analysis.stopped()
            self._unless_damaged(self._pause, None)

    def _is_unloaded(self) -> bool:
        """Whether f0 is gone with the file that it was in. Of others the user is told."""
        gone = self.debuggee.unloaded(self.program)
        for one in gone:
            text = f"{one.name} was unloaded: its functions are not timed any more"
            if text not in self.notes:
                self.note(text)
        return any(one.start <= self._entry < one.end for one in gone)

    def passes(self) -> bool:
        """As :meth:`on_user_stop`, where the debugger lets the program go on by itself before
        anybody looks at it: whether the probes are left in."""
        if not self.alive or self.collector.lost() is not None:
            return False
        return self._unless_damaged(self.collector.stops.passes, False)

    @property
    def passing(self) -> bool:
        """Whether they are, and the program stands still."""
        return self.alive and self.collector.stops.passing

    def _pause(self) -> None:
        self.collector.stops.pause()
        self.analysis.collect()

    def end_if_interrupted(self, *, called_off: bool = False) -> None:
        """At a stop for the user that is a Ctrl-C, or was ``called_off`` (see
        :meth:`~darc.session.deadline.Deadline.call_off`): of an analysis that ends with that."""
        interrupted = called_off or self._target.was_interrupted
        if self.alive and interrupted and self.analysis.ends_at_interrupt:
            self._message = Message.RESULT
            self.stop(Status.STOPPED)

    def end_if_late(self) -> None:
        """At a stop for the user: ``--max-time`` may have passed, and nothing has told, as a kernel
        in kgdb cannot be interrupted."""
        if self.alive and self.deadline.has_passed:
            self._unless_damaged(self._end_late, Outcome.CONTINUE)

    def before_resume(self) -> None:
        """The program is about to go on: the probes are put back."""
        if self.alive:
            self._unless_damaged(self._resume, None)

    def _resume(self) -> None:
        self.notes.extend(self.collector.stops.resume())
        self.background.goes_on()

    @property
    def paused(self) -> bool:
        """Whether the program runs without probes, as the user steps through it. Any thread."""
        return self.alive and self.collector.stops.paused

    def beat(self) -> None:
        """A sign of life to the probes, several times a second. Any thread."""
        if self.alive:
            self._switches.drain()
            if (why := self.collector.damage()) is not None:
                raise TargetError(why)
            self.collector.summons.beat()

    # ---------------------------------------------------------------- decisions

    def exits(self) -> None:
        """The program is about to end (see :class:`~darc.collectors.collector.Listener`)."""
        if self.alive:
            self.stop(Status.ENDED)
            self._message = Message.END

    def decide(self) -> Outcome:
        """Enough was seen, or time is up: decides what comes next."""
        if self.deadline.is_called_off:
            return Outcome.STOP
        with self._figures.stop():
            self.background.stands()
            self._switches.stands()
            self.analysis.stopped()
            try:
                outcome = self._unless_damaged(self._decide, Outcome.STOP)
            except DarcError as error:
                self.note(f"the search ended early: {error}")
                self.analysis.fail()
                outcome = self._end()
            if outcome is Outcome.CONTINUE:
                self.background.goes_on()
        return outcome

    def give_up(self, why: str) -> Outcome:
        """Nothing more can be seen (see :class:`~darc.collectors.collector.Listener`)."""
        self.analysis.finish_early(why)
        return self._end()

    def damaged(self, why: str) -> Outcome:
        """See :class:`~darc.collectors.collector.Listener`. What is known stays, and the probes
        are taken out by what is known of them here."""
        self.note(why)
        self.analysis.close(Status.STOPPED, alive=False)
        self._figures.end()
        self._message = Message.RESULT
        try:
            self._collecting.take_out()
        except DarcError as error:
            self.note(str(error))
        return Outcome.STOP

    def _unless_damaged(self, action: Callable[[], _T], otherwise: _T) -> _T:
        """What ``action`` makes of the collector's figures. Where the program has written over
        them, before or meanwhile, or has been killed while it stood still, that is the reason of
        whatever they led to, and the session's end."""
        why = self.collector.damage() if self.alive else None
        try:
            if why is None:
                return action()
        except Exception as error:
            if self.alive and self.debuggee.is_gone():
                self.note("the program was killed while it stood still")
                self.program_ended()
                return otherwise
            why = str(error) if isinstance(error, DamagedError) else self.collector.damage()
            if why is None:
                raise
        if self.alive:
            self.damaged(why)
        return otherwise

    def vanished(self, why: str) -> Outcome:
        """See :class:`~darc.collectors.collector.Listener`."""
        self.note(why)
        self.program_ended()
        self._message = Message.RESULT
        return Outcome.STOP

    def take_message(self) -> Message | None:
        """What the user is to be told at the stop that :meth:`decide` asked for."""
        message, self._message = self._message, None
        return message

    @property
    def seconds_left(self) -> float | None:
        """See :class:`~darc.collectors.collector.Listener`. Any thread."""
        return self.deadline.seconds_left

    def is_due(self) -> bool:
        """See :class:`~darc.collectors.collector.Listener`. Any thread."""
        return self.deadline.is_due()

    def _decide(self) -> Outcome:
        if self.deadline.has_passed:
            return self._end_late()
        return self._go(self.analysis.decide())

    def _end_late(self) -> Outcome:
        if self._is_unloaded():  # no longer time would help
            self.analysis.collect()
            self.analysis.close(Status.STOPPED, alive=True)
        else:
            self.analysis.finish_early(TIME_IS_UP)
        return self._end()

    def follow(self, request: Callable[[], Step]) -> None:
        """At a stop: what the user asks of the :attr:`analysis`, and the step that it returns.

        Raises:
            UsageError: it is over, or ``request`` says that it cannot be asked for that.
        """
        if not self.alive:
            raise UsageError("the analysis is over: begin another one with 'darc start'")
        self._unless_damaged(lambda: self._go(request()), Outcome.STOP)

    def _go(self, after: Step) -> Outcome:
        """Does what follows from a decision."""
        if after is Step.END:
            return self._end()
        if after is Step.FALL_BACK:
            return self._fall_back()
        if after is Step.GO_ON:
            return Outcome.CONTINUE
        if after is Step.SHOW:
            self._message = Message.CAUGHT
            return Outcome.STOP
        peak = after is Step.CHOOSE_PEAK
        self._message = Message.CHOOSE_PEAK if peak else Message.CHOOSE_NODES
        return Outcome.STOP

    def _fall_back(self) -> Outcome:
        """The next way takes the place of the one that has collected, where it does no harm."""
        why = self._collecting.risk_of_fall_back() or self.analysis.why_no_fall_back()
        if why is None:
            try:
                self._collecting.fall_back(self._entry)
                return self._go(self.analysis.fall_back(self.collector))
            except DarcError as error:
                why = str(error)
        return self._go(self.analysis.stay(why))

    def _end(self) -> Outcome:
        self._end_figures()
        self._message = Message.RESULT
        goes_on = self.parameters.on_finish is OnFinish.CONTINUE
        self._collecting.finish()
        if goes_on:
            self._changed(Message.RESULT)
            self._message = None
        return Outcome.CONTINUE if goes_on else Outcome.STOP

    # ------------------------------------------------------------------- reports

    def stored(self) -> Stored:
        """What a later run needs to go on from here."""
        found = self._unless_damaged(lambda: self.analysis.stored(self.alive), None)
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
        known = self._unless_damaged(lambda: self.analysis.snapshot(self.alive), None)
        known = known or self.analysis.snapshot(False)
        return self.account.whole(known, lines=lines, tree=tree)

    def note(self, text: str) -> None:
        """Keeps something that the user should know. Any thread."""
        self.notes.append(text)
