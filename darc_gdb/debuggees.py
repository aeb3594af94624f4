"""Whether gdb has stopped a process of this machine or a kernel behind a remote connection."""

from __future__ import annotations

from pathlib import Path

from darc.debuggee.debuggee import Debuggee
from darc.debuggee.process import ProcessDebuggee
from darc.model.errors import UnsupportedError, UsageError
from darc.target.target import Target
from darc_gdb import answers
from darc_gdb.remote import GdbRemote
from darc_gdb.target import GdbTarget


def choose_debuggee(target: Target) -> Debuggee:
    """What an analysis would be of now.

    Raises:
        UsageError: there is no program.
        UnsupportedError: it is one that darc cannot reach.
    """
    stack = answers.target_stack()
    if stack.is_core:
        raise UnsupportedError("gdb has a core file: darc needs a program that runs")
    if not stack.is_remote:
        assert isinstance(target, GdbTarget)
        target.memory.hidden, target.memory.is_local = None, True
        return ProcessDebuggee(target)
    from kgdb.debuggee import KernelDebuggee  # only where it is needed: it reads a large file
    from kgdb.image import WHERE_SYMBOLS_ARE, is_kernel, kernel_file, what_lacks

    assert isinstance(target, GdbTarget)
    path = kernel_file(target)
    if not is_kernel(path):
        if (lacks := what_lacks(path)) is not None:
            raise UnsupportedError(f"{path} {lacks}: {WHERE_SYMBOLS_ARE}")
        raise UnsupportedError(
            f"{path.name} is no kernel: darc needs a program on this machine, or a kernel "
            "behind 'target remote'"
        )
    target.memory.is_local = False
    return KernelDebuggee(GdbRemote(target))


def check_runnable(target: Target) -> None:
    """Whether gdb could run its file. Raises UsageError: it is a kernel."""
    from kgdb.image import is_kernel

    path = target.executable
    if path is not None and is_kernel(Path(path)):
        raise UsageError(
            f"{Path(path).name} is a kernel, and gdb is not connected to the machine that runs it: "
            "'target remote' first ('darc-vm list' shows those of darc-vm)"
        )
