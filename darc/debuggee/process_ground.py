"""A process of this machine: code by ``/proc``, memory by system calls, the bell by a signal."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from darc.agent.memory import AgentMemory, Room, room_for
from darc.code.faults import FAULTS
from darc.code.program import Program
from darc.debuggee import admission, bell, clock, handlers, procfs
from darc.debuggee.ground import Bell, Ground
from darc.debuggee.guardian import Guardian
from darc.debuggee.journal import ProcessJournal, is_darcs
from darc.debuggee.parking import lead_home
from darc.debuggee.process_foothold import ProcessFoothold
from darc.model.errors import NotFoundError, TargetError, UsageError
from darc.model.ftree import Function
from darc.model.parameters import Parameters
from darc.pads import guards
from darc.pads.foothold import Foothold
from darc.target.target import Outcome, Place, Target

_NO_TASKS = "--task is for kernels: take --thread here"


class ProcessGround(Ground):
    """The process that a debugger of this machine has stopped."""

    def __init__(self, target: Target) -> None:
        """Raises UsageError: there is none."""
        pid = target.pid
        if pid is None:
            raise UsageError("darc needs a program on this machine: 'run' or 'attach' it first")
        self._target = target
        self._pid = pid
        known = target.journal
        if not isinstance(known, ProcessJournal) or known.pid != pid:  # also calls are noted there
            target.journal = ProcessJournal(pid, needed=target.attached)
        self._signal: int | None = None

    @property
    def identity(self) -> int:
        return self._pid

    @property
    def hz(self) -> int:
        return clock.tsc_hz()

    @property
    def signal(self) -> int | None:
        return self._signal

    @property
    def is_readable_while_it_runs(self) -> bool:
        return True

    def risk_of_pads(self) -> str | None:
        if procfs.in_sandbox_of_its_own(self._pid):
            return "the program is in a seccomp sandbox, which may kill it for mapping memory"
        if procfs.has_shadow_stack(self._pid):
            return "the program has shadow stacks, on which pads cannot change return addresses"
        return None

    def risk_of_breakpoints(self) -> str | None:
        return self.danger_of_breakpoints()

    def danger_of_breakpoints(self) -> str | None:
        if self._target.attached:
            return "the program was attached to: if the debugger is killed, breakpoints are its end"
        return None

    def begin(self) -> None:
        self._target.journal.open()

    def leave(self, is_there: bool = True) -> None:
        def is_in(place: Place) -> bool:
            try:
                live = self._target.read(place.address, len(place.original))
            except TargetError:
                return False  # its file was unloaded
            return is_darcs(place, live)

        self._target.journal.close(is_in if is_there else lambda _: False)

    def watch(self, parameters: Parameters) -> Callable[[int], bool]:
        if parameters.task != "all":
            raise UsageError(_NO_TASKS)
        wanted = parameters.thread
        if wanted != "all" and wanted not in self._target.threads():
            raise NotFoundError(f"the program has no thread {wanted}: 'info threads' lists them")
        return lambda thread: wanted in ("all", thread)

    def waited_ns(self, thread: int) -> int:
        return procfs.waited_ns(thread)

    def use(self, thread: int) -> procfs.Use | None:
        return procfs.use(thread)

    def check_supported(self) -> None:
        self._target.check_supported()

    def is_at_start(self) -> bool:
        """It has no thread-local storage yet. (A program that never has any says so too.)"""
        target = self._target
        return all(target.read_register(thread, "fs_base") == 0 for thread in target.threads())

    def entry(self) -> int | None:
        return procfs.entry(self._pid)

    def program(self) -> Program:
        return Program(self._target, procfs.root(self._pid), procfs.regions(self._pid))

    def refresh(self, program: Program) -> None:
        program.update(procfs.regions(self._pid))

    def check(self, program: Program, function: Function, spec: str) -> list[str]:
        return admission.check(self._target, program, function, spec)

    def watch_over(self) -> Callable[[bool], None]:
        if not self._target.attached:
            return lambda lost: None  # it ends with the debugger
        try:
            guardian = Guardian(self._pid)
        except (OSError, subprocess.SubprocessError):
            return lambda lost: None  # no shell here: the next darc lets it go on
        return lambda lost: guardian.lose() if lost else guardian.leave()

    def clean_up(self, program: Program, *, unmap: bool = True) -> list[str]:
        return admission.clean_up_after_another(self._target, program, self._pid, unmap=unmap)

    def room(self, parameters: Parameters) -> Room:
        return room_for(parameters.max_probes, len(procfs.threads(self._pid)))

    def living(self) -> AbstractSet[int]:
        return procfs.own_ids(self._pid)

    def new_foothold(self, program: Program, room: Room) -> Foothold:
        return ProcessFoothold(self._target, program, self._pid, room)

    def faults(self) -> frozenset[int]:
        return procfs.caught(self._pid) & FAULTS.keys()

    def own_handlers(self, program: Program, foothold: Foothold) -> Mapping[int, int]:
        assert isinstance(foothold, ProcessFoothold)
        return handlers.own_handlers(program, sorted(self.faults()), foothold.handler_of)

    def guard_places(self, program: Program) -> Iterator[tuple[guards.Guard, int, str]]:
        return guards.guard_places(program)

    def configure(self, tables: AgentMemory, parameters: Parameters, needed: int) -> None:
        if parameters.task != "all":
            raise UsageError(_NO_TASKS)
        self._signal = admission.configure(
            self._target, tables, self._pid, parameters.thread, needed
        )

    def arm_bell(self, foothold: Foothold, handler: Callable[[], Bell]) -> None:
        assert self._signal is not None
        target = self._target

        def decide() -> Outcome:
            target.journal.stands(True)
            answer = handler()
            if answer.outcome is Outcome.STOP and answer.back:
                lead_home(target, foothold, answer.slot)
            target.journal.stands(answer.outcome is Outcome.STOP)
            return answer.outcome

        target.arm_bell(self._signal, decide)

    def arm_limit(self, handler: Callable[[], Outcome]) -> int | None:
        number = self._signal = bell.choose(self._pid)
        self._target.arm_bell(number, handler)
        return number

    def disarm_bell(self) -> None:
        self._target.disarm_bell()

    def give_sign(self, tables: AgentMemory, seconds_left: float | None) -> None:
        admission.give_sign(tables, seconds_left)

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
            self._target.change_bell(self._signal)
            if tables.get("bell_signal"):
                tables.set(bell_signal=self._signal)

    def beat(self, tables: AgentMemory) -> None:
        """In a seccomp sandbox the agent makes no system calls; the heart rings for it."""
        if procfs.in_sandbox(self._pid):
            tables.set(no_calls=1, bell_signal=0)
