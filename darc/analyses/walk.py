"""Down from the start of each thread into the calls that hold the time (CrossWalk 3.1, 4).

Level by level: in a window the calls are timed that one function makes. Each that holds at least
the threshold's share of the time of its group of threads is looked into in a window of its own.
Calls that are under way when a window begins are found by one look at every thread's stack, as an
event loop never returns; those that are when it ends count up to there. A function that has handed
its frame on by a tail jump is no more on the stack: that it was there is told by the call in its
caller, or by the record of its own call.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from darc.analyses.analysis import Analysis, Step, Subject
from darc.code.architecture import Site
from darc.code.processor import is_system_call, jump_target
from darc.code.standard_library import begins_threads, is_named_of_library, is_of_cxx
from darc.code.unwind import Frame
from darc.collectors.walk_collector import EVENT_WAITS, WalkCollector, is_of_c, plain_name
from darc.collectors.walkcount import Counted
from darc.collectors.walkstacks import ThreadStack
from darc.model.errors import TargetError, UsageError
from darc.model.ftree import Function
from darc.model.part import parts_of
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.model.walk import Chain, ChainStep, End, Walk, WalkGroup

THRESHOLD = 0.25
WINDOW_SECONDS = 2.0

_STARTERS = frozenset(
    ("start_thread", "libc_start_call_main", "libc_start_main", "clone", "clone3")
)
"""What of the C library calls a thread's start function, without underscores before it."""

_WAITS = EVENT_WAITS | frozenset(
    """poll ppoll select pselect accept accept4 recv recvfrom recvmsg recvmmsg
    pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait cnd_wait cnd_timedwait
    sem_wait sem_timedwait sem_clockwait sigwait sigwaitinfo sigtimedwait sigsuspend pause
    nanosleep clock_nanosleep usleep sleep thrd_sleep io_getevents mq_receive msgrcv
    pthread_join pthread_clockjoin_ex pthread_timedjoin_np pthread_clockjoin_np thrd_join
    wait waitpid wait3 wait4""".split()
)
"""Where a thread waits for work, if a function that it never leaves calls that."""

_SYSTEM_CALL = "syscall"
"""The C library's, which C++'s makes to wait for a word to change, and not for locks."""

_LEAST_LIBRARY = 0.2
"""Of the threshold: what of C++'s library a loop calls is looked into from there on, as its waits
are idle time, which all shares are without."""

_LOOKS = 12
"""Moments at which stacks are looked at where a function has indirect calls: one of a callee with a
quarter of the time is missed by all of them once in thirty such functions."""

_BETWEEN_LOOKS = 0.03
"""Seconds between two of them."""

_MOST_LEVELS = 48

_MOST_JUMPS = 12
"""Functions that hand one frame on, one to the other."""

_NOTHING = 0.0005
"""Of a group's time: less is not told."""

_MOST_AGAIN = 2
"""So often is a level timed once more as an indirect call was seen that was not known."""


