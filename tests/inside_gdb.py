"""Commands for tests, to be sourced into gdb. They look at the program past gdb and past darc.

tell-code           compares the code of every mapped file with the file, byte for byte
interrupt-at N      sends gdb a SIGINT (Ctrl-C) once darc has seen N calls, while the program runs
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import gdb


def altered_code(pid: int) -> tuple[int, list[str]]:
    """How many bytes of code were compared, and ``file+offset`` of each that is another one."""
    compared, altered = 0, []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, permissions, offset, _, inode, *path = line.split(maxsplit=5)
            if "x" not in permissions or inode == "0" or not path:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            with Path(path[0].strip()).open("rb") as file:
                file.seek(int(offset, 16))
                stored = file.read(end - start)
            memory.seek(start)
            live = memory.read(len(stored))
            compared += len(live)
            name = Path(path[0]).name
            begin = int(offset, 16)
            altered += [f"{name}+{begin + i:#x}" for i, b in enumerate(live) if b != stored[i]]
    return compared, altered


class TellCode(gdb.Command):
    def __init__(self) -> None:
        super().__init__("tell-code", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        compared, altered = altered_code(gdb.selected_inferior().pid)
        print(f"code: {compared} bytes compared, {len(altered)} altered: {' '.join(altered[:20])}")


class InterruptAt(gdb.Command):
    def __init__(self) -> None:
        super().__init__("interrupt-at", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        import darc_gdb

        calls = int(argument)
        moment = threading.Event()

        def watch() -> None:
            while True:
                session = darc_gdb.APP.session
                if session is not None and session.progress()[0] >= calls:
                    os.kill(os.getpid(), signal.SIGINT)
                    return
                moment.wait(0.001)

        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        threading.Thread(target=watch, daemon=True).start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


TellCode()
InterruptAt()
