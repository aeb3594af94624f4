"""What a debugger must offer: an abstract class for what concerns the whole program, and one for
each part in the modules beside; ints and bytes only.

The engine calls these methods on the debugger's own thread while the program is stopped, but where
a method says otherwise; implementations assert the thread (:mod:`darc.target.ownthread`), and
translate every native exception into :class:`darc.model.errors.TargetError`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from darc.model.bare import Bare
from darc.target.bell import Bell
from darc.target.breaks import Breaks
from darc.target.companions import NOBODY, Companions
from darc.target.frames import Frames
from darc.target.memory import Memory
from darc.target.outcome import Outcome
from darc.target.ownthread import Turn, any_thread
from darc.target.screen import Screen
from darc.target.symbols import Symbols
from darc.target.threads import Threads
from darc.target.user_breaks import UserBreakpoints


class State(Enum):
    """Whether a target has a program, and whether that runs."""

    NONE = "none"
    STOPPED = "stopped"
    RUNNING = "running"


@dataclass(frozen=True, kw_only=True)
class Region:
    """One mapping of the program's memory: ``[start, end)``, as ``/proc/PID/maps`` has it."""

    start: int
    end: int
    permissions: str
    offset: int
    path: str
    inode: int = 0
    device: int | None = None
    """Of the file; overlayfs and btrfs tell of another one when they are asked for a file."""

    @property
    def is_stack(self) -> bool:
        """Whether the kernel says that it is a thread's stack."""
        return self.path.startswith("[stack")

    @property
    def is_heap(self) -> bool:
        """The same of the heap that grows (brk(2))."""
        return self.path == "[heap]"


@dataclass(frozen=True)
class Place:
    """Some bytes of the program's code, and what darc wrote over them."""

    address: int
    original: bytes
    written: bytes


@dataclass(frozen=True)
class SignalStop:
    """A stop for the user at a signal of the program's: its name, and the command by which the
    debugger does not stop there but passes it on."""

    name: str
    command: str


@dataclass(frozen=True)
class Passage:
    """Code in a borrowed place that a thread is sent through (see :mod:`darc.debuggee.detour`).
    The thread goes its way back from ``leave`` on; that leads to these ``registers``, to be set in
    order, and to this ``mask`` of signals, where that is known."""

    place: Place
    thread: int
    leave: int
    registers: Mapping[str, int]
    mask: int | None


class Journal:
    """Where nothing needs to be written down: what is in there ends with its debugger, or others
    see to it."""

    def open(self, *, stopped_by_another: bool = False) -> None:
        """An analysis begins, of a program that may stand still because somebody else than the
        debugger has stopped it.

        Raises:
            UnsupportedError: there is no place for a journal, and it is needed.
        """

    def patches(self, places: Iterable[Place]) -> None:
        """These places are about to be written over. Those that are noted already are not noted
        again.

        Raises:
            TargetError: it cannot be noted.
        """

    def borrows(self, passage: Passage) -> None:
        """A place is about to be borrowed. Raises TargetError: it cannot be noted."""

    def gives_back(self) -> None:
        """The place that was borrowed last is as it was."""

    def maps(self, place: range) -> None:
        """These addresses were mapped for darc. Raises TargetError: it cannot be noted."""

    def unmaps(self, place: range) -> None:
        """These are about to be unmapped. Raises TargetError: it cannot be noted."""

    def unmapped(self, place: range) -> None:
        """They were. Raises TargetError: it cannot be noted."""

    def stands(self) -> None:
        """The program has stopped, for darc or for the user."""

    def goes_on(self) -> None:
        """It is about to go on."""

    def close(self, is_in: Callable[[Place], bool]) -> None:
        """The analysis is over; ``is_in`` tells whether darc's bytes are still there."""


class Journals:
    """Those of the processes that a debugger has or had, by their ids: it may have two at once, as
    a child and its parent. Who is debugged keeps its own there, for what writes into it."""

    def __init__(self) -> None:
        self._kept: dict[int, Journal] = {}

    def of(self, pid: int | None) -> Journal:
        """That of a process; where it has none, one that writes nothing down."""
        return _NOTHING if pid is None else self._kept.get(pid, _NOTHING)

    def keep(self, pid: int, journal: Journal) -> None:
        """From now on that is the journal of this process."""
        self._kept[pid] = journal


_NOTHING = Journal()


