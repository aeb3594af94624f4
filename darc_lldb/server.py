"""lldb-server, spoken to in packets beside lldb."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import lldb

from darc.code.processor import FLAGS, PROGRAM_COUNTER
from darc.debuggee.detour import EndedError
from darc.model.errors import TargetError
from darc_lldb import ctrlc

_REGISTERS = (
    *"rax rbx rcx rdx rdi rsi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split(),
    PROGRAM_COUNTER,
    FLAGS,
)
"""By lldb-server's numbers."""
_URGENT = 23
_EINVAL = "E16"


@dataclass(frozen=True)
class Halt:
    """The signal for which lldb-server stopped a thread, and the thread's registers."""

    signal: int
    registers: Mapping[str, int]

    @property
    def pc(self) -> int:
        """Where it stands."""
        return self.registers[PROGRAM_COUNTER]


class Server:
    """It is spoken to about one thread of a stopped process."""

    def __init__(self, process: lldb.SBProcess, thread: int) -> None:
        self._process = process
        self._thread = thread

    def tell_all(self) -> None:
        """It tells of every signal before the program gets it."""
        self._send("QPassSignals:")

    def forget(self) -> None:
        """lldb tells it anew what to tell of when the program goes on."""
        signals = self._process.GetUnixSignals()
        for number in (_URGENT, _URGENT):
            signals.SetShouldNotify(number, not signals.GetShouldNotify(number))

    def go(self, signal: int = 0) -> Halt:
        """Lets the thread alone go on, with this signal, until it is told of one.

        Raises:
            EndedError: it ended.
        """
        packet = f"C{signal:02x}" if signal else "c"
        answer = self._send(f"vCont;{packet}:{self._thread:x}")
        found = re.match(r"T([0-9a-f]{2})", answer)
        if found is None:
            raise EndedError()
        words = re.findall(r"(?<=;)([0-9a-f]{2}):([0-9a-f]{16})(?=;)", answer)
        values = {
            int(number, 16): int.from_bytes(bytes.fromhex(word), "little") for number, word in words
        }
        registers = {name: values[n] for n, name in enumerate(_REGISTERS) if n in values}
        return Halt(int(found[1], 16), registers)

    def siginfo(self) -> str:
        """The answer to what stopped the thread that lldb has selected."""
        return self._send("qXfer:siginfo:read::0,100")

    def write(self, address: int, data: bytes) -> None:
        """Writes memory through lldb, which knows its breakpoints. Raises TargetError: it
        cannot."""
        error = lldb.SBError()
        if self._process.WriteMemory(address, data, error) != len(data) or error.Fail():
            raise TargetError(f"lldb: {error.GetCString()}")

    def _send(self, packet: str) -> str:
        own = self._process.GetTarget().GetDebugger()
        result = self._send_by(own, packet)
        if ctrlc.has_refused(result):
            if not self._is_selected(own):
                raise TargetError(ctrlc.REFUSED)
            result = self._send_by(ctrlc.another_debugger(), packet)
            if ctrlc.has_refused(result):
                raise TargetError(ctrlc.REFUSED)
        _, _, answer = (result.GetOutput() or "").partition("response: ")
        return str(answer.strip())

    def _send_by(self, debugger: lldb.SBDebugger, packet: str) -> lldb.SBCommandReturnObject:
        result = lldb.SBCommandReturnObject()
        # Of itself, the interpreter might still have in mind the process of the run before.
        context = lldb.SBExecutionContext(self._process)
        send = f"process plugin packet send {packet}"
        debugger.GetCommandInterpreter().HandleCommand(send, context, result, False)
        return result

    def _is_selected(self, debugger: lldb.SBDebugger) -> bool:
        """Whether its own interpreter means this process: in the end that carries the command
        out."""
        selected = debugger.GetSelectedTarget().GetProcess()
        return bool(selected.GetUniqueID() == self._process.GetUniqueID())


def has_siginfo(process: lldb.SBProcess) -> bool:
    """Whether the kernel tells which signal stopped the process. Of a stop of the whole process it
    does not (PTRACE_GETSIGINFO, EINVAL)."""
    thread = int(process.GetSelectedThread().GetThreadID())
    return not Server(process, thread).siginfo().startswith(_EINVAL)
