"""The rules of the paper, and those of docs/method.md and docs/pad.md about what is left out, as
plain Python: what must have been counted when a program has done what its events say.

Where an interruption has come between two of darc's instructions, the rules allow more than one
outcome: its time is part of the call, or of the caller; an operation in it is measured, or passes
through. :func:`check` follows all that are allowed, and what was counted must be that of one of
them. Where nothing was interrupted, there is one.
"""

from __future__ import annotations

import copy
import pickle
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from darc.agent import compiled
from darc.model.profile import thresholds
from tests.agent.world import (
    CATCHER,
    COMPACT,
    DEAD,
    ENDING,
    EPOCH,
    HEAL,
    LONGJMP,
    MOST_TARGETS,
    OP,
    ROOT,
    ROUND,
    TOGGLE,
    TREE,
    UNWINDER,
    Counted,
    Event,
    Run,
    Setting,
    Tree,
    Where,
)

_LIMITS = compiled.load().constants
_MOST_TAILS = _LIMITS.MAX_TAILS
MOST, FEW, SPANS = _LIMITS.KEPT_OPS, _LIMITS.KEPT_FEW, _LIMITS.MAX_SPANS
_ENDED = -1
_FREED = 1
_HASH, _HASH_SHIFT, _STEPS = _LIMITS.HASH, _LIMITS.HASH_SHIFT, _LIMITS.PROBE_LIMIT
_SPREAD = 0x9E3779B97F4A7C15
_MOST_OUTCOMES = 300


@dataclass
class Call:
    """A call that is on the path: of f0, or of an fnode."""

    node: int | None
    """The one that has the frame now; ``None``: a tail call has led out of the ftree."""
    start: int | None
    """``None``: it is not timed."""
    slot: int
    op: int
    overhead: int = 0
    first: int | None = None
    tails: list[tuple[int, int, int]] = field(default_factory=list)
    """Node, start and overhead so far of each tail call in the frame."""
    is_hidden: bool = False
    is_left: bool = False
    """An exception has gone past it, in another epoch than it began in."""
    is_indirect: bool = False


@dataclass
class Sum:
    """Calls of one node in one operation."""

    longest: int
    all: int
    count: int


def _is_loop(node: Sum) -> bool:
    """Its calls count together: many, and no single one is half of them all."""
    return node.count >= 8 and 2 * node.longest < node.all


def _contestants(
    node: Sum, called: dict[int, Sum], *, by_longest: bool
) -> tuple[int, dict[int, int]]:
    """What a node's own time and its children are compared by, as docs/method.md has it."""
    longest = {child: one.longest for child, one in called.items()}
    if by_longest:
        return max(0, node.longest - sum(longest.values())), longest
    own = max(0, node.all - sum(one.all for one in called.values()))
    if _is_loop(node):
        return own, {child: one.all for child, one in called.items()}
    if node.longest < node.all:  # of what all its calls took, the part of the longest
        own = own * node.longest // node.all
    together = {}
    for child, one in called.items():
        part = one.all
        if node.longest < node.all:
            part = min(part, node.all) * node.longest // node.all
        together[child] = part if _is_loop(one) else one.longest
    return own, together


@dataclass
class Op:
    """One outermost call of f0."""

    number: int
    epoch: int
    chain: list[Call]
    """f0's call and the calls in it, the innermost last; also those that a jump has left."""
    sums: dict[int, Sum] = field(default_factory=dict)
    jumped: int = 0
    """When a jump began, 0: none."""
    is_gone: bool = False
    """A jump has left f0 itself."""
    spans: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Start, end, cost and node of its calls that are long enough."""
    is_spoiled: bool = False
    """A callee found no room for a record: its time would count as its caller's own."""


@dataclass
class Whole:
    """An op that may have been kept."""

    times: tuple[int, int, int, int]
    """Start, end, cost and latency."""
    spans: tuple[tuple[int, int, int, int], ...]
    sums: frozenset[tuple[int, int, int, int]]
    """Node, calls, sum and the longest one."""


@dataclass
class Frame:
    """One of the program's frames."""

    function: int
    slot: int
    call: Call | None = None
    """Where the word in its slot is darc's."""


@dataclass
class Context:
    """What a thread has counted."""

    thread: int
    place: int = -1
    """In the table; -1: unknown."""
    sum: int = 0
    dropped: int = 0
    in_peak: int = 0
    round: int = 0
    unreported: int = 0
    number: int = 0
    """Latencies in all bins."""
    weighted: int = 0
    """The same, each with a weight of its bin."""
    totals: dict[int, list[int]] = field(default_factory=dict)


