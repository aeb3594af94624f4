"""Commands for tests, to be sourced into gdb. They look at the program past gdb and past darc.

tell-code           compares the code of every mapped file with the file, byte for byte
watch-code PLACE    does so when the program is at PLACE, until some differ, without a user's stop
tell-watched        tells how many bytes were other ones there, but for breakpoints
start-at OFFSET …   'darc start' on the function there in the program's file, with these options
with-app FILE       runs Python with 'app' (darc's), 'execute' (commands) and 'tid' (the thread's)
interrupt-at N      sends gdb a SIGINT (Ctrl-C) once darc has seen N calls, while the program runs
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import gdb

sys.path.append(str(Path(__file__).resolve().parent.parent))
from tests.code import altered_code

ET_DYN = 3


class TellCode(gdb.Command):
    def __init__(self) -> None:
        super().__init__("tell-code", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        compared, _, altered = altered_code(gdb.selected_inferior().pid)
        print(f"code: {compared} bytes compared, {len(altered)} altered: {' '.join(altered[:20])}")


class Watch(gdb.Breakpoint):
    """Looks at the code while the program is under way: gdb's own breakpoints stand in it then."""

    most = 0

    def stop(self) -> bool:
        pid = gdb.selected_inferior().pid
        _, breakpoints, altered = altered_code(pid)
        Watch.most = len(altered) - breakpoints
        # Once is enough; gdb may not delete a breakpoint here, but it may pass over it.
        self.enabled = Watch.most == 0
        return False


class WatchCode(gdb.Command):
    def __init__(self) -> None:
        super().__init__("watch-code", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        Watch.most = 0
        Watch(argument, internal=True)


class TellWatched(gdb.Command):
    def __init__(self) -> None:
        super().__init__("tell-watched", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        print(f"watched: {Watch.most} altered")


class StartAt(gdb.Command):
    def __init__(self) -> None:
        super().__init__("start-at", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        offset, _, options = argument.partition(" ")
        address = load_base(gdb.selected_inferior().pid) + int(offset, 16)
        gdb.execute(f"darc start *{address:#x} {options}")


def load_base(pid: int) -> int:
    """What is added to the addresses in the program's file: 0 for one that cannot be moved."""
    executable = Path(f"/proc/{pid}/exe")
    with executable.open("rb") as file:
        if int.from_bytes(file.read(18)[16:18], "little") != ET_DYN:
            return 0
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if line.endswith(str(executable.readlink())):
            return int(line.split("-")[0], 16)
    raise gdb.GdbError(f"{executable.readlink()} is not mapped")


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
                if (
                    session is not None
                    and session.alive
                    and session.collector.counting.seen >= calls
                ):
                    os.kill(os.getpid(), signal.SIGINT)
                    return
                moment.wait(0.001)

        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        threading.Thread(target=watch, daemon=True).start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WithApp(gdb.Command):
    def __init__(self) -> None:
        super().__init__("with-app", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        import darc_gdb

        script = compile(Path(argument).read_text(), argument, "exec")
        thread = gdb.selected_thread()
        tid = None if thread is None else thread.ptid[1]
        exec(script, {"app": darc_gdb.APP, "execute": gdb.execute, "tid": tid})


TellCode()
WatchCode()
TellWatched()
StartAt()
InterruptAt()
WithApp()
