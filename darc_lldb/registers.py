"""The registers of one stopped thread, by the names that targets know."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import lldb

from darc.code.frame_rule import WORD
from darc.code.processor import FLAGS, PROGRAM_COUNTER, without_traps
from darc.model.errors import TargetError

_NAMES = {FLAGS: "rflags"}
"""Registers that lldb calls otherwise."""


def read(thread: lldb.SBThread, name: str) -> int:
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


def write(thread: lldb.SBThread, name: str, value: int) -> None:
    """Sets a register of a stopped thread; its frames are read anew.

    Raises:
        TargetError: there is no such register.
    """
    frame = thread.GetFrameAtIndex(0)
    if name == PROGRAM_COUNTER:
        done = frame.SetPC(value & WORD)
    else:
        error = lldb.SBError()
        done = frame.FindRegister(_NAMES.get(name, name)).SetValueFromCString(
            hex(value & WORD), error
        )
    if not done:
        raise TargetError(f"lldb: cannot write register {name} of thread {thread.GetThreadID()}")


def write_all(thread: lldb.SBThread, values: Mapping[str, int]) -> None:
    """Sets registers, in this order.

    Raises:
        TargetError: there is no such register.
    """
    for name, value in values.items():
        write(thread, name, value)


def jump(thread: lldb.SBThread, address: int, flags: int) -> None:
    """Has a stopped thread, whose flags are these, go on from there, without a trap after each
    instruction.

    Raises:
        TargetError: there is no such register.
    """
    if (plain := without_traps(flags)) != flags:
        write(thread, FLAGS, plain)
    write(thread, PROGRAM_COUNTER, address)


def forget_frames(thread: lldb.SBThread) -> None:
    """Lets lldb read the thread's stack anew. The frame's own pc may be that of an earlier stop."""
    thread.GetFrameAtIndex(0).SetPC(read(thread, PROGRAM_COUNTER))


def read_system_call(process: lldb.SBProcess, thread: lldb.SBThread) -> int:
    """The number of the system call that a thread was stopped in, which lldb does not know.

    Raises:
        TargetError: that cannot be seen.
    """
    number = int(thread.GetThreadID())
    path = Path(f"/proc/{process.GetProcessID()}/task/{number}/syscall")
    try:
        return int(path.read_text().split()[0])
    except (OSError, ValueError) as error:
        raise TargetError(f"cannot see which system call thread {number} is in: {error}") from None
