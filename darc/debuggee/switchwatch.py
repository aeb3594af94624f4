"""Watching when threads leave their processors, for as long as a search needs it: what is asked of
whatever watches that, and who owns one. In a process it is the kernel that it runs on, from outside
(:mod:`darc.debuggee.switches`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

from darc.model.errors import UnsupportedError
from darc.model.offtimes import OffTimes, WatchedOps, watched
from darc.model.ops import KeptOps


class OffWatch(ABC):
    """Watches the threads of a program from its making until :meth:`close`. Any thread may call it
    at any time."""

    @abstractmethod
    def drain(self) -> None:
        """Takes down what has happened. To be called some ten times a second while the program
        runs."""

    @abstractmethod
    def stands(self) -> None:
        """The debugger has stopped every thread."""

    @abstractmethod
    def goes_on(self) -> None:
        """It is about to let them go on."""

    @property
    @abstractmethod
    def missed(self) -> int:
        """How many threads could not be watched."""

    @property
    def why_no_wakers(self) -> str | None:
        """Why :attr:`~darc.model.offtimes.OffTimes.wakers` are not told, where they are not."""
        return None

    @abstractmethod
    def watch_places(self) -> None:
        """Also takes down, from now on, in which calls threads leave their processors, as far as
        that can be: :meth:`slept` tells it. It costs more at each switch. The program stands
        still; once is enough."""

    @property
    def why_no_places(self) -> str | None:
        """Why that is not told, where it was asked for and is not."""
        return None

    @abstractmethod
    def off(self, calls: Sequence[tuple[int, int, int]]) -> list[OffTimes | None]:
        """For each of these calls (the thread; begin and end by the time-stamp counter, when it ran
        on a processor): where it was off. ``None`` where the thread was not watched. A call that
        has just ended is sure to be known only while the program stands still."""

    def slept(self, thread: int, since: int, end: int) -> OffTimes | None:
        """The same of one thread that ran at the ``end``, but may have been off already at the
        first of these times, by what was known when :meth:`off` was asked last. Who ran meanwhile
        is not told."""
        return self.off([(thread, since, end)])[0]

    def names(self, threads: Iterable[int]) -> Mapping[int, str]:
        """What those of these threads of the program are called that are there."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Watches no more. What was seen can still be asked for."""


class Forerunner(ABC):
    """What of the beginning and the end of an :class:`OffWatch` takes long, from its making until
    :meth:`close`: done beside, so that the program does not stand still for it."""

    @abstractmethod
    def wait(self) -> None:
        """Until that is done."""

    @abstractmethod
    def close(self) -> None:
        """No watch begins or ends any more."""


class Watching:
    """What the system tells of one program's threads from outside: where they stand, and, watched
    from some moment on, when they leave their processors. Of this one nothing is."""

    def expect(self) -> Forerunner | None:
        """What of :meth:`begin` takes long is begun beside; the caller closes it."""
        return None

    def begin(self) -> OffWatch | None:
        """From now on it is known when its threads leave their processors; the caller closes it.

        Raises:
            UnsupportedError: it would be, but this debugger may not ask.
        """
        return None

    def stack_pointers(self) -> Mapping[int, int]:
        """Where the stacks of its threads end at this moment, by the ids that it knows them by: of
        those that have no processor, as far as the system tells."""
        return {}


class SwitchWatch:
    """Owns an :class:`OffWatch` from :meth:`begin` to :meth:`end`. A watch
    costs the program something at each switch, so there is one only while a search runs.

    :meth:`drain` may be called by any thread at any time; all else on the debugger's own.
    """

    def __init__(
        self,
        watching: Watching | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``note`` is told why there is no watch, where one was refused."""
        self._watching = watching or Watching()
        self._note = note
        self._forerunner: Forerunner | None = None
        self._watch: OffWatch | None = None
        self._has_begun = False

    def expect(self) -> None:
        """A search may begin soon."""
        if not self._has_begun and self._forerunner is None:
            self._forerunner = self._watching.expect()

    def begin(self) -> None:
        """The search begins; the program stands still. Once is enough."""
        if self._has_begun:
            return
        self._has_begun = True
        if self._forerunner is not None:
            self._forerunner.wait()
        try:
            self._watch = self._watching.begin()
        except UnsupportedError as error:
            self._note(str(error))
        else:
            self.stands()

    def end(self) -> None:
        """The search is over, or the program gone. What was seen can still be asked for."""
        self._has_begun = True
        if self._watch is not None:
            self._watch.close()
        if self._forerunner is not None:
            self._forerunner.close()
            self._forerunner = None

    def drain(self) -> None:
        """See :meth:`OffWatch.drain`."""
        if self._watch is not None:
            self._watch.drain()

    def watch_places(self) -> None:
        """See :meth:`OffWatch.watch_places`."""
        if self._watch is not None:
            self._watch.watch_places()

    def stands(self) -> None:
        """The debugger has stopped every thread."""
        if self._watch is not None:
            self._watch.stands()

    def goes_on(self) -> None:
        """It is about to let them go on."""
        if self._watch is not None:
            self._watch.goes_on()

    @property
    def is_watching(self) -> bool:
        """Whether there is, or was, a watch."""
        return self._watch is not None

    def off(self, thread: int, begin: int, end: int) -> OffTimes | None:
        """Where a thread was off its processor, by the time-stamp counter; ``None`` where that was
        not watched. The program stands still."""
        return None if self._watch is None else self._watch.off([(thread, begin, end)])[0]

    def slept(self, thread: int, since: int, end: int) -> OffTimes | None:
        """See :meth:`OffWatch.slept`; ``None`` also where there is no watch."""
        return None if self._watch is None else self._watch.slept(thread, since, end)

    def name_of(self, thread: int) -> str:
        """What a thread of the program is called; empty where it is not there."""
        return "" if self._watch is None else self._watch.names([thread]).get(thread, "")

    def stack_pointers(self) -> Mapping[int, int]:
        """See :meth:`Watching.stack_pointers`."""
        return self._watching.stack_pointers()

    def watched(self, kept: KeptOps) -> WatchedOps:
        """Those ops, and when their threads were off their processors as far as that was watched.
        The program stands still, or is gone."""
        watch = self._watch
        if watch is None:
            return WatchedOps(kept)
        answers = watch.off([(op.thread, op.start, op.end) for op in kept.ops])
        found = watched(kept, answers, watch.why_no_wakers, watch.why_no_places)
        unnamed = found.others - kept.threads.keys()
        return found.named(watch.names(unnamed)) if unnamed else found
