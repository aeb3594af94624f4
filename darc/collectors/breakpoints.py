"""Collecting with the debugger's breakpoints alone (docs/breakpoints.md).

Nothing is put into the program but the debugger's own breakpoints: at f0's entry and its returns,
at the call sites that are timed and where these calls return to. Every hit stops the program, so
this is for functions that are slow, and for programs that take no pads.

What a hit reads is the stack pointer and little more. No local process, no ``/proc`` and no signals
are needed, so that a kernel behind a serial line can be analysed with it as well.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from darc.code.architecture import FunctionCode, Site
from darc.collectors.breakplaces import BreakPlace, BreakPlaces
from darc.collectors.breaktiming import BreakStops, BreakTiming
from darc.collectors.callees import Callees, SiteRules
from darc.collectors.collector import Collector, CollectorBrief, Restraint
from darc.collectors.duties import Summons
from darc.collectors.f0places import F0Places
from darc.collectors.hitclock import HitClock
from darc.collectors.hitcost import HitCost
from darc.collectors.hitlimits import MAX_HITS, HitLimits
from darc.collectors.losses import LOSSES, Unmeasured, loss_text
from darc.collectors.opcount import OpCount
from darc.collectors.reactions import Act, Hit, Reactions
from darc.collectors.timedsites import MAX_TARGETS, TimedSites
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.duties import FAR_MORE, milliseconds
from darc.debuggee.ownwaits import waited_by
from darc.model.errors import DarcError, TargetError, UnsupportedError
from darc.model.ftree import CallKind
from darc.model.parameters import Loops, Probes
from darc.model.profile import format_cycles
from darc.target.outcome import Outcome


class _Accepts(SiteRules):
    """Where breakpoints can stand: nearly everywhere."""

    max_targets = MAX_TARGETS

    def problem(self, site: Site) -> str | None:
        if site.kind is CallKind.INTERRUPT:
            return "it is no call"
        if site.slot is None:
            return "no frame information says where its caller's return address stands"
        return None


class BreakpointCollector(Collector):
    """Breakpoints in whatever the debugger debugs."""

    kind = Probes.BREAKPOINT
    plural = "breakpoints"
    # Some ten hits of gdb's; and hits that stop the program a third of the time.
    restraint = Restraint(least_ns=2_000_000, in_words="milliseconds", most_calls=500)
    outlives = True
    drawback = "stops the program at every call"

    @staticmethod
    def risk(debuggee: Debuggee) -> str | None:
        return debuggee.danger_of_breakpoints()

    @staticmethod
    def risk_of_fall_back(debuggee: Debuggee) -> str | None:
        return debuggee.risk_of_breakpoints()

    def opening(self, why: str | None) -> str:
        danger = self._debuggee.danger_of_breakpoints()
        return (
            f"{self._spec} is timed by breakpoints{'' if why is None else f' ({why})'}: "
            "each of its calls stops the program, and latencies below about "
            f"{milliseconds(self._debuggee.breakpoints_blur)} cannot be told apart"
            + ("" if danger is None else f"; {danger}")
        )

    @property
    def auto_lookahead(self) -> int | None:
        return 1  # each level more costs two hits at every call

    def __init__(self, brief: CollectorBrief) -> None:
        super().__init__(brief)
        self.callees = Callees(self._program, _Accepts(), self._note)
        self._clock = self._new_clock()
        by_longest = self._parameters.loops is Loops.PAPER
        resolution = self._parameters.resolution
        self._count = self.counting = OpCount(
            self._clock, resolution, self._debuggee.hz, by_longest=by_longest
        )
        self._cost = HitCost(self._target, self._debuggee, self._clock)
        self._places = BreakPlaces(
            self._target, self._on_hit, is_wanted=self._cost.is_measured_at, cannot=self._cannot
        )
        self._sites = TimedSites(self.callees, self._places)
        self._f0 = F0Places(self._program, self._debuggee, self._places, self._cost)
        self._reactions = Reactions(
            self._target,
            self._root,
            f0=self._f0,
            sites=self._sites,
            count=self._count,
            decide=self._decide,
        )
        self._limits = HitLimits(
            self._places, self._reactions, self._count, note=self._note, give_up=self._give_up
        )
        self.timing = BreakTiming(self._sites, self._reactions, self._count, self._clock)
        self._stops = self.stops = BreakStops(self._places, self._reactions)
        self.summons = Summons()
        self._has_limit = False
        self._pid: int | None = None
        self._first_bytes = b""
        self._entry = 0

    def _new_clock(self) -> HitClock:
        debuggee, own_clock = self._debuggee, self._debuggee.own_clock()
        make = functools.partial(
            HitClock,
            self._target.breaks.hits_stop_all,
            waited=debuggee.waited_ns,
            own_waits=self._own_waits,
        )
        if own_clock is not None:
            return make(read=own_clock, stands_still=True)
        return make(use=debuggee.use)

    # ------------------------------------------------------------- begin and end

    def install(self, code: FunctionCode, needed: int) -> list[str]:
        self._debuggee.check_supported()
        self._reactions.count_where(self._debuggee.counts_in(self._parameters))
        self._debuggee.begin()
        self._pid = self._target.pid
        self._entry = code.entry
        self._first_bytes = self._target.memory.read(code.entry, 8)
        self._count.await_calls(needed)
        self._f0.plan(code)
        self._f0.plan_guards()
        self._places.set_all()
        if not self._places.has(code.entry):
            raise UnsupportedError(f"cannot set a breakpoint at {self._spec}")
        if self._parameters.max_time is not None or self._parameters.start_time is not None:
            self._has_limit = True
            self.summons = Summons(self._debuggee.arm_limit(self._on_limit))
        return []

    def remove(self) -> None:
        self._remove(is_there=True)

    def _remove(self, is_there: bool) -> None:
        self._reactions.drop_all()
        self._places.take_back_all()
        try:
            if self._has_limit:
                self._debuggee.disarm_limit()
        finally:
            self._debuggee.leave(is_there)

    def gone(self) -> None:
        try:
            self._remove(is_there=False)
        except DarcError as error:
            self._note(str(error))

    def is_there(self) -> bool:
        try:
            return (
                self._target.pid == self._pid
                and self._target.memory.read(self._entry, 8) == self._first_bytes
            )
        except TargetError:
            return False

    def modules_changed(self) -> list[str]:
        self._debuggee.refresh(self._program)
        if not self._program.is_code(self._entry):
            raise UnsupportedError("its file was unloaded")
        self._places.drop_unless(self._program.is_code)
        self._f0.plan_guards()
        self._places.set_all()
        return []

    # ------------------------------------------------------------------------ hits

    def _on_hit(self, address: int, thread: int) -> Act | None:
        with self._clock.hit(thread) as moment:
            place = self._places.find(address)
            if place is None or self._places.paused:
                return None
            self._cost.hit(thread, address)
            hit = Hit(address, thread, self._debuggee.strand(thread), moment)
            act = self._reactions.react(place, hit)
            if act is None and self._listener.is_due():
                act = self._decide
            act = act or self._limits.watch(place, hit)
            if act is None and address == self._cost.second and not self._places.is_wanted(address):
                act = self._places.set_again
        return functools.partial(self._act, act, thread) if act is not None else None

    def _act(self, act: Act, thread: int) -> Outcome:
        with self._clock.away(thread):
            return act()

    def _own_waits(self) -> Mapping[int, int]:
        return waited_by(self._target.own_threads())

    def _give_up(self) -> Outcome:
        self._reactions.drop_all()
        why = (
            f"{MAX_HITS} hits of breakpoints and no end of a call of {self._spec}: signals may "
            "come faster than a breakpoint can be stepped over"
        )
        return self._listener.give_up(why)

    def _cannot(self, place: BreakPlace, why: str) -> None:
        """No breakpoint can be set there."""
        for timed in place.sites:
            self._reactions.give_up(timed, why)
        if place.leaves or place.caller:
            self._note(f"{self._spec} is not seen to return everywhere: {why}")

    # ------------------------------------------------------------------- decisions

    def _decide(self) -> Outcome:
        self._reactions.drop_all()
        return self._listener.decide()

    def _on_limit(self) -> Outcome:
        """The time limit has passed, and f0 may not be called any more."""
        if not self._listener.is_due() or not self._places.are_set:
            return Outcome.CONTINUE
        return self._decide()

    @property
    def cut_short(self) -> int:
        return self._stops.cut_short

    def losses(self) -> list[str]:
        found = []
        if self._clock.is_calibrated:
            clock = self._clock
            each, least = map(self._shown, (clock.mean_stop, max(clock.cost, clock.exact_cost)))
            found.append(
                f"collected with breakpoints: each hit stopped the program for about {each}, which "
                f"is taken out; latencies below about {least} cannot be told apart"
            )
        if (doubt := self._debuggee.breakpoints_doubt) is not None:
            found.append(doubt)
        if self._reactions.jumps:
            found.append(loss_text(self._reactions.jumps, LOSSES[Unmeasured.JUMPS]))
        unreturned = self._reactions.unreturned
        if unreturned:
            calls, them, were, theirs = f"{unreturned} calls", "them", "they were", "theirs"
            if unreturned == 1:
                calls, them, were, theirs = "1 call", "it", "it was", "its own"
            found.append(
                f"{calls} did not return (a jump or an exception left {them}): {were} not "
                f"measured, and the time may be {theirs}"
            )
        return found

    @property
    def sure_from(self) -> float:
        if self._debuggee.breakpoints_doubt is None:
            return 0.0
        return FAR_MORE * self._debuggee.breakpoints_blur

    def _shown(self, ns: float) -> str:
        return format_cycles(ns * self._count.hz / 1e9, self._count.hz)

    @property
    def hits(self) -> tuple[int, float]:
        return self._clock.hits, self._clock.lost_seconds
