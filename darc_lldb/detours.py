"""Calls in a program without lldb's noticing: see :mod:`darc.debuggee.detour`.

lldb-server is told directly to let the thread run, so that lldb does not see it run: its own way
would be a breakpoint for the thread to come to.

lldb-server cannot block a thread's signals. One that waits for the thread is delivered where
the thread stands, as its handler may jump out of where it came; the thread stops again at the
handler's first instruction, and makes the call there. SIGSYS is not blocked, as a system call may
be refused by it: one that somebody has sent is sent again when the thread is back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from signal import SIGSTOP, SIGSYS

import lldb

from darc.code.architecture import Call, Detour
from darc.code.processor import DETOURS, FLAGS, GENERAL, KEPT, PROGRAM_COUNTER, RESULT
from darc.debuggee import bell, detour, procfs
from darc.debuggee.callmaker import CallMaker, Patience
from darc.model.errors import TargetError
from darc.target.target import Journal
from darc_lldb import registers, signals
from darc_lldb.server import Halt, Server

_ANSWER_SECONDS = 3.5
"""lldb takes its server for lost where that does not answer within 5 s: a call that takes longer is
interrupted, and goes on."""


def make_call(
    process: lldb.SBProcess, thread: lldb.SBThread, what: Call, journal: Journal
) -> int | None:
    """Makes a call in a thread by a detour; ``None``: there is no place for one, and nothing was
    done.

    Raises:
        TargetError: the call did not come back; the thread is where it was.
    """
    pid = int(process.GetProcessID())
    with procfs.MemoryFile(pid) as memory:
        place = detour.find_place(procfs.regions(pid), memory.read)
    if place is None:
        return None
    for _ in range(detour.ATTEMPTS):
        with contextlib.suppress(_TakenElsewhereError):
            return BesideLldb(process, thread).make(what, place, journal)
    raise TargetError("signals come faster than the program can make a call for darc")


class _TakenElsewhereError(Exception):
    """The thread took a signal before the call began, and stands elsewhere."""


class BesideLldb(CallMaker):
    """A thread that lldb has stopped, for one attempt at a call."""

    def __init__(self, process: lldb.SBProcess, thread: lldb.SBThread) -> None:
        seen = (name for name in DETOURS.REGISTERS if name != DETOURS.STOPPED_IN)
        before = {name: registers.read(thread, name) for name in seen}
        restarts = DETOURS.is_restarted(before[RESULT])
        number = registers.read_system_call(process, thread) if restarts else DETOURS.IN_NONE
        before[DETOURS.STOPPED_IN] = number
        pid, tid = int(process.GetProcessID()), int(thread.GetThreadID())
        super().__init__(pid, tid, registers=before, mask=None)
        self._kept = {name: registers.read(thread, name) for name in KEPT}
        self._after: Mapping[str, int] = {}
        """The registers with which it is led back."""
        self._was_sent = False
        """Whether somebody has sent it SIGSYS meanwhile."""
        self._lldb_thread = thread
        self._server = Server(process, tid)

    def read(self, address: int, size: int) -> bytes:
        with procfs.MemoryFile(self.process) as memory:
            return memory.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        self._server.write(address, data)

    def follow(self, way: Detour) -> None:
        self._after = way.registers
        self._jump(way.entry)
        self._server.tell_all()
        halt, waits = self._go(way)
        has_crashed = halt.signal in signals.CRASHES
        if waits is None and halt.signal != self.bell and not has_crashed:
            self._after = self._take(halt, way)
        if way.place <= halt.pc < way.masked:  # a function that crashed may be below
            raise waits or _TakenElsewhereError
        if waits is not None or has_crashed:
            registers.write_all(self._lldb_thread, self._kept)
            self._jump(way.leave)  # it has its mask of signals again
            self._go(way)
            raise waits or detour.failed(halt.signal)

    def _go(self, way: Detour) -> tuple[Halt, detour.WaitsError | None]:
        """Lets the thread go until it has rung, raised a signal by itself, is to take one, or was
        stopped as it waits for another thread."""
        for _ in range(detour.ATTEMPTS):
            patience = Patience(self.process, self.thread)
            with patience.kept(self._knock, _ANSWER_SECONDS):
                halt = self._server.go()
            is_own = halt.pc != way.entry and DETOURS.is_refused(halt.registers, way)
            if halt.signal == SIGSYS and not is_own:
                self._was_sent = True
                continue
            if halt.signal not in (self.bell, *signals.INTERRUPTS) or halt.pc in way.rungs:
                return halt, None
            if patience.was_over:
                return halt, patience.error()
        raise TargetError("a call of darc's in the program does not come back")

    def _knock(self) -> None:
        """Stops the thread, whatever it blocks. Any thread."""
        blocked = procfs.blocks(self.process, self.thread, self.bell)
        bell.send(self.process, self.thread, SIGSTOP if blocked else self.bell)

    def _take(self, halt: Halt, way: Detour) -> Mapping[str, int]:
        """Lets the thread take a signal as if darc had not been there; its registers then."""
        if halt.pc == way.entry and halt.registers[RESULT] == self.registers[RESULT]:
            self._jump(self.registers[PROGRAM_COUNTER])
        else:
            # Were the debugger gone by now, it would go all of its way again.
            self._jump(way.entry)
            registers.write_all(self._lldb_thread, DETOURS.interrupted(self.registers, way))
        self._knock()
        for _ in range(detour.ATTEMPTS):
            halt = self._server.go(halt.signal)
            if halt.signal in (self.bell, *signals.INTERRUPTS, *signals.CRASHES):
                break
        return {name: halt.registers[name] for name in GENERAL}

    def _jump(self, address: int) -> None:
        registers.jump(self._lldb_thread, address, self.registers[FLAGS])

    def lead_back(self) -> None:
        registers.write_all(self._lldb_thread, self._after)
        self._server.forget()
        if self._was_sent:
            bell.hand_on(self.process, self.thread, SIGSYS)

    def is_gone(self) -> bool:
        return not Path(f"/proc/{self.process}").exists()
