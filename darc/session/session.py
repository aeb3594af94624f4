"""One analysis inside one process: its probes, its stops and its end.

What is found is the matter of :class:`~darc.analyses.analysis.Analysis`. The session owns
everything that was changed in the program (through its
:class:`~darc.collectors.collector.Collector`) and undoes it on every way out. It is driven by the
debugger: its methods are called on the debugger's own thread with all threads of the program
stopped, but for those that say "any thread", which may be called at any time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import TypeVar

from darc.agent.damage import DamagedError
from darc.analyses.analysis import Analysis, Step, Subject
from darc.code.architecture import FunctionCode
from darc.code.lookup import Lookup
from darc.code.program import Program
from darc.code.source_lines import add_lines
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
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import EXECUTED, TIME_IS_UP, Status
from darc.saved.storage import Stored
from darc.session.collecting import Collecting
from darc.session.figures import RunFigures
from darc.session.helping import Helping
from darc.session.remarks import cut_short, stopped_for_files, users_breakpoints
from darc.target.outcome import Outcome
from darc.target.target import Target

_T = TypeVar("_T")

_MANY_GENERATED = 10_000
"""Calls by generated code, with none that is timed: no other may ever come."""


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
        self.notes = list(notes)
        self._entry = entry
        self._figures = RunFigures(target, spent)
        self._message: Message | None = None
        self._called_off = False
        self._alive = True
        self._helping = Helping()
        self.root = Fnode(program.names.function_at(entry))
        self._pid = target.pid
        self.debuggee = debuggee
        self._new_analysis = analysis
        assignment = Assignment(
            target=target,
            program=program,
            debuggee=debuggee,
            root=self.root,
            spec=spec,
            parameters=parameters,
            listener=self,
            note=self.notes.append,
            remains=remains,
            progress=progress,
        )
        self._collecting = Collecting(assignment, way)
        self._takes_copies = way is None
        self._switches = SwitchWatch(debuggee.watch_switches, self.note)
        self._cut_by_files = 0
        """How often a file was loaded or unloaded while a call of f0 was under way."""
        self._taken_out: list[str] = []
        """What is to say of what an earlier debugger had left."""
        self.left_behind: str | None = None
        """Why probes of it are still in a program that lives, and what to do about it."""
        self._unless_called: str | None = None
        """What to say where no call of f0 was seen."""
        self.collector: Collector
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
            self.notes += self._taken_out
        code = self.program.function(self._entry)
        if not code.parts:
            raise UnsupportedError(f"cannot read the code of {self.spec}")
        copies: list[str] = []
        if self._takes_copies:
            copies = Lookup(self.program, self._target).private_copies(self._entry, live=True)
        self._unless_called = f"{self.spec} was not called{instead(copies)}" if copies else None
        try:
            self._collecting.begin(functools.partial(self._install, code), self.note)
        except BaseException:
            self._over()
            raise

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

    def _install(self, code: FunctionCode, way: Way) -> None:
        collector = self.collector = self._collecting.new(way)
        installed = False
        try:
            self.notes += collector.install(code, self.parameters.profile_calls)
            self.analysis = self._new_analysis(
                Subject(
                    program=self.program,
                    collector=collector,
                    root=self.root,
                    spec=self.spec,
                    parameters=self.parameters,
                    note=self.notes.append,
                    switches=self._switches,
                    threads=len(self._target.threads.ids()),
                )
            )
            installed = True
        finally:
            self._collecting.leaves(collector)
            if not installed:
                self._abandon()

    def _abandon(self) -> None:
        # Nothing was installed yet, or the program is gone: the first error is the one to tell.
        with contextlib.suppress(DarcError):
            self.collector.remove()

    @property
    def remains(self) -> Remains | None:
        """What stays in the process, for the next analysis of it."""
        return self._collecting.remains

    def modules_changed(self) -> None:
        """The program has loaded or unloaded a file, or executes another one."""
        with self._stands_for_a_moment():
            self._see_modules()

    def _see_modules(self) -> None:
        if not self._alive or self._target.pid is None:
            return
        if self.is_of_another():
            self.program_ended()  # it was started again
            return
        if (why := self.collector.damage()) is not None:
            self.damaged(why)
            return
        if not self.collector.is_there():
            self.notes.append(EXECUTED)
            self.program_ended()
            return
        open_calls = self.collector.open_calls
        self._cut_by_files += open_calls is not None and bool(open_calls.running())
        try:
            self.notes += self.collector.modules_changed()
        except UnsupportedError as error:
            self.notes.append(f"{self.spec} is not timed any more: {error}")
            self.stop(Status.STOPPED)
            self._message = Message.RESULT

    def stop(self, status: Status = Status.STOPPED) -> None:
        """Takes every probe out and keeps what is known."""
        self._stands()
        if not self._alive:
            return

        def close() -> None:
            self.analysis.collect()
            self.analysis.close(status, alive=True)

        self._is_unloaded()
        self._unless_damaged(close, None)
        if not self._alive:
            return
        self._figures.count_stops()
        self._figures.end()
        try:
            self.collector.remove()
        finally:
            self._over()

    def _over(self) -> None:
        """No probe is in the program any more, and nothing watches it."""
        self._alive = False
        self._switches.end()

    def is_of_another(self) -> bool:
        """Whether the debugger has another program by now."""
        return self._target.pid != self._pid

    def program_ended(self) -> None:
        """The program is gone, and everything that was in it."""
        if not self._alive:
            return
        self._figures.count_stops()
        self._figures.end()
        self._over()
        if self.collector.outlives:
            self.analysis.collect()
        self.analysis.close(Status.ENDED, alive=self.collector.outlives)
        self._message = Message.END
        self.collector.gone()

    def abandon(self, why: str) -> None:
        """The debugger has lost the program, which lives on."""
        if not self._alive:
            return

        def close() -> None:
            self.analysis.collect()
            self.analysis.close(Status.STOPPED, alive=True)

        self.notes.append(why)
        self.left_behind = why
        self._unless_damaged(close, None)
        if not self._alive:
            return
        self._figures.count_stops()
        self._figures.end()
        self._over()
        self.collector.abandon()

    @property
    def alive(self) -> bool:
        """Whether probes are in the program. Any thread."""
        return self._alive

    # -------------------------------------------------------------- user's stops

    def breakpoints_changed(self) -> None:
        """The user has set a breakpoint: darc's probes make way for it."""
        with self._stands_for_a_moment():
            self._make_way()

    def _make_way(self) -> None:
        if not self._alive:
            return
        why = self._unless_damaged(self.collector.make_way, None)
        if why is not None:
            self.notes.append(f"{self.spec} is not timed any more: {why}")
            self.stop(Status.STOPPED)
            self._changed(Message.RESULT)

    def stands(self) -> None:
        """The program has just stopped for the user."""
        self._stands()
        if self._alive:
            self._switches.stands()
            self.collector.stops.stands()

    def on_user_stop(self) -> None:
        """The program stopped for the user: show it as if no probe were there."""
        self._stands()
        if self._alive and (why := self.collector.lost()) is not None:
            self.vanished(why)
        elif self._alive and self._is_unloaded():
            self._message = Message.RESULT
            self.stop()
        elif self._alive:
            self._switches.stands()
            self.analysis.stopped()
            self._unless_damaged(self._pause, None)

    def _is_unloaded(self) -> bool:
        """Whether f0 is gone with the file that it was in. Of others the user is told."""
        gone = self.debuggee.unloaded(self.program)
        for one in gone:
            text = f"{one.name} was unloaded: its functions are not timed any more"
            if text not in self.notes:
                self.notes.append(text)
        return any(one.start <= self._entry < one.end for one in gone)

    def passes(self) -> bool:
        """As :meth:`on_user_stop`, where the debugger lets the program go on by itself before
        anybody looks at it: whether the probes are left in."""
        if not self._alive or self.collector.lost() is not None:
            return False
        return self._unless_damaged(self.collector.stops.passes, False)

    @property
    def passing(self) -> bool:
        """Whether they are, and the program stands still."""
        return self._alive and self.collector.stops.passing

    def _pause(self) -> None:
        self.collector.stops.pause()
        self.analysis.collect()

    def call_off(self) -> None:
        """The user's Ctrl-C came, and the program blocks it: it is to stop for the user. Any
        thread."""
        self._called_off = True

    def end_if_interrupted(self, *, called_off: bool = False) -> None:
        """At a stop for the user that is a Ctrl-C, or the answer to :meth:`call_off`: of an
        analysis that ends with that."""
        interrupted = called_off or self._target.was_interrupted
        if self._alive and interrupted and self.analysis.ends_at_interrupt:
            self._message = Message.RESULT
            self.stop(Status.STOPPED)

    def take_called_off(self) -> bool:
        """At a stop for the user: whether it answers :meth:`call_off`."""
        called_off, self._called_off = self._called_off, False
        return called_off

    def end_if_late(self) -> None:
        """At a stop for the user: ``--max-time`` may have passed, and nothing has told, as a kernel
        in kgdb cannot be interrupted."""
        if self._alive and self.time_is_up():
            self._unless_damaged(self._end_late, Outcome.CONTINUE)

    def before_resume(self) -> None:
        """The program is about to go on: the probes are put back."""
        if self._alive:
            self._unless_damaged(self._resume, None)

    def _resume(self) -> None:
        self.notes += self.collector.stops.resume()
        self._goes_on()

    @property
    def paused(self) -> bool:
        """Whether the program runs without probes, as the user steps through it. Any thread."""
        return self._alive and self.collector.stops.paused

    def beat(self) -> None:
        """A sign of life to the probes, several times a second. Any thread."""
        if self._alive:
            self._switches.drain()
            if (why := self.collector.damage()) is not None:
                raise TargetError(why)
            self.collector.summons.beat()

    # ---------------------------------------------------------------- decisions

    def exits(self) -> None:
        """The program is about to end (see :class:`~darc.collectors.collector.Listener`)."""
        if self._alive:
            self.stop(Status.ENDED)
            self._message = Message.END

    def decide(self) -> Outcome:
        """Enough was seen, or time is up: decides what comes next."""
        if self._called_off:
            return Outcome.STOP
        with self._figures.stop():
            self._stands()
            self._switches.stands()
            self.analysis.stopped()
            try:
                outcome = self._unless_damaged(self._decide, Outcome.STOP)
            except DarcError as error:
                self.notes.append(f"the search ended early: {error}")
                self.analysis.fail()
                outcome = self._end()
            if outcome is Outcome.CONTINUE:
                self._goes_on()
        return outcome

    def give_up(self, why: str) -> Outcome:
        """Nothing more can be seen (see :class:`~darc.collectors.collector.Listener`)."""
        self.analysis.finish_early(why)
        return self._end()

    def damaged(self, why: str) -> Outcome:
        """See :class:`~darc.collectors.collector.Listener`. What is known stays, and the probes
        are taken out by what is known of them here."""
        self.notes.append(why)
        self.analysis.close(Status.STOPPED, alive=False)
        self._figures.end()
        self._message = Message.RESULT
        try:
            self.collector.remove()
        except DarcError as error:
            self.notes.append(str(error))
        finally:
            self._over()
        return Outcome.STOP

    def _unless_damaged(self, action: Callable[[], _T], otherwise: _T) -> _T:
        """What ``action`` makes of the collector's figures. Where the program has written over
        them, before or meanwhile, or has been killed while it stood still, that is the reason of
        whatever they led to, and the session's end."""
        why = self.collector.damage() if self._alive else None
        try:
            if why is None:
                return action()
        except Exception as error:
            if self._alive and self.debuggee.is_gone():
                self.notes.append("the program was killed while it stood still")
                self.program_ended()
                return otherwise
            why = str(error) if isinstance(error, DamagedError) else self.collector.damage()
            if why is None:
                raise
        if self._alive:
            self.damaged(why)
        return otherwise

    def vanished(self, why: str) -> Outcome:
        """See :class:`~darc.collectors.collector.Listener`."""
        self.notes.append(why)
        self.program_ended()
        self._message = Message.RESULT
        return Outcome.STOP

    def take_message(self) -> Message | None:
        """What the user is to be told at the stop that :meth:`decide` asked for."""
        message, self._message = self._message, None
        return message

    def time_is_up(self) -> bool:
        """Whether ``--max-time`` has passed. Any thread."""
        limit = self.parameters.max_time
        return limit is not None and self._figures.seconds_of_limit >= limit

    @property
    def seconds_left(self) -> float | None:
        """Until there is to be a decision, whatever was seen: for ``--max-time``, or for
        ``--start-time``; none where the user wants a stop. Any thread."""
        if self._called_off:
            return 0.0
        limit = self.parameters.max_time
        left = [] if limit is None else [limit - self._figures.seconds_of_limit]
        if (profiling := self.analysis.seconds_left) is not None:
            left.append(profiling)
        return min(left, default=None)

    def look(self) -> float:
        """Takes down how the profile grows; tells when to do so again. Any thread, while the
        program runs, whose memory can be read."""
        return self.analysis.look() if self._alive else math.inf

    def look_ahead(self) -> float:
        """While the program runs, whose memory can be read: prepares for the decision that comes,
        for a moment, if it is time for that; tells in how many seconds to go on. On one thread that
        may help."""
        return self._helping.work(self.analysis.look_ahead) if self._alive else math.inf

    def _goes_on(self) -> None:
        self.analysis.goes_on()
        self._switches.goes_on()
        if self.collector.ahead is not None:
            self.collector.ahead.goes_on()
        self._helping.goes_on(is_readable=self.debuggee.is_readable_while_it_runs)

    def _stands(self) -> None:
        self._helping.stands()
        self._target.turn.claim()

    @contextlib.contextmanager
    def _stands_for_a_moment(self) -> Iterator[None]:
        """As :meth:`_stands`, where the debugger lets the program go on by itself."""
        with self._helping.interrupted():
            self._target.turn.claim()
            yield

    @property
    def urgent(self) -> int | None:
        """See :attr:`~darc.analyses.analysis.Analysis.urgent`. Any thread."""
        return self.analysis.urgent if self._alive else None

    def is_due(self) -> bool:
        """Whether that time is up. Any thread."""
        left = self.seconds_left
        return left is not None and left <= 0

    def time_up_soon(self) -> None:
        """Asks the collector to call at the next call of f0, whatever was seen. Any thread."""
        if self._alive:
            self.collector.counting.hurry()

    def _decide(self) -> Outcome:
        if self.time_is_up():
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
        if not self._alive:
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
        before = self.collector
        way = self._collecting.for_the_rest(before)
        why = way.collector.risk_of_fall_back(self.debuggee) or self.analysis.why_no_fall_back()
        if why is None:
            try:
                before.remove()
                self.notes += before.losses() + before.warnings()
                self.collector = self._collecting.new(way)
                self.notes += self.collector.install(self.program.function(self._entry), 0)
                return self._go(self.analysis.fall_back(self.collector))
            except DarcError as error:
                why = str(error)
        return self._go(self.analysis.stay(why))

    def _end(self) -> Outcome:
        self._figures.count_stops()
        self._figures.end()
        self._message = Message.RESULT
        goes_on = self.parameters.on_finish is OnFinish.CONTINUE
        self._switches.end()
        self.collector.remove()
        self._over()
        if goes_on:
            self._changed(Message.RESULT)
            self._message = None
        return Outcome.CONTINUE if goes_on else Outcome.STOP

    # ------------------------------------------------------------------- reports

    def stored(self) -> Stored:
        """What a later run needs to go on from here."""
        found = self._unless_damaged(lambda: self.analysis.stored(self._alive), None)
        return dataclasses.replace(found or self.analysis.stored(False), analysis=self.analysis.key)

    def live_snapshot(self) -> Snapshot:
        """What a live line shows. Any thread, while the program runs."""
        readable = self.debuggee.is_readable_while_it_runs
        shown = self.analysis.live_snapshot(self._alive, readable)
        is_asked = self._alive and readable  # else its memory cannot be read meanwhile
        is_none_timed = shown.profile is not None and not shown.profile.count
        many = self.collector.generated if is_asked and is_none_timed else 0
        return dataclasses.replace(
            shown,
            elapsed_seconds=self._figures.seconds,
            generated=many if many >= _MANY_GENERATED else 0,
        )

    def snapshot(
        self,
        *,
        lines: bool = True,
        tree: Callable[[Fnode], Iterable[Fnode]] = lambda _root: (),
    ) -> Snapshot:
        """Everything that is known now, as it stays whatever the session does next. The debugger is
        asked where the paths are in the source, and the nodes that ``tree`` takes of the ftree;
        without ``lines`` it is asked for nothing. Any thread then."""
        shown = self._unless_damaged(lambda: self.analysis.snapshot(self._alive), None)
        shown = shown or self.analysis.snapshot(False)
        if lines and shown.ftree is self.root:
            nodes = (node for path in shown.paths for node in path.nodes)
            add_lines(self._target, self.program, nodes)
            add_lines(self._target, self.program, tree(self.root))
        notes = [*self.notes, *self.collector.losses()]
        warnings = [*shown.warnings, *self.collector.warnings()]
        if lines:
            warnings += users_breakpoints(shown.paths, self.program, self._target)
        notes += warnings
        seen = shown.profile is not None and shown.profile.count
        if not self._alive and not seen and self._unless_called is not None:
            notes.append(self._unless_called)
        figures = self._figures.added_to(shown.program, self.collector.hits)
        notes += cut_short(
            self.collector.cut_short,
            in_peak=figures.in_peak_calls or 0,
            is_searching=self.analysis.is_searching,
            spec=self.spec,
        )
        notes += stopped_for_files(
            self._cut_by_files, in_peak=figures.in_peak_calls or 0, spec=self.spec
        )
        if self._alive:
            shown = shown.frozen()  # afterwards the tree stays as it is
        return dataclasses.replace(
            shown,
            program=figures,
            notes=tuple(dict.fromkeys(notes)),
            warnings=tuple(warnings),
            elapsed_seconds=self._figures.seconds,
        )

    @property
    def cost(self) -> ProgramFigures:
        """How often, and for how long, the program has stood still by now."""
        return self._figures.added_to(ProgramFigures(), self.collector.hits)

    @property
    def rings(self) -> bool:
        """Whether the debugger was asked for and gave no answer yet. Any thread."""
        return self._alive and self.collector.summons.waits

    @property
    def rings_itself(self) -> bool:
        """Whether it was asked by a signal of the program's own. Any thread."""
        return self.rings and self.collector.summons.rings_itself

    def note(self, text: str) -> None:
        """Keeps something that the user should know. Any thread."""
        self.notes.append(text)
