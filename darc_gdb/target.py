"""The target interface on the GDB Python API.

What gdb is asked for is in parts, a class each; what its commands print is read in ``printed.py``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence

import gdb

from darc.debuggee import procfs
from darc.debuggee.refusals import check_processor, no_program
from darc.model.bare import Bare
from darc.model.errors import TargetError, UnsupportedError
from darc.target.outcome import Outcome
from darc.target.ownthread import Turn, any_thread, own_thread
from darc.target.target import Passage, SignalStop, State, Target
from darc_gdb import printed
from darc_gdb.bell import GdbBell
from darc_gdb.breaks import GdbBreaks
from darc_gdb.calls import Calls
from darc_gdb.deciding import Deciding
from darc_gdb.filenames import file_name, is_untold
from darc_gdb.frames import GdbFrames
from darc_gdb.handlers import EventHandlers
from darc_gdb.inferiors import Inferiors
from darc_gdb.loadedfiles import LoadedFiles
from darc_gdb.memory import GdbMemory
from darc_gdb.screen import GdbScreen
from darc_gdb.symbols import GdbSymbols
from darc_gdb.threads import GdbThreads, selected
from darc_gdb.translated import translated
from darc_gdb.user_breaks import GdbUserBreakpoints

_ARCHITECTURE = "i386:x86-64"
"""What gdb calls the processor that darc knows."""


@own_thread
class GdbTarget(Target):
    """gdb's selected inferior; while it is analysed, that one (see :class:`Inferiors`)."""

    bell: GdbBell
    breaks: GdbBreaks
    memory: GdbMemory
    screen: GdbScreen
    threads: GdbThreads
    user_breaks: GdbUserBreakpoints

    def __init__(self) -> None:
        self.turn = Turn()  # gdb runs on the thread that it loads darc on
        self.screen = GdbScreen(self.turn)
        self.symbols = GdbSymbols(self.turn)
        self.memory = GdbMemory(self.turn)
        self.frames = GdbFrames(self.turn, self.memory)
        self.inferiors = Inferiors()
        self.threads = GdbThreads(self.turn)
        self._calls = Calls(self, self.threads)
        self.deciding = Deciding(self.turn, self.inferiors, self.memory, self.threads)
        self.bell = GdbBell(
            turn=self.turn,
            inferiors=self.inferiors,
            deciding=self.deciding,
            threads=self.threads,
            screen=self.screen,
        )
        self.breaks = GdbBreaks(
            turn=self.turn,
            inferiors=self.inferiors,
            deciding=self.deciding,
            memory=self.memory,
            threads=self.threads,
            calls=self._calls,
        )
        self.user_breaks = GdbUserBreakpoints(self.turn, self.inferiors)
        self._files = LoadedFiles(self.inferiors)
        self.handlers = EventHandlers(
            self.turn,
            screen=self.screen,
            inferiors=self.inferiors,
            threads=self.threads,
            deciding=self.deciding,
            bell=self.bell,
            breaks=self.breaks,
            user_breaks=self.user_breaks,
            files=self._files,
        )

    def announce(self) -> None:
        """Tells gdb of it."""
        self.bell.announce()
        self.deciding.announce()
        if not self.deciding.all_stop and self.pid is not None:
            self.screen.emit(f"darc: {self.why_stops_are_seen}")

    def announce_again(self) -> None:
        """There may be no program any more: then what could not be asked for can be."""
        if not self.deciding.all_stop and self.pid is None:
            self.deciding.announce()

    # -------------------------------------------------------------------- state

    @property
    def pid(self) -> int | None:
        pid = int(gdb.selected_inferior().pid)
        return pid or None

    @property
    def state(self) -> State:
        if self.pid is None:
            return State.NONE
        thread = selected()
        if thread is None or not thread.is_valid() or thread.is_running():
            return State.RUNNING
        return State.STOPPED

    @property
    def attached(self) -> bool:
        return bool(gdb.selected_inferior().was_attached)

    @property
    def executable(self) -> str | None:
        space = gdb.current_progspace()
        if space is None or not is_untold(space):
            return None if space is None else file_name(space)
        if self.pid is None:
            raise TargetError(
                "gdb cannot tell the name of the program's file in this locale: 'run' first"
            )
        return procfs.file(self.pid) or None

    def leaving_home(self) -> contextlib.AbstractContextManager[bool]:
        return self.inferiors.at_home()

    @translated
    def make_home(self) -> None:
        self.inferiors.make_home()

    def check_mode(self) -> None:
        """
        Raises:
            UnsupportedError: gdb leaves threads running where one has stopped.
        """
        if gdb.parameter("non-stop"):
            raise UnsupportedError("darc does not work in gdb's non-stop mode: 'set non-stop off'")

    @translated
    def check_supported(self) -> None:
        self.inferiors.stay_here()
        self.check_mode()
        stack = printed.target_stack()
        self._check_recording(stack)
        if self.pid is not None and not stack.is_native:
            raise UnsupportedError("darc needs a running program on this machine, not a remote one")
        if self.pid is None:
            raise no_program()
        check_processor(gdb.selected_frame().architecture().name(), _ARCHITECTURE)

    @property
    def unseen_calls(self) -> str:
        if gdb.parameter("follow-fork-mode") != "child":
            return ""
        return (
            "; gdb goes on with children ('set follow-fork-mode parent' with the program), and "
            "calls in any process but the first are not seen"
        )

    def check_goes_on(self) -> None:
        """Before probes come back. Raises UnsupportedError: they may not."""
        self._check_recording(printed.target_stack())

    @staticmethod
    def _check_recording(stack: printed.TargetStack) -> None:
        if stack.is_recorded:
            raise UnsupportedError(
                "darc does not work while gdb records: type 'record stop', or 'darc stop'"
            )

    @property
    def stop_number(self) -> int | None:
        # gdb tells of each time that it lets the program go on, but for those from stops of darc's.
        return self.handlers.resumed + self.deciding.unseen

    @any_thread
    def own_threads(self) -> Sequence[int]:
        return [os.getpid()]  # Python runs on gdb's main thread

    # -------------------------------------------------------------------- calls

    def call(self, address: int, arguments: Sequence[int]) -> int:
        return self._calls.call(address, arguments)

    def system_call(self, number: int, arguments: Sequence[int]) -> int | None:
        return self._calls.system_call(number, arguments)

    @property
    def dispatches(self) -> bool | None:
        return self._calls.dispatches

    def admits_calls(self) -> bool:
        return self._calls.admits()

    def lead_out(self, thread: int, passage: Passage) -> bool:
        return self._calls.lead_out(thread, passage)

    def wake(self) -> None:
        if not self._calls.wake():
            super().wake()

    def is_stopped_for_all(self) -> bool:
        # The kernel has no siginfo of such a stop alone: PTRACE_GETSIGINFO, EINVAL.
        try:
            int(gdb.parse_and_eval("$_siginfo.si_signo"))
        except gdb.error as error:
            return "Unable to read siginfo" in str(error)
        return False

    # ----------------------------------------------------------- stops and bells

    def when_modules_change(self, handler: Callable[[], Outcome] | None) -> None:
        self._files.tell(handler)

    @property
    @any_thread
    def goes_on_unseen(self) -> bool:
        return self.handlers.goes_on_unseen

    @property
    @any_thread
    def bare(self) -> Bare:
        return self.handlers.bare

    def is_between_steps(self) -> bool:
        return not printed.has_breakpoints_of_a_step()

    @property
    @any_thread
    def own_stops(self) -> int:
        return self.deciding.own_stops

    @property
    def stops_unseen(self) -> bool:
        """See :attr:`darc.target.target.Target.stops_unseen`."""
        return self.deciding.all_stop

    @property
    def why_stops_are_seen(self) -> str:
        """See :attr:`darc.target.target.Target.why_stops_are_seen`."""
        if gdb.parameter("non-stop"):
            return "gdb's non-stop mode tells of each of darc's stops: 'set non-stop off'"
        again = f"'detach' and 'attach {self.pid}'" if self.attached else "'kill' and 'run'"
        return (
            "gdb had this program before darc was loaded, and tells of each of darc's stops: "
            f"{again} end that"
        )

    @property
    def stopped_since(self) -> int | None:
        return self.user_breaks.hits.since

    interrupts_by_signal = True

    @property
    def was_interrupted(self) -> bool:
        return self.handlers.signal.is_interrupt

    @property
    def handled_signal(self) -> SignalStop | None:
        return self.handlers.signal.handled(self.pid)


TARGET: GdbTarget
"""The one target, for the commands of breakpoints; set by :mod:`darc_gdb.load`."""
