"""How pads live in a process of this machine: memory near its code, a signal for the bell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from signal import SIGSYS

from darc.agent.layout import Room, room_for, room_for_set
from darc.agent.memory import AgentMemory
from darc.code.faults import ELSEWHERE, FAULTS
from darc.code.processor import THREAD_POINTER
from darc.code.program import Program
from darc.debuggee import admission, bell, clock, handlers, procfs
from darc.debuggee.journal import journal_of
from darc.debuggee.leftbehind import children_with_copies
from darc.debuggee.parking import lead_home, parked_slots
from darc.debuggee.process_foothold import ProcessFoothold
from darc.debuggee.seccomp import may_forbid
from darc.model.errors import NotFoundError, UnsupportedError, UsageError
from darc.model.parameters import Parameters
from darc.pads.backend import BellOutcome, PadBackend, batch_size
from darc.pads.foothold import Foothold
from darc.target.outcome import Outcome
from darc.target.target import Target

NO_TASKS = "--task is for kernels: take --thread here"

_SIGN_SECONDS = 10.0
"""How long the pads go on without a sign of life from the debugger, before they look for it."""

_FRESH_SECONDS = 0.2
"""For how long a sign of life is taken for life: the monitor gives one twice as often."""


class ProcessPads(PadBackend):
    """In the process ``pid``, which ``target`` has stopped."""

    def __init__(self, target: Target, pid: int) -> None:
        self._target = target
        self._pid = pid
        self._signal: int | None = None

    def risk(self) -> str | None:
        if may_forbid(self._target, self._pid):
            return "the program is in a seccomp sandbox, which may kill it for mapping memory"
        if procfs.has_shadow_stack(self._pid):
            return "the program has shadow stacks, on which pads cannot change return addresses"
        return None

    def clean_up(
        self, program: Program, *, unmap: bool = True, of_memory: bool = False
    ) -> list[str]:
        with self._target.companions:
            return admission.clean_up_after_another(
                self._target,
                program,
                self._pid,
                own=journal_of(self._target, self._pid),
                unmap=unmap,
                of_memory=of_memory,
            )

    def children_with_copies(self) -> Sequence[int]:
        return children_with_copies(self._pid)

    def room(self, program: Program, parameters: Parameters) -> Room:
        threads = len(procfs.threads(self._pid))
        return room_for(
            parameters.max_probes,
            threads,
            program.mapped.size,
            is_settled=self._target.attached,
        )

    def room_for_set(self, functions: int) -> Room | None:
        return room_for_set(functions, len(procfs.threads(self._pid)))

    def room_for_both(self, of_set: Room, of_search: Room) -> Room:
        """The search finds an agent there, and the program does not stand still until another one
        is."""
        return of_set.joined(of_search)

    def living(self) -> AbstractSet[int]:
        return procfs.own_ids(self._pid)

    def thread_count(self) -> int:
        return int(procfs.status(self._pid).get("Threads", 0))

    def is_in_system_call(self, thread: int) -> bool:
        return procfs.in_system_call(self._pid, thread)

    def new_foothold(self, program: Program, room: Room) -> Foothold:
        return ProcessFoothold(self._target, program, self._pid, room)

    def faults(self) -> frozenset[int]:
        return procfs.caught(self._pid) & FAULTS.keys()

    def own_handlers(self, program: Program, foothold: Foothold) -> Mapping[int, int]:
        assert isinstance(foothold, ProcessFoothold)
        wanted = procfs.caught(self._pid) & (FAULTS.keys() | ELSEWHERE.keys())
        return handlers.own_handlers(program, sorted(wanted), foothold.inside_calls.handler_of)

    def sets_back(self, program: Program, handler: int) -> bool:
        return handlers.sets_back(program, handler)

    def take_interrupt(self, foothold: Foothold) -> bool:
        assert isinstance(foothold, ProcessFoothold)
        return foothold.inside_calls.take_interrupt()

    def configure(self, tables: AgentMemory, parameters: Parameters, needed: int) -> None:
        if parameters.task is not None:
            raise UsageError(NO_TASKS)
        thread = parameters.thread
        signal = bell.choose(self._pid)
        if (why := bell.problem(self._pid, signal)) is not None:
            raise UnsupportedError(why)
        may_ring = not procfs.in_sandbox(self._pid) and not self._may_dispatch()
        only = 0
        if isinstance(thread, int):
            if thread not in self._target.threads.ids():
                raise NotFoundError(
                    f"the program has no thread {thread}: 'info threads' lists them"
                )
            only = self._target.threads.read_register(thread, THREAD_POINTER)
        tables.set(
            bell_signal=signal if may_ring else 0,
            no_calls=int(not may_ring),
            may_grow=int(may_ring),
            process=procfs.own_id(self._pid, self._pid),
            needed=needed,
            batch=batch_size(needed),
            only_thread=only,
            patience=int(_SIGN_SECONDS * clock.tsc_hz()),
            fresh=int(_FRESH_SECONDS * clock.tsc_hz()),
            debugger=bell.own_pid_for(self._pid),
        )
        self._signal = signal

    def _may_dispatch(self) -> bool:
        """Whether the agent's system calls may come to the program itself: where the debugger
        cannot tell, a handler for them does."""
        told = self._target.dispatches
        return procfs.catches(self._pid, SIGSYS) if told is None else told

    @property
    def signal(self) -> int | None:
        return self._signal

    def arm_bell(self, foothold: Foothold, handler: Callable[[], BellOutcome]) -> None:
        assert self._signal is not None
        target = self._target
        journal = target.journals.of(self._pid)

        def decide() -> Outcome:
            with target.companions:
                return replied()

        def replied() -> Outcome:
            journal.stands()
            reply = handler()
            if reply.outcome is Outcome.STOP:
                if reply.back:
                    lead_home(target, foothold, reply.slot)
                # Where threads are many one may be heard now that had rung for an earlier bell.
                self.lead_home(foothold)
                journal.stands()
            else:
                journal.goes_on()
            return reply.outcome

        target.bell.arm(self._signal, decide)

    def lead_home(self, foothold: Foothold) -> None:
        signal = self._signal
        if signal is None:
            return
        for thread, slot in parked_slots(self._target, foothold).items():
            # One that blocks the bell's signal is about to let it through: there it has to.
            if procfs.hears(self._pid, thread, signal):
                lead_home(self._target, foothold, slot)

    @property
    def bell_is_lost(self) -> bool:
        number = self._signal
        return (
            number is not None
            and procfs.catches(self._pid, number)
            and bell.choose(self._pid) != number
        )

    def change_bell(self, tables: AgentMemory) -> None:
        if self.bell_is_lost:
            self._signal = bell.choose(self._pid)
            self._target.bell.change(self._signal)
            if tables.bell_signal:
                tables.set(bell_signal=self._signal)

    def disarm_bell(self) -> None:
        self._target.bell.disarm()

    def beat(self, tables: AgentMemory, seconds_left: float | None) -> None:
        never, hz = tables.blob.constants.NEVER, clock.tsc_hz()
        now = clock.tsc_now()
        deadline = never
        if seconds_left is not None:  # a little late, as the time must be up when the agent rings
            deadline = min(never, now + int((max(seconds_left, 0) * 1.0005 + 0.02) * hz))
        tables.beat(now, min(deadline, now + int(_SIGN_SECONDS * hz)), deadline)

    def look_after(self, tables: AgentMemory) -> None:
        """In a seccomp sandbox the agent makes no system calls; the monitor rings for it."""
        if procfs.in_sandbox(self._pid):
            tables.set(no_calls=1, bell_signal=0)