class Target(ABC):
    """A debugger with at most one program. Its parts are attributes, for callers to use."""

    patience: float | None = None
    """Seconds at most for which what is debugged may run for darc's own sake, before an analysis
    begins; ``None``: as long as it takes. See :meth:`wait_at_most`."""

    interrupted_by = "interrupt"
    """The debugger's command that stops a program which it has let run beside its prompt."""

    turn: Turn
    """Whose turn it is to use it."""

    bell: Bell
    breaks: Breaks
    frames: Frames
    memory: Memory
    screen: Screen
    symbols: Symbols
    threads: Threads
    user_breaks: UserBreakpoints

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """The number by which the debugger knows the program, ``None`` when there is none that darc
        could be in: the system's process id where it runs on this machine, else what the other side
        says (a kernel's gdbstub: 1). Only what knows that it runs here asks the system by it."""

    @functools.cached_property
    def journals(self) -> Journals:
        """Of each process that it has or had."""
        return Journals()

    @property
    def journal(self) -> Journal:
        """Where changes of the program that it has now are noted before they are made."""
        return self.journals.of(self.pid)

    @functools.cached_property
    def known_companions(self) -> dict[int, Companions]:
        """The companions of each process that it has or had."""
        return {}

    @property
    def companions(self) -> Companions:
        """Those of the program that it has now."""
        pid = self.pid
        return NOBODY if pid is None else self.known_companions.get(pid, NOBODY)

    def wait_at_most(self, seconds: float | None) -> None:
        """For so long what is debugged may run for darc's own sake; ``None``: as long as it
        takes."""
        self.patience = seconds

    @property
    @abstractmethod
    def state(self) -> State:
        """Whether there is a program, and whether it runs. May be asked while it does."""

    @property
    @abstractmethod
    def attached(self) -> bool:
        """Whether the program was attached to, not launched."""

    @property
    def outlives_debugger(self) -> bool:
        """Whether the program goes on where the debugger is killed."""
        return self.attached

    @property
    @abstractmethod
    def executable(self) -> str | None:
        """Path of the program's file, also before it runs. Raises TargetError: the debugger does
        not tell it yet."""

    @property
    @any_thread
    def unseen_calls(self) -> str:
        """Which calls are not seen by how the debugger follows the program, as an end of a line;
        "" for none. It is asked where the program's end is told."""
        return ""

    def leaving_home(self) -> contextlib.AbstractContextManager[bool]:
        """Looks at the program that was analysed last, where the user has selected another one
        meanwhile and both live; gives whether that is so."""
        return contextlib.nullcontext(False)

    def make_home(self) -> None:
        """What is analysed from now on is the program that the user has selected, where the
        debugger has several, also if it does not run yet."""
        return

    @abstractmethod
    def check_supported(self) -> None:
        """Raises :class:`~darc.model.errors.UnsupportedError` for modes that darc refuses."""

    @property
    @any_thread
    def goes_on_unseen(self) -> bool:
        """Whether the program may go on with nobody having asked darc before, as a front end has
        ways of its own to let it. Any thread."""
        return False

    @property
    @any_thread
    def bare(self) -> Bare:
        """By what the program runs that was let go on without probes. Any thread."""
        return Bare.STEPS

    def is_between_steps(self) -> bool:
        """Whether no breakpoint of the debugger's own stands in the code now, where it waits for a
        step to end."""
        return True

    @property
    def stop_number(self) -> int | None:
        """Tells this stop from all others: another number once the program has run since, if only
        for a moment. ``None``: nobody knows."""
        return None

    @property
    def stopped_since(self) -> int | None:
        """The time-stamp counter when the program came to this stop, where that is known."""
        return None

    @abstractmethod
    def call(self, address: int, arguments: Sequence[int]) -> int:
        """Calls a function in the stopped program, in its current thread alone; the others stay.
        May not be used while the debugger answers the bell."""

    def system_call(self, number: int, arguments: Sequence[int]) -> int | None:
        """Makes a system call as :meth:`call` calls a function, and borrows nothing that the
        program may run through meanwhile. ``None``: it cannot be made in this way."""
        del number, arguments
        return None

    @property
    def dispatches(self) -> bool | None:
        """Whether the kernel hands system calls that a thread makes outside of some code to the
        program itself, while that wants them: those of darc's come to the program then. ``None``:
        it cannot be told."""
        return None

    def admits_calls(self) -> bool:
        """Whether the seccomp filters of all threads of the stopped program are known to let
        through what darc asks of the kernel; ``False``: nobody can tell."""
        return False

    def lead_out(self, thread: int, passage: Passage) -> bool:
        """Leads a thread home that stands in a passage of a debugger that is gone. ``False``: it
        is to go its way back by itself."""
        del thread, passage
        return False

    def is_stopped_for_all(self) -> bool:
        """Whether the process was stopped when the debugger came, and stays so for everybody when
        that lets it go: seen until it goes on for the first time."""
        return False

    def wake(self) -> None:
        """The process is not stopped any more, for others than this debugger."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGCONT)

    def await_start(self) -> None:
        """There is no program any more: the next one that is launched is told of as soon as it has
        loaded its files (see :meth:`when_modules_change`)."""
        return

    @abstractmethod
    def when_modules_change(self, handler: Callable[[], Outcome] | None) -> None:
        """``handler`` is called whenever the program has loaded or unloaded a file, at a moment
        when memory may be read and breakpoints set, but nothing called. It says whether the program
        is to stop there for the user, if it goes on otherwise."""

    @abstractmethod
    def own_threads(self) -> Sequence[int]:
        """The ids, in this system, of the debugger's own threads that have a part in a hit."""

    @property
    def stops_unseen(self) -> bool:
        """Whether darc's own stops are over before anybody hears of them: else each of them costs
        the user a prompt."""
        return True

    @property
    def why_stops_are_seen(self) -> str:
        """Why they are not, where they are not, and what to do about it: one line."""
        return ""

    @property
    @abstractmethod
    def own_stops(self) -> int:
        """How often it has stopped the program for the engine alone so far, whatever came of it:
        bells, hits, files that were loaded. Any thread."""

    @property
    def was_interrupted(self) -> bool:
        """Whether the user's Ctrl-C is why the program stands still, where that is known."""
        return False

    interrupts_by_signal = False
    """Whether the user's Ctrl-C is a SIGINT of the program's own, which that may block."""

    @property
    def handled_signal(self) -> SignalStop | None:
        """That for which the program stands still, where it is one that it has a handler for, and
        no Ctrl-C."""
        return None
