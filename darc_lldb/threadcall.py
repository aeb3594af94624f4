"""Function calls in the stopped program, made by hand.

lldb's own way, an expression, compiles code and maps memory for it in the program. Here a thread's
registers are set for the call, it alone runs to a return address, and the registers are put back.
"""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import lldb

from darc.debuggee import admission, bell, detour, procfs
from darc.model.errors import TargetError
from darc.target.target import Journal, Passage, Place

WORD = (1 << 64) - 1
_REGISTERS = (
    "rax rbx rcx rdx rdi rsi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rflags rip".split()  # rip last
)
_NUMBERS = {name: number for number, name in enumerate((*_REGISTERS[:-2], "rip", "rflags"))}
"""lldb-server's numbers of registers."""
_NAMES = {"eflags": "rflags"}
"""Registers that lldb calls otherwise."""
_KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15")
"""What a function leaves as it was, unless it does not come to its end."""
_ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_BELOW = 1024
"""How far below the stack pointer a call begins: further than any red zone."""

_SYSCALL = b"\x0f\x05"

_SIGSTOP = 19
INTERRUPTS = (2, _SIGSTOP)
"""SIGINT and SIGSTOP, by which lldb lets the user interrupt the program."""

_URGENT = 23
_CRASHES = (4, 5, 7, 8, 11, 31)
_RETURN, _INT3 = b"\xc3", b"\xcc"
_NOP = b"\x66\x90"
_JUMP = b"\xff\x25\x00\x00\x00\x00"
"""jmp [rip]: to the address in the word that follows."""
_EINVAL = "E16"
_ATTEMPTS = 20
_PATIENCE_SECONDS = 60
_ENDS = (lldb.eStateStopped, lldb.eStateCrashed, lldb.eStateExited, lldb.eStateDetached)


def read_register(thread: lldb.SBThread, name: str) -> int:
    """A register of a stopped thread.

    Raises:
        TargetError: there is no such register.
    """
    found = thread.GetFrameAtIndex(0).FindRegister(_NAMES.get(name, name))
    error = lldb.SBError()
    value = found.GetValueAsUnsigned(error, 0) if found.IsValid() else 0
    if not found.IsValid() or error.Fail():
        raise TargetError(f"lldb: cannot read register {name} of thread {thread.GetThreadID()}")
    return int(value) & WORD


def write_register(thread: lldb.SBThread, name: str, value: int) -> None:
    """Sets a register of a stopped thread; its frames are read anew.

    Raises:
        TargetError: there is no such register.
    """
    frame = thread.GetFrameAtIndex(0)
    if name == "rip":
        done = frame.SetPC(value & WORD)
    else:
        error = lldb.SBError()
        done = frame.FindRegister(_NAMES.get(name, name)).SetValueFromCString(
            hex(value & WORD), error
        )
    if not done:
        raise TargetError(f"lldb: cannot write register {name} of thread {thread.GetThreadID()}")


def forget_frames(thread: lldb.SBThread) -> None:
    """Lets lldb read the thread's stack anew. The frame's own pc may be that of an earlier stop."""
    thread.GetFrameAtIndex(0).SetPC(read_register(thread, "rip"))


