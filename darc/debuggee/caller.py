"""A call that a stopped thread makes by a :mod:`.detour`, whichever debugger leads it.

The code of a detour is borrowed of the program: the journal has it before it is written, and until
it is given back. On every way out the thread is led back first and its way is taken out behind it.
Where the thread cannot be led back, the way stays, and the journal has it still: the thread comes
back by itself.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping

from darc.debuggee import admission, detour, procfs
from darc.debuggee.detour import Call, Detour, Ringer, WaitsError, plan
from darc.model.errors import TargetError
from darc.target import living
from darc.target.ownthread import begin_thread
from darc.target.target import Journal, Passage, Place

_PATIENCE_SECONDS = 3.0
_LOOK_SECONDS = 0.05


def has_stack(process: int, registers: Mapping[str, int]) -> bool:
    """Whether a stopped thread with these registers has the stack that a call needs, and would not
    wait there for another thread of the program, which stands still: a page that userfaultfd
    guards takes no writes of a debugger's either."""
    needed = detour.stack_needed(registers)
    try:
        with procfs.MemoryFile(process) as memory:
            memory.write(needed.start, memory.read(needed.start, len(needed)))
    except TargetError:
        return False
    return True


class Patience:
    """With a thread that runs for darc while all others stand still: no call of darc's waits for
    anybody. One that sleeps waits for them, as in a page fault that another thread is to serve."""

    def __init__(self, process: int, thread: int) -> None:
        self._process = process
        self._thread = thread
        self._since = time.monotonic()
        self._ran: object = None
        self.was_over = False
        """Whether :meth:`is_over` has said so."""

    def is_over(self) -> bool:
        """Whether it has slept for a while, without having run."""
        now, ran = time.monotonic(), procfs.ran(self._thread)
        sleeps = living.state(self._process, self._thread) in ("S", "D")
        if not sleeps or ran != self._ran:
            self._since, self._ran = now, ran
        self.was_over = self.was_over or now - self._since > _PATIENCE_SECONDS
        return self.was_over

    @contextlib.contextmanager
    def kept(self, knock: Callable[[], None], seconds: float) -> Iterator[None]:
        """The debugger waits, on this thread, until that one stops; another one of darc's looks on:
        where it is over, and after ``seconds`` in any case, ``knock`` is to stop it. It may have
        stopped by itself by then."""
        stopped = threading.Event()

        def look() -> None:
            begin = time.monotonic()
            while not stopped.wait(_LOOK_SECONDS):
                if self.is_over() or time.monotonic() - begin > seconds:
                    knock()
                    return

        watching = begin_thread(look, "darc-patience")
        try:
            yield
        finally:
            stopped.set()
            watching.join()

    def error(self) -> WaitsError:
        """What the call has come to, which was given up."""
        return WaitsError(
            f"the program's thread {self._thread} waits for another thread in a call of darc's, as "
            "in a page fault that the program serves itself (userfaultfd); nothing was changed"
        )


class Caller(ABC):
    """A stopped thread of a process of this machine, as one debugger leads it."""

    def __init__(
        self, process: int, thread: int, *, registers: Mapping[str, int], mask: int | None
    ) -> None:
        """``registers`` are where it stands, at least :data:`~darc.debuggee.detour.REGISTERS`.
        ``mask`` is what signals it blocks; ``None``: the debugger cannot set that."""
        self.process = process
        self.thread = thread
        self.registers = registers
        self.mask = mask
        self.bell = admission.bell_signal(process)
        """The signal by which it rings."""

    def make(self, call: Call, place: int, journal: Journal) -> int:
        """The result of a call by a detour at ``place``.

        Raises:
            EndedError: the thread is gone.
            TargetError: the call did not come back; the thread is where it was.
        """
        process, thread = (procfs.own_id(self.process, one) for one in (self.process, self.thread))
        ringer = Ringer(process=process, thread=thread, signal=self.bell)
        way = plan(self.registers, place, ringer, call, self.mask)
        borrowed = Place(place, bytes(len(way.code)), way.code)
        journal.borrows(Passage(borrowed, self.thread, way.leave, way.registers, self.mask))
        self.write(place, way.code)
        try:
            self.follow(way)
            return int.from_bytes(self.read(way.result, 8), "little")
        finally:
            if not self.is_gone():
                self.lead_back()
                self.write(place, borrowed.original)
                journal.gives_back()

    @abstractmethod
    def read(self, address: int, size: int) -> bytes:
        """Memory of the program."""

    @abstractmethod
    def write(self, address: int, data: bytes) -> None:
        """Writes memory of the program, at once."""

    @abstractmethod
    def follow(self, way: Detour) -> None:
        """Goes this way, which stands in the code, until it has rung.

        Raises:
            EndedError: the thread is gone.
            TargetError: it stopped for something else.
        """

    @abstractmethod
    def lead_back(self) -> None:
        """Sets it back to where it was, wherever :meth:`follow` has left it."""

    @abstractmethod
    def is_gone(self) -> bool:
        """Whether there is no thread to lead back."""
