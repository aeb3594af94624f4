"""The target interface on the lldb module.

Everything happens in lldb's stop hook (:mod:`darc_lldb.hook`), which is called at every stop that
lldb would show, with all threads stopped, on whichever thread lldb handles its events. There memory
may be written and functions called, and the program goes on, without the user's command noticing,
when the hook says so. A breakpoint's callback would not do: functions may not be called in it.

One lock keeps commands, stops and the end of the program apart. Whoever holds it may wait for lldb
only on a thread that lldb itself has called.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import lldb

from darc.debuggee import bell as bells
from darc.debuggee import detour, procfs
from darc.model.errors import TargetError, UnsupportedError
from darc.target.ownthread import any_thread, begin_thread, own_thread
from darc.target.target import OnHit, Outcome, Place, State, Target
from darc.views import glyphs
from darc_lldb import calls, threadpointer
from darc_lldb.frames import Frames
from darc_lldb.others import OtherHooks
from darc_lldb.stops import OwnBreakpoints, Reason, Signal
from darc_lldb.watcher import Watcher

_F = TypeVar("_F", bound=Callable[..., Any])
_STANDING = (lldb.eStateStopped, lldb.eStateCrashed, lldb.eStateSuspended)
_GONE = (
    lldb.eStateInvalid,
    lldb.eStateUnloaded,
    lldb.eStateConnected,
    lldb.eStateExited,
    lldb.eStateDetached,
)
_LOOK_SECONDS = 0.02
_STILL_LOOKS = 250
"""After so many looks the command that was to let the program go on has failed."""
_END_SECONDS = 5.0
"""Longer than lldb takes to end when it may."""

_INT3 = 0xCC
_GET_FS = 0x1003
_SYS_ARCH_PRCTL = 158
_SYSCALL = bytes.fromhex("89f8 4889f7 4889d6 4889ca 0f05 c3")
"""mov eax, edi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; syscall; ret"""


class _NoPlaceError(Exception):
    """There is no place for a detour."""


def _locked(function: _F) -> _F:
    @functools.wraps(function)
    def wrapper(self: LldbTarget, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return function(self, *args, **kwargs)

    return wrapper  # type: ignore[return-value]


@own_thread
class LldbTarget(Target):
    """The selected target of one of lldb's debuggers."""

    def __init__(self, debugger: lldb.SBDebugger) -> None:
        self._debugger = debugger
        self.lock = threading.RLock()
        self._pid: int | None = None
        self._watcher: Watcher | None = None
        self._executable: str | None = None
        self._in_hook = False
        self._asynchronous = False
        self._own_stops = 0
        self._told: tuple[int, int] | None = None
        self._went_on = False
        self._calling = False
        self._interrupted = False
        self._decided: tuple[int, int, bool] | None = None
        self._thread: int | None = None
        self._own = OwnBreakpoints()
        self._frames = Frames()
        self.others = OtherHooks(debugger)
        self._once: Callable[[], None] | None = None
        self._bell: Signal | None = None
        self._bell_handler: Callable[[], Outcome] | None = None
        self._modules_handler: Callable[[], None] | None = None
        self._breakpoints_handler: Callable[[], None] | None = None
        self._breakpoints_seen: Sequence[int] = ()
        self._fs_bases: dict[int, int] = {}
        self._local = threading.local()
        self._output = threading.Lock()
        self._style = (False, 0)
        self._kept: tuple[int, bool] | None = None
        self._shown_live = False
        self.failed: Callable[[Exception], None] = lambda error: None
        self.on_user_stop: Callable[[], None] = lambda: None
        self.before_continue: Callable[[], None] = lambda: None
        self.on_resume: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None
        self.on_lost: Callable[[int], None] = lambda pid: None
        self._leaving: Callable[[], None] | None = None
        self._goes_on = False
        """Whether lldb lets the program go on, or is about to, without darc's lock."""
        self.was_prepared = False
        """Whether an analysis was begun, or is beginning."""

    # -------------------------------------------------------------------- state

    def is_own_thread(self) -> bool:
        """Whether lldb may be asked here: on a thread that lldb itself has called, and on the
        watcher's only where that has lldb's leave. lldb may hold its own lock, and wait for others
        of darc's."""
        asks = getattr(self._local, "asks", None)
        if asks is not None:
            return bool(asks)
        here = threading.current_thread()
        return here is threading.main_thread() or isinstance(here, threading._DummyThread)

    @property
    def _target(self) -> lldb.SBTarget:
        return self._debugger.GetSelectedTarget()

    @property
    def _process(self) -> lldb.SBProcess:
        return self._target.GetProcess()

    @property
    @any_thread
    def pid(self) -> int | None:
        if self._blind():
            return self._pid
        process = self._process
        if not self._lives(process) or not self._is_local():
            return None
        return int(process.GetProcessID()) or None

    def _lives(self, process: lldb.SBProcess) -> bool:
        """Whether there is a process; one that was killed is gone before lldb notices."""
        if not process.IsValid() or process.GetState() in _GONE:
            return False
        return not self._is_local() or Path(f"/proc/{process.GetProcessID()}").exists()

    def _is_local(self) -> bool:
        return bool(self._target.GetPlatform().GetName() == "host")

    @property
    @any_thread
    def state(self) -> State:
        if self._blind():
            return State.NONE if self._pid is None else State.RUNNING
        process = self._process
        if not self._lives(process):
            return State.NONE
        return State.STOPPED if process.GetState() in _STANDING else State.RUNNING

    @property
    @any_thread
    def attached(self) -> bool:
        """lldb does not tell: a program that it launched is a child of its lldb-server's."""
        pid = self.pid
        if pid is None:
            return False
        parent = int(procfs.status(pid).get("PPid", "0"))
        return procfs.status(parent).get("PPid", "").strip() != str(os.getpid())

    @property
    @any_thread
    def executable(self) -> str | None:
        if not self._blind():
            file = self._target.GetExecutable()
            self._executable = str(file.fullpath) if file.IsValid() else None
        return self._executable

    def check_supported(self) -> None:
        if self.state is State.NONE:
            raise UnsupportedError("there is no program: 'run' or 'attach' it first")
        kind = self._process.GetPluginName()
        if kind != "gdb-remote":
            raise UnsupportedError(f"darc needs a running program, not lldb's target {kind}")
        if self.pid is None or not Path(f"/proc/{self.pid}/mem").exists():
            raise UnsupportedError("darc needs a program on this machine, not a remote target")
        architecture = self._target.GetTriple().partition("-")[0]
        if architecture != "x86_64":
            raise UnsupportedError(f"darc needs a 64-bit x86 program, this one is {architecture}")

    # ------------------------------------------------------------------- memory

    def read(self, address: int, size: int) -> bytes:
        # lldb keeps what it has read in large pieces, and forgets to forget it at a write. So it
        # is asked for no more than what stands under breakpoints, its own ones too.
        if not size:
            return b""
        process = self._stopped()
        with procfs.Memory(int(process.GetProcessID())) as memory:
            data = bytearray(memory.read(address, size))
        at = data.find(_INT3)
        while at >= 0:
            error = lldb.SBError()
            byte = process.ReadMemory(address + at, 1, error)
            if error.Fail() or not byte:
                raise TargetError(f"lldb: cannot read memory at {address + at:#x}")
            data[at] = byte[0]
            at = data.find(_INT3, at + 1)
        return bytes(data)

    def write(self, address: int, data: bytes) -> None:
        # What lldb-server keeps of the bytes under a breakpoint would be wrong afterwards.
        covered = [
            location
            for breakpoint_ in self._target.breakpoint_iter()
            for location in breakpoint_
            if address <= location.GetLoadAddress() < address + len(data) and location.IsEnabled()
        ]
        for location in covered:
            location.SetEnabled(False)
        try:
            error = lldb.SBError()
            done = self._stopped().WriteMemory(address, data, error)
            if error.Fail() or done != len(data):
                raise TargetError(f"lldb: cannot write memory at {address:#x}")
        finally:
            for location in covered:
                location.SetEnabled(True)

    def _stopped(self) -> lldb.SBProcess:
        if self.state is not State.STOPPED:
            raise TargetError("there is no program that is stopped")
        return self._process

    @property
    def stop_number(self) -> int | None:
        return int(self._process.GetStopID(True))

    def forget_frames(self) -> None:
        for thread in self._process:
            calls.forget_frames(thread)

    # ------------------------------------------------------------------ threads

    def threads(self) -> Sequence[int]:
        if self.state is State.NONE:
            return []
        return [int(thread.GetThreadID()) for thread in self._process]

    def _find_thread(self, number: int) -> lldb.SBThread:
        thread = self._stopped().GetThreadByID(number)
        if not thread.IsValid():
            raise TargetError(f"thread {number} is gone")
        return thread

    def program_counters(self) -> Mapping[int, int]:
        return {
            int(thread.GetThreadID()): calls.read_register(thread, "rip")
            for thread in self._stopped()
        }

    def read_register(self, thread: int, name: str) -> int:
        found = self._find_thread(thread)
        try:
            return calls.read_register(found, name)
        except TargetError:
            if name != "fs_base":
                raise
        return self._find_fs_base(found)

    def _find_fs_base(self, thread: lldb.SBThread) -> int:
        """lldb 14 does not know the register. It stays the same as long as the thread lives."""
        number = int(thread.GetThreadID())
        if number not in self._fs_bases:
            assert self.pid is not None
            rsp = calls.read_register(thread, "rsp")
            found = threadpointer.find(self.pid, number, rsp)
            self._fs_bases[number] = self._ask_fs_base(thread, rsp) if found is None else found
        return self._fs_bases[number]

    def _ask_fs_base(self, thread: lldb.SBThread, rsp: int) -> int:
        """The thread itself asks the kernel."""
        place = rsp - 2048 & ~7
        word = self.read(place, 8)
        with self._borrowed() as stub:
            result = self._call_in(thread, stub, [_SYS_ARCH_PRCTL, _GET_FS, place])
        base = int.from_bytes(self.read(place, 8), "little")
        self.write(place, word)
        if result:
            raise TargetError(f"cannot read register fs_base of thread {thread.GetThreadID()}")
        return base

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[int]:
        """A place of the program's code with a function ``syscall(number, …)`` for the moment."""
        place = self._back_address() - 64
        original = self.read(place, len(_SYSCALL))
        self.journal.patches([Place(place, original, _SYSCALL)])
        self.write(place, _SYSCALL)
        try:
            yield place
        finally:
            self.write(place, original)

    def write_register(self, thread: int, name: str, value: int) -> None:
        calls.write_register(self._find_thread(thread), name, value)

    def is_stopped_for_all(self) -> bool:
        return self.state is State.STOPPED and not calls.has_siginfo(self._process)

    @_locked
    def call(self, address: int, arguments: Sequence[int]) -> int:
        return self._call_in(self._calling_thread(), address, arguments)

    @_locked
    def system_call(self, number: int, arguments: Sequence[int]) -> int | None:
        return self._on_detour(self._calling_thread(), detour.Call(number, arguments))

    def _calling_thread(self) -> lldb.SBThread:
        process = self._stopped()
        thread = process.GetThreadByID(self._thread or 0)
        return thread if thread.IsValid() else process.GetSelectedThread()

    def _on_detour(self, thread: lldb.SBThread, what: detour.Call) -> int | None:
        """Makes a call without lldb's noticing; ``None``: it cannot be."""
        process = self._stopped()
        if procfs.in_sandbox_of_its_own(int(process.GetProcessID())):
            return None
        return calls.detour_call(
            process, thread, what, self.journal, lambda: calls.system_call_of(process, thread)
        )

    def _call_in(self, thread: lldb.SBThread, address: int, arguments: Sequence[int]) -> int:
        def run(what: detour.Call) -> int:
            result = self._on_detour(thread, what)
            if result is None:
                raise _NoPlaceError
            return result

        with contextlib.suppress(_NoPlaceError):
            return detour.call_function(run, address, arguments)
        with self._errand(thread) as call:
            return call.run(address, arguments)

    @contextlib.contextmanager
    def _errand(self, thread: lldb.SBThread) -> Iterator[calls.Call]:
        """The thread runs for darc's sake alone."""
        process = self._process
        selected = process.GetSelectedThread().GetThreadID()
        if self._watcher is not None:
            self._watcher.pause()
        asynchronous = self._debugger.GetAsync()
        events = self._debugger.GetListener() if self._in_hook and asynchronous else None
        back = self._back_address()
        call = calls.Call(
            process, thread, back, events, lambda place: self.journal.patches([place])
        )
        self._debugger.SetAsync(events is not None)
        self._calling = True
        try:
            yield call
        finally:
            self._calling = False
            self._debugger.SetAsync(asynchronous)
            self._interrupted = self._interrupted or call.interrupted
            process.SetSelectedThreadByID(selected)

    def _back_address(self) -> int:
        """The last bytes of the program's first executable mapping."""
        assert self.pid is not None
        found = [r for r in procfs.regions(self.pid) if "x" in r.permissions]
        own = [r for r in found if r.path and r.path == self.executable]
        return (own or found)[0].end - 16

    # ----------------------------------------------------------- stops and bells

    def prepare(self) -> None:
        """Before an analysis: lets darc know of files that the program loads.

        Raises:
            UnsupportedError: lldb is one whose events another program reads, so that a call that
                darc makes in the program may wait for ever.
        """
        if _has_front_end():
            raise UnsupportedError("lldb-dap cannot be used: take lldb itself, in a terminal")
        self.was_prepared = True
        if self.state is State.NONE:
            self._own.watch_start(self._target)
        else:
            self._own.watch_modules(self._target)

    @any_thread
    def await_start(self) -> None:
        # Or lldb would try to put a breakpoint into the program that has just ended, and warn.
        self._target.ClearModuleLoadAddress(self._target.GetModuleAtIndex(0))
        self._own.watch_start(self._target)

    def when_modules_change(self, handler: Callable[[], None] | None) -> None:
        self._modules_handler = handler

    def breakpoints(self) -> Sequence[int]:
        found: set[int] = set()
        for breakpoint_ in self._target.breakpoint_iter():
            if breakpoint_.IsEnabled() and not self._own.owns(breakpoint_.GetID()):
                for location in breakpoint_:
                    if location.IsEnabled():
                        found.add(int(location.GetLoadAddress()))
        return sorted(found - {lldb.LLDB_INVALID_ADDRESS})

    def when_breakpoints_change(self, handler: Callable[[], None] | None) -> None:
        self._breakpoints_handler = handler

    @_locked
    def look_at_breakpoints(self) -> None:
        """Before the program goes on: lldb does not tell at once what the user has changed."""
        if self.state is not State.STOPPED:
            return
        now = self.breakpoints()
        if now != self._breakpoints_seen:
            self._breakpoints_seen = now
            if self._breakpoints_handler is not None:
                self._guarded(self._breakpoints_handler)

    def break_once(self, address: int, handler: Callable[[], None]) -> None:
        self._own.break_once(self._target, address)
        self._once = handler

    @any_thread
    def cancel_break(self) -> None:
        self._once = None
        self._own.cancel_break()
        self._tidy()

    def set_break(self, address: int, on_hit: OnHit) -> Callable[[], None]:
        self.read(address, 1)
        number = self._own.set_break(self._target, address, on_hit)

        def take_back() -> None:
            self._own.take_back(number)
            self._tidy()

        return take_back

    def own_threads(self) -> Sequence[int]:
        """Those of lldb and of its server. One that waits for nothing counts nothing."""
        if self._pid is None:
            return []
        darcs = {t.native_id for t in threading.enumerate() if t.name.startswith("darc")}
        own = set(procfs.threads(os.getpid())) - darcs
        return [*own, int(procfs.status(self._pid).get("TracerPid", "0"))]

    @property
    @any_thread
    def own_stops(self) -> int:
        return self._own_stops

    @property
    def hits_stop_all(self) -> bool:
        return True

    def arm_bell(self, signal: int, handler: Callable[[], Outcome]) -> None:
        self.disarm_bell()
        self._bell = Signal(self._stopped(), signal)
        self._bell_handler = handler

    def change_bell(self, signal: int) -> None:
        handler = self._bell_handler
        if handler is not None:
            self.arm_bell(signal, handler)

    @any_thread
    def disarm_bell(self) -> None:
        self._bell_handler = None
        bell, self._bell = self._bell, None
        if bell is not None and not self._blind():
            bell.restore()

    def _blind(self) -> bool:
        """Whether lldb may not be asked: its main thread may hold lldb's lock, and wait for us."""
        return not self.is_own_thread()

    def _tidy(self) -> None:
        """Deletes what is not needed any more."""
        if not self._blind():
            self._own.delete_spent(self._target)
            self._frames.delete_spent(self._target)

    def _guarded(self, function: Callable[[], None]) -> None:
        """Runs something on behalf of lldb, where nobody would see its exception."""
        try:
            function()
        except Exception as error:  # told to the user, in one place
            self.failed(error)

    @_locked
    def at_stop(self, thread: lldb.SBThread) -> bool:
        """The stop hook, which lldb calls for each thread with a reason to stop. True: the program
        stays as it is, for the user."""
        if self._calling:
            return True
        self._goes_on = False
        if self._leaving is not None:
            self._leave_now()
            return True
        process = thread.GetProcess()
        key = self._stop_of(process)
        if self._decided is None or self._decided[:2] != key:
            self._in_hook = True
            try:
                stay = self._look(process)
            finally:
                self._in_hook = False
                self._thread = None
            self._decided = (key[0], int(process.GetStopID()), stay)
        self._goes_on = not self._decided[2]
        return self._decided[2]

    def goes_on(self) -> None:
        """The command that comes next lets the program go on."""
        self._goes_on = True

    def _look(self, process: lldb.SBProcess) -> bool:
        self._meet(process)
        self._interrupted = False
        self._pass_again(process)
        bell = self._bell.number if self._bell is not None else None
        if self._watcher is not None:
            self._watcher.pause()
        # A call changes what lldb knows of its thread's stop: all are looked at before.
        reasons = [reason for t in process if (reason := Reason.of(t, self._own)) is not None]
        stay = any(reason.users for reason in reasons)
        launching = self._own.awaits_start and all(r.signal in calls.INTERRUPTS for r in reasons)
        rung = [reason for reason in reasons if reason.signal is not None and reason.signal == bell]
        own = [reason for reason in rung if self._is_own_signal(process, reason)]
        if any(thread.GetStopReason() == lldb.eStopReasonExec for thread in process):
            self._executed()
        self._own_stops += bool(own) or any(reason.breakpoints for reason in reasons)
        stops_anyway = self._bell is not None and self._bell.stopped_before
        for reason in reasons:
            self._thread = reason.thread
            if reason in rung and reason not in own:  # the program's own
                stay = stops_anyway or stay
                continue
            stay = self._react(reason, bell) or stay
            if self.state is not State.STOPPED:
                return True
        if rung and bell is not None:
            self._keep(process, bell, own == rung)
        if stay or self._interrupted:
            for reason in own:
                self._forget_signal(reason.thread)
            if own == rung:
                self._pass_again(process)
            self.user_stop(launching=launching)
            return True
        self._went_on = True
        self._guarded(self.on_resume)
        if self._watcher is not None:
            self._watcher.wait_for_stop()
        return False

    @any_thread
    def leave(
        self, knock: Callable[[], bool], take_out: Callable[[], None], done: Callable[[], None]
    ) -> None:
        """lldb is to end: it lets the program go when ``take_out`` has been called, and that is
        ``done``. It is where the program stands still next: at the bell, if ``knock`` can have it
        rung; at the user's next command, as another may be under way now; at the prompt. Not where
        lldb is about to let it go on: it would run while the probes are taken out."""

        def let_go() -> None:
            try:
                self._guarded(take_out)
                self._process.Detach()
            finally:
                done()

        def look() -> None:
            watcher = self._watcher
            rung, still = False, 0
            while self._leaving is not None:
                # By what the kernel tells: in synchronous mode lldb answers when that stands.
                if watcher is None or watcher.program_stands():
                    still += 1
                    with self.lock:
                        if not self._goes_on or still > _STILL_LOOKS:
                            self._local.asks = True
                            self._leave_if_stopped()
                            self._local.asks = False
                else:
                    still = 0
                    if not rung and not knock():
                        self._process.SendAsyncInterrupt()
                    rung = True
                time.sleep(_LOOK_SECONDS)

        self._leaving = let_go
        begin_thread(look, "darc-leave")

    def _leave_if_stopped(self) -> None:
        if self.state is not State.RUNNING:
            self._leave_now()

    def _leave_now(self) -> None:
        """Does what :meth:`leave` asked for, with all threads standing still."""
        leave, self._leaving = self._leaving, None
        if leave is not None:
            leave()
            time.sleep(_END_SECONDS)  # nothing else is to be done before lldb ends

    @staticmethod
    def _is_own_signal(process: lldb.SBProcess, reason: Reason) -> bool:
        """Whether the program does not hear the signal in any case, or it bears darc's mark."""
        assert reason.signal is not None
        if not procfs.catches(int(process.GetProcessID()), reason.signal):
            return True
        info = process.GetThreadByID(reason.thread).GetSiginfo()
        value = info.GetValueForExpressionPath("._sifields._rt.si_sigval.sival_ptr")
        code = info.GetChildMemberWithName("si_code")
        return bells.is_marked(code.GetValueAsSigned(), value.GetValueAsUnsigned())

    def _keep(self, process: lldb.SBProcess, number: int, keeps: bool) -> None:
        """The program is not to get the signal that a thread has stopped with, or is to get it."""
        signals = process.GetUnixSignals()
        self._kept = (number, bool(signals.GetShouldSuppress(number)))
        signals.SetShouldSuppress(number, keeps)

    def _pass_again(self, process: lldb.SBProcess) -> None:
        """Undoes :meth:`_keep`."""
        kept, self._kept = self._kept, None
        if kept is not None:
            process.GetUnixSignals().SetShouldSuppress(*kept)

    def _executed(self) -> None:
        """The process executes another file, in which nothing is at its place."""
        self._fs_bases.clear()
        if self._modules_handler is not None:
            self._guarded(self._modules_handler)

    def _react(self, reason: Reason, bell: int | None) -> bool:
        """Does what darc itself stopped for; ``bell`` was its signal then. True: the program
        is to stop for the user."""
        if reason.signal is not None:
            return reason.signal != bell or self._answer()
        own = self._own
        if any(own.watches_modules(number) for number in reason.breakpoints):
            own.watch_modules(self._target)
            self._tidy()
            if self._modules_handler is not None:
                self._guarded(self._modules_handler)
        if self._once is not None and any(own.is_once(number) for number in reason.breakpoints):
            handler = self._once
            self.cancel_break()
            self._guarded(handler)
            self._guarded(self.before_continue)
        stays = [self._hit(reason.thread, number) for number in reason.breakpoints]
        return any(stays)

    def _hit(self, thread: int, number: int) -> bool:
        """A break, with all threads stopped. True: the program is to stop for the user."""
        on_hit = self._own.on_hit(number)
        if on_hit is None:
            return False
        try:
            deferred = on_hit(thread)
            return deferred is not None and deferred() is Outcome.STOP
        except Exception as error:  # told to the user, in one place
            self.failed(error)
            return True

    def _answer(self) -> bool:
        handler = self._bell_handler
        if handler is None:
            return False
        try:
            return handler() is Outcome.STOP
        except Exception as error:  # told to the user, in one place
            self.failed(error)
            return True

    def _forget_signal(self, thread: int) -> None:
        """Gives a thread another reason to stop than darc's own signal, which the user would see,
        and at which a batch run would end."""
        with self._errand(self._find_thread(thread)) as errand:
            errand.go_round()

    def _meet(self, process: lldb.SBProcess) -> None:
        """Takes note of a new process, and of the end of the one before."""
        pid = int(process.GetProcessID())
        if pid == self._pid:
            return
        if self._pid is not None:
            self.ended(self._pid)
        self._fs_bases.clear()
        if not self._is_local():
            return
        try:
            self._watcher = Watcher(pid, self)
        except ProcessLookupError:
            return  # it was killed, and lldb is about to notice
        self._pid = pid
        self._executable = self.executable

    def settle(self, process: lldb.SBProcess | None = None) -> None:
        """Before a command: notices what lldb did not tell."""
        self._goes_on = False
        # At other moments it may be another one: lldb changes it for a breakpoint's callback.
        self._asynchronous = bool(self._debugger.GetAsync())
        process = process or self._process
        alive = self._lives(process)
        if not alive and self._pid is not None:
            self.ended(self._pid)
        if alive and self.state is State.STOPPED:
            self._leave_now()
            self._meet(process)
            if self._told != self._stop_of(process) and self._is_interrupted():
                self._interrupt_told()
        self.others.settle()
        self._tidy()

    @staticmethod
    def _stop_of(process: lldb.SBProcess) -> tuple[int, int]:
        """The process and the number of the stop that it is at."""
        return int(process.GetUniqueID()), int(process.GetStopID())

    @any_thread
    @_locked
    def ended(self, pid: int) -> None:
        """The watcher saw the process end, or that nobody traces it; or lldb told so."""
        if threading.current_thread() is (self._watcher and self._watcher.thread):
            self._local.asks = False
        if pid != self._pid:
            return
        self._pid = None
        watcher = self._watcher
        if watcher is not None:
            watcher.close()
        self._once = None
        self._own.forget_places()
        self.others.are_free = True
        lost = not procfs.is_gone(pid)
        self._guarded(functools.partial(self.on_lost, pid) if lost else self.on_end)
        self._bell = self._bell_handler = None

    def user_stop(self, *, launching: bool = False) -> None:
        """The program stands, for the user, at a stop; or ``launching``: lldb 22 calls its hooks
        also at the stop in which it finds the program that it has launched."""
        if self._went_on:
            # lldb 22 shows the frames of a stop after which a stop hook let the program go on.
            self._went_on = False
            self._guarded(self.forget_frames)
        self._guarded(self.on_user_stop)
        if not launching:
            self.others.wake()
        self.wait()

    def wait(self) -> None:
        """The program stands still until the user lets it go on."""
        if self.state is not State.STOPPED:
            return
        self._goes_on = False
        self._told = self._stop_of(self._process)
        self._shown_style()
        self._breakpoints_seen = self.breakpoints()
        if self._watcher is not None:
            self._watcher.wait_for_resume()

    @any_thread
    def resumed(self) -> None:
        """The watcher saw the program go on."""
        self._local.asks = False
        self._guarded(self.on_resume)

    @any_thread
    @_locked
    def stands(self) -> bool:
        """The watcher saw the program stand still and no stop hook was called: lldb calls none at
        the user's Ctrl-C. In synchronous mode there is no Ctrl-C, and lldb may not be asked."""
        self._local.asks = True
        if not self._asynchronous or self._watcher is None:
            return False
        if self.state is not State.STOPPED or not self._is_interrupted():
            return False
        self._interrupt_told()
        return True

    def _interrupt_told(self) -> None:
        # lldb has shown the stop, and perhaps its prompt, behind the live line.
        with self._output:
            self._shown_live = False
        self.user_stop()

    def _is_interrupted(self) -> bool:
        """Whether nothing but the user's Ctrl-C stopped the program. It may also stand still for
        long in the callback of a breakpoint, and go on afterwards."""
        reasons = (Reason.of(thread, self._own) for thread in self._process)
        return all(r is None or r.signal in calls.INTERRUPTS for r in reasons)

    # ------------------------------------------------------------------- frames

    def show_pads(
        self, agent: Path, base: int, caller: Callable[[int, int], tuple[int, int] | None]
    ) -> None:
        self._frames.show(self._target, agent, base, caller)

    @any_thread
    def hide_pads(self) -> None:
        self._frames.hide()
        self._tidy()

    # ------------------------------------------------------------------ symbols

    def _address(self, address: int) -> lldb.SBAddress:
        return self._target.ResolveLoadAddress(address)

    def line_at(self, address: int) -> tuple[str, int] | None:
        entry = self._address(address).GetLineEntry()
        if not entry.IsValid() or not entry.GetLine():
            return None
        return str(entry.GetFileSpec().fullpath), int(entry.GetLine())

    def inlined_at(self, address: int) -> tuple[str, ...]:
        names = []
        block = self._address(address).GetBlock()
        while block.IsValid():
            if block.IsInlined():
                names.append(str(block.GetInlinedName()))
            block = block.GetParent()
        return tuple(reversed(names))

    def functions_in(self, file: str, function: str) -> Sequence[int]:
        found = set()
        for context in self._target.FindFunctions(function, lldb.eFunctionNameTypeAuto):
            if context.GetBlock().GetContainingInlinedBlock().IsValid():
                continue
            entry = context.GetFunction()
            source = context.GetCompileUnit().GetFileSpec()
            if entry.IsValid() and Path(str(source.fullpath or "")).match(file):
                found.add(int(entry.GetStartAddress().GetLoadAddress(self._target)))
        return sorted(found)

    def inlined_into(self, function: str) -> Sequence[str]:
        found = [
            str(context.GetFunction().GetName())
            for context in self._target.FindFunctions(function, lldb.eFunctionNameTypeAuto)
            if context.GetBlock().GetContainingInlinedBlock().IsValid()
        ]
        return list(dict.fromkeys(found))

    # ------------------------------------------------------------------- output

    def accepts_pending(self, question: str) -> bool:
        """As lldb's own breakpoints always do."""
        return True

    @property
    @any_thread
    def colour(self) -> bool:
        return self._shown_style()[0]

    @property
    @any_thread
    def width(self) -> int:
        return self._shown_style()[1]

    def _shown_style(self) -> tuple[bool, int]:
        """Colour and columns, those of the last time where lldb may not be asked."""
        if not self._blind() and _is_terminal():
            debugger = self._debugger
            colour = bool(debugger.GetUseColor()) and glyphs.takes_colour(os.environ)
            self._style = (colour, int(debugger.GetTerminalWidth()))
        return self._style

    @any_thread
    def live(self, text: str | None) -> None:
        if not _is_terminal():
            return
        with self._output:
            if text is None and not self._shown_live:
                return
            watcher = self._watcher
            if text is not None and (watcher is None or watcher.program_stands()):
                return  # lldb's prompt may be there already
            self._shown_live = text is not None
            encoding = glyphs.locale_encoding(os.environ)
            line = glyphs.fitting(text or "", encoding)[: len(text or "")]
            os.write(2, b"\r\x1b[K" + glyphs.encoded(line, encoding))

    @any_thread
    def emit(self, text: str) -> None:
        self.live(None)
        self._print(self._debugger.GetOutputFile(), text)

    @any_thread
    def complain(self, text: str) -> None:
        """Shows an error that is no command's."""
        self.live(None)
        self._print(self._debugger.GetErrorFile(), text)

    @staticmethod
    def _print(file: lldb.SBFile, text: str) -> None:
        file.Write(glyphs.encoded(text + "\n", glyphs.locale_encoding(os.environ)))
        file.Flush()


def _has_front_end() -> bool:
    """Whether this is lldb as a program that others speak with (lldb-dap, once lldb-vscode)."""
    return bool(re.search("dap|vscode", Path("/proc/self/exe").readlink().name))


def _is_terminal() -> bool:
    return os.isatty(1) and os.isatty(2) and glyphs.takes_escapes(os.environ)
