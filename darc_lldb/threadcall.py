"""What one thread does for darc by hand: a function call, or another stop where it stands.

lldb's own way, an expression, compiles code and maps memory for it in the program. Here a thread's
registers are set for the call, it alone runs to a return address, and the registers are put back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from signal import SIGSTOP

import lldb

from darc.code.architecture import HandMadeCall
from darc.code.processor import (
    BREAKPOINT,
    DETOURS,
    FLAGS,
    GENERAL,
    PROGRAM_COUNTER,
    RESULT,
    RETURN,
    STACK_POINTER,
    SYSTEM_CALL,
    call_by_hand,
    free_slot,
    without_traps,
)
from darc.debuggee import bell, detour
from darc.debuggee.callmaker import Patience
from darc.model.errors import TargetError
from darc.target.target import Place
from darc_lldb import registers, signals, standing

_BELOW = 1024
"""How far below the stack pointer a call begins: further than any red zone."""

_CALL_SECONDS = 60
"""For how long lldb waits for its next word of a call."""
_ENDS = (lldb.eStateStopped, lldb.eStateCrashed, lldb.eStateExited, lldb.eStateDetached)


class ThreadCall:
    """One call in one thread; the others stay where they are. ``back`` is an address in executable
    memory that nothing else runs through.

    The debugger is to be in synchronous mode; or ``events`` is its own listener, which nobody else
    listens to meanwhile. (In synchronous mode lldb would take the terminal from the program.)
    """

    def __init__(
        self,
        process: lldb.SBProcess,
        thread: lldb.SBThread,
        back: int,
        *,
        events: lldb.SBListener | None = None,
        note: Callable[[Place], None] = lambda place: None,
    ) -> None:
        """``note`` is told of each place before it is written over."""
        self._process = process
        self._thread = thread
        self._events = events
        self._id = thread.GetThreadID()
        self._back = back
        self._note = note
        self.interrupted = False
        self._patience = Patience(int(process.GetProcessID()), int(self._id))

    def run(self, address: int, arguments: Sequence[int]) -> int:
        """The function's result.

        Raises:
            TargetError: it did not come back; the thread is where it was.
        """
        saved = {name: registers.read(self._thread, name) for name in GENERAL}
        slot = free_slot(saved[STACK_POINTER], _BELOW)
        call = call_by_hand(address, arguments, slot, self._back)
        word = self._read(slot, len(call.return_address()))
        restart = self._restart(saved)
        try:
            self._write(slot, call.return_address())
            flags = without_traps(saved[FLAGS])
            registers.write_all(self._thread, {FLAGS: flags, **call.registers()})
            self._go(call)
            return registers.read(self._thread, RESULT)
        finally:
            try:
                registers.write_all(self._thread, {**saved, **restart})
            finally:
                self._write(slot, word)

    def stand_anew(self, number: int) -> None:
        """Has lldb see the thread stop once more where it stands, for another reason than a signal
        of darc's. That is sent to it once more before it alone goes on, so that it stops before it
        runs an instruction, and lldb has a plan (:mod:`darc_lldb.standing`) to which that stop
        belongs. Where lldb is killed meanwhile, the program drops the signal. Of a breakpoint it
        would end, and of a step, too: the kernel has the thread go on step by step.

        ``number`` is a signal that the thread does not block, that lldb stops for, and that it is
        to keep from the program until then.

        Raises:
            TargetError: lldb has lost the thread.
        """
        bell.send(int(self._process.GetProcessID()), int(self._id), number)
        nothing = lldb.SBStructuredData()
        error = self._let_go(
            lambda: self._thread.StepUsingScriptedThreadPlan(standing.NAME, nothing, True)
        )
        self._thread = self._process.GetThreadByID(self._id)
        if error.Fail() or self._thread.GetStopReason() != lldb.eStopReasonPlanComplete:
            raise TargetError(f"thread {self._id} does not stop anew: {error.GetCString()}")

    def _go(self, call: HandMadeCall) -> None:
        self._note(Place(self._back, self._read(self._back, 1), BREAKPOINT))  # lldb's breakpoint
        for _ in range(detour.ATTEMPTS):
            error = self._run_to(self._back)
            if self._process.GetState() != lldb.eStateStopped:
                raise detour.EndedError()
            self._thread = self._process.GetThreadByID(self._id)
            pc = registers.read(self._thread, PROGRAM_COUNTER)
            if call.has_returned(pc, registers.read(self._thread, STACK_POINTER)):
                return
            if error.Fail():
                raise TargetError(f"lldb: {error.GetCString()}")
            if self._patience.was_over:
                self._swallow(call)
                raise self._patience.error()
            if self._crashed():
                self._swallow(call)
                break
            self.interrupted = self.interrupted or self._was_interrupted()
        raise TargetError(f"the call of {call.address:#x} in the program stopped at {pc:#x}")

    def _run_to(self, address: int) -> lldb.SBError:
        """The thread goes there, or waits for another one."""
        process, thread = int(self._process.GetProcessID()), int(self._id)
        self._patience = Patience(process, thread)
        with self._patience.kept(lambda: bell.send(process, thread, SIGSTOP), math.inf):
            return self._let_go(lambda: self._to(address))

    def _to(self, address: int) -> lldb.SBError:
        error = lldb.SBError()
        self._thread.RunToAddress(address, error)
        return error

    def _let_go(self, resume: Callable[[], lldb.SBError]) -> lldb.SBError:
        """Until the program stops."""
        error = resume()
        if self._events is None or error.Fail():
            return error
        broadcaster, event = self._process.GetBroadcaster(), lldb.SBEvent()
        while self._events.WaitForEventForBroadcasterWithType(
            _CALL_SECONDS, broadcaster, lldb.SBProcess.eBroadcastBitStateChanged, event
        ):
            state = lldb.SBProcess.GetStateFromEvent(event)
            restarted = lldb.SBProcess.GetRestartedFromEvent(event)
            if state in _ENDS and not restarted:
                return error
        raise TargetError("a call of darc's in the program does not come back")

    def _was_interrupted(self) -> bool:
        """Whether the user has asked for a stop meanwhile."""
        return any(
            thread.GetStopReason() == lldb.eStopReasonSignal
            and thread.GetStopReasonDataAtIndex(0) in signals.INTERRUPTS
            for thread in self._process
        )

    def _crashed(self) -> bool:
        reason = self._thread.GetStopReason()
        if reason == lldb.eStopReasonException:
            return True
        return reason == lldb.eStopReasonSignal and self._signal() in signals.CRASHES

    def _signal(self) -> int:
        return int(self._thread.GetStopReasonDataAtIndex(0))

    def _swallow(self, call: HandMadeCall) -> None:
        """Lets the thread go on from a crash without its signal, by a function that only returns:
        lldb would deliver it to the program."""
        number, place = self._signal(), self._back - 1
        known = self._process.GetUnixSignals()
        before = known.GetShouldSuppress(number)
        original = self._read(place, 1)
        known.SetShouldSuppress(number, True)
        try:
            self._note(Place(place, original, RETURN))
            self._write(place, RETURN)
            self._write(call.slot, call.return_address())
            registers.write_all(self._thread, {STACK_POINTER: call.slot, PROGRAM_COUNTER: place})
            self._run_to(self._back)
        finally:
            known.SetShouldSuppress(number, before)
            self._write(place, original)

    def _restart(self, saved: dict[str, int]) -> dict[str, int]:
        """The registers with which an interrupted system call begins anew: the kernel would have
        done that, but forgets about it in the call."""
        if not DETOURS.is_restarted(saved[RESULT]):
            return {}
        size = len(SYSTEM_CALL)
        if self._read(saved[PROGRAM_COUNTER] - size, size) != SYSTEM_CALL:
            return {}
        number = registers.read_system_call(self._process, self._thread)
        again = DETOURS.restarted({**saved, DETOURS.STOPPED_IN: number})
        return {name: again[name] for name in (RESULT, PROGRAM_COUNTER)}

    def _read(self, address: int, size: int) -> bytes:
        error = lldb.SBError()
        data = self._process.ReadMemory(address, size, error)
        if error.Fail():
            raise TargetError(f"lldb: {error.GetCString()}")
        return bytes(data)

    def _write(self, address: int, data: bytes) -> None:
        error = lldb.SBError()
        self._process.WriteMemory(address, data, error)
        if error.Fail():
            raise TargetError(f"lldb: {error.GetCString()}")
