"""A process of this machine: code by ``/proc``, memory by system calls, the bell by a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from darc import admission, clock, guards, procfs
from darc.agent.memory import AgentMemory
from darc.code.program import Program
from darc.errors import NotFoundError, UsageError
from darc.foothold import Foothold
from darc.ftree import Function
from darc.ground import Bell, Ground
from darc.parameters import Parameters
from darc.parking import lead_home
from darc.process_foothold import ProcessFoothold
from darc.target import Target, Verdict

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
        if self._target.attached:
            return "the program was attached to: with breakpoints it would not outlive the debugger"
        return None

    def begin(self) -> None:
        pass

    def leave(self, is_there: bool = True) -> None:
        pass

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

    def program(self) -> Program:
        return Program(self._target, procfs.root(self._pid), procfs.regions(self._pid))

    def refresh(self, program: Program) -> None:
        program.update(procfs.regions(self._pid))

    def check(self, program: Program, function: Function, spec: str) -> list[str]:
        return admission.check(self._target, program, function, spec)

    def clean_up(self, program: Program) -> list[str]:
        return admission.clean_up_after_another(self._target, program, self._pid)

    def new_foothold(self, program: Program) -> Foothold:
        return ProcessFoothold(self._target, program, self._pid)

    def guard_places(self, program: Program) -> Iterator[tuple[str, int, str]]:
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

        def decide() -> Verdict:
            answer = handler()
            if answer.stop and answer.back:
                lead_home(target, foothold, answer.slot)
            return Verdict.STOP if answer.stop else Verdict.CONTINUE

        target.arm_bell(self._signal, decide)

    def arm_limit(self, handler: Callable[[], Verdict]) -> int | None:
        number = admission.bell_signal(self._pid)
        self._target.arm_bell(number, handler)
        return number

    def disarm_bell(self) -> None:
        self._target.disarm_bell()

    def beat(self, tables: AgentMemory) -> None:
        """In a seccomp sandbox the agent makes no system calls; the heart rings for it."""
        if procfs.in_sandbox(self._pid):
            tables.set(no_calls=1, bell_signal=0)
