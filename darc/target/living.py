"""Where ``/proc`` tells of a process, also when its first thread has ended before the others.

That thread stays a zombie until the process ends (``pthread_exit(3)`` in ``main``), and in
``/proc/PID`` the kernel shows no memory, no mappings and no files any more: another thread's folder
has all of them. What is read of a process goes through :func:`folder`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

ENDED = ("", "Z", "X")
"""The states of a thread that is no more (``proc_pid_stat(5)``)."""


def state(pid: int, thread: int) -> str:
    """That of a thread, a letter; empty where there is none. One that is ending is "X": it runs
    nothing of the program's any more and takes no signals, and soon has no memory, while the kernel
    gives back what it had, which takes it milliseconds a gigabyte (``PF_EXITING``)."""
    fields = _stat(pid, thread)
    if not fields:
        return ""
    letter = fields[_STATE].decode()
    return letter if letter in ENDED or not int(fields[_FLAGS]) & _PF_EXITING else "X"


_STATE, _FLAGS, _PENDING = 0, 6, 28
_PF_EXITING = 0x4
_PF_IO_WORKER = 0x10
_STAT_BYTES = 4096


def _stat(pid: int, thread: int) -> list[bytes]:
    """The fields of ``proc_pid_stat(5)`` behind the thread's name; none where there is no thread.
    A program has hundreds of threads, and is looked at while it is to stop at once."""
    try:
        fd = os.open(f"/proc/{pid}/task/{thread}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return os.read(fd, _STAT_BYTES).rpartition(b")")[2].split()
    except OSError:
        return []
    finally:
        os.close(fd)


def takes(pid: int, thread: int, signals: int) -> bool:
    """Whether a thread is held, or has one of ``signals``, a mask of those up to 31, to take, that
    was sent to it by itself."""
    fields = _stat(pid, thread)
    return bool(fields) and (
        fields[_STATE] in (b"t", b"T") or bool(int(fields[_PENDING]) & signals)
    )


def is_kernels(pid: int, thread: int) -> bool:
    """Whether a thread of the process is one that the kernel has made for io_uring, which never
    runs the program's code and has no registers or stack of its own (``PF_IO_WORKER``)."""
    fields = _stat(pid, thread)
    return bool(fields) and bool(int(fields[_FLAGS]) & _PF_IO_WORKER)


def threads(pid: int) -> list[int]:
    """The threads of a process that run the program's code: without the kernel's own, and without
    a first one that has ended, which takes no signals; none when the process is gone. This is the
    one place that tells which these are."""
    return [task for task in tasks(pid) if not is_kernels(pid, task)]


def is_thread(pid: int, thread: int) -> bool:
    """Whether ``thread`` is one of the :func:`threads`."""
    now = state(pid, thread)
    is_there = bool(now) and (thread != pid or now not in ENDED)
    return is_there and not is_kernels(pid, thread)


def tasks(pid: int) -> list[int]:
    """The :func:`threads` and the kernel's own, which a debugger stops with the others."""
    try:
        found = [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
    return [task for task in found if task != pid or state(pid, pid) not in ENDED]


def speaker(pid: int) -> int:
    """The thread whose folder tells of the process: the first one, or another one that lives. They
    may end while they are looked at, and leave others behind."""
    found: list[int] = []
    while state(pid, pid) in ENDED:
        before, found = found, threads(pid)
        living = (task for task in found if state(pid, task) not in ENDED)
        if (one := next(living, None)) is not None:
            return one
        if found == before:
            break
    return pid


def folder(pid: int) -> Path:
    """Where ``/proc`` tells of a process: of its memory, its files, who traces it. Whoever reads
    there does so by :func:`look`."""
    return Path(f"/proc/{speaker(pid)}")


Found = TypeVar("Found")


def look(
    pid: int, at: Callable[[Path], Found], drop: Callable[[Found], object] | None = None
) -> Found:
    """What is found in a process's :func:`folder`. Where the thread whose folder it is ends
    meanwhile, nothing may be there, or nothing of the process: it is looked ``at`` again in that of
    another one, and what was found is to be ``drop``-ped.

    Raises:
        OSError: as ``at`` does.
    """
    while True:
        thread = speaker(pid)
        try:
            found = at(Path(f"/proc/{thread}"))
        except OSError:
            if _still_speaks(pid, thread):
                raise
            continue
        if _still_speaks(pid, thread):
            return found
        if drop is not None:
            drop(found)


def _still_speaks(pid: int, thread: int) -> bool:
    return state(pid, thread) not in ENDED or speaker(pid) == thread
