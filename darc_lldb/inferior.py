"""The program that one of lldb's debuggers has selected, or darc analyses: which it is, how it is,
and whether lldb may be asked about it.

One lock keeps commands, stops and the end of the program apart. Whoever holds it may wait for lldb
only on a thread that lldb itself has called.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import lldb

from darc.debuggee import procfs
from darc.model.errors import TargetError
from darc.target.target import State
from darc_lldb.callbacks import LldbCallbacks
from darc_lldb.watcher import Watcher

_STANDING = (lldb.eStateStopped, lldb.eStateCrashed, lldb.eStateSuspended)
_GONE = (
    lldb.eStateInvalid,
    lldb.eStateUnloaded,
    lldb.eStateConnected,
    lldb.eStateExited,
    lldb.eStateDetached,
)


_DUMPS = ("elf-core", "minidump")
"""lldb's plugins for what is left of a process."""


class Inferior:
    """What ``debugger`` has selected, or had when darc was asked to analyse it."""

    def __init__(self, debugger: lldb.SBDebugger) -> None:
        self.debugger = debugger
        self.lock = threading.RLock()
        self.callbacks = LldbCallbacks()
        self.known: int | None = None
        """The process that was met, also where lldb may not be asked."""
        self.watcher: Watcher | None = None
        self._is_busy: Callable[[], bool] = lambda: False
        """Whether darc analyses or awaits a program: it stays with that, whatever is selected."""
        self._home: lldb.SBTarget | None = None
        """The target of that program, or of the one that was met last."""
        self._stays = False
        """Whether darc was busy with it when what is done now began."""
        self._executable: str | None = None
        self._local = threading.local()

    def serve(self, is_busy: Callable[[], bool], callbacks: LldbCallbacks) -> None:
        """From now on ``callbacks`` are told of the program, and ``is_busy`` tells whether darc
        analyses or awaits one."""
        self._is_busy, self.callbacks = is_busy, callbacks

    def is_own_thread(self) -> bool:
        """Whether lldb may be asked here: on a thread that lldb itself has called, and on darc's
        only where that has lldb's leave. lldb may hold its own lock, and wait for others of
        darc's."""
        asks = getattr(self._local, "asks", None)
        if asks is not None:
            return bool(asks)
        here = threading.current_thread()
        return here is threading.main_thread() or isinstance(here, threading._DummyThread)

    def may_ask(self, may: bool) -> None:
        """This thread, which is darc's, has lldb's leave from now on, or not."""
        self._local.asks = may

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """This thread, which is darc's, has lldb's leave meanwhile."""
        self.may_ask(True)
        try:
            yield
        finally:
            self.may_ask(False)

    @property
    def blind(self) -> bool:
        """Whether lldb may not be asked: its main thread may hold lldb's lock, and wait for us."""
        return not self.is_own_thread()

    @property
    def target(self) -> lldb.SBTarget:
        """That of the program which darc is busy with, else the selected one."""
        home = self._home
        if home is not None and home.IsValid() and (self._stays or self._is_busy()):
            return home
        return self.debugger.GetSelectedTarget()

    @property
    def is_away(self) -> bool:
        """Whether the user has selected another target than that which darc is busy with."""
        return not self.is_home(self.debugger.GetSelectedTarget())

    def is_home(self, target: lldb.SBTarget) -> bool:
        """Whether that is the one which darc is about."""
        return bool(target == self.target)

    @contextlib.contextmanager
    def staying(self) -> Iterator[None]:
        """What is done meanwhile is about the target that darc is busy with now, also where it
        ends that."""
        before, self._stays = self._stays, self._stays or self._is_busy()
        try:
            yield
        finally:
            self._stays = before

    @contextlib.contextmanager
    def at_home(self) -> Iterator[None]:
        """Commands of lldb's are about the target that darc is busy with meanwhile."""
        if not self.is_away:
            yield
            return
        selected = self.debugger.GetSelectedTarget()
        self.debugger.SetSelectedTarget(self.target)
        try:
            yield
        finally:
            self.debugger.SetSelectedTarget(selected)

    @property
    def process(self) -> lldb.SBProcess:
        """Its process, which may not be valid."""
        return self.target.GetProcess()

    @property
    def pid(self) -> int | None:
        """See :attr:`darc.target.target.Target.pid`."""
        if self.blind:
            return self.known
        process = self.process
        if not self.lives(process) or not self.is_local():
            return None
        return int(process.GetProcessID()) or None

    def lives(self, process: lldb.SBProcess) -> bool:
        """Whether there is a process; one that was killed is gone before lldb notices."""
        if not process.IsValid() or process.GetState() in _GONE or self.is_core(process):
            return False
        return not self.is_local() or Path(f"/proc/{process.GetProcessID()}").exists()

    def is_core(self, process: lldb.SBProcess) -> bool:
        """Whether that is a core file."""
        return process.GetPluginName() in _DUMPS

    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return bool(self.target.GetPlatform().GetName() == "host")

    @property
    def state(self) -> State:
        """See :attr:`darc.target.target.Target.state`."""
        if self.blind:
            return State.NONE if self.known is None else State.RUNNING
        process = self.process
        if not self.lives(process):
            return State.NONE
        return State.STOPPED if process.GetState() in _STANDING else State.RUNNING

    def stopped_process(self) -> lldb.SBProcess:
        """The program. Raises TargetError: there is none that is stopped."""
        if self.state is not State.STOPPED:
            raise TargetError("there is no program that is stopped")
        return self.process

    @property
    def attached(self) -> bool:
        """lldb does not tell: a program that it launched is a child of its lldb-server's."""
        pid = self.pid
        if pid is None:
            return False
        parent = int(procfs.status(pid).get("PPid", "0"))
        return procfs.status(parent).get("PPid", "").strip() != str(os.getpid())

    @property
    def executable(self) -> str | None:
        """See :attr:`darc.target.target.Target.executable`."""
        if not self.blind:
            file = self.target.GetExecutable()
            self._executable = str(file.fullpath) if file.IsValid() else None
        return self._executable

    def make_home(self) -> None:
        """The selected target is the one that darc is busy with from now on."""
        self._home = self.debugger.GetSelectedTarget()

    def meet(self, process: lldb.SBProcess, watcher: Watcher) -> None:
        """One that was not known before, and that has this watcher; its executable is noted, for
        where lldb may not be asked."""
        self.watcher = watcher
        self.known = int(process.GetProcessID())
        self._home = process.GetTarget()
        self._executable = self.executable

    def lose(self) -> None:
        """The process has ended, or lldb has it no more: it is watched no longer."""
        self.known = None
        if self.watcher is not None:
            self.watcher.close()

    def seems_to_stand(self) -> bool:
        """By what the kernel tells. Any thread."""
        watcher = self.watcher
        return watcher is None or watcher.program_stands()

    def unwatch(self) -> None:
        """Nobody is to be told whether the program goes on or stands still, as darc lets it."""
        if self.watcher is not None:
            self.watcher.pause()
