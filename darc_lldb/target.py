"""The target interface on the lldb module: what is asked of darc is in parts, a class each.

lldb may be asked only on a thread that it has called itself (:class:`Inferior`).
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import lldb

from darc.debuggee import bell, procfs
from darc.debuggee.refusals import check_processor, core_file, no_program
from darc.model.errors import UnsupportedError
from darc.target.outcome import Outcome
from darc.target.ownthread import Turn, any_thread, own_thread
from darc.target.target import SignalStop, State, Target
from darc_lldb import signals
from darc_lldb.breaks import LldbBreaks
from darc_lldb.calls import Calls
from darc_lldb.frames import LldbFrames
from darc_lldb.inferior import Inferior
from darc_lldb.memory import LldbMemory
from darc_lldb.ownstops import OwnBreakpoints, Reason
from darc_lldb.screen import LldbScreen
from darc_lldb.server import has_siginfo
from darc_lldb.stopping import Stopping
from darc_lldb.symbols import LldbSymbols
from darc_lldb.threads import LldbThreads
from darc_lldb.user_breaks import LldbUserBreakpoints

_ARCHITECTURE = "x86_64"
"""What lldb calls the processor that darc knows."""

_ELSEWHERE = (
    "the program is in another PID namespace, where lldb takes its own stops of threads for the "
    "program's signals, and may leave it stopped: take gdb, or lldb inside ('nsenter -t {pid} "
    "-p -m')"
)
"""lldb-server knows its SIGSTOPs by their sender, and nobody inside sees it: that is 0 there."""


@own_thread
class LldbTarget(Target):
    """The selected target of one of lldb's debuggers."""

    interrupted_by = "process interrupt"

    frames: LldbFrames
    screen: LldbScreen

    def __init__(self, debugger: lldb.SBDebugger) -> None:
        self.inferior = Inferior(debugger)
        self.turn = Turn(self.inferior.is_own_thread)
        self.memory = LldbMemory(self.turn, self.inferior)
        self.screen = LldbScreen(self.turn, debugger, self.inferior)
        self.symbols = LldbSymbols(self.turn, self.inferior)
        self._calls = Calls(self, debugger)
        self.threads = LldbThreads(self.turn, self, self._calls)
        self._own = OwnBreakpoints()
        self.breaks = LldbBreaks(
            turn=self.turn,
            inferior=self.inferior,
            own=self._own,
            memory=self.memory,
            tidy=self._tidy,
        )
        self.user_breaks = LldbUserBreakpoints(self.turn, self.inferior, self._own)
        self.frames = LldbFrames(self.turn, self.inferior, self._tidy)
        self.stopping = Stopping(
            self.turn,
            self.inferior,
            calling=self._calls,
            threads=self.threads,
            own=self._own,
            users=self.user_breaks,
            frames=self.frames,
            screen=self.screen,
            tidy=self._tidy,
        )
        self.bell = self.stopping.bell
        self.was_prepared = False
        """Whether an analysis was begun, or is beginning."""

    # -------------------------------------------------------------------- state

    @property
    @any_thread
    def pid(self) -> int | None:
        return self.inferior.pid

    @property
    @any_thread
    def state(self) -> State:
        return self.inferior.state

    @property
    @any_thread
    def attached(self) -> bool:
        return self.inferior.attached

    @property
    def outlives_debugger(self) -> bool:
        """lldb's server lets a program go on that lldb has launched, too, when that is gone."""
        return True

    @property
    @any_thread
    def executable(self) -> str | None:
        return self.inferior.executable

    @contextlib.contextmanager
    def leaving_home(self) -> Iterator[bool]:
        yield self.inferior.is_away

    def make_home(self) -> None:
        with self.inferior.lock:
            self.stopping.make_home()
            if self.was_prepared:
                self._watch()

    def check_supported(self) -> None:
        if self.state is State.NONE:
            raise no_program()
        kind = self.inferior.process.GetPluginName()
        if kind != "gdb-remote":
            raise UnsupportedError(f"darc needs a running program, not lldb's target {kind}")
        if self.pid is None or not Path(f"/proc/{self.pid}/mem").exists():
            raise UnsupportedError("darc needs a program on this machine, not a remote target")
        check_processor(self.inferior.target.GetTriple().partition("-")[0], _ARCHITECTURE)
        if not bell.own_pid_for(self.pid):
            raise UnsupportedError(_ELSEWHERE.format(pid=self.pid))

    def check_runnable(self) -> None:
        """Whether lldb could run its file. Raises UnsupportedError: it has a core file."""
        if self.inferior.is_core(self.inferior.process):
            raise core_file("lldb")

    def unwatch(self) -> None:
        """See :meth:`Inferior.unwatch`."""
        self.inferior.unwatch()

    def stopped_process(self) -> lldb.SBProcess:
        """See :meth:`Inferior.stopped_process`."""
        return self.inferior.stopped_process()

    @property
    def stop_number(self) -> int | None:
        return int(self.inferior.process.GetStopID(True))

    @property
    def handled_signal(self) -> SignalStop | None:
        pid = self.pid
        for thread in self.inferior.process:
            reason = Reason.of(thread, self._own)
            number = None if reason is None else reason.signal
            if number is None or number in (*signals.INTERRUPTS, *self.stopping.bell.numbers):
                continue
            if pid is not None and procfs.catches(pid, number):
                name = str(self.inferior.process.GetUnixSignals().GetSignalAsCString(number))
                return SignalStop(name, f"process handle -s false -n false -p true {name}")
        return None

    # ------------------------------------------------------------------ threads

    def is_stopped_for_all(self) -> bool:
        return self.state is State.STOPPED and not has_siginfo(self.inferior.process)

    def call(self, address: int, arguments: Sequence[int]) -> int:
        with self.inferior.lock:
            return self._calls.call(address, arguments)

    def system_call(self, number: int, arguments: Sequence[int]) -> int | None:
        with self.inferior.lock:
            return self._calls.system_call(number, arguments)

    # ----------------------------------------------------------- stops and bells

    def prepare(self) -> None:
        """Before an analysis: lets darc know of files that the program loads.

        Raises:
            UnsupportedError: lldb is one whose events another program reads, so that a call that
                darc makes in the program may wait for ever.
        """
        if _has_front_end():
            raise UnsupportedError("lldb-dap cannot be used: take lldb itself, in a terminal")
        self.was_prepared = True
        self._watch()

    def _watch(self) -> None:
        """Files that the program loads, or its start, are told of."""
        if self.inferior.is_core(self.inferior.process):
            return  # in which no breakpoint can be: what is asked for is refused
        if self.state is State.NONE:
            self._own.watch_start(self.inferior.target)
        else:
            self._own.watch_modules(self.inferior.target)

    @any_thread
    def await_start(self) -> None:
        # Or lldb would try to put a breakpoint into the program that has just ended, and warn.
        self.inferior.target.ClearModuleLoadAddress(self.inferior.target.GetModuleAtIndex(0))
        self._own.watch_start(self.inferior.target)

    def when_modules_change(self, handler: Callable[[], Outcome] | None) -> None:
        self.stopping.life.tell_of_modules(handler)

    def own_threads(self) -> Sequence[int]:
        """Those of lldb and of its server. One that waits for nothing counts nothing."""
        pid = self.inferior.known
        if pid is None:
            return []
        darcs = {t.native_id for t in threading.enumerate() if t.name.startswith("darc")}
        own = set(procfs.threads(os.getpid())) - darcs
        return [*own, int(procfs.status(pid).get("TracerPid", "0"))]

    @property
    @any_thread
    def own_stops(self) -> int:
        return self.stopping.own_stops

    def _tidy(self) -> None:
        """Deletes what is not needed any more."""
        if not self.inferior.blind:
            self._own.delete_spent()
            self.frames.delete_spent()

    def at_stop(self, thread: lldb.SBThread) -> Outcome:
        """See :meth:`Stopping.at_stop`."""
        with self.inferior.lock:
            return self.stopping.at_stop(thread)

    def look_at_breakpoints(self) -> None:
        """See :meth:`Stopping.look_at_breakpoints`."""
        with self.inferior.lock:
            self.stopping.look_at_breakpoints()

    def catch_up(self) -> None:
        """See :meth:`Stopping.catch_up`."""
        self.stopping.catch_up()


def _has_front_end() -> bool:
    """Whether this is lldb as a program that others speak with (lldb-dap, once lldb-vscode)."""
    return bool(re.search("dap|vscode", Path("/proc/self/exe").readlink().name))
