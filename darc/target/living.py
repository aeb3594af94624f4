"""Where ``/proc`` tells of a process, also when its first thread has ended before the others.

That thread stays a zombie until the process ends (``pthread_exit(3)`` in ``main``), and in
``/proc/PID`` the kernel shows no memory, no mappings and no files any more: another thread's folder
has all of them. What is read of a process goes through :func:`folder`.
"""

from __future__ import annotations

from pathlib import Path

ENDED = ("", "Z", "X")
"""The states of a thread that is no more (``proc_pid_stat(5)``)."""


def state(pid: int, thread: int) -> str:
    """That of a thread, a letter; empty where there is none."""
    try:
        text = Path(f"/proc/{pid}/task/{thread}/stat").read_text(errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split(None, 1)[0]


_FLAGS, _PF_IO_WORKER = 6, 0x10


def is_kernels(pid: int, thread: int) -> bool:
    """Whether a thread of the process is one that the kernel has made for io_uring, which never
    runs the program's code and has no registers or stack of its own (``PF_IO_WORKER``)."""
    try:
        text = Path(f"/proc/{pid}/task/{thread}/stat").read_bytes()
        return bool(int(text.rpartition(b")")[2].split(None, 7)[_FLAGS]) & _PF_IO_WORKER)
    except (OSError, ValueError, IndexError):
        return False


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
    """The thread whose folder tells of the process: the first one, or another one that lives."""
    if state(pid, pid) in ENDED:
        return next((task for task in threads(pid) if state(pid, task) not in ENDED), pid)
    return pid


def folder(pid: int) -> Path:
    """Where ``/proc`` tells of a process: of its memory, its files, who traces it."""
    return Path(f"/proc/{speaker(pid)}")