@dataclass
class Transfer:
    """A call, tail call or return that is under way."""

    kind: str
    callee: int
    begin: int
    slot: int
    is_lost: bool = False
    """f0's operation that begins by it is not measured."""
    needs_op: bool = False
    """Something in the interruption must have been measured."""
    has_begun: int | None = None
    epoch: int = 0
    """When f0's operation had begun before an interruption, and its epoch."""
    was_enabled: bool = False
    """It was interrupted when f0 was watched, which may have been looked at before."""
    is_amid: bool = False
    """It was interrupted as the agent closed f0's operation."""


@dataclass
class Thread:
    """One thread of the program."""

    number: int
    base: int
    frames: list[Frame] = field(default_factory=list)
    transfer: Transfer | None = None
    waiting: list[tuple[Transfer | None, bool, int, int]] = field(default_factory=list)
    """Of the transfers that handlers interrupt."""
    op: Op | None = None
    context: int | None = None
    is_busy: bool = False
    is_doubtful: bool = False
    """A jump out of darc's own code: nothing is promised till the debugger has looked."""
    began: int = 0
    """Operations that it has begun to measure."""
    arrivals: int = 0
    """Calls of f0 since the last look."""


class _ChoiceError(Exception):
    def __init__(self, options: int) -> None:
        super().__init__(options)
        self.options = options


class _ImpossibleError(Exception):
    """This outcome is not one."""