def system_call_of(process: lldb.SBProcess, thread: lldb.SBThread) -> int:
    """The number of the system call that a thread was stopped in.

    Raises:
        TargetError: that cannot be seen.
    """
    number = int(thread.GetThreadID())
    path = Path(f"/proc/{process.GetProcessID()}/task/{number}/syscall")
    try:
        return int(path.read_text().split()[0])
    except (OSError, ValueError) as error:
        raise TargetError(f"cannot see which system call thread {number} is in: {error}") from None


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

    def run(self, address: int, arguments: Sequence[int]) -> int:
        """The function's result.

        Raises:
            TargetError: it did not come back; the thread is where it was.
        """
        saved = {name: read_register(self._thread, name) for name in _REGISTERS}
        stack = ((saved["rsp"] - _BELOW) & ~15) - 8
        word = self._read(stack, 8)
        restart = self._restart(saved)
        try:
            self._write(stack, struct.pack("<Q", self._back))
            for name, value in zip(_ARGUMENTS, arguments, strict=False):
                write_register(self._thread, name, value)
            # Also keeps the kernel from restarting the system call that it is in.
            write_register(self._thread, "rax", 0)
            write_register(self._thread, "rsp", stack)
            write_register(self._thread, "rip", address)
            self._go(address, stack)
            return read_register(self._thread, "rax")
        finally:
            try:
                for name, value in {**saved, **restart}.items():
                    write_register(self._thread, name, value)
            finally:
                self._write(stack, word)

    def go_round(self) -> None:
        """To where the thread stands, by a jump elsewhere: lldb then has that as the reason why it
        stands there. A step would do, but the kernel has the thread go on step by step when lldb
        is gone, and end.

        Raises:
            TargetError: it did not come back; the thread is where it was.
        """
        saved = {name: read_register(self._thread, name) for name in ("rax", "rip")}
        restart = self._restart(saved)
        code = _NOP + _JUMP + struct.pack("<Q", saved["rip"])
        place = self._back - 16
        original = self._read(place, len(code))
        self._note(Place(place, original, code))
        own = self._read(saved["rip"], 1)
        self._note(Place(saved["rip"], own, _INT3))  # lldb's breakpoint
        self._write(place, code)
        try:
            if restart:
                write_register(self._thread, "rax", 0)
            write_register(self._thread, "rip", place + len(_NOP))
            error = self._run_to(saved["rip"])
            self._thread = self._process.GetThreadByID(self._id)
            if error.Fail() or read_register(self._thread, "rip") != saved["rip"]:
                raise TargetError(f"thread {self._id} does not come back: {error.GetCString()}")
        finally:
            try:
                for name, value in {**saved, **restart}.items():
                    # lldb 14 may refuse to, where another thread has made a child by vfork.
                    if read_register(self._thread, name) != value:
                        write_register(self._thread, name, value)
            finally:
                self._restore(place, original)

    def _go(self, address: int, stack: int) -> None:
        self._note(Place(self._back, self._read(self._back, 1), _INT3))  # lldb's breakpoint
        for _ in range(_ATTEMPTS):
            error = self._run_to(self._back)
            if self._process.GetState() != lldb.eStateStopped:
                raise TargetError("the program ended in a call of darc's")
            self._thread = self._process.GetThreadByID(self._id)
            pc, rsp = (read_register(self._thread, name) for name in ("rip", "rsp"))
            if pc == self._back and rsp == stack + 8:
                return
            if error.Fail():
                raise TargetError(f"lldb: {error.GetCString()}")
            if self._crashed():
                self._swallow(stack)
                break
            self.interrupted = self.interrupted or self._was_interrupted()
        raise TargetError(f"the call of {address:#x} in the program stopped at {pc:#x}")

    def _run_to(self, address: int) -> lldb.SBError:
        error = lldb.SBError()
        self._thread.RunToAddress(address, error)
        if self._events is None or error.Fail():
            return error
        broadcaster, event = self._process.GetBroadcaster(), lldb.SBEvent()
        while self._events.WaitForEventForBroadcasterWithType(
            _PATIENCE_SECONDS, broadcaster, lldb.SBProcess.eBroadcastBitStateChanged, event
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
            and thread.GetStopReasonDataAtIndex(0) in INTERRUPTS
            for thread in self._process
        )

    def _crashed(self) -> bool:
        reason = self._thread.GetStopReason()
        if reason == lldb.eStopReasonException:
            return True
        return reason == lldb.eStopReasonSignal and self._signal() in _CRASHES

    def _signal(self) -> int:
        return int(self._thread.GetStopReasonDataAtIndex(0))

    def _swallow(self, stack: int) -> None:
        """Lets the thread go on from a crash without its signal, by a function that only returns:
        lldb would deliver it to the program."""
        number, place = self._signal(), self._back - 1
        signals = self._process.GetUnixSignals()
        before = signals.GetShouldSuppress(number)
        original = self._read(place, 1)
        signals.SetShouldSuppress(number, True)
        try:
            self._note(Place(place, original, _RETURN))
            self._write(place, _RETURN)
            self._write(stack, struct.pack("<Q", self._back))
            write_register(self._thread, "rsp", stack)
            write_register(self._thread, "rip", place)
            self._run_to(self._back)
        finally:
            signals.SetShouldSuppress(number, before)
            self._write(place, original)

    def _restart(self, saved: dict[str, int]) -> dict[str, int]:
        """The registers with which an interrupted system call begins anew: the kernel would have
        done that, but forgets about it in the call."""
        if saved["rax"] not in detour.RESTARTED or self._read(saved["rip"] - 2, 2) != _SYSCALL:
            return {}
        number = system_call_of(self._process, self._thread)
        again = detour.restarted({**saved, "orig_rax": number})
        return {name: again[name] for name in ("rax", "rip")}

    def _read(self, address: int, size: int) -> bytes:
        error = lldb.SBError()
        data = self._process.ReadMemory(address, size, error)
        if error.Fail():
            raise TargetError(f"lldb: {error.GetCString()}")
        return bytes(data)

    def _restore(self, place: int, original: bytes) -> None:
        """Also where lldb has let the program go without knowing: lldb 14 takes one thread's vfork
        for a second one where it looks at the threads again, and detaches."""
        try:
            self._write(place, original)
        except TargetError:
            with procfs.Memory(int(self._process.GetProcessID())) as memory:
                memory.write(place, original)

    def _write(self, address: int, data: bytes) -> None:
        error = lldb.SBError()
        self._process.WriteMemory(address, data, error)
        if error.Fail():
            raise TargetError(f"lldb: {error.GetCString()}")


