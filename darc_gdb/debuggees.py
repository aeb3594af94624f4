"""What gdb has stopped: a process of this machine, or a kernel behind a remote connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from darc.debuggee.debuggee import Debuggee
from darc.debuggee.process import ProcessDebuggee
from darc.debuggee.refusals import core_file
from darc.model.errors import UnsupportedError, UsageError
from darc.target.target import Target
from darc_gdb import printed
from darc_gdb.printed import TargetStack
from darc_gdb.remote import GdbRemote
from darc_gdb.target import GdbTarget


@dataclass(frozen=True)
class DebuggeeKind:
    """One kind of what gdb may have stopped."""

    is_meant: Callable[[TargetStack], bool]
    """Whether it is one, by what gdb is connected to."""
    make: Callable[[GdbTarget], Debuggee]
    """May raise :class:`~darc.model.errors.UnsupportedError`: darc cannot reach it."""


def _core(target: GdbTarget) -> NoReturn:
    del target
    raise core_file("gdb")


def _process(target: GdbTarget) -> Debuggee:
    target.memory.is_of_process()
    return ProcessDebuggee(target)


def _kernel(target: GdbTarget) -> Debuggee:
    from kgdb.debuggee import KernelDebuggee  # only where it is needed: it reads a large file
    from kgdb.image import WHERE_SYMBOLS_ARE, is_kernel, kernel_file, what_lacks

    path = kernel_file(target)
    if not is_kernel(path):
        if (lacks := what_lacks(path)) is not None:
            raise UnsupportedError(f"{path} {lacks}: {WHERE_SYMBOLS_ARE}")
        raise UnsupportedError(
            f"{path.name} is no kernel: darc needs a program on this machine, or a kernel "
            "behind 'target remote'"
        )
    target.memory.is_of_machine()
    return KernelDebuggee(GdbRemote(target))


KINDS = (
    DebuggeeKind(lambda stack: stack.is_core, _core),
    DebuggeeKind(lambda stack: stack.is_remote, _kernel),
    DebuggeeKind(lambda _stack: True, _process),
)
"""The first that is meant is what gdb has."""


def choose_debuggee(target: Target) -> Debuggee:
    """What an analysis would be of now.

    Raises:
        UsageError: there is no program.
        UnsupportedError: it is one that darc cannot reach.
    """
    assert isinstance(target, GdbTarget)
    stack = printed.target_stack()
    return next(kind for kind in KINDS if kind.is_meant(stack)).make(target)


def check_runnable(target: Target) -> None:
    """Whether darc could work where gdb runs its file.

    Raises:
        UnsupportedError: not in gdb's mode.
        UsageError: it is a kernel.
    """
    from kgdb.image import is_kernel

    assert isinstance(target, GdbTarget)
    target.check_mode()
    path = target.executable
    if path is not None and is_kernel(Path(path)):
        raise UsageError(
            f"{Path(path).name} is a kernel, and gdb is not connected to the machine that runs it: "
            "'target remote' first ('darc-vm list' shows those of darc-vm)"
        )