@dataclass
class _Node:
    """A function on the way, in one group of threads."""

    function: Function
    above: _Node | None
    share: dict[int, float]
    """Of each thread's time, by the thread's key, without event waits."""
    whole: Mapping[int, float] = field(default_factory=dict)
    """What there was of each thread's time in the same window, without event waits."""
    base: frozenset[int] = frozenset()
    """The threads that are in it all the time."""
    below: list[_Node] = field(default_factory=list)
    idle: dict[int, float] = field(default_factory=dict)
    """Of each thread: waits for work that it calls itself."""
    lends: frozenset[int] = frozenset()
    """The threads whose loop calls it, or something that does, and it is of C++'s library: where it
    waits, the loop does."""
    waited: dict[str, float] = field(default_factory=dict)
    """Thread-windows of such waits that it calls itself, by the function."""
    idling: dict[str, float] = field(default_factory=dict)
    """The same, and those of the library's functions below, as parts of its time."""
    is_done: bool = False
    calls: dict[int, int] = field(default_factory=dict)
    """In each thread, while the function above was looked into."""
    learned: set[int] = field(default_factory=set)
    is_jumper: bool = False
    """Whether it hands its frame on by tail jumps, and nothing tells where: it cannot be timed."""
    looks: int = 0
    """How often the stacks are still to be looked at for its indirect callees."""
    again: int = 0

    @property
    def path(self) -> list[_Node]:
        """From the start down to it."""
        return [*(() if self.above is None else self.above.path), self]

    def is_lent(self, key: int) -> bool:
        """Whether what it waits is the wait of the thread's loop, which it returns to."""
        return key in self.lends and key not in self.base

    def is_outermost(self, key: int) -> bool:
        """Of what is lent to a thread's loop."""
        return self.is_lent(key) and (self.above is None or not self.above.is_lent(key))

    def lent(self) -> float:
        """In threads."""
        return sum(share for key, share in self.share.items() if self.is_lent(key))

    def tell_idling(self) -> None:
        """The window tells parts, not times: that of its own callers has its share, and others may
        call it as well."""
        found = dict(self.waited)
        held = sum(found.values()) + sum(sum(one.share.values()) for one in self.below)
        for one in self.below:
            for name, part in one.idling.items():
                found[name] = found.get(name, 0.0) + part * one.lent()
        own = self.lent()
        whole = held if 2 * held > own else own  # else most is its own, or not known
        self.idling = {name: part / whole for name, part in found.items()} if whole else {}


@dataclass
class _Group:
    name: str
    threads: set[int]
    root: _Node
    waits: dict[str, float] = field(default_factory=dict)
    """Thread-windows by the function that was waited in."""
    event_waits: dict[int, float] = field(default_factory=dict)
    ran: float | None = None
    ready: float | None = None
    is_done: bool = False

    def nodes(self) -> Iterator[_Node]:
        stack = [self.root]
        while stack:
            node = stack.pop()
            yield node
            stack += node.below

    def idle_of(self, key: int) -> float:
        """Which part of a thread's time is waits for work that functions call which it never
        leaves."""
        idle = 0.0
        for node in self.nodes():
            idle += node.idle.get(key, 0.0)
            if node.idling and node.is_outermost(key):
                idle += node.share.get(key, 0.0) * sum(node.idling.values())
        return min(idle, 1.0)

    def busy(self, whole: Mapping[int, float]) -> float:
        """Of the threads' ``whole`` time, in threads, what is not idle."""
        return sum(max(whole.get(key, 0.0) - self.idle_of(key), 0.0) for key in self.threads)

    def share(self, node: _Node) -> float:
        """Of the group's time that is not idle."""
        busy = self.busy(node.whole)
        held = sum(self._held(node, key) for key in node.share)
        return min(held / busy, 1.0) if busy > 0 else 0.0

    def _held(self, node: _Node, key: int) -> float:
        share = node.share[key]
        if key in node.base:
            return max(share - self.idle_of(key), 0.0)
        return share * (1.0 - sum(node.idling.values())) if node.is_lent(key) else share

    def waits_told(self) -> dict[str, float]:
        """All of its waits for work, in threads, by the function that was waited in."""
        waits = dict(self.waits)
        for node in self.nodes():
            share = sum(part for key, part in node.share.items() if node.is_outermost(key))
            for name, part in node.idling.items():
                waits[name] = waits.get(name, 0.0) + part * share
        return waits


