"""A process of this machine: code by ``/proc``, memory by system calls, the bell by a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from signal import SIGINT

from darc.code.landmarks import Landmark, landmarks_of, wait_landmarks_of
from darc.code.processor import BREAKPOINT, THREAD_POINTER
from darc.code.program import Program
from darc.debuggee import admission, bell, clock, emulators, procfs
from darc.debuggee.companions import companions_of
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.holds import Holds, Scheduled, scheduled
from darc.debuggee.journal import is_darcs, journal_of
from darc.debuggee.nature import Nature
from darc.debuggee.process_pads import NO_TASKS, ProcessPads
from darc.debuggee.quota import Quota
from darc.debuggee.switches import ProcessWatching
from darc.debuggee.switchwatch import Watching
from darc.debuggee.watchover import WatchOver
from darc.model.errors import NotFoundError, TargetError, UsageError
from darc.model.ftree import Function
from darc.model.parameters import Parameters
from darc.pads.backend import PadBackend
from darc.target.outcome import Outcome
from darc.target.target import Place, Target

PROCESS = Nature(
    noun="program",
    begins_anew=True,
    left_in="the probes in it sleep; attach to it again and type 'darc stop' to take them out",
    why_unread="",
    puts_back=(
        "the program has read that code anew (MADV_DONTNEED) or put its own bytes back, or the "
        "debugger has shown a copy of it (gdb's 'restart' of a checkpoint)"
    ),
)


class ProcessDebuggee(Debuggee):
    """The process that a debugger of this machine has stopped."""

    shares_clock = True
    sees_all_threads = True

    def __init__(self, target: Target) -> None:
        """Raises UsageError: there is none."""
        pid = target.pid
        if pid is None:
            raise UsageError("darc needs a program on this machine: 'run' or 'attach' it first")
        self._target = target
        self._pid = pid
        self.journal = journal_of(target, pid)
        companions_of(target, pid)
        self._pads = ProcessPads(target, pid)
        self._watch_over = WatchOver(target, pid)

    @property
    def pads(self) -> PadBackend:
        return self._pads

    @property
    def identity(self) -> int:
        return self._pid

    @property
    def hz(self) -> int:
        return clock.tsc_hz()

    @property
    def nature(self) -> Nature:
        return PROCESS

    @property
    def is_readable_while_it_runs(self) -> bool:
        return True

    def risk_of_breakpoints(self) -> str | None:
        return self.danger_of_breakpoints()

    def danger_of_breakpoints(self) -> str | None:
        if self._target.attached:
            return "the program was attached to: if the debugger is killed, breakpoints are its end"
        return None

    def begin(self) -> None:
        companions_of(self._target, self._pid).refuse_free()
        self.journal.open(stopped_by_another=self._watch_over.is_stopped_by_another())

    def leave(self, is_there: bool = True) -> None:
        def is_in(place: Place) -> bool:
            try:
                live = self._target.memory.read(place.address, len(place.original))
            except TargetError:
                return False  # its file was unloaded
            return is_darcs(place, live)

        self.journal.close(is_in if is_there else lambda _: False)

    def counts_in(self, parameters: Parameters) -> Callable[[int], bool]:
        if parameters.task is not None:
            raise UsageError(NO_TASKS)
        wanted = parameters.thread
        if wanted is not None and wanted not in self._target.threads.ids():
            raise NotFoundError(f"the program has no thread {wanted}: 'info threads' lists them")
        return lambda thread: wanted in (None, thread)

    def waited_ns(self, thread: int) -> int:
        return procfs.waited_ns(thread)

    def use(self, thread: int) -> clock.Use | None:
        return procfs.use(thread)

    @property
    def tick(self) -> float | None:
        return procfs.tick()

    def watching(self) -> Watching:
        return ProcessWatching(self._pid)

    def watch_holds(self) -> Callable[[], bool]:
        return Holds(self._pid).any_since

    def scheduled(self, own: int) -> Scheduled | None:
        thread = self.thread_called(own)
        return None if thread is None else scheduled(thread)

    def is_gone(self) -> bool:
        return procfs.is_gone(self._pid)

    def mapped(self) -> bytes | None:
        return procfs.mapped(self._pid)

    def writes_on(self, descriptor: int) -> bool:
        return procfs.writes_on(self._pid, descriptor)

    def is_stopped(self) -> bool:
        return procfs.is_traced_and_stopped(self._pid)

    def lacks_breakpoint(self, address: int) -> bool:
        return procfs.runs_without(self._pid, address, BREAKPOINT)

    def thread_called(self, own: int) -> int | None:
        return procfs.thread_called(self._pid, own)

    def ran(self, thread: int) -> tuple[int, int] | None:
        return procfs.ran(thread)

    def quota(self) -> Quota | None:
        return Quota(self._pid)

    def waits_deeply(self) -> bool:
        return procfs.waits_deeply(self._pid)

    def deep_wait(self, own: int) -> Sequence[str] | None:
        thread = procfs.thread_called(self._pid, own)
        return None if thread is None else procfs.deep_wait(self._pid, thread)

    def is_signalled(self, number: int) -> bool:
        return procfs.is_heard(self._pid, number, bell.KNOCK)

    def send(self, number: int, own: int | None = None) -> None:
        bell.send_to_any(self._pid, None if own is None else self.thread_called(own), number)

    def check_supported(self) -> None:
        self._target.check_supported()
        emulators.check(self._pid)

    def is_at_start(self) -> bool:
        """It has no thread-local storage yet. (A program that never has any says so too.)"""
        target = self._target
        return all(
            target.threads.read_register(thread, THREAD_POINTER) == 0
            for thread in target.threads.ids()
        )

    def entry(self) -> int | None:
        return procfs.entry(self._pid)

    def program(self) -> Program:
        pid = self._pid
        return Program(
            self._target,
            procfs.root(pid),
            procfs.regions(pid),
            called=procfs.run_as(pid),
            beside=partial(procfs.mapped_file, pid),
        )

    def refresh(self, program: Program) -> None:
        program.update(procfs.regions(self._pid))
        admission.check_runtimes(program)

    def check(self, program: Program, function: Function, spec: str) -> list[str]:
        return admission.check(self._target, program, function, spec)

    def watch_over(self) -> Callable[[bool], None]:
        return self._watch_over.begin()

    def landmarks(self, program: Program) -> Iterator[tuple[Landmark, int, str]]:
        return landmarks_of(program)

    def keeps_interrupt(self) -> bool:
        return procfs.is_pending_for_all(self._pid, SIGINT) and all(
            procfs.blocks(self._pid, thread, SIGINT) for thread in procfs.threads(self._pid)
        )

    def thread_name(self, number: int) -> str | None:
        return procfs.status(self._pid, number).get("Name")

    def outsider_name(self, number: int) -> str | None:
        if procfs.own_id(self._pid, self._pid) != self._pid:
            return None  # ids that are others' here
        process = procfs.status(number).get("Tgid", str(self._pid))
        return None if process == str(self._pid) else procfs.status(int(process)).get("Name")

    def wait_landmarks(self, program: Program) -> Iterator[tuple[Landmark, int, str]]:
        return wait_landmarks_of(program)

    def arm_limit(self, handler: Callable[[], Outcome]) -> int | None:
        number = bell.choose(self._pid)
        self._target.bell.arm(number, handler)
        return number

    def disarm_limit(self) -> None:
        self._target.bell.disarm()
