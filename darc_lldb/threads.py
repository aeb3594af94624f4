"""The program's threads and their registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import lldb

from darc.code.processor import PROGRAM_COUNTER, STACK_POINTER, THREAD_POINTER
from darc.code.system_calls import SystemCall
from darc.debuggee.borrowing import borrowed
from darc.model.errors import TargetError
from darc.target.ownthread import Turn, any_thread, own_thread
from darc.target.target import State
from darc.target.threads import Threads
from darc_lldb import registers, threadpointer
from darc_lldb.calls import Calls, Debugged, user_threads

_GET_FS = 0x1003


@own_thread
class LldbThreads(Threads):
    """Those of ``target``'s program, stopped."""

    def __init__(self, turn: Turn, target: Debugged, calling: Calls) -> None:
        self.turn = turn
        self._target = target
        self._calls = calling
        self._thread_pointers: dict[int, int] = {}

    @any_thread
    def forget(self) -> None:
        """They are those of another program by now."""
        self._thread_pointers.clear()

    def find(self, number: int) -> lldb.SBThread:
        """One of them. Raises TargetError: it is gone."""
        thread = self._target.stopped_process().GetThreadByID(number)
        if not thread.IsValid():
            raise TargetError(f"thread {number} is gone")
        return thread

    def ids(self) -> Sequence[int]:
        if self._target.state is State.NONE:
            return []
        return [int(t.GetThreadID()) for t in user_threads(self._target.inferior.process)]

    def show(self, thread: int) -> str | None:
        found = self.find(thread)
        if found.GetStopReason() not in (lldb.eStopReasonInvalid, lldb.eStopReasonNone):
            found.GetProcess().SetSelectedThread(found)
            return None
        # lldb selects a thread with a reason to stop behind its hooks.
        return f"thread select {found.GetIndexID()}"

    def program_counters(self) -> Mapping[int, int]:
        return {
            int(thread.GetThreadID()): registers.read(thread, PROGRAM_COUNTER)
            for thread in user_threads(self._target.stopped_process())
        }

    def read_register(self, thread: int, name: str) -> int:
        found = self.find(thread)
        try:
            return registers.read(found, name)
        except TargetError:
            if name != THREAD_POINTER:
                raise
        return self._find_thread_pointer(found)

    def _find_thread_pointer(self, thread: lldb.SBThread) -> int:
        """lldb 14 does not know the register. It stays the same as long as the thread lives."""
        number = int(thread.GetThreadID())
        if number not in self._thread_pointers:
            assert self._target.pid is not None
            stack = registers.read(thread, STACK_POINTER)
            found = threadpointer.find(self._target.pid, number, stack)
            self._thread_pointers[number] = (
                self._ask_thread_pointer(thread, stack) if found is None else found
            )
        return self._thread_pointers[number]

    def _ask_thread_pointer(self, thread: lldb.SBThread, stack: int) -> int:
        """The thread itself asks the kernel."""
        memory, journal = self._target.memory, self._target.journal
        place, code = stack - 2048 & ~7, self._calls.back_address() - 64
        word = memory.read(place, 8)
        with borrowed(memory, journal, code, SystemCall.ARCH_PRCTL) as function:
            result = self._calls.call_in(thread, function, [_GET_FS, place])
        base = int.from_bytes(memory.read(place, 8), "little")
        memory.write(place, word)
        if result:
            raise TargetError(
                f"cannot read register {THREAD_POINTER} of thread {thread.GetThreadID()}"
            )
        return base

    def write_register(self, thread: int, name: str, value: int) -> None:
        registers.write(self.find(thread), name, value)
