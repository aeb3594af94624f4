"""What the kernel tells a program of itself alone: system calls are made in it, and answer into the
agent's tables."""

from __future__ import annotations

import struct
from signal import SIGINT

from darc.agent.fieldnames import ControlField
from darc.agent.memory import AgentMemory
from darc.code.system_calls import SystemCall
from darc.debuggee.handlers import Handler
from darc.debuggee.mappings import Mappings
from darc.debuggee.procfs import MemoryFile

_PR_GET_TSC = 25
_PR_TSC_SIGSEGV = 2
_SIGNAL_SET = 8  # bytes of a set of signals in the kernel


class InsideCalls:
    """While all threads stand still; ``tables`` have room for an answer. All raise
    :class:`~darc.model.errors.PadsImpossibleError` where the program can make no system call."""

    def __init__(self, tables: AgentMemory, memory: MemoryFile, mappings: Mappings) -> None:
        self._memory = memory
        self._mappings = mappings
        self._place, self._size = tables.field(ControlField.HANDLER)

    def may_read_clock(self) -> bool:
        """Whether its threads may read the time-stamp counter (prctl(2), PR_GET_TSC)."""
        self._memory.write(self._place, bytes(4))
        self._mappings.system_call(SystemCall.PRCTL, _PR_GET_TSC, self._place)
        found = int.from_bytes(self._memory.read(self._place, 4), "little")
        # Were the debugger killed before it has marked the memory, that is known by being empty.
        self._memory.write(self._place, bytes(4))
        return found != _PR_TSC_SIGSEGV

    def handler_of(self, signal: int) -> Handler:
        """The program's handler for a signal, by the kernel's ``struct sigaction``."""
        self._mappings.system_call(SystemCall.RT_SIGACTION, signal, 0, self._place, _SIGNAL_SET)
        return Handler(*struct.unpack_from("<QQ", self._memory.read(self._place, self._size)))

    def take_interrupt(self) -> bool:
        """Takes a SIGINT that waits, as every thread blocks it, out of the program. Whether one
        did."""
        for_no_time = struct.pack("<Qqq", 1 << (SIGINT - 1), 0, 0)  # a set, and a timespec
        self._memory.write(self._place, for_no_time)
        until = self._place + _SIGNAL_SET
        took = self._mappings.system_call(
            SystemCall.RT_SIGTIMEDWAIT, self._place, 0, until, _SIGNAL_SET
        )
        return took == SIGINT