def has_siginfo(process: lldb.SBProcess) -> bool:
    """Whether the kernel tells which signal stopped the process. Of a stop of the whole process it
    does not (PTRACE_GETSIGINFO, EINVAL)."""
    thread = int(process.GetSelectedThread().GetThreadID())
    return not _Server(process, thread).siginfo().startswith(_EINVAL)


def detour_call(
    process: lldb.SBProcess,
    thread: lldb.SBThread,
    what: detour.Call,
    journal: Journal,
    read_orig_rax: Callable[[], int],
) -> int | None:
    """Makes a call in a thread by :mod:`darc.debuggee.detour`; ``None``: there is no place for
    one, and nothing was done. lldb-server is told directly to let the thread run, so that lldb
    does not see it run: its own way would be a breakpoint for the thread to come to.

    lldb-server cannot block a thread's signals. One that waits for the thread is delivered where
    the thread stands, as its handler may jump out of where it came; the thread stops again at the
    handler's first instruction, and makes the call there.

    Raises:
        TargetError: the call did not come back; the thread is where it was.
    """
    pid = int(process.GetProcessID())
    with procfs.Memory(pid) as memory:
        place = detour.find_place(procfs.regions(pid), memory.read)
    if place is None:
        return None
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(_TakenElsewhereError):
            return _Round(process, thread, read_orig_rax).make(what, place, journal)
    raise TargetError("signals come faster than the program can make a call for darc")


class _TakenElsewhereError(Exception):
    """The thread took a signal before the call began, and stands elsewhere."""


@dataclass(frozen=True)
class _Halt:
    """Why lldb-server stopped the thread, and its registers by lldb's numbers."""

    signal: int
    registers: Mapping[int, int]

    @property
    def pc(self) -> int:
        return self.registers[_NUMBERS["rip"]]


