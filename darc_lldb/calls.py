"""Which thread calls for darc, and how: without lldb's noticing where that can be."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from signal import SIGSYS
from typing import Protocol, TypeVar

import lldb

from darc.code.architecture import Call
from darc.code.processor import DETOURS, STACK_POINTER
from darc.debuggee import detour, procfs
from darc.debuggee.callmaker import Turns, able, has_stack
from darc.target.memory import Memory
from darc.target.target import Journal, State
from darc_lldb import detours, registers
from darc_lldb.inferior import Inferior
from darc_lldb.threadcall import ThreadCall

_Result = TypeVar("_Result")


class _NoPlaceError(Exception):
    """There is no place for a detour."""


class Debugged(Protocol):
    """What is asked of the target."""

    inferior: Inferior
    memory: Memory

    @property
    def pid(self) -> int | None: ...
    @property
    def state(self) -> State: ...
    @property
    def executable(self) -> str | None: ...
    @property
    def journal(self) -> Journal: ...
    def stopped_process(self) -> lldb.SBProcess: ...
    def unwatch(self) -> None: ...


def user_threads(process: lldb.SBProcess) -> list[lldb.SBThread]:
    """The threads that run the program's code: lldb lists the kernel's own as well."""
    pid = int(process.GetProcessID())
    return [t for t in process if not procfs.is_kernels(pid, int(t.GetThreadID()))]


class Calls:
    """Calls in ``target``'s program."""

    def __init__(self, target: Debugged, debugger: lldb.SBDebugger) -> None:
        self._target = target
        self._debugger = debugger
        self._thread: int | None = None
        """The thread that is to call, where it is not the selected one."""
        self._in_hook = False
        """Whether lldb waits for a stop hook of darc's."""
        self.at_work = False
        """Whether a thread runs for darc's sake alone."""
        self.interrupted = False
        """Whether the user has asked for a stop since the hook was called."""
        self._turns = Turns()

    @contextlib.contextmanager
    def in_hook(self) -> Iterator[None]:
        """lldb waits for a stop hook of darc's meanwhile, and nobody has asked for a stop yet."""
        self._in_hook, self.interrupted = True, False
        try:
            yield
        finally:
            self._in_hook, self._thread = False, None

    def prefer(self, thread: int) -> None:
        """This thread is to call, until the hook is over."""
        self._thread = thread

    def call(self, address: int, arguments: Sequence[int]) -> int:
        """See :meth:`darc.target.target.Target.call`."""
        return self._in_a_thread(lambda thread: self.call_in(thread, address, arguments))

    def system_call(self, number: int, arguments: Sequence[int]) -> int | None:
        """See :meth:`darc.target.target.Target.system_call`."""
        what = Call(number, arguments)
        return self._in_a_thread(lambda thread: self._on_detour(thread, what))

    def _in_a_thread(self, make: Callable[[lldb.SBThread], _Result]) -> _Result:
        """Has a thread make a call, the next one where that waits for another thread."""
        process = self._target.stopped_process()
        pid, stop = int(process.GetProcessID()), int(process.GetStopID(True))
        thread = process.GetThreadByID(self._thread or 0)
        first = thread if thread.IsValid() else process.GetSelectedThread()
        catches = procfs.catches(pid, SIGSYS)
        found = able(
            (first, *user_threads(process)),
            segment=lambda one: registers.read(one, DETOURS.CODE_SEGMENT),
            has_room=lambda one: has_stack(
                pid, {STACK_POINTER: registers.read(one, STACK_POINTER)}
            ),
            is_at_stake=lambda one: catches and procfs.blocks(pid, int(one.GetThreadID()), SIGSYS),
        )
        return self._turns.take(pid, stop, ((int(one.GetThreadID()), one) for one in found), make)

    def _on_detour(self, thread: lldb.SBThread, what: Call) -> int | None:
        """Makes a call without lldb's noticing; ``None``: it cannot be."""
        process = self._target.stopped_process()
        if procfs.in_sandbox_of_its_own(int(process.GetProcessID())):
            return None
        with self._target.memory.at_once():
            return detours.make_call(process, thread, what, self._target.journal)

    def call_in(self, thread: lldb.SBThread, address: int, arguments: Sequence[int]) -> int:
        """Calls a function in this thread."""

        def run(what: Call) -> int:
            result = self._on_detour(thread, what)
            if result is None:
                raise _NoPlaceError
            return result

        with contextlib.suppress(_NoPlaceError):
            return detour.call_function(run, address, arguments)
        with self.errand(thread) as call:
            return call.run(address, arguments)

    @contextlib.contextmanager
    def errand(self, thread: lldb.SBThread) -> Iterator[ThreadCall]:
        """The thread runs for darc's sake alone."""
        process = self._target.stopped_process()
        selected = process.GetSelectedThread().GetThreadID()
        self._target.unwatch()
        asynchronous = self._debugger.GetAsync()
        events = self._debugger.GetListener() if self._in_hook and asynchronous else None
        back = self.back_address()
        call = ThreadCall(
            process=process,
            thread=thread,
            back=back,
            events=events,
            note=lambda place: self._target.journal.patches([place]),
        )
        self._debugger.SetAsync(events is not None)
        self.at_work = True
        try:
            with self._target.memory.at_once():
                yield call
        finally:
            self.at_work = False
            self._debugger.SetAsync(asynchronous)
            self.interrupted = self.interrupted or call.interrupted
            process.SetSelectedThreadByID(selected)

    def back_address(self) -> int:
        """The last bytes of the program's first executable mapping."""
        assert self._target.pid is not None
        found = [r for r in procfs.regions(self._target.pid) if "x" in r.permissions]
        own = [r for r in found if r.path and r.path == self._target.executable]
        return (own or found)[0].end - 16
