"""What a debugger must offer. One abstract class; ints and bytes only.

The engine calls these methods on the debugger's own thread while the program is stopped, but where
a method says otherwise. Implementations translate every native exception into
:class:`darc.errors.TargetError`.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class State(Enum):
    """Whether there is a program, and whether it runs."""

    NONE = "none"
    STOPPED = "stopped"
    RUNNING = "running"


@dataclass(frozen=True)
class Region:
    """One mapping of the program's memory: ``[start, end)``, as ``/proc/PID/maps`` has it."""

    start: int
    end: int
    permissions: str
    offset: int
    path: str


class Verdict(Enum):
    """What becomes of a program that stopped for the engine alone."""

    CONTINUE = "continue"
    STOP = "stop"


OnHit = Callable[[int], Callable[[], Verdict] | None]
"""What :meth:`Target.set_break` calls with the thread that came there. It only reads: memory, and
the registers of that thread. ``None``: the program goes on. Else what it returns is called with all
threads stopped; that may write, set and take back breaks, but call nothing in the program."""


class Target(ABC):
    """A debugger with at most one program."""

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """The system's process id, ``None`` when there is no program or it is not local."""

    @property
    @abstractmethod
    def state(self) -> State:
        """Whether there is a program, and whether it runs. May be asked at any time."""

    @property
    @abstractmethod
    def attached(self) -> bool:
        """Whether the program was attached to, not launched."""

    @property
    @abstractmethod
    def executable(self) -> str | None:
        """Path of the program's file, also before it runs."""

    @abstractmethod
    def check_supported(self) -> None:
        """Raises :class:`~darc.errors.UnsupportedError` for modes that darc refuses."""

    @abstractmethod
    def read(self, address: int, size: int) -> bytes:
        """Memory of the program, without the debugger's own breakpoints."""

    @abstractmethod
    def write(self, address: int, data: bytes) -> None:
        """Writes memory, code too; breakpoints that stand there stay."""

    def write_code(self, address: int, data: bytes) -> None:
        """As :meth:`write`; in a batch, behind all that was written with that."""
        self.write(address, data)

    def batched(self, fill: range) -> contextlib.AbstractContextManager[None]:
        """While all threads stand still: writes may wait until :meth:`flush`, or until the end. In
        ``fill``, which nobody else writes to meanwhile, bytes between two writes may be written as
        they are."""
        del fill
        return contextlib.nullcontext()

    def flush(self) -> None:  # noqa: B027  most have nothing to do
        """What was written is in the program from now on."""

    @abstractmethod
    def forget_frames(self) -> None:
        """Stack words were written: backtraces are to be read anew."""

    @abstractmethod
    def threads(self) -> Sequence[int]:
        """The system's ids of all threads."""

    @abstractmethod
    def program_counters(self) -> Mapping[int, int]:
        """Where every thread stands, by its id."""

    @abstractmethod
    def read_register(self, thread: int, name: str) -> int:
        """A register (``rip``, ``rsp``, ``fs_base``, …) of one thread."""

    @abstractmethod
    def write_register(self, thread: int, name: str, value: int) -> None:
        """Sets a general register of one thread."""

    @abstractmethod
    def call(self, address: int, arguments: Sequence[int]) -> int:
        """Calls a function in the stopped program, in its current thread alone; the others stay.
        May not be used while the debugger decides about a doorbell."""

    @abstractmethod
    def when_modules_change(self, handler: Callable[[], None] | None) -> None:
        """``handler`` is called whenever the program has loaded or unloaded a file, at a moment
        when memory may be read and breakpoints set, but nothing called."""

    @abstractmethod
    def break_once(self, address: int, handler: Callable[[], None]) -> None:
        """Stops once at ``address``, runs ``handler`` (which may call functions), goes on."""

    @abstractmethod
    def cancel_break(self) -> None:
        """Takes back what :meth:`break_once` set."""

    @abstractmethod
    def set_break(self, address: int, on_hit: OnHit) -> Callable[[], None]:
        """Calls ``on_hit`` whenever a thread comes to ``address``, without the user's command
        noticing, and without a trace in the user's list of breakpoints. One at each address.

        Returns what takes it back, which may be called at any time and more than once; it is taken
        back by itself when the program is gone. Raises TargetError where no code is.
        """

    @abstractmethod
    def own_threads(self) -> Sequence[int]:
        """The ids, in this system, of the debugger's own threads that have a part in a hit."""

    @property
    @abstractmethod
    def hits_stop_all(self) -> bool:
        """Whether no other thread runs while ``on_hit`` decides."""

    @abstractmethod
    def arm_bell(self, signal: int, handler: Callable[[], Verdict]) -> None:
        """``handler`` decides, with all threads stopped, whenever a thread gets ``signal``. It may
        write memory and registers, but call nothing in the program. When it says so the program
        stops at once, for the user, where the thread then is."""

    @abstractmethod
    def disarm_bell(self) -> None:
        """Takes back what :meth:`arm_bell` set."""

    @abstractmethod
    def breakpoints(self) -> Sequence[int]:
        """Addresses of the user's breakpoints: no patch may cover one."""

    @abstractmethod
    def when_breakpoints_change(self, handler: Callable[[], None] | None) -> None:
        """``handler`` is called after the user has set or changed a breakpoint, before the program
        goes on."""

    @abstractmethod
    def show_pads(
        self, agent: Path, base: int, caller: Callable[[int, int], tuple[int, int] | None]
    ) -> None:
        """Makes backtraces right in the agent, whose ELF file ``agent`` is mapped at ``base``, and
        in pads: ``caller(pc, rsp)`` gives the address of the stack word that holds (or held) the
        return address, and that return address; ``None`` where no pad is."""

    @abstractmethod
    def hide_pads(self) -> None:
        """Takes back what :meth:`show_pads` did."""

    @abstractmethod
    def line_at(self, address: int) -> tuple[str, int] | None:
        """Source file (as compiled) and line of an address, from debug information."""

    @abstractmethod
    def inlined_at(self, address: int) -> tuple[str, ...]:
        """Names of the inlined functions that an address lies in, outermost first."""

    @abstractmethod
    def functions_in(self, file: str, function: str) -> Sequence[int]:
        """Entry addresses of ``function`` as defined in the source file ``file``."""

    @abstractmethod
    def accepts_pending(self, question: str) -> bool:
        """Whether to wait for a function that does not exist yet, as the debugger's own setting
        for breakpoints says; it may ask the user."""

    @property
    @abstractmethod
    def colour(self) -> bool:
        """Whether output takes escape codes."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Columns of the output; 0 when unlimited."""

    @abstractmethod
    def live(self, text: str | None) -> None:
        """Shows one line in place of the last one, ``None`` takes it away; nothing where output is
        no terminal. Any thread."""

    @abstractmethod
    def emit(self, text: str) -> None:
        """Shows text to the user; a newline is added."""
