"""One stopped thread, by the system's own calls.

gdb traces every thread from its main thread, where Python runs as well. What is done here goes
unnoticed by gdb: afterwards the thread is where it was, stopped as it was.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from darc.code.system_calls import SystemCall
from darc.debuggee import bell, procfs
from darc.debuggee.callmaker import Patience
from darc.debuggee.detour import AwayError, EndedError, GoneOnError
from darc.debuggee.tracing import WAIT_FOR_ALL, TraceRequest, trace
from darc.model.errors import TargetError

_MOST_FILTERS, _FILTER_STEP = 256, 8
_NAMES = (
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
    "fs_base gs_base ds es fs gs"
).split()
"""struct user_regs_struct (sys/user.h)."""
_REGISTERS = struct.Struct(f"<{len(_NAMES)}Q")
_DISPATCH = struct.Struct("<4Q")
"""struct ptrace_sud_config (linux/ptrace.h): the mode comes first, 0 is off."""
_SIGINFO_SIZE = 128
_SI_TKILL, _SI_KERNEL = -6, 0x80
_QUICK_SECONDS = 0.002
_LONGEST_SECONDS = 60.0
"""A call of darc's that takes longer does not come back."""
_HALT_SECONDS = 3.0

_libc = ctypes.CDLL(None, use_errno=True)


def signal_of(information: bytes | None) -> int:
    """The signal that says this; 0 for none."""
    return 0 if information is None else int.from_bytes(information[:4], "little")


def was_sent(information: bytes | None) -> bool:
    """Whether somebody has sent the signal that says this, or a timer: the thread itself has raised
    it otherwise (``SI_FROMUSER`` of the kernel's ``asm-generic/siginfo.h``)."""
    return information is not None and int.from_bytes(information[8:12], "little", signed=True) <= 0


