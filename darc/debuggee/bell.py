"""The signal that the agent rings with, and that the monitor knocks with: for the debugger alone.

Both send it with a mark (``DARC_BELL_MARK`` of ``abi.h``). A debugger that finds the mark keeps the
signal, whether the program has a handler or not: it may set one before the thread goes on. Without
a mark it is the program's own, and goes on to it; where that has no handler the kernel drops it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import struct
import time
from collections.abc import Iterable, Iterator

from darc.agent import compiled
from darc.code.system_calls import SystemCall
from darc.debuggee import procfs
from darc.target import living

SIGNALS = (23, 28)
"""SIGURG, SIGWINCH: ignored by default. SIGCONT is, too, but takes back every SIGSTOP that a
debugger has sent and still waits for."""

_SI_QUEUE = -1
_INFO = struct.Struct("<iii4xIIQ")
"""siginfo_t of a queued signal: number, error, code, sender's pid and uid, the value it carries."""

KNOCK = 19
"""SIGSTOP, which nobody can block: the monitor knocks with it where every thread blocks the bell's
signal. A debugger takes it before it stops anything; one that has died meanwhile leaves the program
stopped, as its own stops may."""

ASKED_FOR = frozenset(
    (
        signal.SIGHUP,
        signal.SIGPIPE,
        signal.SIGPWR,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGXCPU,
        signal.SIGXFSZ,
    )
)
"""What others send a program that has a handler for it, and at which debuggers stop unless they are
told not to. In a script nobody is there to let the program go on: they pass it on."""

UNDER_WAY_SECONDS = 1.0
"""Who was about to send darc's signal when the bell became another one has sent it by then."""

INFO_SIZE = 128
"""Bytes of a siginfo_t."""


class EarlierBells:
    """The signals that were the bell before: one of darc's may be under way still."""

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        """Since when each of them is not."""

    def change(self, before: int, now: int) -> None:
        """The bell is signal ``now``, and no longer ``before``."""
        if before in SIGNALS:
            self._since[before] = time.monotonic()
        self._since.pop(now, None)

    def __iter__(self) -> Iterator[int]:
        return iter(self._since)

    @property
    def late(self) -> set[int]:
        """Those that whoever was about to send them has sent by now."""
        latest = time.monotonic() - UNDER_WAY_SECONDS
        return {number for number, since in self._since.items() if since <= latest}

    def leave(self, numbers: Iterable[int]) -> None:
        """These are the program's alone from now on."""
        for number in numbers:
            del self._since[number]

    def forget(self) -> None:
        """The program is gone, and what was sent to it."""
        self._since.clear()


def choose(pid: int) -> int:
    """A signal of :data:`SIGNALS` that the process has no handler for, of these the one that fewer
    threads block: a program that reads it from a signalfd blocks it everywhere, and where no call
    of f0 comes the monitor must reach one. The first where it has a handler for each: then nobody
    rings but the monitor."""
    free = [number for number in SIGNALS if not procfs.catches(pid, number)]
    if len(free) < len(SIGNALS):
        return (free or SIGNALS)[0]
    deaf = procfs.deaf(pid, free)
    return min(free, key=deaf.__getitem__)


def unblocked(pid: int, thread: int) -> int | None:
    """One of :data:`SIGNALS` that a thread does not block, if it can be one that the process has no
    handler for."""
    heard = [number for number in SIGNALS if not procfs.blocks(pid, thread, number)]
    return min(heard, key=lambda number: procfs.catches(pid, number), default=None)


def problem(pid: int, number: int) -> str | None:
    """Why the signal may not be sent: where as many wait as may, the kernel forgets what further
    ones say (``__send_signal_locked``), and a handler of the program's would take darc's for its
    own. ``None``: it may."""
    if not procfs.is_queue_full(pid) or not procfs.catches(pid, number):
        return None
    return (
        "the program has handlers for darc's signals, and as many signals wait for its user's "
        f"processes as may (ulimit -i): raise that ('prlimit --pid {pid} --sigpending=1000')"
    )


def send(pid: int, thread: int, number: int) -> None:
    """Sends a thread of the process the signal, with the mark; none where there is a
    :func:`problem`."""
    if problem(pid, number) is not None:
        return
    mark = compiled.load().constants.BELL_MARK
    info = _INFO.pack(number, 0, _SI_QUEUE, os.getpid(), os.getuid(), mark).ljust(INFO_SIZE, b"\0")
    _libc().syscall(SystemCall.RT_TGSIGQUEUEINFO, pid, thread, number, info)


def send_to_any(pid: int, named: int | None, number: int) -> None:
    """Sends the process the signal, with the mark: to the thread ``named``, if that hears it, or to
    another one that does. Where none does, a thread gets :data:`KNOCK` in its place."""
    if named is not None and procfs.hears(pid, named, number):
        send(pid, named, number)
        return
    threads = procfs.threads(pid)
    for thread in threads:
        if procfs.hears(pid, thread, number):
            send(pid, thread, number)
            return
    for thread in [named] if named is not None else threads[:1]:
        send(pid, thread, KNOCK)


def hand_on(pid: int, thread: int, number: int) -> None:
    """Sends a thread of the process a signal that is the program's own, without a mark."""
    _libc().syscall(SystemCall.TGKILL, pid, thread, number)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def is_marked(code: int, value: int) -> bool:
    """Whether a signal is darc's own, by its ``si_code`` and the value that it carries."""
    return code == _SI_QUEUE and value == compiled.load().constants.BELL_MARK


def own_pid_for(pid: int) -> int:
    """This process's id as process ``pid`` sees it; 0 where it does not (a container does not see
    what is outside)."""
    try:
        same = living.look(pid, lambda its: (its / "ns/pid").samefile("/proc/self/ns/pid"))
    except OSError:
        return 0
    return os.getpid() if same else 0
