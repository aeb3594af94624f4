"""Collecting with jump pads: the agent in the program times and counts (docs/pad.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from darc import admission, agent, clock, procfs
from darc.agent.memory import AgentMemory, Stale
from darc.callees import Callees
from darc.code.program import Program
from darc.code.x86_64 import Function as Code
from darc.collector import Collector, Listener
from darc.contest import Vote
from darc.descent import Orders
from darc.errors import DarcError, UnsupportedError
from darc.foothold import Foothold
from darc.ftree import Fnode
from darc.implant import Implant
from darc.instrumentation import Instrumentation
from darc.parameters import Parameters, Probes
from darc.process_foothold import ProcessFoothold
from darc.profile import Profile
from darc.target import Bell, Target

_LOSSES = {
    "lost_records": "calls were not timed: there were more stack depths than darc can tell apart",
    "lost_contexts": "calls were not timed: there were more threads than darc can tell apart",
    "lost_ops": "calls were not measured: their exceptions were caught where darc cannot see it",
}
"""What the agent counts of calls that it could not measure, and what is told of it."""

_NEVER = (1 << 63) - 1
"""So many calls are never seen: the agent does not ring until the user has chosen."""


class PadCollector(Collector):
    """Pads and the agent in a process of this machine."""

    kind = Probes.PAD

    def __init__(
        self,
        target: Target,
        program: Program,
        root: Fnode,
        spec: str,
        parameters: Parameters,
        listener: Listener,
        note: Callable[[str], None],
        foothold: Foothold | None = None,
    ) -> None:
        """``foothold`` is what an earlier analysis may have left in the process; ``note`` takes
        what the user should know."""
        self._target = target
        self._program = program
        self._root = root
        self._spec = spec
        self._parameters = parameters
        self._listener = listener
        self._note = note
        self._seen_stale: frozenset[Stale] = frozenset()
        self._lost = dict.fromkeys(_LOSSES, 0)
        self._signal: int | None = None
        self._alive = True
        self.foothold = foothold
        self.implant: Implant
        self._instrumentation: Instrumentation

    @property
    def tables(self) -> AgentMemory:
        """What the agent and the debugger share."""
        return self.implant.tables

    # ------------------------------------------------------------- begin and end

    def install(self, code: Code, needed: int) -> list[str]:
        pid = self._target.pid
        if pid is None:
            raise UnsupportedError(
                "darc needs a program on this machine: 'run' or 'attach' it first"
            )
        notes = admission.check(self._target, self._program, self._root.function, self._spec)
        if self.foothold is None or self.foothold.pid != pid:
            notes += admission.clean_up_after_another(self._target, self._program, pid)
        self.implant = self._stand(pid)
        self.callees = Callees(self._program, self.implant, self._note)
        self._instrumentation = Instrumentation(self.implant, self.callees, self._root)
        problem = self.implant.prepare_f0(code)
        if problem is not None:
            raise UnsupportedError(f"cannot time {self._spec}: {problem}")
        notes += self.implant.guard()
        self._signal = admission.configure(
            self._target, self.tables, pid, self._parameters.thread, needed
        )
        self.implant.enable()
        self._target.arm_bell(self._signal, self.on_bell)
        return notes

    def _stand(self, pid: int) -> Implant:
        """An agent in the process: that of the analysis before, or a new one."""
        resolution = self._parameters.resolution
        if self.foothold is not None and self.foothold.pid == pid and self.foothold.is_usable():
            self.foothold.reopen(self._program, resolution)
        else:
            self.foothold = ProcessFoothold(self._target, self._program, pid)
            self.foothold.install(resolution)
        self._target.show_pads(agent.elf_file(), self.foothold.agent_base, self.foothold.caller)
        return Implant(self._target, self._program, self.foothold)

    def remove(self) -> None:
        if self._alive and self._signal is not None:
            self._see_losses()
        self._alive = False
        try:
            self._target.disarm_bell()
        finally:
            with contextlib.suppress(AttributeError):  # nothing stands there yet
                self.implant.remove()

    def gone(self) -> None:
        self._alive = False
        try:
            self._target.disarm_bell()
        except DarcError as error:
            self._note(str(error))

    def is_there(self) -> bool:
        foothold = self.foothold
        return foothold is not None and foothold.pid == self._target.pid and foothold.is_there()

    # ---------------------------------------------------------- the user's stops

    def pause(self) -> None:
        self.tables.begin_epoch()
        self.implant.pause()

    def resume(self) -> list[str]:
        self.tables.begin_epoch()
        return self.implant.resume()

    @property
    def paused(self) -> bool:
        return self.implant.patcher.paused

    def make_way(self) -> str | None:
        return self.implant.make_way()

    def modules_changed(self) -> list[str]:
        assert self.foothold is not None
        self._program.update(procfs.regions(self.foothold.pid))
        return self.implant.guard()

    # ------------------------------------------------------------------ doorbell

    def on_bell(self) -> Bell:
        """The agent has seen enough, or time is up, or the program is to get its pads back."""
        if not self._alive:
            return Bell()
        tables, listener = self.tables, self._listener
        if tables.get("exiting"):
            listener.exits()
            return Bell()
        if self.paused and not tables.get("bell"):
            listener.before_resume()
            return Bell()
        if not tables.get("bell") and not listener.time_is_up():
            return Bell()  # the signal was the program's own
        tables.begin_epoch()
        self._see_losses()
        stop = listener.decide()
        back, slot = tables.get("bell_return"), tables.get("bell_slot")
        rang = bool(tables.get("bell"))
        tables.set(bell=0)
        if not stop:
            return Bell()
        if rang and back:
            return Bell(stop_at=back, stop_slot=slot)
        return Bell(stop_at=0)

    def _see_losses(self) -> None:
        """Counts what the agent could not measure, and makes room."""
        tables = self.tables
        for name in self._lost:
            self._lost[name] += tables.get(name)
            tables.set(**{name: 0})
        counters = self._target.program_counters()
        inside = [t for t, pc in counters.items() if self.foothold and self.foothold.holds(pc)]
        limit = tables.blob.constants["DARC_MAX_RECORDS"] // 2
        if tables.get("record_count") > limit and len(inside) <= 1:
            tables.compact()

    def beat(self) -> None:
        tables = self.tables
        tables.set(heartbeat=tables.get("heartbeat") + 1)
        if not tables.enabled:
            tables.enabled = True
        self._seen_stale = tables.watch_stale(self._seen_stale)
        self._watch_sandbox()

    def _watch_sandbox(self) -> None:
        """In a seccomp sandbox the agent makes no system calls; the heart rings for it."""
        assert self.foothold is not None
        if procfs.in_sandbox(self.foothold.pid):
            self.tables.set(no_calls=1, bell_signal=0)

    @property
    def waits(self) -> bool:
        return bool(self.tables.get("bell"))

    @property
    def rings_itself(self) -> bool:
        return bool(self.tables.get("bell_signal"))

    @property
    def signal(self) -> int | None:
        return self._signal

    def hurry(self) -> None:
        self.tables.set(needed=0, batch=1)

    def losses(self) -> list[str]:
        return [f"{self._lost[name]} {text}" for name, text in _LOSSES.items() if self._lost[name]]

    # ------------------------------------------------------------------- counting

    @property
    def hz(self) -> int:
        return clock.tsc_hz()

    @property
    def seen(self) -> int:
        return self.tables.get("seen")

    def profile(self) -> Profile:
        return self.tables.profile(self.hz)[0]

    def await_calls(self, needed: int) -> None:
        self.tables.set(needed=needed, batch=admission.batch_size(needed))

    def await_in_peak(self, needed: int) -> None:
        self.tables.set(seen=0, needed=needed, batch=1)

    def await_user(self) -> None:
        self.tables.set(needed=_NEVER, batch=64)

    def search(self, low: int, high: int) -> None:
        self.tables.set(mode=1, peak_low=low, peak_high=high)

    def drop_open_calls(self) -> None:
        self.tables.begin_epoch()

    # ----------------------------------------------------------- orders and votes

    def apply(self, orders: Orders) -> None:
        self._instrumentation.apply(orders)

    def apply_again(self) -> None:
        self._instrumentation.apply_again()

    def votes(self) -> dict[Fnode, Vote]:
        return self._instrumentation.votes()

    def make_room(self, votes: Mapping[Fnode, Vote]) -> bool:
        return self._instrumentation.make_room(votes)

    @property
    def used(self) -> AbstractSet[int]:
        return self._instrumentation.used