class Tracee:
    """A thread that gdb traces and has stopped."""

    def __init__(self, process: int, thread: int) -> None:
        self.process = process
        self.thread = thread
        self.has_ended = False
        """Whether it was found to have."""
        self.is_away = False
        """Whether it was let go on, and could not be stopped again."""

    def _ask(self, request: TraceRequest, address: int, data: object) -> None:
        try:
            trace(request, self.thread, address, data)
        except OSError as error:
            if not Path(f"/proc/{self.process}/task/{self.thread}").exists():
                raise self._ended() from None
            raise TargetError(f"cannot control thread {self.thread}: {error.strerror}") from None

    def _away(self) -> AwayError:
        self.is_away = True
        return AwayError(self.thread)

    def _ended(self) -> EndedError:
        self.has_ended = True
        return EndedError()

    # ------------------------------------------------------------------- its state

    def registers(self) -> dict[str, int]:
        """All general registers."""
        buffer = ctypes.create_string_buffer(_REGISTERS.size)
        self._ask(TraceRequest.GETREGS, 0, buffer)
        return dict(zip(_NAMES, _REGISTERS.unpack(buffer.raw), strict=True))

    def set_registers(self, values: Mapping[str, int]) -> None:
        """Sets all general registers at once."""
        self._ask(TraceRequest.SETREGS, 0, _REGISTERS.pack(*(values[name] for name in _NAMES)))

    def mask(self) -> int:
        """The signals that it blocks: those that it will when the system call that it is in has
        come back, where that blocks others meanwhile."""
        buffer = ctypes.create_string_buffer(8)
        self._ask(TraceRequest.GETSIGMASK, 8, buffer)
        return int.from_bytes(buffer.raw, "little")

    def set_mask(self, mask: int) -> None:
        """Blocks these signals alone."""
        self._ask(TraceRequest.SETSIGMASK, 8, mask.to_bytes(8, "little"))

    def information(self) -> bytes | None:
        """What the signal says that it was stopped for, which is on its way to it; ``None`` where
        it stopped with its whole process (ptrace(2), group-stop)."""
        buffer = ctypes.create_string_buffer(_SIGINFO_SIZE)
        try:
            self._ask(TraceRequest.GETSIGINFO, 0, buffer)
        except TargetError:
            return None
        return buffer.raw

    def held(self) -> tuple[int, bool]:
        """The signal that it was stopped for, which is on its way to it; 0 where it stopped for
        another reason. And whether the tracer itself sent that, or darc in it (its knock)."""
        information = self.information()
        if information is None:
            return 0, False
        number, _, code, _, sender, _, value = struct.unpack_from("<6iQ", information)
        own = (code == _SI_TKILL and sender in (0, os.getpid())) or code == _SI_KERNEL
        return number, own or bell.is_marked(code, value)

    def set_information(self, information: bytes) -> None:
        """The signal on its way says this."""
        self._ask(TraceRequest.SETSIGINFO, 0, information)

    def waits_for(self, number: int) -> bool:
        """Whether this signal is kept for it in the kernel."""
        return procfs.waits(self.process, self.thread, number)

    def dispatches(self) -> bool | None:
        """Whether the kernel hands system calls of its to the program itself, while that wants them
        (Linux, ``admin-guide/syscall-user-dispatch.rst``). ``None``: the kernel does not tell."""
        buffer = ctypes.create_string_buffer(_DISPATCH.size)
        try:
            self._ask(TraceRequest.GET_SYSCALL_USER_DISPATCH_CONFIG, _DISPATCH.size, buffer)
        except EndedError:
            return False
        except TargetError:
            return None
        return bool(_DISPATCH.unpack(buffer.raw)[0])

    def filters(self) -> list[bytes] | None:
        """The seccomp filters that stand over it, each an array of ``struct sock_filter``.
        ``None``: the kernel does not tell, as it does root alone (ptrace(2))."""
        found = list[bytes]()
        for number in range(_MOST_FILTERS):
            try:
                count = trace(TraceRequest.SECCOMP_GET_FILTER, self.thread, number)
            except OSError as error:
                return found if error.errno == errno.ENOENT and number else None
            buffer = ctypes.create_string_buffer(count * _FILTER_STEP)
            self._ask(TraceRequest.SECCOMP_GET_FILTER, number, buffer)
            found.append(buffer.raw)
        return None

    # --------------------------------------------------------------------- it runs

    def go(self, number: int = 0, knock: int = 0) -> int:
        """Lets it run, with a signal, until it stops for one; which. Where it waits for another
        thread it is stopped by the signal ``knock``, if there is one. It is stopped also where this
        is broken off (Ctrl-C), if it can be.

        Raises:
            EndedError: it ended.
            WaitsError: it was stopped so.
            GoneOnError: it had gone on for long, and was stopped.
            AwayError: it goes on, and cannot be stopped.
        """
        self._ask(TraceRequest.CONT, 0, number)
        patience = Patience(self.process, self.thread)
        try:
            found = self._awaited(patience, _LONGEST_SECONDS)
        except BaseException:
            self._halt(knock)
            raise
        if found is None:
            found = self._halt(knock)
            raise patience.error() if patience.was_over else GoneOnError(self.thread)
        return found

    def _awaited(self, patience: Patience, seconds: float) -> int | None:
        """The signal that it stops for; ``None``: it waits for another thread, or runs for longer
        than that."""
        begin = time.monotonic()
        while (found := self._stopped()) is None:
            spent = time.monotonic() - begin
            time.sleep(0 if spent < _QUICK_SECONDS else 0.001)
            if spent > _QUICK_SECONDS and (patience.is_over() or spent > seconds):
                return None
        return found

    def _halt(self, knock: int) -> int:
        """Stops it, by the signal ``knock``, or where it blocks that by one that none can block."""
        blocks = procfs.blocks(self.process, self.thread, knock) if knock else True
        self.send(signal.SIGSTOP if blocks else knock)
        end = time.monotonic() + _HALT_SECONDS
        while (found := self._stopped()) is None:
            if time.monotonic() > end:
                raise self._away()
            time.sleep(0.001)
        return found

    def _stopped(self) -> int | None:
        """The signal that it stopped for, if it has. Its end is left for gdb to see."""
        options = os.WSTOPPED | os.WEXITED | os.WNOHANG | WAIT_FOR_ALL
        try:
            seen = os.waitid(os.P_PID, self.thread, options | os.WNOWAIT)
            if seen is None:
                return None
            if seen.si_code not in (os.CLD_TRAPPED, os.CLD_STOPPED):
                raise self._ended()
            _, status = os.waitpid(self.thread, os.WNOHANG | WAIT_FOR_ALL)
        except (ChildProcessError, ProcessLookupError):
            raise self._ended() from None
        return os.WSTOPSIG(status)

    def send(self, number: int) -> None:
        """Sends it a signal."""
        _libc.syscall(SystemCall.TGKILL, self.process, self.thread, number)