class _Round:
    """One attempt at a call by a detour."""

    def __init__(
        self, process: lldb.SBProcess, thread: lldb.SBThread, read_orig_rax: Callable[[], int]
    ) -> None:
        self._pid, self._tid = int(process.GetProcessID()), int(thread.GetThreadID())
        self._thread = thread
        self._bell = admission.bell_signal(self._pid)
        self._server = _Server(process, self._tid)
        self._before = {
            name: read_register(thread, name) for name in detour.REGISTERS if name != "orig_rax"
        }
        self._kept = {name: read_register(thread, name) for name in _KEPT}
        restarts = self._before["rax"] in detour.RESTARTED
        self._before["orig_rax"] = read_orig_rax() if restarts else WORD

    def make(self, what: detour.Call, place: int, journal: Journal) -> int:
        process, thread = (procfs.own_id(self._pid, task) for task in (self._pid, self._tid))
        ringer = detour.Ringer(process=process, thread=thread, signal=self._bell)
        way = detour.plan(self._before, place, ringer, what)
        free = bytes(len(way.code))
        borrowed = Place(place, free, way.code)
        journal.borrows(Passage(borrowed, self._tid, way.leave, way.registers, None))
        self._server.write(place, way.code)
        after = way.registers
        try:
            write_register(self._thread, "rip", way.entry)
            self._server.tell_all()
            halt = self._go(way)
            if halt.signal != self._bell and halt.signal not in _CRASHES:
                after = self._take(halt, way)
            if place <= halt.pc < way.masked:  # a function that crashed may be below
                raise _TakenElsewhereError
            with procfs.Memory(self._pid) as memory:
                result = int.from_bytes(memory.read(way.result, 8), "little")
            if halt.signal in _CRASHES:
                self._set(self._kept)
                write_register(self._thread, "rip", way.leave)  # it has its mask of signals again
                self._go(way)
                raise detour.failed(halt.signal)
            return result
        finally:
            if Path(f"/proc/{self._pid}").exists():
                self._set(after)
                self._server.write(place, free)
                journal.gives_back()
                self._server.forget()

    def _go(self, way: detour.Detour) -> _Halt:
        """Lets the thread go until it has rung, raised a signal by itself, or is to take one."""
        for _ in range(_ATTEMPTS):
            halt = self._server.go()
            if halt.signal not in (self._bell, *INTERRUPTS) or halt.pc in way.rungs:
                return halt
        raise TargetError("a call of darc's in the program does not come back")

    def _take(self, halt: _Halt, way: detour.Detour) -> Mapping[str, int]:
        """Lets the thread take a signal as if darc had not been there; its registers then."""
        if halt.pc == way.entry and halt.registers[_NUMBERS["rax"]] == self._before["rax"]:
            write_register(self._thread, "rip", self._before["rip"])
        else:
            # Were the debugger gone by now, it would go all of its way again.
            write_register(self._thread, "rip", way.entry)
            self._set(detour.interrupted(self._before, way))
        blocked = procfs.blocks(self._pid, self._tid, self._bell)
        bell.send(self._pid, self._tid, _SIGSTOP if blocked else self._bell)
        for _ in range(_ATTEMPTS):
            halt = self._server.go(halt.signal)
            if halt.signal in (self._bell, *INTERRUPTS, *_CRASHES):
                break
        return {name: halt.registers[number] for name, number in _NUMBERS.items()}

    def _set(self, registers: Mapping[str, int]) -> None:
        for name, value in registers.items():
            write_register(self._thread, name, value)


class _Server:
    """lldb-server, spoken to beside lldb, about one thread of a stopped process."""

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

    def go(self, signal: int = 0) -> _Halt:
        """Lets the thread alone go on, with this signal, until it is told of one."""
        packet = f"C{signal:02x}" if signal else "c"
        answer = self._send(f"vCont;{packet}:{self._thread:x}")
        found = re.match(r"T([0-9a-f]{2})", answer)
        if found is None:
            raise detour.EndedError("the program ended in a call of darc's")
        words = re.findall(r"(?<=;)([0-9a-f]{2}):([0-9a-f]{16})(?=;)", answer)
        registers = {
            int(number, 16): int.from_bytes(bytes.fromhex(word), "little") for number, word in words
        }
        return _Halt(int(found[1], 16), registers)

    def siginfo(self) -> str:
        """The answer to what stopped the thread that lldb has selected."""
        return self._send("qXfer:siginfo:read::0,100")

    def write(self, address: int, data: bytes) -> None:
        """Writes memory through lldb, which knows its breakpoints."""
        error = lldb.SBError()
        if self._process.WriteMemory(address, data, error) != len(data) or error.Fail():
            raise TargetError(f"lldb: {error.GetCString()}")

    def _send(self, packet: str) -> str:
        result = lldb.SBCommandReturnObject()
        interpreter = self._process.GetTarget().GetDebugger().GetCommandInterpreter()
        # Of itself, the interpreter might still have in mind the process of the run before.
        context = lldb.SBExecutionContext(self._process)
        interpreter.HandleCommand(f"process plugin packet send {packet}", context, result, False)
        _, _, answer = (result.GetOutput() or "").partition("response: ")
        return str(answer.strip())