class Model:
    """One outcome so far."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.tree_number = 0
        self.enabled = True
        self.wanted = True
        """What the debugger has set: the agent may have found out since that it is gone."""
        self.epoch = 1
        self.round = 0
        self.seen = 0
        self.bell = 0
        self.is_dead = False
        self.threads: dict[int, Thread] = {}
        self.contexts: list[Context] = []
        self.slots: set[int] = set()
        self.places: dict[int, int] = {}
        """Slots by the numbers of the records that were claimed for them."""
        self.below: dict[int, int] = {}
        """And the number of the record of each one's last call that was begun the slow way."""
        self.targets: dict[int, list[int]] = {}
        self.lost_records = 0
        self.lost_contexts = 0
        self.lost_ops = 0
        self.left_ops = 0
        self.lost_callers = 0
        self.was_doubtful = False
        self.has_ended = False
        """A thread has given its context to others."""
        self.ops = 0
        self.whole: tuple[list[Whole], list[Whole]] = ([], [])
        """Of this round: those whose votes were counted, and those of the fastest peak."""
        self.choices: list[int] = []
        self.taken = 0

    def __getstate__(self) -> dict[str, object]:
        state = self.__dict__.copy()
        state.pop("setting", None)
        return state

    def __deepcopy__(self, memo: dict[int, object]) -> Model:
        other = pickle.loads(pickle.dumps(self))
        assert isinstance(other, Model)
        other.setting = self.setting
        return other

    @property
    def tree(self) -> Tree:
        """What is timed now."""
        return self.setting.trees[self.tree_number]

    def choose(self, options: int) -> int:
        """Which of the outcomes that the rules allow."""
        if self.taken >= len(self.choices):
            raise _ChoiceError(options)
        self.taken += 1
        return self.choices[self.taken - 1]

    def may_choose(self, event: Event) -> bool:
        """Whether there may be more than one outcome."""
        thread = self.threads.get(event.thread)
        if thread is None or event.what not in ("ARRIVE", "BACK", "BEGIN"):
            return False
        if event.what == "BEGIN":
            return True
        transfer, op = thread.transfer, thread.op
        is_longer = transfer is not None and transfer.begin != event.clock
        is_longer |= transfer is not None and (transfer.was_enabled or transfer.is_amid)
        return is_longer or (op is not None and op.is_gone)

    def _instant(self, begin: int, end: int) -> int:
        """When the clock was read, in a transfer that lasted from ``begin`` to ``end``."""
        return begin if begin == end or self.choose(2) == 0 else end

    # ------------------------------------------------------------------ time

    def bin(self, latency: int) -> int:
        """As docs/method.md has it."""
        table = thresholds(self.setting.resolution)
        return bisect_right(table, latency) - 1 if latency > 0 else 0

    def _account(self, op: Op, node: int, latency: int) -> None:
        known = op.sums.get(node)
        if known is None:
            op.sums[node] = Sum(latency, latency, 1)
        else:
            known.longest = max(known.longest, latency)
            known.all += latency
            known.count += 1

    def _close(self, op: Op, call: Call, end: int) -> int:
        """A call is over: its node's, and those of the tail calls in its frame. What that costs
        whoever made it."""
        inner, before = self.setting.inner_cost, len(op.spans)
        if call.start is not None:
            node = call.first if call.first is not None else call.node
            assert node is not None
            self._account(op, node, max(1, end - call.start - call.overhead - inner))
            self._write_down(op, node, start=call.start, end=end, cost=call.overhead + inner)
        self._close_tails(op, call, end)
        setting = self.setting
        cost = (len(op.spans) - before) * setting.span_cost
        if op.spans and not before:
            cost += setting.first_cost
        if call.first is not None:
            cost += setting.closing_cost + len(call.tails) * setting.target_cost
        return cost

    def _close_tails(self, op: Op, call: Call, end: int) -> None:
        for node, start, overhead in call.tails:
            self._account(op, node, max(1, end - start - (call.overhead - overhead)))
            self._write_down(op, node, start=start - overhead, end=end, cost=call.overhead)

    def _write_down(self, op: Op, node: int, start: int, *, end: int, cost: int) -> None:
        least = self.setting.least_span
        if least is not None and max(1, end - start - cost) >= least:
            op.spans.append((start, end, cost, node))

    def _keep(self, op: Op, call: Call, end: int, *, latency: int, is_voted: bool) -> None:
        low, high = self.setting.fast
        is_fast = low <= latency < high and not op.is_spoiled
        if self.setting.least_span is None or not (is_voted or is_fast):
            return
        if not is_voted and len(self.whole[1]) > FEW:
            return
        assert call.start is not None
        sums = frozenset((n, s.count, s.all, s.longest) for n, s in op.sums.items() if n)
        times = (call.start, end, call.overhead, latency)
        self.whole[not is_voted].append(Whole(times, tuple(op.spans), sums))

    def _left(self, op: Op, live: Call, end: int) -> None:
        """Calls deeper than ``live`` were left by a jump."""
        at = next(n for n, call in enumerate(op.chain) if call is live)
        for number in range(len(op.chain) - 1, at, -1):
            call, parent = op.chain[number], op.chain[number - 1]
            if not call.is_hidden and op.epoch == self.epoch:
                parent.overhead += call.overhead
                is_later = call.start is not None and op.jumped > call.start
                self._close(op, call, op.jumped if op.jumped and is_later else end)
        del op.chain[at + 1 :]
        op.jumped = 0

    # ------------------------------------------------------------------ the rules

    def step(self, event: Event, run: Run, number: int) -> None:
        """Takes one event."""
        if event.what == "SNAP":
            self._compare(run.counted[number])
            return
        if event.what == "DEBUGGER":
            self._debugger(event, run, number)
            return
        if event.what == "START":
            if event.a >= 0:
                self.threads[event.thread] = Thread(event.thread, event.b)
            return
        thread = self.threads[event.thread]
        rule: Callable[[Thread, Event], None] | None = {
            "CALL": self._call,
            "ARRIVE": self._arrive,
            "LEAVE": self._leave,
            "BACK": self._back,
            "JUMP": self._jump,
            "BEGIN": self._begin,
            "FINISH": self._finish,
        }.get(event.what)
        if rule is not None:
            rule(thread, event)

    def _call(self, thread: Thread, event: Event) -> None:
        kind = {OP["CALL"]: "call", OP["INDIRECT"]: "indirect", OP["TAIL"]: "tail"}[event.b]
        thread.transfer = Transfer(kind, event.a, event.clock, event.c)

    def _arrive(self, thread: Thread, event: Event) -> None:
        transfer, thread.transfer = thread.transfer, None
        if transfer is None:
            thread.frames.append(Frame(event.a, event.b))
            return
        caller = thread.frames[-1]
        begin, end = transfer.begin, event.clock
        if transfer.kind == "tail":
            self._tail(thread, caller, callee=transfer.callee, begin=begin, end=end)
            frame = caller
            frame.function = event.a
        else:
            frame = Frame(event.a, event.b)
            self._enter(thread, caller, frame, transfer=transfer, end=end)
            thread.frames.append(frame)
        if event.a == 0:
            thread.arrivals += 1
            self._enter_f0(thread, frame, transfer, end)
        elif event.a == UNWINDER:
            self._hide(thread)
        elif event.a == CATCHER:
            self._show(thread, event.b, self._instant(begin, end))
        elif event.a == LONGJMP:
            if thread.op and not thread.is_busy:
                thread.op.jumped = self._instant(begin, end)
        elif event.a == ENDING:
            self._end(thread)

    def _parent(self, thread: Thread, frame: Frame) -> Call | None:
        """The frame's call, if it is on the path of the operation that is under way."""
        op, call = thread.op, frame.call
        if call is None or op is None or thread.is_busy or op.epoch != self.epoch:
            return None
        return call if call.op == op.number and any(call is c for c in op.chain) else None

    def _child(self, kind: str, function: int, parent: int | None, callee: int) -> int | None:
        where = (kind, function, 0 if kind == "indirect" else callee)
        for above, below, lanes in self.tree.routes.get(where, ()):
            if above == parent:
                if kind != "indirect":
                    return below
                known = self.targets.setdefault(function, [])
                if callee not in known and len(known) < MOST_TARGETS:
                    known.append(callee)
                numbered = [lane for lane in range(MOST_TARGETS + 1) if lanes >> lane & 1]
                lane = known.index(callee) if callee in known else MOST_TARGETS
                lane = lane if lane in numbered else MOST_TARGETS
                return below + numbered.index(lane) if lane in numbered else None
        return None

    def _place(self, slot: int, step: int) -> int:
        """Where a record of that slot may be."""
        spread = (slot * _HASH & (1 << 64) - 1) >> _HASH_SHIFT >> 8
        return (spread + step) & (self.setting.records - 1)

    def _is_at_once(self, slot: int) -> bool:
        """Whether the slot's record is found at the first look."""
        return self.places.get(self._place(slot, 0)) == slot

    def _find(self, slot: int) -> int:
        steps = (self._place(slot, step) for step in range(_STEPS))
        return next(place for place in steps if self.places.get(place) == slot)

    def _is_fast(self, op: Op, where: Where, parent: Call, frame: Frame) -> bool:
        """Whether the stub opens the call by itself."""
        if op.chain[-1] is not parent or not self._is_at_once(parent.slot):
            return False
        if self.tree.routes[where][0][0] != parent.node:
            return False
        above = self._place(parent.slot, 0)
        return self.places.get(self.below.get(above, above)) == frame.slot

    def _claim(self, slot: int) -> bool:
        for step in range(_STEPS):
            place = self._place(slot, step)
            if self.places.get(place, _FREED) in (_FREED, slot):
                self.places[place] = slot
                break
        if slot not in self.slots:
            if len(self.slots) >= self.setting.records:
                self.lost_records += 1
                return False
            self.slots.add(slot)
        return True

    def _enter(
        self, thread: Thread, caller: Frame, frame: Frame, *, transfer: Transfer, end: int
    ) -> None:
        parent = self._parent(thread, caller)
        if parent is None or frame.function > ROOT:
            return
        op = thread.op
        assert op is not None
        node = None
        if parent.node is not None:
            node = self._child(transfer.kind, caller.function, parent.node, frame.function)
        if node is None:
            parent.overhead += self.setting.pass_cost
            return
        if not self._claim(frame.slot):
            op.is_spoiled = True
            return
        now = self._instant(transfer.begin, end)
        is_indirect = transfer.kind == "indirect"
        where = transfer.kind, caller.function, frame.function
        if is_indirect or not self._is_fast(op, where, parent, frame):
            setting = self.setting
            parent.overhead += setting.indirect_cost if is_indirect else setting.slow_cost
            self.below[self._find(parent.slot)] = self._find(frame.slot)
        if op.chain[-1] is not parent:
            self._left(op, parent, now)
        start = now if self.tree.nodes[node].timed else None
        frame.call = Call(node, start, frame.slot, op.number, is_indirect=is_indirect)
        op.chain.append(frame.call)

    def _tail(self, thread: Thread, frame: Frame, callee: int, *, begin: int, end: int) -> None:
        call = self._parent(thread, frame)
        if call is None or call.node is None:
            return
        node = self._child("tail", frame.function, call.node, callee)
        if call.first is None:
            call.first = call.node
        call.overhead += self.setting.tail_cost
        if node is None or len(call.tails) >= _MOST_TAILS:
            call.node = None
            return
        start = self._instant(begin, end) + self.setting.tail_inner
        call.tails.append((node, start, call.overhead))
        call.node = node

    # ------------------------------------------------------------------ f0

    def _runs(self, thread: Thread, slot: int) -> bool:
        """Whether there is an operation that a call of f0 is part of."""
        op = thread.op
        if op is None:
            return False
        first = op.chain[0]
        if first.is_hidden or first.slot <= slot:
            return False
        # What a jump has left can be told from what runs only by its stack word, perhaps.
        return not op.is_gone or self.choose(2) == 0

    def _find_context(self, thread: Thread) -> Context | None:
        if thread.context is not None:
            return self.contexts[thread.context]
        # Of those that it may have, it takes the first that is free or whose thread has ended.
        key = thread.base + 1
        first = (key * _SPREAD & (1 << 64) - 1) >> 40
        taken = {context.place: number for number, context in enumerate(self.contexts)}
        for step in range(self.setting.contexts):
            place = (first + step) & (self.setting.contexts - 1)
            number = taken.get(place, len(self.contexts))
            if place not in taken:
                self.contexts.append(Context(key, place))
            elif self.contexts[number].thread != _ENDED:
                continue
            self.contexts[number].thread = key
            thread.context = number
            return self.contexts[number]
        self.lost_contexts += 1
        return None

    def _enter_f0(self, thread: Thread, frame: Frame, transfer: Transfer, end: int) -> None:
        # Perhaps before the interruption, which was not part of it.
        begin = end if transfer.has_begun is None else transfer.has_begun
        is_off = not self.enabled and transfer.has_begun is None
        if is_off and (not transfer.was_enabled or self.choose(2) == 0):
            return
        if transfer.is_lost or thread.is_busy:
            return
        if self._find_context(thread) is None:
            return
        if frame.call is not None or self._runs(thread, frame.slot):
            return
        if thread.op is not None and thread.op.chain[0].is_hidden:
            self.lost_ops += 1
        elif thread.op is not None and thread.op.epoch == self.epoch:
            self.left_ops += 1
        if not self._claim(frame.slot):
            return
        if self.setting.no_callers:
            self.lost_callers += 1
            return
        start = self._instant(begin, end)
        self._new_op(thread, frame, start, transfer.epoch or self.epoch)

    def _new_op(self, thread: Thread, frame: Frame, start: int, epoch: int) -> None:
        self.ops += 1
        thread.began += 1
        frame.call = Call(0, start, frame.slot, self.ops)
        thread.op = Op(self.ops, epoch, [frame.call])

    def _finish_op(self, thread: Thread, call: Call, end: int) -> None:
        op = thread.op
        assert op is not None
        assert thread.context is not None
        context = self.contexts[thread.context]
        setting = self.setting
        if thread.is_doubtful:
            thread.op = None
            return
        latency = self._latency(call, end)
        self._close_tails(op, call, end)
        thread.op = None
        if self.is_dead:
            self.enabled = False
        self._count(context, latency)
        if setting.analyse:
            is_voted = self._is_of_peak(latency, call.overhead)
            is_voted = is_voted and not self.bell and not op.is_spoiled
            if is_voted:
                self._vote_all(context, op, latency)
            self._keep(op, call, end, latency=latency, is_voted=is_voted)
            if not is_voted:
                return
        context.unreported += 1
        if context.unreported >= setting.batch:
            self.seen += context.unreported
            context.unreported = 0
            if self.seen >= setting.needed and not self.bell:
                self.bell = 2 if self.is_dead and setting.signal else 1

    def _latency(self, call: Call, end: int) -> int:
        assert call.start is not None
        taken = end - call.start - call.overhead - self.setting.inner_cost
        if taken < self.setting.least_op // 2 and call.overhead:
            whole = max(1, end - call.start - self.setting.inner_cost)
            taken = min(whole, self.setting.least_op)
        return max(1, self.setting.tsc_step, taken)

    def _count(self, context: Context, latency: int) -> None:
        """One more for the profile."""
        context.sum += latency
        context.number += 1
        context.weighted += (self.bin(latency) + 1) ** 2

    def _is_of_peak(self, latency: int, overhead: int) -> bool:
        """What probes cost is known to an eighth."""
        low, high = self.setting.peak
        doubt = overhead // 8
        return latency + doubt >= low and max(0, latency - doubt) < high

    def _vote_all(self, context: Context, op: Op, latency: int) -> None:
        if context.round != self.round:
            context.totals = {}
            context.in_peak = context.unreported = 0
            context.round = self.round
        self._account(op, 0, latency)
        totals, setting = context.totals, self.setting
        for node, one in op.sums.items():
            total = totals.setdefault(node, [0] * 6)
            total[2] += 1
            total[3] += one.count
            total[4] += one.all
            total[5] += one.longest
        for number in self.tree.analysis:
            if number not in op.sums:
                continue
            parent = self.tree.nodes[number]
            children = range(parent.first_child, parent.first_child + parent.child_count)
            called = {child: op.sums[child] for child in children if child in op.sums}
            own, taken = _contestants(op.sums[number], called, by_longest=setting.by_longest)
            best = self.bin(max([own, *taken.values()]))
            if self.bin(own) == best:
                totals.setdefault(number, [0] * 6)[0] += 1
            for child, latency in taken.items():
                if self.bin(latency) == best:
                    totals.setdefault(child, [0] * 6)[1] += 1
        context.in_peak += 1

    # ------------------------------------------------------------------ the way back

    def _leave(self, thread: Thread, event: Event) -> None:
        thread.transfer = Transfer("leave", -1, event.clock, event.b)

    def _back(self, thread: Thread, event: Event) -> None:
        transfer, thread.transfer = thread.transfer, None
        assert transfer is not None
        frame = thread.frames.pop()
        self._return(thread, frame, transfer, event.clock)

    def _return(self, thread: Thread, frame: Frame, transfer: Transfer, now: int) -> None:
        call, op = frame.call, thread.op
        if call is None or op is None or call.op != op.number or transfer.is_lost:
            return
        at = next((n for n, one in enumerate(op.chain) if one is call), None)
        if at is None or thread.is_busy:
            return
        end = self._instant(transfer.begin, now)
        if at == 0:
            if len(op.chain) > 1:
                self._left(op, call, end)
            if op.epoch == self.epoch:
                self._finish_op(thread, call, end)
            else:
                assert thread.context is not None
                late = self.choose(3) if self.setting.analyse and transfer.is_amid else 0
                if late:  # it was in the profile by then
                    self._count(self.contexts[thread.context], self._latency(call, end))
                if late != 1:  # (1: it had no votes)
                    self.contexts[thread.context].dropped += 1
                thread.op = None
            return
        is_slow = len(op.chain) > at + 1 or not self._is_at_once(call.slot)
        if len(op.chain) > at + 1:
            self._left(op, call, end)
        if op.epoch == self.epoch:
            setting = self.setting
            cost = setting.path_cost if call.start is None else setting.full_cost
            before = len(op.spans)
            is_slow |= call.first is not None
            more = self._close(op, call, end)
            is_kept = len(op.spans) > before
            if is_kept and not (is_slow or call.is_indirect or not before):
                cost += setting.kept_cost - setting.full_cost
            else:
                cost += more + setting.return_cost * (is_slow or is_kept)
            op.chain[at - 1].overhead += call.overhead + cost
        del op.chain[at:]

    def _jump(self, thread: Thread, event: Event) -> None:
        thread.transfer = None
        while thread.frames[-1].slot != event.b:
            frame = thread.frames.pop()
            op = thread.op
            if op is not None and frame.call is op.chain[0]:
                op.is_gone = True
        while thread.waiting and thread.waiting[-1][3] > len(thread.frames) - 1:
            thread.waiting.pop()
            self._doubt(thread)

    # ------------------------------------------------------------------ unwinders, ends

    def _doubt(self, thread: Thread) -> None:
        thread.is_doubtful = self.was_doubtful = True

    def _hide(self, thread: Thread) -> None:
        for frame in thread.frames:
            if frame.call is not None:
                frame.call.is_hidden = True
                frame.call = None
        if any(transfer is not None for transfer, *_ in thread.waiting):
            self._doubt(thread)  # in the middle of a transfer: a call may be half there

    def _show(self, thread: Thread, slot: int, now: int) -> None:
        op = thread.op
        if op is None or thread.is_busy:
            return
        kept: list[Call] = []
        for number in range(len(op.chain) - 1, -1, -1):
            call = op.chain[number]
            if not call.is_hidden:
                continue
            frame = next((f for f in thread.frames if f.slot == call.slot), None)
            if call.slot > slot:
                if frame is not None:
                    call.is_hidden = False
                    frame.call = call
                    kept.append(call)
            else:
                call.is_hidden = False
                if op.epoch == self.epoch and number:
                    op.chain[number - 1].overhead += call.overhead
                    self._close(op, call, now)
                elif op.epoch == self.epoch:
                    self._finish_op(thread, call, now)
                else:
                    call.is_left = True
        if thread.op is not None:
            innermost = kept[0] if kept else None
            at = next((n for n, c in enumerate(op.chain) if c is innermost), None)
            # Those that a jump has left before are not known any more.
            if at is not None:
                del op.chain[at + 1 :]
            else:
                live = [c for c in op.chain if any(f.call is c for f in thread.frames)]
                op.chain = live or op.chain[:1]

    def _end(self, thread: Thread) -> None:
        op = thread.op
        if thread.context is None or thread.is_busy:
            return
        if op is not None and not (op.chain[0].is_hidden or op.chain[0].is_left):
            return
        thread.op = None
        self.contexts[thread.context].thread = _ENDED
        thread.context = None
        self.has_ended = True

    # ------------------------------------------------------------------ interruptions

    def _begin(self, thread: Thread, event: Event) -> None:
        """A handler runs between two instructions of darc's own."""
        transfer = thread.transfer
        busy = thread.is_busy
        before = thread.began
        depth = len(thread.frames)
        if transfer is not None and not thread.is_busy:
            self._zone(thread, transfer)
        thread.waiting.append((transfer, busy, before, depth))
        thread.transfer = None

    def _zone(self, thread: Thread, transfer: Transfer) -> None:
        op = thread.op
        running = op is not None and not op.is_gone and not op.chain[0].is_hidden
        if transfer.kind == "leave":
            frame = thread.frames[-1]
            if op is None or frame.call is not op.chain[0]:
                thread.is_busy = running and self.choose(2) == 1
                return
            choice = self.choose(3)
            if choice == 0:  # all was done before
                self._return(thread, frame, transfer, transfer.begin)
                frame.call = None
            elif choice == 1:  # the agent is in the middle of it
                thread.is_busy = transfer.is_amid = True
            else:  # what begins meanwhile takes its place
                transfer.needs_op = transfer.is_lost = True
                op.is_gone = True
                thread.op = None
            return
        if transfer.callee == 0 and not running:
            choice = self.choose(3)
            transfer.was_enabled = self.enabled
            if choice == 1:
                thread.is_busy = True
                transfer.has_begun, transfer.epoch = transfer.begin, self.epoch
            elif choice == 2:
                transfer.needs_op = transfer.is_lost = True
            return
        thread.is_busy = running and self.choose(2) == 1

    def _finish(self, thread: Thread, event: Event) -> None:
        thread.frames = thread.frames[: thread.waiting[-1][3]]
        transfer, busy, before, _ = thread.waiting.pop()
        if transfer is not None and transfer.needs_op and thread.began == before:
            raise _ImpossibleError
        thread.is_busy = busy
        thread.transfer = transfer

    # ------------------------------------------------------------------ the debugger

    def _debugger(self, event: Event, run: Run, number: int) -> None:
        if event.a in (EPOCH, ROUND, TREE):
            self.epoch += 1
        if event.a in (ROUND, TREE):
            self.round += 1
            self.seen = self.bell = 0
            self.whole = ([], [])
        if event.a == TREE:
            self.tree_number = (self.tree_number + 1) % len(self.setting.trees)
        elif event.a == TOGGLE:
            self.wanted = self.enabled = not self.wanted
        elif event.a == DEAD:
            self.is_dead = True
        elif event.a == COMPACT:
            self.slots = set(run.open_slots[number])
            self.places = {n: s if s in self.slots else _FREED for n, s in self.places.items()}
            self.lost_records = 0
        elif event.a == HEAL:
            for thread in self.threads.values():
                if thread.is_doubtful and len(thread.frames) == 1:
                    thread.is_doubtful = thread.is_busy = False
                    thread.op = None

    # ------------------------------------------------------------------ what was counted

    def _compare(self, counted: Iterable[Counted]) -> None:
        rows = {place: row for place, row in enumerate(counted) if row.thread}
        if any(thread.is_doubtful for thread in self.threads.values()):
            self._adopt(rows)
            return
        # One that is in the middle of the agent may have counted a part.
        amid = {thread.base + 1 for thread in self.threads.values() if thread.waiting}
        mine = [self._row(context) for context in self.contexts if context.thread not in amid]
        theirs = [self._read(row) for row in rows.values() if row.thread not in amid]
        if self.has_ended:
            mine = [(0, *row[1:]) for row in mine]
            theirs = [(0, *row[1:]) for row in theirs]
        if sorted(mine, key=repr) != sorted(theirs, key=repr):
            raise DifferentError(mine, theirs)
        for thread in self.threads.values():
            thread.arrivals = 0
        if not any(thread.op or thread.waiting for thread in self.threads.values()):
            self.ops = 0  # outcomes that led to the same are one from here on
            for thread in self.threads.values():
                thread.began = 0

    def _row(self, context: Context) -> tuple[object, ...]:
        head = (context.thread, context.sum, context.dropped, context.number, context.weighted)
        if context.round != self.round:
            return (*head, 0, ())
        totals = tuple((node, *row) for node, row in sorted(context.totals.items()) if any(row))
        return (*head, context.in_peak, totals)

    def _read(self, row: Counted) -> tuple[object, ...]:
        head = (row.thread, row.sum, row.dropped, row.number, row.weighted)
        if row.round != self.round:
            return (*head, 0, ())
        nodes = len(self.tree.nodes)
        totals = tuple((n, *one) for n, one in enumerate(row.totals[:nodes]) if any(one))
        return (*head, row.in_peak, totals)

    def _adopt(self, rows: dict[int, Counted]) -> None:
        """Nothing is promised but that nothing is counted that was not, and nothing twice."""
        known = {context.thread: context for context in self.contexts}
        arrivals = sum(thread.arrivals for thread in self.threads.values())
        news = 0
        for row in rows.values():
            context = known.get(row.thread) or Context(row.thread)
            if not self.setting.analyse:
                news += row.number - context.number
            elif row.round == self.round:
                news += row.in_peak - (context.in_peak if context.round == row.round else 0)
        if not 0 <= news <= arrivals:
            raise DifferentError(news, arrivals)
        self.contexts = [
            Context(
                thread=row.thread,
                place=place,
                sum=row.sum,
                dropped=row.dropped,
                in_peak=row.in_peak,
                round=row.round,
                unreported=row.unreported,
                number=row.number,
                weighted=row.weighted,
                totals={n: list(one) for n, one in enumerate(row.totals) if any(one)},
            )
            for place, row in rows.items()
        ]
        places = {context.thread: n for n, context in enumerate(self.contexts)}
        for thread in self.threads.values():
            thread.context = places.get(thread.base + 1)
            thread.arrivals = 0


