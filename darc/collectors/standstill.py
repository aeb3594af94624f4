"""Calls of f0 that a stop of the user's comes in the middle of.

At the stop the program's own code and stacks are shown, so that what is under way is lost if the
program then goes on without probes, step by step. If it goes on from there with them, nothing has
run: then everything is as it was once patches, return addresses and records are put back, and the
calls are measured less the time for which they stood still.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from darc.agent.memory import AgentMemory
from darc.agent.rows import Operation
from darc.code.processor import STACK_POINTER, THREAD_POINTER
from darc.debuggee import clock
from darc.model.errors import TargetError
from darc.pads.returns import Replaced
from darc.target.target import Target

_WAITS_AT_MOST = 8
"""A thread that waits in a system call goes on with that while the program stands still. Its call
is kept as it is where the stop is no more than this part of it so far, and else left out."""

Standpoint = tuple[int, int]
"""A thread's program counter and stack pointer."""


@dataclass(frozen=True, kw_only=True)
class Standstill:
    """What was under way at a stop, before anything was taken out."""

    stop: int
    """:attr:`~darc.target.target.Target.stop_number`."""
    since: int
    """The time-stamp counter when it began."""
    epoch: int
    patches: frozenset[int]
    """Which patches were active."""
    operations: tuple[Operation, ...]
    states: Mapping[int, int]
    """Those of all open records, also of calls that are not measured any more: where a return
    address leads to a landing, unwinders look for its record."""
    waiting: frozenset[int]
    """Their threads that wait in a system call."""
    lost: frozenset[int]
    """Those of which nothing is sure: they are in the agent or a pad."""

    @staticmethod
    def take(
        target: Target,
        tables: AgentMemory,
        *,
        is_inside: Callable[[int], bool],
        in_system_call: Callable[[int], bool],
        patches: frozenset[int],
        since: int,
        closes: bool = True,
    ) -> Standstill | None:
        """``is_inside`` tells whether an address is in a pad or the agent, ``in_system_call``
        whether a thread stands in one. ``since`` is when the program has stopped; ``closes`` says
        that open records are to be closed. ``None``: nothing is under way, or the debugger cannot
        tell whether the program has run since."""
        stop = target.stop_number
        operations = tuple(tables.ops.operations())
        if stop is None or target.pid is None or not operations:
            return None
        threads = _threads_of(target, operations)
        counters = target.threads.program_counters()
        inside = {t for t in threads.values() if is_inside(counters[t])}
        lost = {o.context for o in operations if not o.is_sure or threads.get(o.thread) in inside}
        lost |= {o.context for o in operations if o.thread not in threads}
        waiting = {
            o.context
            for o in operations
            if o.context not in lost and in_system_call(threads[o.thread])
        }
        return Standstill(
            stop=stop,
            since=since,
            epoch=tables.epoch,
            patches=patches,
            operations=operations,
            states=tables.records.states() if closes else {},
            waiting=frozenset(waiting),
            lost=frozenset(lost),
        )


def _threads_of(target: Target, operations: Sequence[Operation]) -> Mapping[int, int]:
    """The threads that the operations are in, by what tells them apart in the agent."""
    wanted = {o.thread for o in operations}
    threads = target.threads.ids()
    if wanted == {1}:
        return {1: threads[0]} if len(threads) == 1 else {}
    found: dict[int, int] = {}
    for thread in threads:
        if len(found) == len(wanted):
            break
        own = target.threads.read_register(thread, THREAD_POINTER) + 1
        if own in wanted:
            found[own] = thread
    return found


@dataclass(frozen=True)
class Suspended:
    """A :class:`Standstill` that lasts."""

    was: Standstill
    words: tuple[Replaced, ...] | None
    """What was replaced in the program's memory; ``None``: the probes are still in."""
    places: Mapping[int, Standpoint]

    @staticmethod
    def of(was: Standstill, target: Target, words: Sequence[Replaced] | None) -> Suspended:
        """See :attr:`words`."""
        return Suspended(was, None if words is None else tuple(words), _places(target))

    def is_over(self, target: Target, tables: AgentMemory, patches: frozenset[int]) -> bool:
        """Whether anything has run or was changed since: no call can be kept."""
        return (
            target.stop_number != self.was.stop
            or tables.epoch != self.was.epoch + (self.words is not None)
            or patches != self.was.patches
            or _places(target) != self.places
        )

    def undo(self, target: Target, tables: AgentMemory) -> int:
        """Every patch is in place: so are the return addresses and the open calls again, later by
        the time that has gone by. How many calls had to be left out."""
        with target.companions:
            changed = self._show_landings(target, tables)
        if self.words is not None:
            tables.records.reopen(self.was.states)
        stood = clock.tsc_now() - self.was.since
        left_out = 0
        for one in self.was.operations:
            slots = {record.slot for record in one.records}
            waits = one.context in self.was.waiting
            is_long = waits and stood * _WAITS_AT_MOST > self.was.since - one.began
            if one.context in self.was.lost or is_long or slots & changed:
                tables.ops.drop(one)
                left_out += 1
            elif not waits:
                tables.ops.delay(one, stood)
        tables.set(epoch=self.was.epoch)
        return left_out

    def _show_landings(self, target: Target, tables: AgentMemory) -> set[int]:
        """Which words are other ones by now."""
        changed = set()
        for word in self.words or ():
            own = struct.pack("<Q", word.own)
            try:
                if tables.raw(word.address, 8) == own:
                    target.memory.write(word.address, struct.pack("<Q", word.landing))
                    continue
            except TargetError:
                pass
            changed.add(word.address)
        return changed


def _places(target: Target) -> Mapping[int, Standpoint]:
    counters = target.threads.program_counters()
    return {
        thread: (pc, target.threads.read_register(thread, STACK_POINTER))
        for thread, pc in counters.items()
    }
