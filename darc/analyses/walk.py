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

from darc.analyses.analysis import Analysis, AnalysisBrief, Step
from darc.analyses.threadstarts import ThreadStarts
from darc.analyses.walkchains import Chains
from darc.analyses.walkcode import WalkCode
from darc.analyses.walkedges import Edges
from darc.analyses.walkgroups import ThreadGroup, WalkNode
from darc.analyses.walkorder import WalkOrder
from darc.analyses.walkpace import Pace
from darc.analyses.walkran import RanTimes
from darc.analyses.walkshares import LevelShares
from darc.analyses.walkthreads import WalkThreads
from darc.analyses.walkwindow import WalkWindow
from darc.collectors.manyduties import Counted, ThreadStack, Walks, that_walks
from darc.collectors.ways import only_by
from darc.model.errors import UsageError
from darc.model.part import parts_of
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.model.walk import Walk

THRESHOLD = 0.25
WINDOW_SECONDS = 2.0

_MOST_TRIES = 10
"""So often stacks are looked at for threads that did not show where they have begun, and nothing
else is to be looked into."""

_MOST_AGAIN = 2
"""So often is a level timed once more as an indirect call was seen that was not known, or as its
function had far less of the time than before."""


class CallWalk(Analysis):
    """See the module."""

    _ended_early = Status.DONE
    _called = "the walk"

    def __init__(
        self,
        brief: AnalysisBrief,
        *,
        threshold: float = THRESHOLD,
        seconds: float = WINDOW_SECONDS,
        goes_below: bool = False,
    ) -> None:
        """``goes_below`` says that f0 is where to begin, instead of each thread's start."""
        super().__init__(brief)
        walks = that_walks(brief.collector)
        if walks is None:
            raise UsageError(only_by("darc walk", Walks))
        self._walk = walks
        self._threshold = threshold
        self._seconds = seconds
        self._code = WalkCode(self._program)
        self._order = WalkOrder(self._code, threshold)
        f0 = self.root.function
        self._start_of_all = f0.address if goes_below else None
        starts = None if goes_below else ThreadStarts(self._program, self._code, f0)
        self._threads = WalkThreads(f0, self._spec, starts)
        self._pace = Pace()
        self._window = WalkWindow(walks, self._pace, seconds)
        self._now: tuple[ThreadGroup, WalkNode] | None = None
        self._stacks: dict[int, ThreadStack] = {}
        self._ran = RanTimes(walks)
        self._tries = 0
        """How often the program was let go on for threads alone that nobody knows the start of."""
        self._known = Walk((), threshold, seconds)
        self._walk.counting.await_user()
        self._seen: dict[int, ThreadStack] | None = None
        self._stacks = self._stacks_now()
        self._threads.see(self._stacks)
        self._next()

    # -------------------------------------------------------------------- time

    def stands(self) -> None:
        self._pace.stands()
        self._window.ends()

    def goes_on(self) -> None:
        if self._window.is_open or self.finished:
            return
        if not self._is_looking:
            self._stacks = self._walk.stacks.all()
            self._threads.see(self._stacks)
            self._ran.begin(self._stacks)
        self._seen = None
        self._walk.windows.begin()
        self._pace.goes_on()
        self._window.begins(times_calls=self._now is not None)

    def _stacks_now(self) -> dict[int, ThreadStack]:
        """At a stop, until other calls are timed."""
        if self._seen is None:
            self._seen = self._walk.stacks.all()
        return self._seen

    @property
    def seconds_left(self) -> float | None:
        if self._is_looking:
            # Not before: the agent would stop the program itself, where a call returns.
            return 0.0 if self.urgent is not None and self._walk.is_stopped else None
        return self._window.seconds_left

    @property
    def _is_looking(self) -> bool:
        return self._now is not None and self._now[1].is_looked_at

    def look(self) -> float:
        return self._pace.runs_at_least

    @property
    def urgent(self) -> int | None:
        """Stacks are looked at whatever the threads do just then: the agent would stop them where
        calls return that are timed."""
        return 0 if self._is_looking and self._pace.may_look else None

    @property
    def ends_at_interrupt(self) -> bool:
        return True

    @property
    def needed(self) -> int:
        return 0

    # ----------------------------------------------------------------- decisions

    def decide(self) -> Step:
        self._pace.decides()
        if self._now is not None:
            if self._is_looking:
                self._look_at_stacks(*self._now)
                return Step.GO_ON
            if not self._window.was_long_enough:
                return Step.GO_ON
            group, node = self._now
            self._measure(group, node)
            self.collect()  # in case the program is killed
            if not node.is_done:
                self._begin_level(node)
                return Step.GO_ON
        self._stacks = self._stacks_now()
        self._threads.see(self._stacks)
        if self._next():
            return Step.GO_ON
        if self._threads.lost and self._tries < _MOST_TRIES:
            self._tries += 1
            return Step.GO_ON
        self.collect()
        self._status = Status.DONE
        return Step.END

    def _look_at_stacks(self, group: ThreadGroup, node: WalkNode) -> None:
        """At those of the group alone: there may be many others."""
        threads = {one for one, stack in self._stacks.items() if stack.key in group.threads}
        self._code.learn(node, self._walk.stacks.all(threads))
        node.looks += 1
        most = self._pace.looks(self._seconds, len(threads))
        self._walk.doing = f"look {node.looks} of {most} at what {_way(node)} calls"
        if node.looks >= most:
            node.is_looked_at = False
            self._begin_level(node)

    def _next(self) -> bool:
        """Begins the next level; whether there is one. Groups that had a processor for the longest
        time come first, as time may end the walk."""
        self._now = self._order.next(sorted(self._threads.groups, key=self._busy, reverse=True))
        if self._now is None:
            return False
        _group, node = self._now
        node.is_looked_at = self._code.has_unknown(node)
        self._begin_level(node)
        return True

    def _busy(self, group: ThreadGroup) -> int:
        """For how many ns those of its threads that live have had a processor."""
        ran = (self._walk.ran(t) for t, s in self._stacks.items() if s.key in group.threads)
        return sum(one[0] for one in ran if one is not None)

    def _begin_level(self, node: WalkNode) -> None:
        self._walk.doing = f"window {self._window.count + 1}, looks into {_way(node)}"
        self._code.learn(node, stacks := self._stacks_now())
        self._seen = None
        code = self._program.function(node.function.address)
        jumps = any(site.kind.is_tail for site in code.sites)
        own = node.function if jumps or node.above is not None else None
        self._walk.begin_level(code.ranges, self._code.first_callees(node, stacks), own)
        is_member = own is not None and self._walk.is_member(own)
        node.is_timed = is_member and node.above is not None
        node.is_jumper = jumps and not is_member

    # -------------------------------------------------------------------- figures

    def _measure(self, group: ThreadGroup, node: WalkNode) -> None:
        """What the window has shown of the calls of ``node``."""
        self._window.is_measured()
        stacks = self._stacks_now()
        before = [self._code.with_gone(node, stack) for stack in self._stacks.values()]
        if self._code.learn(node, stacks) and self._is_once_more(node):
            return
        after = {stack.key: self._code.with_gone(node, stack) for stack in stacks.values()}
        counted = self._walk.windows.counted(self._window.start, self._window.end)
        level = self._level(group, node)
        for thread in before:
            if (key := thread.key) in group.threads:
                level.add(thread, after.get(key), counted.get(key, Counted()))
        level.tell_own()
        if group.is_over(node) and self._is_once_more(node):
            return
        level.tell()
        self._ran.end(group, self._stacks, self._window.took)
        node.is_done = True

    def _is_once_more(self, node: WalkNode) -> bool:
        """Whether a window is to be repeated that did not tell what it was for."""
        node.again += 1
        return node.again <= _MOST_AGAIN

    def _level(self, group: ThreadGroup, node: WalkNode) -> LevelShares:
        """Of the window that was counted."""
        root, window = self._start_of_all, self._window
        edges = Edges(
            self._program,
            self._code,
            start=window.start,
            end=window.end,
            entered=self._walk.windows.entered,
            root=root,
        )
        length = max(window.end - window.start, 1)
        return LevelShares(group, node, self._code, edges, length=length, root=root)

    # --------------------------------------------------------------------- result

    def collect(self) -> None:
        left_out = self._walk.probes.left_out
        chains = Chains(self._program, self._code, self._threshold, left_out.keys())
        groups = tuple(map(chains.told, self._threads.groups))
        left = tuple(left_out.items())
        self._known = Walk(
            groups=groups,
            threshold=self._threshold,
            seconds=self._seconds,
            windows=self._window.count,
            left_out=left,
            longest=self._window.longest,
            by_quota=self._ran.by_quota,
            lost=tuple(sorted(self._threads.lost.values())),
        )

    # -------------------------------------------------------------------- views

    def snapshot(self, alive: bool) -> Snapshot:
        del alive
        return dataclasses.replace(
            self._head(),
            function=self._spec,
            program=ProgramFigures(probes=len(self._walk.probes.functions)),
            parts=parts_of(self._known),
        )

    def live_snapshot(self, alive: bool, readable: bool) -> Snapshot:
        del alive, readable
        now = self._now
        where = self._spec if now is None else _way(now[1])
        return dataclasses.replace(self.snapshot(False), function=where)


def _way(node: WalkNode) -> str:
    return " → ".join(one.function.name for one in node.path)
