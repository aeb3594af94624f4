"""The program's threads and their registers, from gdb or from the kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import gdb

from darc.code.frame_rule import WORD
from darc.code.processor import FLAGS, PROGRAM_COUNTER
from darc.debuggee import procfs
from darc.model.errors import TargetError
from darc.target.ownthread import Turn, own_thread
from darc.target.threads import Threads
from darc_gdb.tracee import Tracee
from darc_gdb.translated import translated


@own_thread
class GdbThreads(Threads):
    """Those of gdb's selected inferior."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._counters: dict[int, int] | None = None

    def moved(self) -> None:
        """They may stand elsewhere by now."""
        self._counters = None

    def ids(self) -> Sequence[int]:
        inferior = gdb.selected_inferior()
        found = map(tid, inferior.threads())
        return [thread for thread in found if not procfs.is_kernels(int(inferior.pid), thread)]

    def from_selected(self) -> Sequence[int]:
        """All threads, the selected one first."""
        thread, found = selected(), self.ids()
        first = None if thread is None else tid(thread)
        return sorted(found, key=lambda one: one != first)

    @translated
    def program_counters(self) -> Mapping[int, int]:
        if self._counters is None:
            self._counters = {t: self.read_register(t, PROGRAM_COUNTER) for t in self.ids()}
        return self._counters

    @translated
    def read_register(self, thread: int, name: str) -> int:
        if (found := self._ask_kernel(thread, name)) is not None:
            return found
        with self._selected(thread) as frame:
            return int(frame.read_register(name)) & WORD

    def _ask_kernel(self, thread: int, name: str) -> int | None:
        """A general register of a process of this machine: gdb takes as long for one thread as the
        kernel for a hundred, and longer the more there are. ``None``: gdb is to be asked.

        The kernel answers of threads that this gdb traces, and so of none behind a server. (Not by
        ``Inferior.connection``: gdb 13 asserts at its exit once that object was made.)"""
        inferior = gdb.selected_inferior()
        if not inferior.pid:
            return None
        try:
            return Tracee(int(inferior.pid), thread).registers().get(name)
        except TargetError:
            return None

    @translated
    def write_register(self, thread: int, name: str, value: int) -> None:
        with self._selected(thread):
            assign(name, value)
        self.moved()

    @translated
    def show(self, thread: int) -> str | None:
        self.find(thread).switch()
        return None

    def settle_selection(self) -> None:
        """gdb is about to end. It may have been interrupted where it had a thread's id selected and
        no thread (its reads for libthread_db), and gdb 13 asserts where it is asked then which one
        is selected. None can be where a machine runs, of which gdb would complain."""
        threads = [one for one in gdb.selected_inferior().threads() if not one.is_running()]
        if threads:
            threads[0].switch()

    def find(self, thread: int) -> gdb.InferiorThread:
        """One of them. Raises TargetError: it is gone."""
        for candidate in gdb.selected_inferior().threads():
            if tid(candidate) == thread:
                return candidate
        raise TargetError(f"thread {thread} is gone")

    @contextlib.contextmanager
    def _selected(self, thread: int) -> Iterator[gdb.Frame]:
        before = selected()
        if before is not None and before.is_valid() and tid(before) == thread:
            yield gdb.newest_frame()
            return
        found = self.find(thread)
        try:
            found.switch()
            yield gdb.newest_frame()
        finally:
            if before is not None and before.is_valid():
                before.switch()


def selected() -> gdb.InferiorThread | None:
    """The thread that is selected. None: there is none. Where gdb has forgotten already what that
    one was in Python, as when it is about to end (``thread_to_thread_object``: SystemError), one of
    those that it knows."""
    try:
        return gdb.selected_thread()
    except SystemError:
        return next(iter(gdb.selected_inferior().threads()), None)


def tid(thread: gdb.InferiorThread) -> int:
    """The system's id of a thread."""
    pid, lwp, other = thread.ptid
    return int(lwp or other or pid)


def forget_registers() -> None:
    """gdb knows no register of any thread any more: they were changed without it."""
    gdb.execute("maint flush register-cache", to_string=True)


_VALUE = "_darc_value"


def assign(name: str, value: int) -> None:
    """Sets a register of the selected thread. Not by a command: behind each of those gdb carries
    out what breakpoints have to do, also in the middle of a stop. So the language is as it is,
    which need not be the frame's: in some of them ``=`` compares, and nothing is set; and each has
    its own way to write a number. Flags are made of no number that is longer than they are."""
    given: int | gdb.Value = value
    if name == FLAGS:
        kind = gdb.parse_and_eval(f"${name}").type
        given = gdb.Value(value.to_bytes(kind.sizeof, "little"), kind)
    gdb.set_convenience_variable(_VALUE, given)
    try:
        if _is_compared(f"${name} = ${_VALUE}"):
            gdb.parse_and_eval(f"${name} := ${_VALUE}")
    finally:
        gdb.set_convenience_variable(_VALUE, None)


def _is_compared(expression: str) -> bool:
    """Whether the language takes an assignment for a comparison. Flags it cannot compare."""
    try:
        return bool(gdb.parse_and_eval(expression).type.code == gdb.TYPE_CODE_BOOL)
    except gdb.error:
        return True
