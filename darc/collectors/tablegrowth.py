"""Room in the agent's tables, as threads and calls need more of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from darc.agent.memory import AgentMemory
from darc.pads.backend import PadBackend
from darc.pads.foothold import Foothold
from darc.pads.installer import PadInstaller
from darc.target.target import Target

_COMPACT_SECONDS = 1.0
"""When records run short again that soon, it was not for those of calls that are over."""


class TableGrowth:
    """That of one analysis. The program stands still whenever it is asked. ``forget_open`` is done
    before records are made room for; ``note`` takes that there can be no more."""

    def __init__(
        self,
        target: Target,
        backend: PadBackend,
        foothold: Foothold,
        installer: PadInstaller,
        *,
        forget_open: Callable[[], None],
        note: Callable[[str], None],
    ) -> None:
        self._target = target
        self._backend = backend
        self._foothold = foothold
        self._installer = installer
        self._forget_open = forget_open
        self._note = note
        self._compacted = -_COMPACT_SECONDS

    @property
    def _tables(self) -> AgentMemory:
        return self._installer.tables

    def keep_room(self) -> None:
        """Frees the records of calls that are over, before they run short."""
        tables = self._tables
        limit = tables.layout.room.records // 2
        if tables.record_count > limit and self._threads_inside() <= 1:
            tables.records.compact()

    def make_more(self) -> None:
        """Threads, or calls, have found no room in the tables: larger ones are taken, as far as the
        program's limits let them. The calls that are under way span the stop."""
        tables = self._tables
        limits, short = tables.blob.constants, tables.short_of
        tables.begin_epoch()
        why: str | None = None
        if short & limits.SHORT_OF_CONTEXTS:
            short -= limits.SHORT_OF_CONTEXTS
            contexts = tables.contexts.room
            why = self._more_contexts()
            if tables.contexts.room > contexts:  # their calls are soon going to want records
                short |= limits.SHORT_OF_RECORDS
                self._compacted = time.monotonic()
        if short & limits.SHORT_OF_RECORDS:
            tables.set(rooms=tables.rooms + 1)  # found or not: threads without are not to starve
        if short & limits.SHORT_OF_RECORDS and self._threads_inside() <= 1:
            short -= limits.SHORT_OF_RECORDS
            why = self._more_records() or why
        tables.set(short_of=short)  # else it is tried again: the monitor knocks
        if why is not None:
            tables.set(may_grow=0, short_of=0)
            self._note(f"no room for more threads or calls, which pass untimed from now on: {why}")

    def _more_contexts(self) -> str | None:
        tables = self._tables
        tables.contexts.free_ended(self._backend.living)
        if tables.contexts.held() <= tables.contexts.room // 2:
            return None  # those of threads that have ended are enough
        return self._foothold.add_contexts(len(self._backend.living()))

    def _more_records(self) -> str | None:
        self._forget_open()
        now = time.monotonic()
        is_enough = now - self._compacted > _COMPACT_SECONDS
        self._compacted = now
        if is_enough:
            self._tables.records.compact()
            return None
        self._installer.show_own_stack()
        why = self._foothold.add_records(len(self._backend.living()))
        if why is not None:
            self._tables.records.compact()
        return why

    def _threads_inside(self) -> int:
        """How many threads stand in the agent or a pad."""
        with self._target.companions as beside:
            counters = [*beside.program_counters().values()]
        counters += self._target.threads.program_counters().values()
        return sum(map(self._foothold.holds, counters))
