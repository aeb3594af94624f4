"""One analysis inside one process: its probes, its stops and its end.

What is found is the matter of :class:`~darc.analysis.Analysis`. The session owns everything that
was changed in the program (through its :class:`~darc.implant.Implant`) and undoes it on every way
out. It is driven by the debugger: its methods are called on the debugger's own thread with all
threads of the program stopped, but for those that say "any thread", which may be called at any
time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence

from darc import admission, agent, procfs, refit
from darc.agent.memory import Stale
from darc.analysis import Analysis, Next
from darc.code.program import Program
from darc.descent import Status
from darc.errors import DarcError, UnsupportedError, UsageError
from darc.foothold import Foothold
from darc.ftree import Fnode
from darc.implant import Implant
from darc.parameters import OnFinish, Parameters
from darc.process_foothold import ProcessFoothold
from darc.snapshot import Snapshot
from darc.source_lines import add_lines
from darc.storage import Stored
from darc.target import Bell, Target

_LOSSES = {
    "lost_records": "calls were not timed: there were more stack depths than darc can tell apart",
    "lost_contexts": "calls were not timed: there were more threads than darc can tell apart",
    "lost_ops": "calls were not measured: their exceptions were caught where darc cannot see it",
}
"""What the agent counts of calls that it could not measure, and what is told of it."""


class Session:
    """See the module. ``changed`` is called when something worth telling has happened."""

    def __init__(
        self,
        target: Target,
        program: Program,
        entry: int,
        spec: str,
        parameters: Parameters,
        changed: Callable[[str], None],
        foothold: Foothold | None = None,
        resumed: Stored | None = None,
    ) -> None:
        """``resumed`` is the session to go on with, once f0's profile is known again."""
        self._target = target
        self.program = program
        self.spec = spec
        self._parameters = parameters
        self._changed = changed
        self.notes: list[str] = []
        self._entry = entry
        self._started = time.monotonic()
        self._ended: float | None = None
        self._lost = dict.fromkeys(_LOSSES, 0)
        self._stops = 0
        self._stop_seconds: list[float] = []
        self._pending_message: str | None = None
        self._alive = True
        self._seen_stale: frozenset[Stale] = frozenset()
        self.root = Fnode(program.function_at(entry))
        self._foothold = foothold
        self._resumed = resumed
        if resumed is not None:
            self.notes += refit.opening_notes(resumed, parameters)
        self.implant: Implant
        self._analysis: Analysis

    # ------------------------------------------------------------- begin and end

    def install(self) -> None:
        """Puts the probes into the stopped program; may call functions in it.

        Raises:
            DarcError: it cannot be; whatever was changed was undone.
        """
        pid = self._target.pid
        if pid is None:
            raise UnsupportedError(
                "darc needs a program on this machine: 'run' or 'attach' it first"
            )
        self.notes += admission.check(self._target, self.program, self.root.function, self.spec)
        if self._foothold is None or self._foothold.pid != pid:
            self.notes += admission.clean_up_after_another(self._target, self.program, pid)
        installed = False
        try:
            self.implant = self._stand(pid)
            self._analysis = Analysis(
                self.program,
                self.implant,
                self.root,
                self.spec,
                self._parameters,
                self.notes,
                self._resumed,
            )
            code = self.program.function(self._entry)
            if not code.parts:
                raise UnsupportedError(f"cannot read the code of {self.spec}")
            problem = self.implant.prepare_f0(code)
            if problem is not None:
                raise UnsupportedError(f"cannot time {self.spec}: {problem}")
            self.notes += self.implant.guard()
            needed = self._analysis.needed
            self._signal = admission.configure(
                self._target, self.implant.tables, pid, self._parameters.thread, needed
            )
            self.implant.enable()
            installed = True
        finally:
            if not installed:
                self._abandon()
        self._target.arm_bell(self._signal, self.on_bell)

    def _abandon(self) -> None:
        # Nothing was installed yet, or the program is gone: the first error is the one to tell.
        with contextlib.suppress(DarcError, AttributeError):
            self.implant.remove()
        self._close()

    def _stand(self, pid: int) -> Implant:
        """An agent in the process: that of the analysis before, or a new one."""
        resolution = self._parameters.resolution
        if self._foothold is not None and self._foothold.pid == pid and self._foothold.is_usable():
            self._foothold.reopen(self.program, resolution)
        else:
            self._foothold = ProcessFoothold(self._target, self.program, pid)
            self._foothold.install(resolution)
        self._target.show_pads(agent.elf_file(), self._foothold.agent_base, self._foothold.caller)
        return Implant(self._target, self.program, self._foothold)

    @property
    def foothold(self) -> Foothold | None:
        """What stays in the process, for the next analysis of it."""
        return self._foothold

    def _close(self) -> None:
        self._alive = False

    def modules_changed(self) -> None:
        """The program has loaded or unloaded a file, or executes another one."""
        if not self._alive or self._target.pid is None:
            return
        if self._foothold is None or self._foothold.pid != self._target.pid:
            self.program_ended()  # it was started again
            return
        if not self._foothold.is_there():
            self.notes.append("the program executed another file")
            self.program_ended()
            return
        self.program.update(procfs.regions(self._target.pid))
        try:
            self.notes += self.implant.guard()
        except UnsupportedError as error:
            self.notes.append(f"{self.spec} is not timed any more: {error}")
            self.stop(Status.STOPPED)

    def stop(self, status: Status = Status.STOPPED) -> None:
        """Takes every probe out and keeps what is known."""
        if not self._alive:
            return
        self._analysis.collect_profile()
        self._see_losses()
        self._analysis.close(status, alive=True)
        self._ended = time.monotonic()
        try:
            self._target.disarm_bell()
        finally:
            self.implant.remove()
            self._close()

    def program_ended(self) -> None:
        """The program is gone, and everything that was in it."""
        if not self._alive:
            return
        self._ended = time.monotonic()
        self._close()
        self._analysis.close(Status.ENDED, alive=False)
        try:
            self._target.disarm_bell()
        except DarcError as error:
            self.notes.append(str(error))

    @property
    def alive(self) -> bool:
        """Whether probes are in the program. Any thread."""
        return self._alive

    @property
    def finished(self) -> bool:
        """Whether the search has ended."""
        return self._analysis.finished

    # -------------------------------------------------------------- user's stops

    def breakpoints_changed(self) -> None:
        """The user has set a breakpoint: darc's patches make way for it."""
        if not self._alive:
            return
        why = self.implant.make_way()
        if why is not None:
            self.notes.append(f"{self.spec} is not timed any more: {why}")
            self.stop(Status.STOPPED)
            self._changed("result")

    def on_user_stop(self) -> None:
        """The program stopped for the user: show it as if no pad were there."""
        if self._alive:
            self.implant.tables.begin_epoch()
            self.implant.pause()
            self._analysis.collect_profile()

    def before_resume(self) -> None:
        """The program is about to go on: the patches are put back."""
        if self._alive:
            self.implant.tables.begin_epoch()
            self.notes += self.implant.resume()

    @property
    def paused(self) -> bool:
        """Whether the program runs without probes, as the user steps through it. Any thread."""
        return self._alive and self.implant.patcher.paused

    def beat(self) -> None:
        """A sign of life to the pads, at least every few seconds. Any thread."""
        if self._alive:
            tables = self.implant.tables
            tables.set(heartbeat=tables.get("heartbeat") + 1)
            if not tables.enabled:
                tables.enabled = True
            self._seen_stale = tables.watch_stale(self._seen_stale)
            self._watch_sandbox()

    def _watch_sandbox(self) -> None:
        """In a seccomp sandbox the agent makes no system calls; the heart rings for it."""
        pid = self._target.pid if self._foothold is None else self._foothold.pid
        if pid is not None and procfs.in_sandbox(pid):
            self.implant.tables.set(no_calls=1, bell_signal=0)

    # ------------------------------------------------------------------ doorbell

    def on_bell(self) -> Bell:
        """The agent has seen enough (or time is up). Decides what comes next."""
        if not self._alive:
            return Bell()
        tables = self.implant.tables
        if tables.get("exiting"):
            self.stop(Status.ENDED)
            return Bell()
        if self.paused and not tables.get("bell"):
            self.before_resume()  # the program went on, and not step by step
            return Bell()
        if not tables.get("bell") and not self._time_is_up():
            return Bell()  # the signal was the program's own
        begin = time.monotonic()
        self._stops += 1
        self.implant.tables.begin_epoch()
        self._see_losses()
        try:
            stop = self._decide()
        except DarcError as error:
            self.notes.append(f"the search ended early: {error}")
            self._analysis.status = Status.INCONCLUSIVE
            stop = self._end()
        back, slot = tables.get("bell_return"), tables.get("bell_slot")
        rang = bool(tables.get("bell"))
        tables.set(bell=0)
        self._stop_seconds.append(time.monotonic() - begin)
        if not stop:
            return Bell()
        if rang and back:
            return Bell(stop_at=back, stop_slot=slot)
        return Bell(stop_at=0)

    def _see_losses(self) -> None:
        """Counts what the agent could not measure, and makes room."""
        tables = self.implant.tables
        for name in self._lost:
            self._lost[name] += tables.get(name)
            tables.set(**{name: 0})
        counters = self._target.program_counters()
        inside = [t for t, pc in counters.items() if self._foothold and self._foothold.holds(pc)]
        limit = tables.blob.constants["DARC_MAX_RECORDS"] // 2
        if tables.get("record_count") > limit and len(inside) <= 1:
            tables.compact()

    def take_message(self) -> str | None:
        """What the user is to be told at the stop that :meth:`on_bell` asked for."""
        message, self._pending_message = self._pending_message, None
        return message

    def _time_is_up(self) -> bool:
        limit = self._parameters.max_time
        return limit is not None and time.monotonic() - self._started >= limit

    @property
    def seconds_left(self) -> float | None:
        """Until ``--max-time`` ends the analysis."""
        limit = self._parameters.max_time
        return None if limit is None else limit - (time.monotonic() - self._started)

    def time_up_soon(self) -> None:
        """Asks the agent to ring at the next call of f0, whatever was seen. Any thread."""
        if self._alive:
            self.implant.tables.set(needed=0, batch=1)

    def _decide(self) -> bool:
        """True: the program is to stop for the user."""
        if self._time_is_up():
            self._analysis.finish_early("the time is up")
            return self._end()
        return self._go(self._analysis.decide())

    def choose_peak(self, spec: str) -> None:
        """``darc peak``: the user's choice, at a stop.

        Raises:
            UsageError: it is not of the form of a peak, or not there.
        """
        if not self._alive:
            raise UsageError("the analysis is over: begin another one with 'darc start'")
        self._go(self._analysis.choose_peak(spec))

    def descend(self, nodes: Sequence[Fnode]) -> None:
        """``darc descend``: go on into these nodes only (``set darc auto off``).

        Raises:
            UsageError: there is no choice to make, or they are not among what may be chosen.
        """
        if not self._alive:
            raise UsageError("choose a peak first: 'darc peak N'")
        self._go(self._analysis.descend(nodes))

    def _go(self, after: Next) -> bool:
        """Does what follows from a decision. True: the program is to stop for the user."""
        if after is Next.END:
            return self._end()
        if after is Next.GO_ON:
            return False
        self._pending_message = "profile" if after is Next.CHOOSE_PEAK else "choose"
        return True

    def _end(self) -> bool:
        self._ended = time.monotonic()
        self._pending_message = "result"
        message_now = self._parameters.on_finish is OnFinish.CONTINUE
        self.implant.remove()
        self._target.disarm_bell()
        self._close()
        if message_now:
            self._changed("result")
            self._pending_message = None
        return not message_now

    # ------------------------------------------------------------------- reports

    def progress(self) -> tuple[int, int]:
        """Calls seen and needed at this moment. Any thread, while the program runs."""
        if not self._alive:
            return 0, 0
        return self.implant.tables.get("seen"), self._analysis.needed

    def stored(self) -> Stored:
        """What a later run needs to go on from here."""
        return self._analysis.stored(self._alive)

    def live_snapshot(self) -> Snapshot:
        """What a live line shows. Any thread, while the program runs."""
        shown = self._analysis.live_snapshot(self._alive)
        return dataclasses.replace(shown, elapsed_seconds=time.monotonic() - self._started)

    def snapshot(self) -> Snapshot:
        """Everything that is known now."""
        shown = self._analysis.snapshot(self._alive)
        if shown.ftree is self.root:
            add_lines(self._target, self.root)
        figures = dataclasses.replace(
            shown.program,
            stops=self._stops,
            stopped_seconds=round(sum(self._stop_seconds), 6),
        )
        return dataclasses.replace(
            shown,
            program=figures,
            notes=tuple(dict.fromkeys([*self.notes, *self._loss_notes()])),
            elapsed_seconds=(self._ended or time.monotonic()) - self._started,
        )

    def _loss_notes(self) -> list[str]:
        return [f"{self._lost[name]} {text}" for name, text in _LOSSES.items() if self._lost[name]]

    @property
    def rings(self) -> bool:
        """Whether the agent has asked for the debugger and got no answer yet. Any thread."""
        return self._alive and bool(self.implant.tables.get("bell"))

    @property
    def rings_itself(self) -> bool:
        """Whether the agent has asked by a signal of its own. Any thread."""
        return self.rings and bool(self.implant.tables.get("bell_signal"))

    @property
    def bell_signal(self) -> int:
        """The signal that the debugger listens to."""
        return self._signal
