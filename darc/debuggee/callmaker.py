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
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from darc.code.architecture import Call, Detour, Ringer
from darc.code.processor import DETOURS
from darc.debuggee import admission, detour, procfs
from darc.debuggee.cgroups import is_frozen
from darc.debuggee.detour import DispatchedError, WaitsError, plan
from darc.model.errors import TargetError
from darc.target import living
from darc.target.ownthread import begin_thread
from darc.target.target import Journal, Passage, Place

_Thread = TypeVar("_Thread")
_Result = TypeVar("_Result")

_ASLEEP_SECONDS = 3.0
"""What sleeps for so long in a call of darc's waits for a thread that stands still, or for ever."""
_LOOK_SECONDS = 0.05


def has_stack(process: int, registers: Mapping[str, int]) -> bool:
    """Whether a stopped thread with these registers has the stack that a call needs, and would not
    wait there for another thread of the program, which stands still: a page that userfaultfd
    guards takes no writes of a debugger's either."""
    needed = DETOURS.stack_needed(registers)
    try:
        with procfs.MemoryFile(process) as memory:
            memory.write(needed.start, memory.read(needed.start, len(needed)))
    except TargetError:
        return False
    return True


class Turns:
    """Which of a program's threads makes a call: the next one where one waits for another. Those
    are asked no more at the same stop."""

    def __init__(self) -> None:
        self._waiting: set[tuple[int | None, int]] = set()
        """Threads that have waited for others in a call, with the number of that stop."""
        self._free_at: tuple[int, int] | None = None
        """The process that no control group held, and the stop at which that was seen."""

    def take(
        self,
        process: int,
        stop: int | None,
        threads: Iterable[tuple[int, _Thread]],
        make: Callable[[_Thread], _Result],
    ) -> _Result:
        """What ``make`` makes of the first thread of ``process`` that waits for nobody, of
        ``threads`` with their ids that :func:`able` has said, at the stop of that number.

        Raises:
            TargetError: each waits for another one; or the process is frozen.
        """
        self._check_free(process, stop)
        waiting: list[WaitsError] = []
        for number, thread in threads:
            if (stop, number) in self._waiting:
                continue
            try:
                return make(thread)
            except WaitsError as error:
                waiting.append(error)
                self._waiting.add((stop, number))
        if not waiting:
            raise TargetError("every thread of the program waits for another one")
        raise waiting[0]

    def _check_free(self, process: int, stop: int | None) -> None:
        """Once at a stop. Who freezes it behind that is noticed as the call does not come back."""
        now = None if stop is None else (process, stop)
        if now is not None and now == self._free_at:
            return
        if is_frozen(process):
            raise TargetError("the program is frozen by its control group: thaw it, and try again")
        self._free_at = now


def able(
    threads: Iterable[_Thread],
    *,
    segment: Callable[[_Thread], int],
    has_room: Callable[[_Thread], bool],
    is_at_stake: Callable[[_Thread], bool] = lambda thread: False,
) -> Iterator[_Thread]:
    """Those stopped threads that can make a call. ``segment`` is a thread's code segment;
    ``has_room`` says whether its stack has room for a call; ``is_at_stake``, whether a call of its
    would cost the program its handler of SIGSYS.

    Raises:
        TargetError: there is none.
        DispatchedError: a handler is at stake in each.
    """
    in_64_bits = free = found = False
    for thread in threads:
        if not DETOURS.takes_calls(segment(thread)):
            continue
        in_64_bits = True
        if is_at_stake(thread):
            continue
        free = True
        if has_room(thread):
            found = True
            yield thread
    if not in_64_bits:
        raise TargetError(detour.IN_32_BITS)
    if not free:
        raise DispatchedError(detour.HANDLER_AT_STAKE)
    if not found:
        raise TargetError("no thread of the program has room on its stack for a call of darc's")


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
        self.was_over = self.was_over or now - self._since > _ASLEEP_SECONDS
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


class CallMaker(ABC):
    """A stopped thread of a process of this machine, as one debugger leads it."""

    def __init__(
        self, process: int, thread: int, *, registers: Mapping[str, int], mask: int | None
    ) -> None:
        """``registers`` are where it stands, at least those of
        :attr:`DetourWriter.REGISTERS <darc.code.architecture.DetourWriter.REGISTERS>`.
        ``mask`` is what signals it blocks; ``None``: the debugger cannot set that."""
        self.process = process
        self.thread = thread
        self.registers = registers
        self.mask = mask
        self.bell = admission.bell_signal(process)
        """The signal by which it rings."""
        self.stack = range(0)
        """The own one of the function that it calls."""

    def make(self, call: Call, place: int, journal: Journal) -> int:
        """The result of a call by a detour at ``place``.

        Raises:
            EndedError: the thread is gone.
            TargetError: the call did not come back; the thread is where it was.
            AwayError: the thread cannot be stopped, and has the code still to run through.
        """
        process, thread = (procfs.own_id(self.process, one) for one in (self.process, self.thread))
        ringer = Ringer(process=process, thread=thread, signal=self.bell)
        way = plan(self.registers, place, ringer=ringer, call=call, mask=self.mask)
        borrowed = Place(place, bytes(len(way.code)), way.code)
        journal.borrows(
            Passage(
                place=borrowed,
                thread=self.thread,
                leave=way.leave,
                registers=way.registers,
                mask=self.mask,
            )
        )
        self.stack = detour.stack_of(call)
        self.write(place, way.code)
        try:
            self.follow(way)
            return int.from_bytes(self.read(way.result, 8), "little")
        finally:
            if not self.is_gone() and self.is_stopped():
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

    def is_stopped(self) -> bool:
        """Whether the thread could be stopped."""
        return True

    @abstractmethod
    def is_gone(self) -> bool:
        """Whether there is no thread to lead back."""