class DifferentError(Exception):
    """What was counted is not what the rules say."""


def wrong_of_kept(model: Model, run: Run) -> str | None:
    """What is not as it must be with the ops that were kept; ``None``: nothing is."""
    if model.setting.least_span is None:
        return None
    for number, whole in enumerate(model.whole):
        kept = [op for op in run.kept if op.is_fast == bool(number)]
        if run.ops_seen[number] != len(whole):
            return f"{run.ops_seen[number]} of {len(whole)} ops were seen"
        there = [one for one in whole if one.times[0] < one.times[1]]
        count = min(len(there), MOST + 1)
        if len(there) == len(whole) and len(kept) != count:
            return f"{len(kept)} ops were kept in place of {count}"
        left = list(there)
        for op in kept:
            mine = (op.start, op.end, op.cost, op.latency)
            spans = tuple((span.start, span.end, span.cost, span.node) for span in op.spans)
            sums = frozenset((one.node, one.calls, one.sum, one.max) for one in op.sums)
            lost = op.lost
            same = (
                one
                for one in left
                if (one.times, one.spans[:SPANS], one.sums) == (mine, spans, sums)
                and lost == max(0, len(one.spans) - SPANS)
            )
            one = next(same, None)
            if one is None:
                return f"there was no op as {op}"
            left.remove(one)
            slowest = max(other.times[3] for other in whole)
            if op.is_slowest and op.latency != slowest:
                return f"{op.latency} is not the slowest: {slowest}"
    return None


