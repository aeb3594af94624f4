"""One analysis of one program: from f0's profile to the root cause paths.

The session owns everything that was changed in the program (through its
:class:`~darc.implant.Implant`) and undoes it on every way out. It is driven by the debugger: its
methods are called on the debugger's own thread with all threads of the program stopped, but for
:meth:`Session.progress`, which may be called at any time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence

from darc import agent, clock, procfs, refit
from darc.agent.memory import Node, Stale
from darc.code import x86_64
from darc.code.program import Program
from darc.contest import Contest
from darc.descent import Descent, Orders, Status, Vote, ended_paths
from darc.errors import DarcError, NotFoundError, TargetError, UnsupportedError, UsageError
from darc.foothold import Foothold, left_behind
from darc.ftree import CallKind, CallSite, Fnode, Function, NodeState, Totals
from darc.implant import Implant, clean_up
from darc.parameters import OnFinish, Parameters
from darc.patching import Patch
from darc.peaks import PeakRange, choose_peak, find_peaks
from darc.profile import Profile, thresholds
from darc.snapshot import ProgramFigures, SiteReport, SiteState, Snapshot
from darc.storage import Stored
from darc.target import Bell, Target

_TARGET_ROUNDS = 8
"""How often an indirect call with many targets gets room for others."""

BELL_SIGNALS = (23, 28, 18)  # SIGURG, SIGWINCH, SIGCONT: ignored by default
PATIENCE_SECONDS = 10.0
"""How long the pads go on without a sign of life from the debugger."""

DENIED = {
    **dict.fromkeys(
        ("setjmp", "_setjmp", "__sigsetjmp", "sigsetjmp", "getcontext", "vfork", "__vfork"),
        "it returns twice",
    ),
    **dict.fromkeys(
        ("dlsym", "dlvsym", "dlopen", "dlmopen", "__dlsym", "__dlopen", "mcount", "__fentry__"),
        "it looks at its own return address",
    ),
    **dict.fromkeys(("clone", "__clone", "clone3", "__clone3"), "it returns on another stack"),
}
"""Callees that are never called through a pad, by symbol, and why."""


def denied(symbol: str) -> str | None:
    """Why a call of ``symbol`` is left alone; ``None`` when it is not."""
    if symbol.startswith("_Unwind_"):
        return "it walks the stack"
    return DENIED.get(symbol)


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
        self._sites: dict[Fnode, x86_64.Site] = {}
        self._indirect: dict[Fnode, list[x86_64.Site]] = {}
        self._learned: dict[tuple[Fnode, int, int], Fnode] = {}
        self._numbers: dict[int, Fnode] = {}
        self._numbered_sites: dict[int, tuple[Fnode, x86_64.Site, int]] = {}
        self._patched: dict[int, Patch] = {}
        self._reports: dict[tuple[int, str], SiteReport] = {}
        self._used_sites: set[int] = set()
        self._recycled: dict[int, int] = {}
        self._orders: Orders | None = None
        self._lost = dict.fromkeys(_LOSSES, 0)
        self._in_peak = 0
        self._needed = parameters.start_ops
        self._round = 0
        self._stops = 0
        self._stopped_cycles = 0
        self._stop_seconds: list[float] = []
        self._pending_message: str | None = None
        self._alive = True
        self._seen_stale: frozenset[Stale] = frozenset()
        self.root = Fnode(program.function_at(entry))
        self._foothold = foothold
        self._resumed = resumed
        self._contests: tuple[Contest, ...] = ()
        self._relearned: dict[int, list[int]] = {}
        if resumed is not None:
            self._peak = resumed.peak
            self._in_peak = resumed.in_peak_calls
            self.notes += refit.opening_notes(resumed, parameters)
        self.implant: Implant

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
        reason = self._denied(self.root.function)
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
            self._new_epoch()
            self.implant.pause()
            self._collect_profile()

    def before_resume(self) -> None:
        """The program is about to go on: the patches are put back."""
        if self._alive:
            self._new_epoch()
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

    def _new_epoch(self) -> None:
        tables = self.implant.tables
        tables.set(epoch=tables.get("epoch") + 1)

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
        self._new_epoch()
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
        votes = self._votes()
        if self._make_room(votes):
            self._publish_again()
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
        self._new_epoch()
        self._go(self._begin())

    def _begin(self) -> Orders:
        assert self._peak is not None
        table = thresholds(self.parameters.resolution)
        low = table[self._peak.first_bin]
        last = self._peak.last_bin
        high = (1 << 64) - 1 if last is None else table[last + 1]
        self.implant.tables.set(mode=1, peak_low=low, peak_high=high)
        self.status = Status.SEARCHING
        self._descent = Descent(self.root, self.parameters, self._expand)
        return self._descent.begin(self._take_up())

    def descend(self, nodes: Sequence[Fnode]) -> None:
        """``darc descend``: go on into these nodes only (``set darc auto off``)."""
        if self._descent is None or not self._alive:
            raise UsageError("choose a peak first: 'darc peak N'")
        self._new_epoch()
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
        self._orders = orders
        self._apply(orders)
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
            missed = [
                report
                for report in self._reports.values()
                if report.function == node.function.name
                and report.state is SiteState.NOT_POSSIBLE
                and report.callee not in _SHORT_CALLEES
            ]
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
        indirect = {
            child: (sites.index(self._sites[child].address), len(sites))
            for node, own in self._indirect.items()
            if (sites := sorted({site.address for site in own}))
            for child in node.children
            if self._sites[child].address in sites
        }
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
            indirect=indirect,
        )

    def _count(self) -> tuple[tuple[Contest, ...], int]:
        """The votes that did not suffice for a decision yet, and all calls inside the peak."""
        assert self._descent is not None
        if not self._alive:
            return self._descent.open_contests({}, 0), self._in_peak
        votes = self._tally()
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
        live = refit.Live(self._expand, self._is_same_build, self._indirect_sites, self._relearn)
        fitted = refit.fit(self._resumed, self.root, live)
        self.notes += fitted.notes
        self._resumed = None
        return fitted.contests

    def _is_same_build(self, old: Function, new: Function) -> bool:
        assert self._resumed is not None
        module = self.program.module_at(new.address)
        identity = self._resumed.modules.get(old.module)
        return module is not None and module.image.identity == identity and new.offset == old.offset

    def _indirect_sites(self, node: Fnode) -> list[CallSite]:
        sites = {site.address: site for site in self._indirect.get(node, ())}
        return [self._call_site(site) for _, site in sorted(sites.items())]

    def _relearn(self, node: Fnode, place: CallSite, callee: Function) -> Fnode | None:
        """The node of a callee that an indirect site had learned, told to the agent beforehand."""
        assert self._resumed is not None
        address = refit.locate(callee, self.program.modules, self._resumed.modules)
        targets = self._relearned.setdefault(place.address, [])
        if address is None or (address not in targets and len(targets) >= self.implant.max_targets):
            return None
        if address not in targets:
            targets.append(address)
        child = node.add_child(self.program.function_at(address, callee.symbol), place)
        site = next(s for s in self._indirect[node] if s.address == place.address)
        self._sites[child] = site
        self._learned[node, site.address, targets.index(address)] = child
        return child

    # ------------------------------------------------------------------ the ftree

    def _expand(self, node: Fnode) -> None:
        """Fills in what ``node`` calls, from its live code."""
        entry = self._code_of(node)
        if entry is None:
            return
        code = self.program.function(entry)
        if not code.parts:
            self.notes.append(f"the code of {node.function.name} cannot be read")
            return
        for site in code.sites:
            if site.kind in (CallKind.INDIRECT, CallKind.TAIL_INDIRECT):
                problem = self.implant.problem(site)
                if problem is None:
                    self._indirect.setdefault(node, []).append(site)
                    node.has_unknown_callees = True
                self._report(node, site, None, problem)
                continue
            assert site.target is not None
            function = self._callee(site.target)
            problem = self.implant.problem(site) or self._denied(function)
            self._report(node, site, function.name, problem)
            if problem is None:
                child = node.add_child(function, self._call_site(site))
                self._sites[child] = site

    def _make_room(self, votes: Mapping[Fnode, Vote]) -> bool:
        """Where an indirect call has had more targets than can be told apart, and the time may be
        theirs, those that never won make room and the round begins again."""
        made = False
        tables = self.implant.tables
        for node, sites in self._indirect.items():
            vote = votes.get(node)
            if vote is None or 2 * vote.own < vote.ops:
                continue
            for site in sites:
                patch = self._patched.get(site.address)
                if patch is None or not tables.overflow(patch.index):
                    continue
                tries = self._recycled[site.address] = self._recycled.get(site.address, 0) + 1
                if tries > _TARGET_ROUNDS:
                    self._fail(site, node, "it has too many targets")
                    continue
                self._keep_winners(site, patch, votes)
                made = True
        return made

    def _keep_winners(self, site: x86_64.Site, patch: Patch, votes: Mapping[Fnode, Vote]) -> None:
        targets = self.implant.tables.learned_targets(patch.index)
        lanes = {key: child for key, child in self._learned.items() if key[1] == site.address}
        kept: list[int] = []
        for index, target in enumerate(targets):
            children = [child for key, child in lanes.items() if key[2] == index]
            if any(c.root_cause or (c in votes and votes[c].votes) for c in children):
                for (node, address, lane), child in lanes.items():
                    if lane == index:
                        self._learned[node, address, len(kept)] = child
                kept.append(target)
        for node, address, lane in lanes:
            if lane >= len(kept):
                del self._learned[node, address, lane]
        self.implant.tables.keep_targets(patch.index, kept)

    def _publish_again(self) -> None:
        """The same orders once more, from the start."""
        assert self._orders is not None
        self._apply(self._orders)
        self.implant.tables.set(seen=0, needed=self._needed, batch=1)

    def _code_of(self, node: Fnode) -> int | None:
        """Where the node's function has its code, through a PLT entry that is bound by now."""
        resolved = self.program.resolve(node.function.address)
        if resolved is None:
            return None
        address, name = resolved
        if address != node.function.address:
            node.function = self.program.function_at(address, name or node.function.symbol)
            return address
        return address

    def _callee(self, target: int) -> Function:
        resolved = self.program.resolve(target)
        if resolved is not None:
            address, name = resolved
            found = self.program.function_at(address, name)
            if found.address != address:  # into the middle: do not claim the whole function
                return dataclasses.replace(found, address=address)
            return found
        slot = self.program.jump_slot(target)
        name = self.program.slot_name(slot) if slot is not None else None
        found = self.program.function_at(target)
        if name is not None:
            from darc.demangle import display_name

            return dataclasses.replace(found, name=display_name(name), symbol=name, address=target)
        return found

    def _denied(self, function: Function, depth: int = 4) -> str | None:
        """Why a call of ``function`` is left alone: for itself, or for what it jumps to at its end,
        which sees the same return address."""
        reason = denied(function.symbol)
        module = self.program.module_at(function.address)
        if reason is not None or module is None or depth == 0:
            return reason
        if not module.image.imports_any(DENIED):
            return None
        for site in self.program.function(function.address).sites:
            if site.kind is CallKind.TAIL and site.target is not None:
                reason = self._denied(self._callee(site.target), depth - 1)
                if reason is not None:
                    return reason
        return None

    def _call_site(self, site: x86_64.Site) -> CallSite:
        module = self.program.module_at(site.address)
        name, bias = (module.name, module.bias) if module is not None else ("", 0)
        return CallSite(site.address, site.kind, name, site.address - bias)

    def _report(
        self, node: Fnode, site: x86_64.Site, callee: str | None, problem: str | None
    ) -> None:
        module = self.program.module_at(site.address)
        offset = site.address - (module.bias if module is not None else 0)
        state = SiteState.INSTRUMENTED if problem is None else SiteState.NOT_POSSIBLE
        key = (site.address, node.function.name)
        self._reports[key] = SiteReport(node.function.name, offset, callee, state, problem)

    def _votes(self) -> dict[Fnode, Vote]:
        """What the agent has counted for a decision."""
        votes = self._tally()
        self._in_peak += self._followed(votes)
        return votes

    def _followed(self, votes: dict[Fnode, Vote]) -> int:
        seen = self.implant.tables.get("seen")
        return min(seen, votes[self.root].ops if self.root in votes else 0)

    def _tally(self) -> dict[Fnode, Vote]:
        """What the agent has counted, node by node; learned callees join the ftree here."""
        tables = self.implant.tables
        totals = tables.totals(max(len(self._numbers), self._number_end))
        votes: dict[Fnode, Vote] = {}
        for number, total in totals.items():
            node = self._numbers.get(number) or self._learn(number, total.ops)
            if node is None:
                continue
            summed = Totals(total.ops, total.calls, total.sum, total.max_sum)
            votes[node] = Vote(total.own, total.ops, total.votes, summed)
        return votes

    def _learn(self, number: int, ops: int) -> Fnode | None:
        """The fnode of an indirect site's target that was called for the first time."""
        place = self._numbered_sites.get(number)
        if place is None or not ops:
            return None
        parent, site, index = place
        targets = self.implant.tables.learned_targets(self._patched[site.address].index)
        if index >= len(targets):
            return None
        function = self._callee(targets[index])
        child = parent.add_child(function, self._call_site(site))
        self._sites[child] = site
        self._learned[parent, site.address, index] = child
        self._numbers[number] = child
        return child

    # ------------------------------------------------------------------ applying

    _number_end = 1

    def _apply(self, orders: Orders) -> None:
        """Numbers the live nodes anew, and patches and restores call sites accordingly."""
        analysed = set(orders.analyse)
        tracked: set[Fnode] = set()
        for node in orders.analyse:
            tracked.update(node.route())
        order = sorted(tracked, key=lambda n: (n.depth, n.path))
        rows: list[Node] = [Node(0, 0, 0, True)]
        numbers: dict[Fnode, int] = {self.root: 0}
        places: dict[int, tuple[Fnode, x86_64.Site, int]] = {}
        routes: dict[int, list[tuple[int, int]]] = {}
        pads_of: dict[Fnode, int] = {self.root: self.implant.f0_back}
        used: dict[int, Patch] = {}
        for node in order:
            if node not in numbers:
                continue  # its own call site could not be patched
            first = len(rows)
            wanted = self._wanted(node, analysed, tracked, orders)
            if not self._room(rows, wanted) and node in analysed and len(order) > 1:
                analysed.discard(node)  # looked ahead at too much: its turn comes later
                continue
            for site, children in wanted:
                parents = self._parent_pads(node, pads_of)
                patched = self._prepare(site, parents, node)
                if patched is None:
                    continue
                used[site.address] = patched
                routes.setdefault(site.address, []).append((numbers[node], len(rows)))
                if site.target is not None:
                    child = children[0]
                    numbers[child] = len(rows)
                    pads_of[child] = patched.pad_back or pads_of[node]
                    rows.append(Node(numbers[node], 0, 0, node in analysed))
                    continue
                for index in range(self.implant.max_targets):
                    learned = self._learned.get((node, site.address, index))
                    if learned is not None:
                        numbers[learned] = len(rows)
                        pads_of[learned] = patched.pad_back or pads_of[node]
                    places[len(rows)] = (node, site, index)
                    rows.append(Node(numbers[node], 0, 0, node in analysed))
            if node in analysed:
                old = rows[numbers[node]]
                rows[numbers[node]] = Node(old.parent, first, len(rows) - first, True)
        analysis = [numbers[n] for n in orders.analyse if n in numbers and n in analysed]
        self._publish(rows, routes, used, analysis)
        self._numbers = {number: node for node, number in numbers.items()}
        self._numbered_sites = places
        self._number_end = len(rows)

    def _room(
        self, rows: Sequence[Node], wanted: Sequence[tuple[x86_64.Site, list[Fnode]]]
    ) -> bool:
        more = sum(1 if site.target is not None else self.implant.max_targets for site, _ in wanted)
        return len(rows) + more <= self.implant.max_nodes

    def _parent_pads(self, node: Fnode, pads_of: dict[Fnode, int]) -> list[int]:
        """Return addresses of the pads that the node's frame may have been entered through: its
        own, or for a tail call that of the frame it took over."""
        return [pads_of[node]]

    def _wanted(
        self, node: Fnode, analysed: set[Fnode], tracked: set[Fnode], orders: Orders
    ) -> list[tuple[x86_64.Site, list[Fnode]]]:
        """The call sites of ``node`` to instrument, each with its known children."""
        batch = orders.batches.get(node) if node in analysed else None
        wanted: dict[int, tuple[x86_64.Site, list[Fnode]]] = {}
        for child in node.children:
            if node in analysed:
                if batch is not None and child not in batch:
                    continue
                if child.state is NodeState.REJECTED:
                    continue
            elif child not in tracked:
                continue
            site = self._sites[child]
            wanted.setdefault(site.address, (site, []))[1].append(child)
        if node in analysed:
            for site in self._indirect.get(node, ()):
                wanted.setdefault(site.address, (site, []))
        return list(wanted.values())

    def _prepare(self, site: x86_64.Site, parents: Sequence[int], node: Fnode) -> Patch | None:
        made = self.implant.prepare_site(site, parents)
        if isinstance(made, str):
            self._fail(site, node, made)
            return None
        if targets := self._relearned.pop(site.address, None):
            self.implant.tables.teach_targets(made.index, targets)
        try:
            self.implant.activate(made)
        except TargetError as error:
            self._fail(site, node, str(error))
            return None
        self._patched[site.address] = made
        self._used_sites.add(site.address)
        return made

    def _fail(self, site: x86_64.Site, node: Fnode, why: str) -> None:
        key = (site.address, node.function.name)
        report = self._reports[key]
        self._reports[key] = dataclasses.replace(report, state=SiteState.NOT_POSSIBLE, why=why)

    def _publish(
        self,
        rows: list[Node],
        routes: dict[int, list[tuple[int, int]]],
        used: dict[int, Patch],
        analysis: list[int],
    ) -> None:
        tables = self.implant.tables
        pairs: list[tuple[int, int]] = []
        for address, own in routes.items():
            index, site = used[address].index, used[address].site
            assert site is not None
            width = 1 if site.target is not None else self.implant.max_targets
            timed = any(row.timed for _, child in own for row in rows[child : child + width])
            tables.set_site(index, route_first=len(pairs), route_count=len(own), timed=int(timed))
            pairs += own
        for address, patched in self._patched.items():
            if address not in used:
                self.implant.deactivate(patched)
                tables.set_site(patched.index, route_count=0)
        tables.write_nodes(rows, pairs, analysis)
        self._round += 1
        tables.set(round=self._round)
        self._new_epoch()

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
            program=ProgramFigures(probes=len(self._used_sites)),
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
            len(self._used_sites),
            tuple(
                report
                for (address, _), report in self._reports.items()
                if report.state is not SiteState.INSTRUMENTED or address in self._used_sites
            ),
        )

    @property
    def rings(self) -> bool:
        """Whether the agent has asked for the debugger and got no answer yet. Any thread."""
        return self._alive and bool(self.implant.tables.get("bell"))

    @property
    def bell_signal(self) -> int:
        """The signal that the debugger listens to."""
        return self._signal

    @property
    def stop_seconds(self) -> tuple[float, ...]:
        """How long each of the engine's own stops took."""
        return tuple(self._stop_seconds)

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

_SHORT_CALLEES = {"setjmp", "_setjmp", "__sigsetjmp", "sigsetjmp", "getcontext"}


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
