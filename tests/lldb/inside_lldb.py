"""Commands for tests, to be imported into lldb: those of :mod:`tests.inside_gdb`.

tell-code           compares the code of every mapped file with the file, byte for byte
interrupt-at N      stops the program once darc has seen N calls, while it runs
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import lldb

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))


def altered_code(process: lldb.SBProcess) -> tuple[int, list[str]]:
    """How many bytes of code were compared, and ``file+offset`` of each that is another one and
    not a breakpoint of lldb's."""
    compared, altered = 0, []
    pid = process.GetProcessID()
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
            if live == stored:
                continue
            for i in (i for i, byte in enumerate(live) if byte != stored[i]):
                if process.ReadMemory(start + i, 1, lldb.SBError()) != stored[i : i + 1]:
                    altered.append(f"{Path(path[0]).name}+{int(offset, 16) + i:#x}")
    return compared, altered


def tell_code(debugger, argument, context, result, namespace):
    compared, altered = altered_code(debugger.GetSelectedTarget().GetProcess())
    print(f"code: {compared} bytes compared, {len(altered)} altered: {' '.join(altered[:20])}")


def interrupt_at(debugger, argument, context, result, namespace):
    from darc_lldb.commands import APPS

    app = APPS[debugger.GetID()]
    wanted = int(argument)
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            if app.session is not None and app.session.progress()[0] >= wanted:
                os.kill(app.session.foothold.pid, signal.SIGSTOP)
                return

    threading.Thread(target=watch, daemon=True).start()


def __lldb_init_module(debugger, namespace):
    for name in ("tell_code", "interrupt_at"):
        command = name.replace("_", "-")
        debugger.HandleCommand(f"command script add -f {__name__}.{name} {command}")