def check(setting: Setting, run: Run) -> None:
    """Compares what was counted with the rules.

    Raises:
        AssertionError: they differ.
    """
    outcomes = [Model(setting)]
    for number, event in enumerate(run.events):
        outcomes, errors = _next(outcomes, event, run, number)
        assert outcomes, f"event {number}, {event}: {errors[:3]}"
    fields = run.fields
    errors = []
    for model in outcomes:
        want = {
            "seen": model.seen, "bell": model.bell, "lost_records": model.lost_records,
            "lost_contexts": model.lost_contexts, "lost_ops": model.lost_ops,
            "left_ops": model.left_ops,
            "lost_callers": model.lost_callers, "epoch": model.epoch, "round": model.round,
        }  # fmt: skip
        if model.was_doubtful:
            return
        if want == fields and (wrong := wrong_of_kept(model, run)) is None:
            return
        if want == fields:
            errors.append({"kept": (wrong, model.whole, run.kept)})
            continue
        errors.append({name: (want[name], fields[name]) for name in want
                       if want[name] != fields[name]})  # fmt: skip
    raise AssertionError(f"in the end, by the rules and as counted: {errors[:3]}")


def _next(
    outcomes: list[Model], event: Event, run: Run, number: int
) -> tuple[list[Model], list[object]]:
    errors: list[object] = []
    found: list[Model] = []
    for model in outcomes:
        can_branch = model.may_choose(event)
        queue: list[list[int]] = [[]]
        while queue:
            choices = queue.pop()
            this = copy.deepcopy(model) if can_branch else model
            this.choices, this.taken = choices, 0
            try:
                this.step(event, run, number)
            except _ChoiceError as choice:
                assert can_branch
                queue += [[*choices, option] for option in range(choice.options)]
            except _ImpossibleError:
                pass
            except DifferentError as error:
                errors.append(error)
            else:
                this.choices, this.taken = [], 0
                found.append(this)
    if len(found) > 1 and event.what in ("SNAP", "BEGIN", "FINISH", "ARRIVE", "BACK"):
        found = list({pickle.dumps(this): this for this in found}.values())
    assert len(found) < _MOST_OUTCOMES
    return found, errors
