"""Watching when threads leave their processors, for as long as a search needs it."""

from __future__ import annotations

from collections.abc import Callable

from darc.model.errors import UnsupportedError
from darc.model.offtimes import OffTimes, OffWatch, WatchedOps, watched
from darc.model.ops import KeptOps


class SwitchWatch:
    """Owns an :class:`~darc.model.offtimes.OffWatch` from :meth:`begin` to :meth:`end`. A watch
    costs the program something at each switch, so there is one only while a search runs.

    :meth:`drain` may be called by any thread at any time; all else on the debugger's own.
    """

    def __init__(
        self,
        begin: Callable[[], OffWatch | None] = lambda: None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``begin`` is :meth:`~darc.debuggee.debuggee.Debuggee.watch_switches`; ``note`` is told
        why there is no watch, where one was refused."""
        self._begin = begin
        self._note = note
        self._watch: OffWatch | None = None
        self._has_begun = False

    def begin(self) -> None:
        """The search begins; the program stands still. Once is enough."""
        if self._has_begun:
            return
        self._has_begun = True
        try:
            self._watch = self._begin()
        except UnsupportedError as error:
            self._note(str(error))
        else:
            self.stands()

    def end(self) -> None:
        """The search is over, or the program gone. What was seen can still be asked for."""
        self._has_begun = True
        if self._watch is not None:
            self._watch.close()

    def drain(self) -> None:
        """See :meth:`OffWatch.drain <darc.model.offtimes.OffWatch.drain>`."""
        if self._watch is not None:
            self._watch.drain()

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

    def watched(self, kept: KeptOps) -> WatchedOps:
        """Those ops, and when their threads were off their processors as far as that was watched.
        The program stands still, or is gone."""
        return WatchedOps(kept) if self._watch is None else watched(kept, self._watch)
