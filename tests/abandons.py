"""A debugger that is killed as its program makes a child: ``python -m tests.abandons PID``, and
``guarded`` where darc's guardian is to watch over the program.

It has not seen the child stop by then, so the child stays stopped before its first instruction.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_ATTACH, _CONTINUE, _OPTIONS = 16, 7, 0x4200
_CHILDREN = 1 << 1 | 1 << 2 | 1 << 3  # PTRACE_O_TRACEFORK, -VFORK, -CLONE
_ALL = 0x40000000  # __WALL
_PTRACE = ctypes.CDLL(None, use_errno=True).ptrace


def _ask(request: int, thread: int, data: int = 0) -> None:
    if _PTRACE(request, thread, None, ctypes.c_void_p(data)) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def main() -> None:
    pid = int(sys.argv[1])
    if sys.argv[2:] == ["guarded"]:
        from darc.debuggee.guardian import Guardian

        guardian = Guardian(pid)  # as long as it is there, this debugger lives
        assert guardian.pid == pid
    threads = [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    for thread in threads:
        _ask(_ATTACH, thread)
        os.waitpid(thread, _ALL)
        _ask(_OPTIONS, thread, _CHILDREN)
    for thread in threads:
        _ask(_CONTINUE, thread)
    print("traces", flush=True)
    while True:
        # Of a child's own stop, which may be there before its parent's, nobody takes note: the
        # kernel would forget the signal by which it stops.
        seen = os.waitid(os.P_ALL, 0, os.WSTOPPED | os.WEXITED | os.WNOWAIT | _ALL)
        assert seen is not None
        if seen.si_pid not in threads:
            os.kill(os.getpid(), signal.SIGKILL)
        _, status = os.waitpid(seen.si_pid, _ALL)
        if status >> 16:
            os.kill(os.getpid(), signal.SIGKILL)
        _ask(_CONTINUE, seen.si_pid, os.WSTOPSIG(status))


if __name__ == "__main__":
    main()
