"""One analysis of one program: from f0's profile to the root cause paths.

The session owns everything that was changed in the program (through its
:class:`~darc.implant.Implant`) and undoes it on every way out. It is driven by the debugger: its
methods are called on the debugger's own thread with all threads of the program stopped, but for
:meth:`Session.progress`, which may be called at any time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence

from darc import agent, clock, procfs, refit
from darc.agent.memory import Stale
from darc.callees import Callees, denied
from darc.code.program import Program
from darc.contest import Contest
from darc.descent import Descent, Orders, Status, Vote, ended_paths
from darc.errors import DarcError, NotFoundError, TargetError, UnsupportedError, UsageError
from darc.foothold import Foothold, left_behind
from darc.ftree import Fnode, Function, NodeState
from darc.implant import Implant, clean_up
from darc.instrumentation import Instrumentation
from darc.parameters import OnFinish, Parameters
from darc.peaks import PeakRange, choose_peak, find_peaks
from darc.profile import Profile, thresholds
from darc.snapshot import ProgramFigures, Snapshot
from darc.storage import Stored
from darc.target import Bell, Target

BELL_SIGNALS = (23, 28, 18)  # SIGURG, SIGWINCH, SIGCONT: ignored by default
PATIENCE_SECONDS = 10.0
"""How long the pads go on without a sign of life from the debugger."""


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
        self.parameters = parameters
        self._changed = changed
        self.status = Status.PROFILING
        self.notes: list[str] = []
        self._entry = entry
        self._hz = clock.tsc_hz()
        self._started = time.monotonic()
        self._ended: float | None = None
        self._profile = Profile.empty(parameters.resolution, self._hz)
        self._next_look = parameters.start_ops
        self._peak: PeakRange | None = None
        self._descent: Descent | None = None
        self._lost = dict.fromkeys(_LOSSES, 0)
        self._in_peak = 0
        self._needed = parameters.start_ops
        self._stops = 0
        self._stop_seconds: list[float] = []
        self._pending_message: str | None = None
        self._alive = True
        self._seen_stale: frozenset[Stale] = frozenset()
        self.root = Fnode(program.function_at(entry))
        self._foothold = foothold
        self._resumed = resumed
        self._contests: tuple[Contest, ...] = ()
        if resumed is not None:
            self._peak = resumed.peak
            self._in_peak = resumed.in_peak_calls
            self.notes += refit.opening_notes(resumed, parameters)
        self.implant: Implant
        self._callees: Callees
        self._instrumentation: Instrumentation

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
        self._refuse()
        self._clean_up(pid)
        installed = False
        try:
            self.implant = self._stand(pid)
            self._callees = Callees(self.program, self.implant, self.notes.append)
            self._instrumentation = Instrumentation(self.implant, self._callees, self.root)
            code = self.program.function(self._entry)
            if not code.parts:
                raise UnsupportedError(f"cannot read the code of {self.spec}")
            problem = self.implant.prepare_f0(code)
            if problem is not None:
                raise UnsupportedError(f"cannot time {self.spec}: {problem}")
            self.notes += self.implant.guard()
            self._configure(pid)
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

    def _clean_up(self, pid: int) -> None:
        """Takes out what a debugger that was killed left in this process."""
        if self._foothold is not None and self._foothold.pid == pid:
            return
        with procfs.Memory(pid) as memory:
            for tables in left_behind(self._target, memory, procfs.regions(pid)):
                if restored := clean_up(self._target, tables):
                    self.program.forget_code()
                    self.notes.append(
                        f"an earlier debugger had left {restored} probes in the program: "
                        "they were taken out"
                    )

    def _stand(self, pid: int) -> Implant:
        """An agent in the process: that of the analysis before, or a new one."""
        resolution = self.parameters.resolution
        if self._foothold is not None and self._foothold.pid == pid and self._foothold.is_usable():
            self._foothold.reopen(self.program, resolution)
        else:
            self._foothold = Foothold(self._target, self.program, pid)
            self._foothold.install(resolution)
        self._target.show_pads(agent.elf_file(), self._foothold.agent_base, self._foothold.caller)
        return Implant(self._target, self.program, self._foothold)

    @property
    def foothold(self) -> Foothold | None:
        """What stays in the process, for the next analysis of it."""
        return self._foothold

    def _close(self) -> None:
        self._alive = False

    def _refuse(self) -> None:
        self._target.check_supported()
        if not clock.tsc_is_invariant():
            self.notes.append(
                "this machine's time-stamp counter is not invariant: latencies may be off"
            )
        for module in self.program.modules:
            if module.image.has_section(".gopclntab"):
                raise UnsupportedError(
                    f"{module.name} is a Go program, whose runtime moves stacks: "
                    "darc cannot time it yet"
                )
        reason = denied(self.program, self.root.function)
        if reason is not None:
            raise UnsupportedError(f"cannot time {self.spec}: {reason}")

    def _configure(self, pid: int) -> None:
        tables = self.implant.tables
        self._signal = next(
            (s for s in BELL_SIGNALS if not procfs.catches(pid, s)), BELL_SIGNALS[-1]
        )
        may_ring = not procfs.in_sandbox(pid)
        batch = _batch(self._next_look)
        thread = self.parameters.thread
        only = 0
        if thread != "all":
            if thread not in self._target.threads():
                raise NotFoundError(
                    f"the program has no thread {thread}: 'info threads' lists them"
                )
            only = self._target.read_register(thread, "fs_base")
        tables.set(
            bell_signal=self._signal if may_ring else 0,
            no_calls=int(not may_ring),
            process=_own_pid(pid),
            needed=self._next_look,
            batch=batch,
            only_thread=only,
            patience=int(PATIENCE_SECONDS * self._hz),
        )

    def modules_changed(self) -> None:
        """The program has loaded or unloaded a file, or executes another one."""
        if not self._alive or self._target.pid is None:
            return
        if self._foothold is None or self._foothold.pid != self._target.pid:
            self.program_ended()  # it was started again
            return
        if not self._agent_is_there():
            self.notes.append("the program executed another file")
            self.program_ended()
            return
        self.program.update(procfs.regions(self._target.pid))
        try:
            self.notes += self.implant.guard()
        except UnsupportedError as error:
            self.notes.append(f"{self.spec} is not timed any more: {error}")
            self.stop(Status.STOPPED)

    def _agent_is_there(self) -> bool:
        tables = self.implant.tables
        address, size = tables.field("magic")
        try:
            magic = int.from_bytes(self._target.read(address, size), "little")
        except TargetError:
            return False
        return magic == tables.blob.constants["DARC_MAGIC"]

    def stop(self, status: Status = Status.STOPPED) -> None:
        """Takes every probe out and keeps what is known."""
        if not self._alive:
            return
        self._collect_profile()
        self._see_losses()
        if self.status not in _FINAL:
            self._keep_votes()
            self.status = status
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
        if self.status not in _FINAL:
            self._keep_votes()
            self.status = Status.ENDED
        try:
            self._target.disarm_bell()
        except DarcError as error:
            self.notes.append(str(error))

    @property
    def alive(self) -> bool:
        """Whether probes are in the program."""
        return self._alive

    @property
    def finished(self) -> bool:
        """Whether the search has ended."""
        return self.status in _FINAL

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
            self._collect_profile()

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
            self.status = Status.INCONCLUSIVE
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
        limit = self.parameters.max_time
        return limit is not None and time.monotonic() - self._started >= limit

    @property
    def seconds_left(self) -> float | None:
        """Until ``--max-time`` ends the analysis."""
        limit = self.parameters.max_time
        return None if limit is None else limit - (time.monotonic() - self._started)

    def time_up_soon(self) -> None:
        """Asks the agent to ring at the next call of f0, whatever was seen. Any thread."""
        if self._alive:
            self.implant.tables.set(needed=0, batch=1)

    def _decide(self) -> bool:
        """True: the program is to stop for the user."""
        if self._time_is_up():
            return self._finish_early("the time is up")
        if self._descent is None:
            self._collect_profile()
            if self._resumed is not None:
                self.notes += refit.compare(self._resumed.profile, self._profile)
                if self._resumed.peak is not None:
                    return self._go(self._begin())
                self._resumed = None
            if self.parameters.peak is None:
                return self._ask_for_peak()
            if not self._choose(self.parameters.peak):
                self._look_again()
                return False
            return self._go(self._begin())
        votes = self._instrumentation.votes()
        self._in_peak += self._followed(votes)
        if self._instrumentation.make_room(votes):
            self._instrumentation.apply_again()
            self.implant.tables.set(seen=0, needed=self._needed, batch=1)
            return False
        return self._go(self._descent.decide(votes))

    def _finish_early(self, why: str) -> bool:
        self._collect_profile()
        self._keep_votes()
        self.notes.append(f"{why}: this is what was known by then")
        if self._descent is not None and self._descent.paths():
            self.status = self._descent.status
        else:
            self.status = Status.INCONCLUSIVE if self._descent is not None else Status.NO_PEAK
        return self._end()

    def _look_again(self) -> None:
        """The peak is not there yet: look at each doubling of the calls."""
        self._next_look *= 2
        self._needed = self._next_look
        self.implant.tables.set(needed=self._next_look, batch=_batch(self._next_look))

    def _ask_for_peak(self) -> bool:
        self.status = Status.NO_PEAK
        self._pending_message = "profile"
        self.implant.tables.set(needed=(1 << 63) - 1, batch=64)
        return True

    def _collect_profile(self) -> None:
        if self._alive and self._descent is None:
            self._profile, _ = self.implant.tables.profile(self._hz)

    def _choose(self, spec: str) -> bool:
        peak = choose_peak(spec, self._profile)
        if peak is None or not any(number in peak for number in self._profile.bins):
            return False
        self._profile.check()
        self._peak = peak
        return True

    def choose_peak(self, spec: str) -> None:
        """``darc peak``: the user's choice, at a stop.

        Raises:
            UsageError: it is not of the form of a peak, or not there.
        """
        if not self._alive:
            raise UsageError("the analysis is over: begin another one with 'darc start'")
        if self._descent is not None or (self._resumed and self._resumed.peak):
            raise UsageError("a peak was chosen already: 'darc stop', then 'darc start' anew")
        self._collect_profile()
        if not self._choose(spec):
            count = len(find_peaks(self._profile.bins, self._profile.resolution))
            if self._profile.count < self.parameters.start_ops:
                self.parameters = dataclasses.replace(self.parameters, peak=spec)
                return
            raise UsageError(f"there is no peak {spec}: the profile has {count} ('darc histogram')")
        self.parameters = dataclasses.replace(self.parameters, peak=spec)
        self.implant.tables.begin_epoch()
        self._go(self._begin())

    def _begin(self) -> Orders:
        assert self._peak is not None
        table = thresholds(self.parameters.resolution)
        low = table[self._peak.first_bin]
        last = self._peak.last_bin
        high = (1 << 64) - 1 if last is None else table[last + 1]
        self.implant.tables.set(mode=1, peak_low=low, peak_high=high)
        self.status = Status.SEARCHING
        self._descent = Descent(self.root, self.parameters, self._callees.expand)
        return self._descent.begin(self._take_up())

    def descend(self, nodes: Sequence[Fnode]) -> None:
        """``darc descend``: go on into these nodes only (``set darc auto off``)."""
        if self._descent is None or not self._alive:
            raise UsageError("choose a peak first: 'darc peak N'")
        self.implant.tables.begin_epoch()
        self._go(self._descent.choose(nodes))

    def _go(self, orders: Orders) -> bool:
        """Carries out orders. True: the program is to stop for the user."""
        assert self._descent is not None
        if orders.finished:
            self.status = self._descent.status
            if explanation := self._descent.explain():
                self.notes.append(explanation)
            self._say_what_was_not_timed()
            return self._end()
        tables = self.implant.tables
        if not orders.analyse:  # drill-down by hand: wait for the user
            self._pending_message = "choose"
            tables.set(needed=(1 << 63) - 1, batch=64)
            return True
        self._instrumentation.apply(orders)
        self._needed = self._descent.in_peak_needed()
        tables.set(seen=0, needed=self._needed, batch=1)
        return False

    def _end(self) -> bool:
        self._ended = time.monotonic()
        self._pending_message = "result"
        message_now = self.parameters.on_finish is OnFinish.CONTINUE
        self.implant.remove()
        self._target.disarm_bell()
        self._close()
        if message_now:
            self._changed("result")
            self._pending_message = None
        return not message_now

    def _say_what_was_not_timed(self) -> None:
        """A path that ends in a function's own time says which of its calls may be in it."""
        assert self._descent is not None
        for path in self._descent.paths():
            node, ending = path.nodes[-1], path.ending
            missed = self._callees.missed(node.function)
            if missed and ending.note is None:
                first = missed[0]
                note = (
                    f"{len(missed)} of its calls could not be timed, the time may be theirs: "
                    f"{first.callee or 'an indirect one'} at {first.offset:#x}: {first.why}"
                )
                node.end = dataclasses.replace(ending, note=note)

    # ----------------------------------------------------------------- resuming

    def stored(self) -> Stored:
        """What a later run needs to go on from here."""
        resumed = self._resumed
        if resumed is not None and resumed.peak is not None:
            return dataclasses.replace(resumed, parameters=self.parameters)
        if self._alive:
            self._collect_profile()
        contests, in_peak = self._contests, self._in_peak
        if self._descent is not None and self.status not in _FINAL:
            contests, in_peak = self._count()
        profile = self._profile
        places = [(node.function.address, node.function.module) for node in self.root.walk()]
        return Stored(
            spec=self.spec,
            parameters=self.parameters,
            status=self.status,
            profile=dataclasses.replace(profile, count=sum(profile.bins.values())),
            peak=self._peak,
            root=self.root,
            modules={
                name: module.image.identity
                for address, name in dict.fromkeys(places)
                if (module := self.program.module_at(address)) is not None
            },
            in_peak_calls=in_peak,
            contests=contests,
            indirect=self._callees.positions(),
        )

    def _count(self) -> tuple[tuple[Contest, ...], int]:
        """The votes that did not suffice for a decision yet, and all calls inside the peak."""
        assert self._descent is not None
        if not self._alive:
            return self._descent.open_contests({}, 0), self._in_peak
        votes = self._instrumentation.votes()
        seen = self.implant.tables.get("seen")
        in_peak = self._in_peak + self._followed(votes)
        return self._descent.open_contests(votes, seen), in_peak

    def _keep_votes(self) -> None:
        """The search ends before its next decision: what was counted for it is not lost."""
        if self._descent is not None:
            with contextlib.suppress(TargetError):  # the program may be gone
                self._contests, self._in_peak = self._count()

    def _take_up(self) -> tuple[Contest, ...]:
        """Builds the ftree of the session that is resumed; the votes that are left of it."""
        if self._resumed is None:
            return ()
        relearn = functools.partial(self._callees.relearn, self._resumed.modules)
        live = refit.Live(
            self._callees.expand, self._is_same_build, self._callees.call_sites, relearn
        )
        fitted = refit.fit(self._resumed, self.root, live)
        self.notes += fitted.notes
        self._resumed = None
        return fitted.contests

    def _is_same_build(self, old: Function, new: Function) -> bool:
        assert self._resumed is not None
        module = self.program.module_at(new.address)
        identity = self._resumed.modules.get(old.module)
        return module is not None and module.image.identity == identity and new.offset == old.offset

    def _followed(self, votes: Mapping[Fnode, Vote]) -> int:
        """How many calls inside the peak were counted since the last orders."""
        seen = self.implant.tables.get("seen")
        return min(seen, votes[self.root].ops if self.root in votes else 0)

    # ------------------------------------------------------------------- reports

    def progress(self) -> tuple[int, int]:
        """Calls seen and needed at this moment. Any thread, while the program runs."""
        if not self._alive:
            return 0, 0
        return self.implant.tables.get("seen"), self._needed

    def live_snapshot(self) -> Snapshot:
        """What a live line shows. Any thread, while the program runs."""
        profile, descent = self._profile, self._descent
        if self._alive and descent is None:
            profile, _ = self.implant.tables.profile(self._hz)
        return Snapshot(
            function=self.root.function.name,
            status=self.status,
            probes="pad",
            profile=profile,
            peak=self._peak,
            level=descent.level if descent is not None else 0,
            collected=min(self.progress()[0], self._needed),
            needed=self._needed,
            program=ProgramFigures(probes=len(self._instrumentation.used)),
            elapsed_seconds=time.monotonic() - self._started,
        )

    def snapshot(self) -> Snapshot:
        """Everything that is known now."""
        if self._alive:
            self._collect_profile()
        if self._descent is not None:
            self._add_lines()
        profile = self._profile
        seen = self.progress()[0] if self._alive and self._descent is not None else 0
        tree = self.root if self._descent is not None else None
        paths = self._descent.paths() if self._descent is not None else ()
        if self._resumed is not None and self._resumed.peak is not None:
            tree = self._resumed.root  # until the program has shown its profile again
            paths = ended_paths(tree)
        return Snapshot(
            function=self.root.function.name,
            status=self.status,
            probes="pad",
            profile=profile,
            peaks=find_peaks(profile.bins, profile.resolution),
            peak=self._peak,
            ftree=tree,
            paths=paths,
            level=self._descent.level if self._descent is not None else 0,
            collected=min(seen, self._needed),
            needed=self._needed,
            program=self._figures(),
            notes=tuple(dict.fromkeys([*self.notes, *self._loss_notes()])),
            parameters=self.parameters,
            elapsed_seconds=(self._ended or time.monotonic()) - self._started,
        )

    def _loss_notes(self) -> list[str]:
        return [f"{self._lost[name]} {text}" for name, text in _LOSSES.items() if self._lost[name]]

    def _figures(self) -> ProgramFigures:
        return ProgramFigures(
            self._stops,
            round(sum(self._stop_seconds), 6),
            self._in_peak,
            len(self._instrumentation.used),
            self._callees.reports(self._instrumentation.used),
        )

    @property
    def rings(self) -> bool:
        """Whether the agent has asked for the debugger and got no answer yet. Any thread."""
        return self._alive and bool(self.implant.tables.get("bell"))

    @property
    def bell_signal(self) -> int:
        """The signal that the debugger listens to."""
        return self._signal

    def _add_lines(self) -> None:
        """Source lines are looked up when they are shown: debuggers read debug information
        slowly, and a stop is to be short."""
        for node in self.root.walk():
            if node.state is NodeState.REJECTED and not node.maxcount:
                continue
            if node.function.file is None:
                found = self._target.line_at(node.function.address)
                if found is not None:
                    node.function = dataclasses.replace(node.function, file=found[0], line=found[1])
            site = node.site
            if site is not None and site.file is None:
                found = self._target.line_at(site.address)
                if found is not None:
                    node.site = dataclasses.replace(
                        site,
                        file=found[0],
                        line=found[1],
                        inlined=self._target.inlined_at(site.address),
                    )


_LOSSES = {
    "lost_records": "calls were not timed: there were more stack depths than darc can tell apart",
    "lost_contexts": "calls were not timed: there were more threads than darc can tell apart",
    "lost_ops": "calls were not measured: their exceptions were caught where darc cannot see it",
}


def _own_pid(pid: int) -> int:
    """The process id as the program itself sees it (a container has its own)."""
    numbers = procfs.status(pid).get("NSpid", str(pid)).split()
    return int(numbers[-1])


_FINAL = frozenset(
    {Status.FOUND, Status.MAX_DEPTH, Status.INCONCLUSIVE, Status.STOPPED, Status.ENDED}
)


def _batch(ops: int) -> int:
    """How many calls a thread keeps to itself before it adds them to the common count: the
    largest divisor of ``ops`` that keeps the count fine enough."""
    return next(b for b in range(max(1, min(64, ops // 64)), 0, -1) if ops % b == 0)
