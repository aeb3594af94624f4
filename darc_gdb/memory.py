"""The program's memory as gdb reads and writes it, or beside gdb where nobody is to notice."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

import gdb

from darc.code.processor import BREAKPOINT
from darc.debuggee import procfs
from darc.model.errors import TargetError
from darc.target.batch import BatchedMemory
from darc.target.memory import Hidden
from darc.target.ownthread import Turn, own_thread
from darc_gdb.translated import translated


def _nothing() -> None:
    """A process that gdb has stopped goes on by gdb alone."""


@own_thread
class GdbMemory(BatchedMemory):
    """That of gdb's selected inferior."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._unlock: Callable[[int, int], bool] | None = None
        """Makes the bytes at an address writable that were refused; whether it could."""
        self._hidden: Hidden | None = None
        """Memory that is there but not mapped now."""
        self._is_local = True
        """Whether the program may be a process of this machine."""
        self._hold: Callable[[], None] = _nothing
        """Makes sure that what gdb asks is heard."""
        self.in_handlers = False
        """Whether handlers of a stop are at work: no command of gdb's may be carried out."""
        self._quiet = False
        """Whether darc writes beside gdb."""
        self._stale = False
        """Whether it has, since :meth:`unnoticed`."""
        self._opened: tuple[int, procfs.MemoryFile] | None = None
        """The process whose memory is open for that."""

    def is_of_process(self) -> None:
        """It is that of a process of this machine."""
        self._hidden, self._is_local, self._hold = None, True, _nothing

    def is_of_machine(self) -> None:
        """It is that of a machine which gdb is connected to."""
        self._is_local = False

    def reach_through(self, hidden: Hidden | None) -> None:
        """See :meth:`kgdb.remote.Remote.reach_through`."""
        self._hidden = hidden

    def hold_by(self, hold: Callable[[], None]) -> None:
        """``hold`` makes the machine stand still, should it run although gdb believes that it
        stands: it is called ahead of each access."""
        self._hold = hold

    def hold(self) -> None:
        """What gdb asks from now on is heard; see :meth:`hold_by`."""
        self._hold()

    def unlock_by(self, unlock: Callable[[int, int], bool] | None) -> None:
        """See :meth:`kgdb.remote.Remote.unlock_by`."""
        self._unlock = unlock

    @translated
    def _read(self, address: int, size: int) -> bytes:
        self._hold()
        try:
            return bytes(gdb.selected_inferior().read_memory(address, size))
        except gdb.MemoryError:
            found = None if self._hidden is None else self._hidden.read(address, size)
            if found is None:
                raise
            return found

    @translated
    def _write(self, address: int, data: bytes) -> None:
        if self._quiet and self._written_unnoticed(address, data):
            return
        self._hold()
        memory = gdb.selected_inferior()
        try:
            memory.write_memory(address, data)
        except gdb.MemoryError:
            if self._hidden is not None and self._hidden.write(address, data):
                return
            if not self._unlocked(address, len(data)):
                raise
            memory.write_memory(address, data)

    def _written_unnoticed(self, address: int, data: bytes) -> bool:
        """Whether it could be written beside gdb, which tells everybody of each write that it
        makes. Where a breakpoint of any kind stands in these bytes they are gdb's to write, and all
        memory of a program that is not a process of gdb's on this machine."""
        memory = self._beside()
        if memory is None:
            return False
        try:
            seen = bytes(gdb.selected_inferior().read_memory(address, len(data)))
            if memory.read(address, len(data)) != seen or seen == BREAKPOINT:
                return False  # gdb's may stand on one that another debugger has left
            self._stale = True
            memory.write(address, data)
        except (TargetError, gdb.MemoryError):
            return False
        return True

    def _beside(self) -> procfs.MemoryFile | None:
        """The memory of the process that gdb has stopped on this machine, opened once for all that
        is written at a stop."""
        pid = int(gdb.selected_inferior().pid)
        if self._opened is not None and self._opened[0] == pid:
            return self._opened[1]
        if not pid or not self._is_local:
            return None
        if procfs.status(pid).get("TracerPid", "").strip() != str(os.getpid()):
            return None
        self._close()
        try:
            self._opened = pid, procfs.MemoryFile(pid)
        except TargetError:
            return None
        return self._opened[1]

    def _close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened[1].close()

    @contextlib.contextmanager
    def unnoticed(self) -> Iterator[None]:
        """What darc writes meanwhile is no event for other extensions and front ends: there are
        hundreds of writes at a stop, and each of them may read everything anew, with the program
        standing still. Not within a stop's handlers, as it ends with a command of gdb's."""
        if self._quiet or self.in_handlers:
            yield
            return
        self._quiet, self._stale = True, False
        try:
            yield
        finally:
            self._quiet = False
            self._close()
            if self._stale:  # gdb keeps code and stacks that it has read since the program stopped
                with contextlib.suppress(gdb.error):
                    gdb.execute("maint flush dcache", to_string=True)

    @contextlib.contextmanager
    def handling(self) -> Iterator[None]:
        """See :attr:`in_handlers`."""
        was, self.in_handlers = self.in_handlers, True
        try:
            yield
        finally:
            self.in_handlers = was

    def _unlocked(self, address: int, size: int) -> bool:
        """Whether memory that could not be written can be now."""
        if self._unlock is None:
            return False
        batch, self._batch = self._batch, None
        try:
            return self._unlock(address, size)
        finally:
            self._batch = batch
