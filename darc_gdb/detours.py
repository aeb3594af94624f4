"""Calls in a program without gdb's noticing: see :mod:`darc.debuggee.detour`.

gdb itself would let the thread go on with the signal that it was stopped for, in whose handler it
might stay; it would show a stop to other extensions; and its own way of calling leaves a breakpoint
for the function to return to. So the thread is sent on its way beside gdb (:mod:`.tracee`), with
all signals blocked that others may send, and comes back to the very state that gdb knows:
registers, mask, and the signal that it was stopped for.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from darc.code.architecture import Call, Detour
from darc.code.processor import DETOURS, FLAGS, PROGRAM_COUNTER, STACK_POINTER, without_traps
from darc.code.system_calls import SystemCall
from darc.debuggee import detour, procfs, seccomp
from darc.debuggee.callmaker import CallMaker, Turns, able, has_stack
from darc.debuggee.mapflags import mmap_arguments
from darc.model.errors import TargetError
from darc.target.memory import Memory
from darc.target.target import Passage, Region, Target
from darc_gdb.threads import GdbThreads, forget_registers
from darc_gdb.tracee import Tracee, signal_of, was_sent

_STACK_SIZE = 16384
_NOT_KEPT = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT)
"""What no mask of signals keeps in the kernel: SIGSTOP is never blocked, SIGCONT takes away those
that stop, and they it (signal(7))."""


class Detours:
    """Calls in ``target``'s program, in one of its ``threads``."""

    def __init__(self, target: Target, threads: GdbThreads) -> None:
        self._target = target
        self._threads = threads
        self._mapped_at: tuple[int, int | None] | None = None
        self._mapped: Sequence[Region] = ()
        self._dispatching_at: tuple[int, int | None] | None = None
        self._dispatching: bool | None = None
        self._admits_at: tuple[int, int | None] | None = None
        self._admits = False
        self._turns = Turns()

    def place(self, pid: int) -> int | None:
        """Where one may stand."""
        with procfs.MemoryFile(pid) as memory:
            return detour.find_place(self._regions(pid), memory.read)

    def _regions(self, pid: int) -> Sequence[Region]:
        """The program's mappings, at this stop: calls for darc map data of darc's alone."""
        now = pid, self._target.stop_number
        if self._mapped_at != now:
            self._mapped, self._mapped_at = procfs.regions(pid), now
        return self._mapped

    def dispatches(self, pid: int) -> bool | None:
        """See :meth:`darc.target.target.Target.dispatches`."""
        now = pid, self._target.stop_number
        if self._dispatching_at != now:
            told = {Tracee(pid, thread).dispatches() for thread in self._threads.ids()}
            self._dispatching = True if True in told else None if None in told else False
            self._dispatching_at = now
        return self._dispatching

    def admits(self, pid: int) -> bool:
        """See :meth:`darc.target.target.Target.admits_calls`."""
        now = pid, self._target.stop_number
        if self._admits_at != now:
            self._admits, self._admits_at = self._admit(pid), now
        return self._admits

    def _admit(self, pid: int) -> bool:
        """Threads have the same filters as a rule: each is run once."""
        found = set[bytes]()
        for thread in self._threads.ids():
            if procfs.is_filtered(pid, thread):
                filters = Tracee(pid, thread).filters()
                if filters is None:
                    return False
                found.update(filters)
        return seccomp.admits(found)

    def system_call(self, place: int, number: int, arguments: Sequence[int]) -> int:
        """Makes a system call in a thread of the program; the others stay."""
        return self._run(place, Call(number, arguments))

    def wake(self, place: int, pid: int) -> None:
        """Ends a stop of the whole process. The signal that does it is taken by the thread that
        makes the call, or gdb would show it, and a handler of the program's be called. Raises
        TargetError: the program may map no memory for that."""
        base = self.system_call(place, SystemCall.MMAP, mmap_arguments(_STACK_SIZE))
        if base >> 63:
            raise TargetError("the program may not map memory")
        self._target.memory.write(base, (1 << (signal.SIGCONT - 1)).to_bytes(8, "little"))
        os.kill(pid, signal.SIGCONT)
        self.system_call(place, SystemCall.RT_SIGTIMEDWAIT, (base, 0, base + 8, 8))  # for no time
        self.system_call(place, SystemCall.MUNMAP, (base, _STACK_SIZE))

    def call(self, place: int, address: int, arguments: Sequence[int]) -> int:
        """Calls a function in a thread of the program, on a stack of its own; the others stay."""
        return detour.call_function(lambda what: self._run(place, what), address, arguments)

    def lead_out(self, pid: int, thread: int, passage: Passage) -> None:
        """Leads a thread home from a detour that another gdb has sent it on."""
        # Alone it would go on from there.
        self._target.threads.write_register(thread, PROGRAM_COUNTER, passage.leave)
        for name, value in passage.registers.items():
            if name not in (STACK_POINTER, PROGRAM_COUNTER):
                self._target.threads.write_register(thread, name, value)
        if passage.mask is not None:
            Tracee(pid, thread).set_mask(passage.mask)
        for name in (STACK_POINTER, PROGRAM_COUNTER):
            self._target.threads.write_register(thread, name, passage.registers[name])

    def _run(self, place: int, what: Call) -> int:
        pid = self._target.pid
        if pid is None:
            raise TargetError("the program has ended")
        with self._target.memory.at_once():
            return self._made(pid, place, what)

    def _made(self, pid: int, place: int, what: Call) -> int:
        writable = [r for r in self._regions(pid) if "w" in r.permissions]

        def has_room(one: _Stopped) -> bool:
            needed = DETOURS.stack_needed(one.registers)
            inside = any(r.start <= needed.start and needed.stop <= r.end for r in writable)
            return inside and has_stack(pid, one.registers)

        def make(one: _Stopped) -> int:
            maker = BesideGdb(one.tracee, one.registers, self._target.memory)
            return maker.make(what, place, self._target.journal)

        stopped = (_Stopped.of(Tracee(pid, one)) for one in self._threads.from_selected())
        found = able(
            stopped, segment=lambda one: one.registers[DETOURS.CODE_SEGMENT], has_room=has_room
        )
        stop = self._target.stop_number
        return self._turns.take(pid, stop, ((one.tracee.thread, one) for one in found), make)