class CallWalk(Analysis):
    """See the module."""

    _ended_early = Status.DONE

    def __init__(
        self,
        subject: Subject,
        *,
        threshold: float = THRESHOLD,
        seconds: float = WINDOW_SECONDS,
        goes_below: bool = False,
    ) -> None:
        """``goes_below`` says that f0 is where to begin, instead of each thread's start."""
        super().__init__(subject)
        if not isinstance(subject.collector, WalkCollector):
            raise UsageError("'darc walk' times functions by pads alone: '--probes pad'")
        self._walk = subject.collector
        self._threshold = threshold
        self._window = seconds
        self._goes_below = goes_below
        self._since: float | None = None
        self._groups: list[_Group] = []
        self._now: tuple[_Group, _Node] | None = None
        self._stacks: dict[int, ThreadStack] = {}
        self._ran: dict[int, tuple[int, int]] = {}
        self._start = self._end = 0
        self._windows = 0
        self._took = 0.0
        self._left: set[int] = set()
        self._known = Walk((), threshold, seconds)
        self._walk.counting.await_user()
        self._stacks = self._walk.stacks.all()
        self._see_threads()
        self._next()

    # -------------------------------------------------------------------- time

    def stopped(self) -> None:
        if self._since is not None:
            self._end = self._walk.now
            self._took, self._since = time.monotonic() - self._since, None

    def goes_on(self) -> None:
        if self._since is not None or self.finished:
            return
        self._stacks = self._walk.stacks.all()
        self._see_threads()
        self._ran = {t: ran for t in self._stacks if (ran := self._walk.ran(t)) is not None}
        self._walk.windows.begin()
        self._since, self._start = time.monotonic(), self._walk.now

    @property
    def seconds_left(self) -> float | None:
        if self._is_looking:
            # Not before: the agent would stop the program itself, where a call returns.
            return 0.0 if self.urgent is not None and self._walk.is_stopped else None
        since = self._since
        return self._window if since is None else self._window - (time.monotonic() - since)

    @property
    def _is_looking(self) -> bool:
        return self._now is not None and self._now[1].looks > 0

    def look(self) -> float:
        return _BETWEEN_LOOKS

    @property
    def urgent(self) -> int | None:
        """Stacks are looked at whatever the threads do just then: the agent would stop them where
        calls return that are timed."""
        since = self._since
        if not self._is_looking or since is None or time.monotonic() - since < _BETWEEN_LOOKS:
            return None
        return 0

    @property
    def ends_at_interrupt(self) -> bool:
        return True

    @property
    def needed(self) -> int:
        return 0

    # ----------------------------------------------------------------- decisions

    def _see_threads(self) -> None:
        """Threads that are new belong to groups by their start functions."""
        if self._goes_below:
            if not self._groups:
                root = _Node(self.root.function, None, {})
                self._groups = [_Group(self._spec, set(), root)]
            self._groups[0].threads |= {stack.key for stack in self._stacks.values()}
            return
        known = set().union(self._left, *(group.threads for group in self._groups))
        for stack in self._stacks.values():
            if stack.key in known:
                continue
            begins = self._start_of(stack)
            group = None
            if begins is not None:
                at = begins.address
                group = next((g for g in self._groups if g.root.function.address == at), None)
            if begins is not None and begins_threads(begins):
                continue  # it has just begun
            if begins is None or (group is not None and group.root.is_done):
                self._left.add(stack.key)
                continue
            if group is None:
                group = _Group(begins.name, set(), _Node(begins, None, {}))
                self._groups.append(group)
            group.threads.add(stack.key)
            group.root.share[stack.key] = 1.0
            group.root.base |= {stack.key}

    def _start_of(self, stack: ThreadStack) -> Function | None:
        entered = [self._program.function_at(frame.at) for frame in stack.frames]
        for number, function in reversed(list(enumerate(entered[:4]))):
            if plain_name(function.symbol) in _STARTERS and number + 1 < len(entered):
                below = entered[number + 1 :]
                return self._own([f for f in below if not self._is_unnamed_of_c(f)])
        root = self.root.function.address
        return next((f for f in entered if f.address == root), self._start_without_names(entered))

    def _own(self, entered: Sequence[Function]) -> Function | None:
        """Of what a thread began with the first function that is no library's way to it."""
        for number, function in enumerate(entered):
            is_last = number + 1 == len(entered) or is_of_c(entered[number + 1].module)
            hands_on = not number and begins_threads(function)
            if is_last or not (hands_on or self._is_way_in(function)):
                return function
        return None

    def _is_way_in(self, function: Function) -> bool:
        """Whether it is the library's by its name, and calls one function that is not, once: where
        there are more, or there is a loop, that is the program's code, compiled into it."""
        if not is_named_of_library(function):
            return False
        code = self._program.function(function.address)
        jumps = ((at, jump_target(one)) for at, one in code.instructions.items())
        if any(to is not None and to <= at and code.contains(to) for at, to in jumps):
            return False
        called = (self._target(site) for site in code.sites)
        own = [f for f in called if f is None or not (is_of_c(f.module) or self._is_of_library(f))]
        return len(own) <= 1

    def _is_of_library(self, function: Function) -> bool:
        return is_named_of_library(function) or is_of_cxx(function)

    def _start_without_names(self, entered: Sequence[Function]) -> Function | None:
        """Of a thread that was begun by functions that no symbol names."""
        if len(entered) < 2 or self._program.names_at(entered[0].address):
            return None
        if self._is_unnamed_of_c(entered[0]):
            return next((f for f in entered[1:3] if not is_of_c(f.module)), None)
        code = self._program.function(entered[0].address)
        is_clone = any(map(is_system_call, code.instructions.values()))  # of a static program
        return entered[2] if is_clone and len(entered) > 2 else None

    def _is_unnamed_of_c(self, function: Function) -> bool:
        return is_of_c(function.module) and not self._program.names_at(function.address)

    def decide(self) -> Step:
        if self._now is not None:
            if self._is_looking:
                self._look_at_stacks(self._now[1])
                return Step.GO_ON
            if self._took < self._window * 0.9:
                return Step.GO_ON
            group, node = self._now
            self._measure(group, node)
            if not node.is_done:
                self._begin_level(node)
                return Step.GO_ON
        self._stacks = self._walk.stacks.all()
        self._see_threads()
        if self._next():
            return Step.GO_ON
        self.collect()
        self._status = Status.DONE
        return Step.END

    def _look_at_stacks(self, node: _Node) -> None:
        self._learn(node, self._walk.stacks.all())
        node.looks -= 1
        if not node.looks:
            self._begin_level(node)

    def _next(self) -> bool:
        """Begins the next level; whether there is one."""
        for group in self._groups:
            while not group.is_done:
                node = self._open_node(group)
                if node is None:
                    group.is_done = True
                    break
                if self._callees(node) or self._has_unknown(node):
                    self._now = group, node
                    node.looks = _LOOKS if self._has_unknown(node) else 0
                    self._begin_level(node)
                    return True
                node.is_done = True
        self._now = None
        return False

    def _open_node(self, group: _Group) -> _Node | None:
        """The next function of the group to look into: those first that threads never leave, as
        the waits for work are told from those."""
        nodes = [node for node in group.nodes() if not node.is_done]
        for node in nodes:
            if node.base:
                return node
        for node in nodes:
            least = self._threshold * _LEAST_LIBRARY
            if node.lends and not _repeats(node) and group.share(node) >= least:
                return node
        for node in nodes:
            if self._is_wanted(group, node) and not _repeats(node):
                return node
        return None

    def _is_wanted(self, group: _Group, node: _Node) -> bool:
        return node.above is None or group.share(node) >= self._threshold

    def _callees(self, node: _Node) -> list[Function]:
        """What it calls, as far as its code and what was seen tell."""
        program = self._program
        found: dict[int, Function] = {}
        resolved = program.linkage.resolve(node.function.address)
        code = program.function(node.function.address if resolved is None else resolved[0])
        for site in code.sites:
            callee = self._target(site)
            if callee is not None and not code.contains(callee.address):
                found[callee.address] = callee
        found.pop(node.function.address, None)
        for address in node.learned:
            found.setdefault(address, program.function_at(address))
        return list(found.values())

    def _target(self, site: Site) -> Function | None:
        """What is called there, where the code tells."""
        target = site.target
        if target is None and site.pointer is not None:
            target = self._pointed(site.pointer)
        return None if target is None else self._program.linkage.callee_at(target)

    def _has_unknown(self, node: _Node) -> bool:
        """Whether it makes calls of which its code does not tell where they lead."""
        return any(
            site.target is None and (site.pointer is None or self._pointed(site.pointer) is None)
            for site in self._program.function(node.function.address).sites
        )

    def _pointed(self, pointer: int) -> int | None:
        try:
            target = int.from_bytes(self._program.read(pointer, 8), "little")
        except TargetError:
            return None
        return target if self._program.is_code(target) else None

    def _begin_level(self, node: _Node) -> None:
        way = " → ".join(one.function.name for one in node.path)
        self._walk.doing = f"window {self._windows + 1}, looks into {way}"
        self._learn(node, self._walk.stacks.all())
        code = self._program.function(node.function.address)
        jumper = node.function if any(site.kind.is_tail for site in code.sites) else None
        self._walk.begin_level(code.parts, self._callees(node), jumper)
        node.is_jumper = jumper is not None and not self._walk.is_member(jumper)

    def _learn(self, node: _Node, stacks: Mapping[int, ThreadStack]) -> bool:
        """Callees that are on the stacks now and that the code does not tell of."""
        known = {function.address for function in self._callees(node)}
        for stack in stacks.values():
            place = self._place(node, self._with_gone(node, stack).frames)
            if place is not None and place[1] is not None:
                address = self._program.function_at(place[1].at).address
                if address not in known:
                    node.learned.add(address)
        return not node.learned <= known

    def _place(self, node: _Node, found: Sequence[Frame]) -> tuple[Frame, Frame | None] | None:
        """The outermost frame of a function on a stack, and the frame of what it has called."""
        code = self._program.function(node.function.address)
        for number, frame in enumerate(found):
            if code.contains(frame.at):
                return frame, found[number + 1] if number + 1 < len(found) else None
        return None

    def _with_gone(self, node: _Node, stack: ThreadStack) -> ThreadStack:
        """A stack with the functions on the way to ``node`` that have handed their frames on, as
        far as calls tell: where one leads to a function that is not on the stack, but one is that
        this jumps to."""
        way = {one.function.address for one in node.path}
        found: list[Frame] = []
        for frame in stack.frames:
            if found and self._entry(found[-1]) in way and found[-1].slot != frame.slot:
                found += [Frame(at, frame.slot) for at in self._gone(found[-1], frame)]
            found.append(frame)
        return ThreadStack(stack.key, tuple(found))

    def _gone(self, caller: Frame, frame: Frame) -> Sequence[int]:
        """The functions that had ``frame`` before, the one that ``caller`` has called first."""
        code = self._program.function(self._entry(caller))
        calls = (s for s in code.sites if s.back == caller.at + 1 and not s.kind.is_tail)
        site = next(calls, None)
        called = None if site is None else self._target(site)
        if called is None:
            return ()
        now = self._entry(frame)
        ways: list[tuple[int, ...]] = [(called.address,)]
        seen = {called.address}
        for way in ways:  # which grows
            if way[-1] == now:
                return way[:-1]
            for further in self._jumped_to(way[-1]) - seen:
                seen.add(further)
                ways += [(*way, further)] if len(way) < _MOST_JUMPS else []
        return ()

    def _jumped_to(self, address: int) -> set[int]:
        """The functions that one jumps to at its end."""
        sites = self._program.function(address).sites
        found = (self._target(site) for site in sites if site.kind.is_tail)
        return {one.address for one in found if one is not None}

    # -------------------------------------------------------------------- figures

    def _measure(self, group: _Group, node: _Node) -> None:
        """What the window has shown of the calls of ``node``."""
        self._windows += 1
        stacks, length = self._walk.stacks.all(), max(self._end - self._start, 1)
        before = [self._with_gone(node, stack) for stack in self._stacks.values()]
        if self._learn(node, stacks) and node.again < _MOST_AGAIN:
            node.again += 1
            return
        counted = self._walk.windows.counted(self._start, self._end)
        after = {stack.key: self._with_gone(node, stack) for stack in stacks.values()}
        members = {function.address: function for function in self._callees(node)}
        below: dict[int, _Node] = {}
        own: dict[int, float] = {}
        group.event_waits = {}
        for thread in before:
            key = thread.key
            if key not in group.threads:
                continue
            mine = counted.get(key, Counted())
            held: dict[int, float] = {}
            event = 0.0
            for function, count in mine.cycles.items():
                if plain_name(function.symbol) in EVENT_WAITS:
                    event += count
                else:
                    held[function.address] = held.get(function.address, 0.0) + count
            if self._is_base(node, thread, after.get(key)):
                node.base |= {key}
            else:
                node.base -= {key}
            stays: set[int] = set()
            for address, cycles, lasts in self._seeds(node, thread, after.get(key), mine.first):
                held[address] = held.get(address, 0.0) + cycles
                stays |= {address} if lasts else set()
            seeded = self._event_wait(thread, after.get(key), mine)
            inside = {self._entry(frame) for frame in thread.frames} if seeded else set()
            waited = min((event + seeded) / length, 1.0)
            for address, cycles in held.items():
                if address in stays:  # its other event waits are no part of what was seeded
                    cycles -= event + seeded
                elif address in inside:
                    cycles -= seeded
                part = min(max(cycles, 0.0) / length, 1.0)
                if self._goes_below and address == self.root.function.address:
                    own[key] = part
                elif address in members:
                    one = below.setdefault(address, _Node(members[address], node, {}))
                    one.share[key] = part
                    one.base |= {key} if address in stays else frozenset()
                    one.calls[key] = sum(n for f, n in mine.calls.items() if f.address == address)
            if waited:
                group.event_waits[key] = waited
            if not self._goes_below:
                group.root.share[key] = 1.0 - waited
        if self._goes_below:
            group.root.share = own
        for one in below.values():
            one.whole = dict(group.root.share)
        self._keep(group, node, below.values())
        self._see_processors(group)
        node.is_done = True

    def _keep(self, group: _Group, node: _Node, below: Iterable[_Node]) -> None:
        """Of what the threads' own loops call, waits for work are idle time, and no callees; also
        where C++'s library stands between them."""
        waits = _WAITS | {_SYSTEM_CALL} if is_of_cxx(node.function) else _WAITS
        for one in below:
            if plain_name(one.function.symbol) in waits:
                name = one.function.name
                for key in [key for key in one.share if node.is_lent(key)]:
                    node.waited[name] = node.waited.get(name, 0.0) + one.share.pop(key)
                for key in node.base & one.share.keys():
                    part = one.share.pop(key)
                    node.idle[key] = node.idle.get(key, 0.0) + part
                    group.waits[name] = group.waits.get(name, 0.0) + part
                one.base -= node.base
            elif is_of_cxx(one.function):
                one.lends = (node.base | node.lends) & one.share.keys()
            if one.share:
                node.below.append(one)
        for one in reversed(node.path):
            if one.lends:
                one.tell_idling()

    def _is_base(self, node: _Node, before: ThreadStack, after: ThreadStack | None) -> bool:
        """Whether a thread was in one call of ``node`` for all of the window."""
        key = before.key
        if node.above is not None and key not in node.base and node.calls.get(key, 0) != 1:
            return False
        place = self._place(node, before.frames)
        return place is not None and self._is_still(place[0], before, after)

    def _seeds(
        self, node: _Node, before: ThreadStack, after: ThreadStack | None, first: int
    ) -> Iterator[tuple[int, float, bool]]:
        """The calls that were under way when the window began: the entry of each function, for how
        many cycles of the window, and whether for all of it."""
        if self._goes_below:
            root = self.root.function.address
            at = next((f for f in before.frames if self._entry(f) == root), None)
            if at is not None:
                yield (root, *self._lasts(at, before, after, first))
        place = self._place(node, before.frames)
        if place is not None and place[1] is not None:
            yield (self._entry(place[1]), *self._lasts(place[1], before, after, first))

    def _entry(self, frame: Frame) -> int:
        return self._program.function_at(frame.at).address

    def _lasts(
        self, frame: Frame, before: ThreadStack, after: ThreadStack | None, first: int
    ) -> tuple[float, bool]:
        """For how long a frame of ``before`` lasts, and whether to the end: where it is not there
        any more, up to its thread's first call that was timed; where none was, nobody knows."""
        length = float(self._end - self._start)
        if self._is_still(frame, before, after):
            return length, True
        if not first:
            return length, False
        return min(max(first - self._start, 0.0), length), False

    def _is_still(self, frame: Frame, before: ThreadStack, after: ThreadStack | None) -> bool:
        if after is None or frame.slot in self._walk.windows.entered:
            return False
        place = self._prefix(before, frame)
        return place is not None and place == self._prefix(after, frame)

    def _prefix(self, stack: ThreadStack, frame: Frame) -> list[tuple[int, int]] | None:
        """What tells a frame from others: its function and where that returns to, and all further
        out."""
        found = [(one.slot, self._entry(one)) for one in stack.frames]
        own = (frame.slot, self._entry(frame))
        return found[: found.index(own) + 1] if own in found else None

    def _event_wait(
        self, before: ThreadStack, after: ThreadStack | None, counted: Counted
    ) -> float:
        """Cycles of an event wait that was under way when the window began."""
        for frame in before.frames:
            if plain_name(self._program.function_at(frame.at).symbol) in EVENT_WAITS:
                firsts = [time for time in (counted.first, counted.first_wait) if time]
                return self._lasts(frame, before, after, min(firsts, default=0))[0]
        return 0.0

    def _see_processors(self, group: _Group) -> None:
        ran = ready = whole = 0.0
        for thread, stack in self._stacks.items():
            now, then = self._walk.ran(thread), self._ran.get(thread)
            if stack.key in group.threads and now is not None and then is not None:
                ran += now[0] - then[0]
                ready += now[1] - then[1]
                whole += self._took * 1e9
        if whole:
            group.ran, group.ready = min(ran / whole, 1.0), min(ready / whole, 1.0)

    # --------------------------------------------------------------------- result

    def collect(self) -> None:
        groups = tuple(self._group(one) for one in self._groups if one.root.is_done)
        left = tuple(self._walk.pads.left_out.items())
        self._known = Walk(groups, self._threshold, self._window, self._windows, left)

    def _group(self, group: _Group) -> WalkGroup:
        whole = max(len(group.threads), 1)
        chains: list[Chain] = []
        if group.busy(group.root.share) > _NOTHING * whole:
            chains = sorted(self._chains(group, group.root), key=lambda c: -c.steps[-1].share)
        waits = {name: part / whole for name, part in group.waits_told().items()}
        if group.event_waits:
            waits["epoll_wait"] = sum(group.event_waits.values()) / whole
        longest = sorted(waits.items(), key=lambda one: -one[1])
        idle = tuple((name, part) for name, part in longest if part > _NOTHING)
        return WalkGroup(
            group.name, len(group.threads), idle, tuple(chains), group.ran, group.ready
        )

    def _chains(self, group: _Group, node: _Node) -> Iterator[Chain]:
        further = [one for one in node.below if group.share(one) >= self._threshold]
        for one in further:
            yield from self._chains(group, one)
        if further:
            return
        steps = tuple(
            ChainStep(one.function, 1.0 if one.above is None else group.share(one))
            for one in node.path
        )
        own = max(steps[-1].share - sum(group.share(one) for one in node.below), 0.0)
        yield Chain(steps, self._end_of(node), own)

    def _end_of(self, node: _Node) -> End:
        if not node.is_done:
            return End.CUT_SHORT
        code = self._program.function(node.function.address)
        if any(map(is_system_call, code.instructions.values())):
            return End.SYSTEM_CALL
        if any(callee in self._walk.pads.left_out for callee in self._callees(node)):
            return End.UNTIMED
        if node.is_jumper:
            return End.TAIL
        return End.INDIRECT if self._has_unknown(node) else End.ITSELF

    # -------------------------------------------------------------------- views

    def snapshot(self, alive: bool) -> Snapshot:
        del alive
        return Snapshot(
            function=self._spec,
            status=self._status,
            probes=self._collector.kind,
            program=ProgramFigures(probes=len(self._walk.pads.functions)),
            parameters=self.parameters,
            parts=parts_of(self._known),
        )

    def live_snapshot(self, alive: bool, readable: bool) -> Snapshot:
        del alive, readable
        now = self._now
        where = self._spec if now is None else " → ".join(n.function.name for n in now[1].path)
        return dataclasses.replace(self.snapshot(False), function=where)


def _repeats(node: _Node) -> bool:
    """Whether its chain has come by there before, or is too long."""
    path = node.path
    above = [one.function.address for one in path[:-1]]
    return node.function.address in above or len(path) > _MOST_LEVELS
