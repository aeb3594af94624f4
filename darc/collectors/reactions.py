"""What hits tell of the calls of f0 that are under way."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from darc.code.processor import (
    STACK_POINTER,
    frame_slot,
    indirect_target,
    is_taken,
    slot_at_entry,
    slot_of,
)
from darc.collectors.breakplaces import BreakPlace, Timed
from darc.collectors.f0places import F0Places
from darc.collectors.hitclock import Instant
from darc.collectors.opcount import OpCount
from darc.collectors.opencalls import OpenCall, OpenOp
from darc.collectors.timedsites import TimedSites
from darc.model.errors import TargetError
from darc.model.ftree import Fnode
from darc.target.outcome import Outcome
from darc.target.target import Target

Act = Callable[[], Outcome]
"""What is to be done in consequence of a hit."""


@dataclass(frozen=True)
class Hit:
    """A thread has come to a breakpoint."""

    address: int
    thread: int
    strand: int
    """See :meth:`~darc.debuggee.debuggee.Debuggee.strand`."""
    now: Instant


class Reactions:
    """Those of one analysis. What ends is counted in ``count``; ``decide`` is done in consequence
    of a hit that ends as many calls of f0 as are needed."""

    def __init__(
        self,
        target: Target,
        root: Fnode,
        *,
        f0: F0Places,
        sites: TimedSites,
        count: OpCount,
        decide: Act,
    ) -> None:
        self._target = target
        self._root = root
        self._f0 = f0
        self._sites = sites
        self._count = count
        self._decide = decide
        self.counts_in: Callable[[int], bool] = lambda _thread: True
        """Whether the calls of f0 count that this thread begins; see :meth:`count_where`."""
        self._operations: dict[int, OpenOp] = {}
        """Of each strand, that which is under way."""
        self.unreturned = 0
        """Calls that did not return, and whose end nothing tells."""
        self.jumps = 0
        """How often code had jumped to f0, and no call was to come back."""

    @property
    def open(self) -> int:
        """How many calls of f0 are under way."""
        return len(self._operations)

    def count_where(self, counts_in: Callable[[int], bool]) -> None:
        """Before the first hit: the calls of f0 count that threads begin of which this says so."""
        self.counts_in = counts_in

    def is_inside(self, strand: int) -> bool:
        """Whether it executes a call of f0."""
        return strand in self._operations

    def drop_all(self) -> None:
        """No call that is under way is measured."""
        self._operations.clear()

    def give_up(self, timed: Timed, why: str) -> None:
        """A call site is not timed after all."""
        for node in self._sites.give_up(timed, why):
            for operation in self._operations.values():
                operation.forget(node)

    # ------------------------------------------------------------------------ hits

    def react(self, place: BreakPlace, hit: Hit) -> Act | None:
        """What the hit means: first what ends here, then what begins."""
        try:
            return self._react(place, hit)
        except TargetError:
            self._operations.pop(hit.strand, None)  # who knows where it is: not measured
            return None

    def _react(self, place: BreakPlace, hit: Hit) -> Act | None:
        operation = self._operations.get(hit.strand)
        if operation is None and not place.entry:
            return None
        stack, now = self._target.threads.read_register(hit.thread, STACK_POINTER), hit.now
        act = None
        if operation is not None:
            if place.returns:
                self._returned(operation, place, slot_of(stack), now)
            if place.jumps:
                operation.jumps(now)
            if place.catches and operation.caught(slot_at_entry(stack), now):
                return self._ended(operation, hit)
            slot = slot_at_entry(stack) if place.leaves else slot_of(stack)
            back = hit.address if place.caller else operation.f0.back
            ends = place.leaves or place.caller
            if ends and (operation.f0.slot, operation.f0.back) == (slot, back):
                act = self._returned_from_f0(operation, hit)
        if place.entry:
            act = self._entered(hit, slot_at_entry(stack)) or act
        operation = self._operations.get(hit.strand)
        if operation is not None and place.site is not None:
            self._calls(operation, place.site, hit, slot_of(stack))
        return act

    def _entered(self, hit: Hit, slot: int) -> Act | None:
        if not self.counts_in(hit.thread):
            return None
        back = self._word(slot)
        open_ = self._operations.get(hit.strand)
        if open_ is not None and self._still_runs(open_, slot, back):
            return None  # recursion: only the outermost call is an operation
        is_to_learn = self._f0.is_to_learn(back)
        if is_to_learn and not self._f0.may_learn(back):
            self._operations.pop(hit.strand, None)
            self.jumps += 1
            return None
        f0 = OpenCall(slot, back, [(self._root, hit.now)])
        self._operations[hit.strand] = OpenOp(hit.now, [f0], self._count.cycles)
        if is_to_learn:
            return functools.partial(self._learn_caller, back, hit.strand)
        return None

    def _still_runs(self, operation: OpenOp, slot: int, back: int) -> bool:
        """Whether an operation is not over, as f0 is entered in the frame of ``slot``."""
        f0 = operation.f0
        if slot == f0.slot and back == f0.back:
            return self._f0.loops_to_entry
        try:
            return slot < f0.slot and self._word(f0.slot) == f0.back
        except TargetError:
            return False  # its stack is gone

    def _learn_caller(self, back: int, strand: int) -> Outcome:
        learned = self._f0.learn(back)
        if (
            not learned or not self._target.breaks.hits_stop_all
        ):  # this stop has cost more than others
            self._operations.pop(strand, None)
        return Outcome.CONTINUE

    def _returned_from_f0(self, operation: OpenOp, hit: Hit) -> Act | None:
        operation.close(operation.f0, hit.now)
        self.unreturned += operation.lost
        return self._ended(operation, hit)

    def _ended(self, operation: OpenOp, hit: Hit) -> Act | None:
        """f0 has returned, or an exception has left it."""
        del self._operations[hit.strand]
        counts = self._count.add(operation, hit.now)
        return self._decide if counts and self._count.is_enough else None

    def _calls(self, operation: OpenOp, timed: Timed, hit: Hit, slot: int) -> None:
        """A call site is about to call, which makes the frame of ``slot``, or to jump, in a frame
        that may be on the path."""
        site, now = timed.site, hit.now
        register = functools.partial(self._target.threads.read_register, hit.thread)
        assert site.slot is not None
        parent = operation.find(frame_slot(site.slot, register, self._word))
        caller = parent.node if parent is not None else None
        if parent is None or caller is None or caller not in timed.routes:
            return
        node = timed.routes[caller]
        if site.kind.is_tail and not is_taken(site.instruction, register):
            return
        if node is None:
            target = indirect_target(site.instruction, register, self._word)
            node = self._sites.learned(timed, caller, target)
        if site.kind.is_tail:
            operation.hand_over(parent, node, now)
        elif node is not None:
            operation.open(parent, OpenCall(slot, site.back, [(node, now)]))

    def _returned(self, operation: OpenOp, place: BreakPlace, slot: int, now: Instant) -> None:
        call = operation.find(slot)
        if call is None or call is operation.f0:
            return
        if any(timed.site.back == call.back for timed in place.returns):
            operation.close(call, now)

    def _word(self, address: int) -> int:
        return int.from_bytes(self._target.memory.read(address, 8), "little")