class _Stopped(NamedTuple):
    tracee: Tracee
    registers: dict[str, int]

    @classmethod
    def of(cls, tracee: Tracee) -> _Stopped:
        return cls(tracee, tracee.registers())


class BesideGdb(CallMaker):
    """A thread that gdb has stopped. gdb may be killed between any two of the steps: on its way the
    thread comes back by itself, with the registers and the mask that it had."""

    def __init__(self, tracee: Tracee, registers: Mapping[str, int], memory: Memory) -> None:
        mask = tracee.mask()
        super().__init__(tracee.process, tracee.thread, registers=registers, mask=mask)
        self._tracee = tracee
        self._memory = memory
        self._mask = mask
        self._sent: set[int] = set()
        """Those of :data:`~darc.debuggee.detour.OWN` that somebody has sent, which wait in the
        kernel until it is back."""
        self._was_stopped = False
        """Whether a SIGSTOP has come meanwhile, which gdb waits for."""
        self._way: Detour | None = None
        """That which it was sent on."""
        self._stops: list[Tracee] = []
        """Threads that SIGSTOPs of gdb's wait for, where the bell takes these back."""

    def read(self, address: int, size: int) -> bytes:
        return self._memory.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        self._memory.write(address, data)

    def follow(self, way: Detour) -> None:
        if self.bell == signal.SIGCONT:
            self._stops = [one for one in self._others() if one.waits_for(signal.SIGSTOP)]
        information = self._tracee.information()
        held = signal_of(information)
        if held == signal.SIGSYS and not was_sent(information):
            raise detour.failed(held)
        # The kernel has no system call to begin anew meanwhile.
        flags = without_traps(self.registers[FLAGS])
        entering = {PROGRAM_COUNTER: way.entry, FLAGS: flags, DETOURS.STOPPED_IN: DETOURS.IN_NONE}
        self._tracee.set_registers({**self.registers, **entering})
        self._way = way
        self._tracee.set_mask(self._blocked())
        is_kept = held not in (self.bell, signal.SIGTRAP, *_NOT_KEPT)
        # What the thread has raised itself it raises again, if gdb should end meanwhile; in the
        # kernel, it would have to be blocked.
        is_kept = is_kept and (held not in detour.OWN or was_sent(information))
        kept = held if is_kept else 0
        number, rang = self._go(kept, way.rungs)
        self._stop_again(kept, information)
        if not rang:
            raise detour.failed(number)

    def _stop_again(self, kept: int, information: bytes | None) -> None:
        """Stops it for the signal that it was stopped for. It goes on only where that one is there:
        what stops next is not known else, and it might go on through the program, deaf."""
        if not kept:
            self._inform(information)
            return
        self._tracee.set_mask(detour.all_but(kept))
        while self._tracee.waits_for(kept):
            number = self._tracee.go()
            if number == kept:
                return
            self._was_stopped = self._was_stopped or number == signal.SIGSTOP
        self._inform(information)

    def _inform(self, information: bytes | None) -> None:
        if information is not None:
            self._tracee.set_information(information)

    def _blocked(self) -> int:
        """What signals it blocks on its way."""
        return detour.all_but(self.bell, *(set(detour.OWN) - self._sent))

    def _go(self, number: int, rungs: Collection[int]) -> tuple[int, bool]:
        """The signal that it stopped for, and whether it has rung with that."""
        for _ in range(detour.ATTEMPTS):
            if number in detour.OWN:  # somebody has sent it: no handler runs on the way
                self._sent.add(number)
                self._tracee.set_mask(self._blocked())
            number = self._tracee.go(number, self.bell)  # one that is blocked waits in the kernel
            if number == self.bell and self._tracee.registers()[PROGRAM_COUNTER] in rungs:
                return number, True
            if number in detour.OWN and was_sent(self._tracee.information()):
                continue
            if number not in (self.bell, signal.SIGSTOP):
                return number, False
            self._was_stopped = self._was_stopped or number == signal.SIGSTOP
            number = 0
        return number, False

    def lead_back(self) -> None:
        if self._has_gone_on():
            forget_registers()
        else:
            self._tracee.set_mask(self._mask)
            self._tracee.set_registers(self.registers)
        if self._was_stopped:
            self._tracee.send(signal.SIGSTOP)
        for one in self._stops:
            one.send(signal.SIGSTOP)

    def _has_gone_on(self) -> bool:
        """Whether the thread has gone its way to the end, and is somewhere in the program."""
        if self._way is None:
            return False
        now = self._tracee.registers()
        code = range(self._way.place, self._way.place + len(self._way.code))
        return now[PROGRAM_COUNTER] not in code and now[STACK_POINTER] not in self.stack

    def is_stopped(self) -> bool:
        return not self._tracee.is_away

    def _others(self) -> list[Tracee]:
        process, own = self._tracee.process, self._tracee.thread
        return [Tracee(process, thread) for thread in procfs.threads(process) if thread != own]

    def is_gone(self) -> bool:
        return self._tracee.has_ended
