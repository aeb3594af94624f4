"""The ftree: function calls in the context of their paths (paper section 3).

An fnode is not a function but a call of one, at one call site, reached by one path from f0. Two
callers of a function, or two call sites in one caller, make two fnodes; recursion makes a chain.
So the ftree is a proper tree, and an fnode is named by its path: ``1`` is f0, ``1.3`` its third
callee, ``1.3.2`` that one's second.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from darc.model.calls import CallKind as CallKind
from darc.model.calls import CallSite as CallSite
from darc.model.calls import Function as Function
from darc.model.errors import NotFoundError


class Cause(str, Enum):
    """What a root cause path ends in. The values are those of the report."""

    FUNCTION = "function"
    """The function's own code, or a function that calls no other."""
    LOOP = "loop"
    """Many short calls of one callee; none alone explains the latency."""
    BLOCK = "block"
    """One basic block of the function."""
    INTERRUPT = "interrupt"
    """An interrupt that arrived while the function ran (paper section 3.6)."""
    PREEMPTION = "preemption"
    """Time in which the thread was runnable and another one ran (paper section 3.6)."""
    STOPPED = "stopped"
    """Time in which the debugger held the thread, as gdb does at each fork and signal: nothing of
    the program's."""
    BLOCKED = "blocked"
    """Time in which the thread slept, waiting for something."""
    UNTOLD = "untold"
    """One or more targets of an indirect call, among so many that they could not be told apart."""

    @property
    def is_of_no_call(self) -> bool:
        """Whether it is one cause wherever in a call of f0 its time fell: that is nothing that the
        function did where it fell."""
        return self in (Cause.PREEMPTION, Cause.STOPPED)


class NodeState(Enum):
    """How far the search is with an fnode."""

    CANDIDATE = "candidate"
    """A callee that nothing was decided about yet."""
    ANALYSIS = "analysis"
    """On a root cause path, and its callees are being compared now."""
    ROOT_CAUSE = "root cause"
    """On a root cause path, and everything about it is decided."""
    REJECTED = "rejected"
    """Compared with its siblings and not chosen, or below a node that was not chosen."""


@dataclass(frozen=True)
class Totals:
    """What an fnode took, over the in-peak calls of f0 in which it was on the path.

    All sums are in cycles, with the probes' own cost taken out.
    """

    ops: int = 0
    """In-peak calls of f0 in which the node was called at all."""
    calls: int = 0
    """Calls of the node in these."""
    sum: int = 0
    """Σ latency of all these calls."""
    max_sum: int = 0
    """Σ, over the calls of f0, of the longest call of the node in each: what the paper's
    ``maxlatency`` adds up to."""

    def __add__(self, other: Totals) -> Totals:
        """The totals over the in-peak calls of both, which must not be the same ones."""
        return Totals(
            self.ops + other.ops,
            self.calls + other.calls,
            self.sum + other.sum,
            self.max_sum + other.max_sum,
        )

    @property
    def mean_cycles(self) -> int:
        """Mean latency of one call of the node in cycles; 0 when there was none."""
        return round(self.sum / self.calls) if self.calls else 0


@dataclass(frozen=True)
class Decision:
    """What was decided about the callees of an fnode and its own time, and on how many calls."""

    ops: int
    """In-peak calls of f0 with the fnode on the path, all of whose votes were counted."""
    needed: int
    """On how many of them the decision was to rest at least."""
    own: int
    """In how many the fnode's own time was among the largest contributors."""
    is_conclusive: bool = True
    """Whether it rests on as many as needed, and anything was chosen."""


class Cut(Enum):
    """Why a path was not followed to its end. Session files have these values."""

    DEPTH = "depth"
    """By the parameter max_depth."""
    EARLY = "early"
    """There was no more time."""
    DIVIDES = "divides"
    """Each level below has twice as many paths through the same functions."""

    @property
    def text(self) -> str:
        """What users are told."""
        return _CUT_TEXTS[self]


_CUT_TEXTS = {
    Cut.DEPTH: "maximum depth reached",
    Cut.EARLY: "the search was not at its end",
    Cut.DIVIDES: "it calls itself on, more than once each time",
}


class Unclear(Enum):
    """What nobody knows of the own time in which a path ends. Session files have these values."""

    HOW_SPENT = "how_spent"
    """By the function that it is of."""
    WHOSE = "whose"
    """Calls of that function could not be timed."""
    WHO_HELD = "who_held"
    """The program waited there, or the debugger held it: most of that time may be either."""
    WHOSE_DOING = "whose_doing"
    """Calls that are as short may be slow for what probes stop."""

    @property
    def text(self) -> str:
        """What notes say of it."""
        return _UNCLEAR_TEXTS[self]


_UNCLEAR_TEXTS = {
    Unclear.HOW_SPENT: "whether it ran or waited is not known",
    Unclear.WHOSE: "the time may be theirs",
    Unclear.WHO_HELD: "whether it waited or the debugger held it is not known",
    Unclear.WHOSE_DOING: "calls as short as these may be slow for darc's own stops",
}
_UNSURE = frozenset({Unclear.WHO_HELD, Unclear.WHOSE_DOING})


@dataclass(frozen=True)
class Ending:
    """How and why a root cause path ends at its last fnode."""

    cause: Cause
    maxcount: int
    """The votes by which the ending was chosen: the function's own where its own code is the
    cause, else those that it had as a callee."""
    loop_callee: str | None = None
    """For a loop, the name of the function that is called again and again."""
    loop_calls: float | None = None
    """For a loop, the mean number of these calls in an in-peak call of f0 that made any."""
    loop_share: float | None = None
    """For a loop, the part (0 to 1) of the function's latency that these calls take."""
    note: str | None = None
    """Anything that a reader must know besides. Nothing is decided by what it says."""
    cut: Cut | None = None
    """Why the path ends before its end, where it does."""
    unclear: frozenset[Unclear] = frozenset()
    """What the note says that nobody knows."""

    def noting(self, note: str | None, *unclear: Unclear) -> Ending:
        """The same with that for a reader to know as well, if it is not told already, and what it
        says that is ``unclear``."""
        told = self.note or ""
        if note and note not in told:
            told = f"{told}; {note}" if told else note
        return replace(self, note=told or None, unclear=self.unclear.union(unclear))

    @property
    def remark(self) -> str | None:
        """What a reader must know besides, of both."""
        words = [one for one in (self.cut and self.cut.text, self.note) if one is not None]
        return "; ".join(words) if words else None


class Meaning(NamedTuple):
    """What the time of an fnode means at which a path ends, whatever that calls."""

    cause: Cause
    note: str | None = None
    """For the user."""


class Fnode:
    """A function call in the context of its path (paper section 3).

    Nodes are compared and hashed by identity. What becomes of one is told it, at a stop alone, and
    it writes its fields by itself. It is told by

    - what finds callees in the code (:mod:`darc.collectors.callees`), what it calls;
    - the search (:mod:`darc.search.descent`, :mod:`darc.search.contest`), what was counted, and
      what comes of that;
    - what corrects a path that has ended (:mod:`darc.analyses.corrections`,
      :mod:`darc.analyses.secondlook`), how it ends instead;
    - what takes a saved session up (:mod:`darc.saved.refit`, :mod:`darc.saved.storage`), all of it.

    What is shown is a copy, in a frozen :class:`~darc.model.snapshot.Snapshot`: there the source
    lines are filled in (:mod:`darc.code.source_lines`).
    """

    __slots__ = (
        "called",
        "children",
        "decision",
        "end",
        "function",
        "has_unknown_callees",
        "maxcount",
        "meaning",
        "parent",
        "path",
        "root_cause",
        "self_maxcount",
        "site",
        "state",
        "totals",
    )

    def __init__(
        self, function: Function, site: CallSite | None = None, parent: Fnode | None = None
    ) -> None:
        """The root of a new tree; every other node is made by :meth:`add_child`."""
        self.function = function
        self.site = site
        """Where the parent calls it; None for f0."""
        self.parent = parent
        self.path: tuple[int, ...] = (
            (1,) if parent is None else (*parent.path, len(parent.children) + 1)
        )
        self.children: list[Fnode] = []
        self.has_unknown_callees = False
        """Whether the function has call sites whose callees only running can tell, so that having
        no children does not mean that it calls nothing."""
        self.meaning: Meaning | None = None
        """Where a path ends at this function, as its time has one of its own."""
        self.state = NodeState.CANDIDATE
        self.maxcount = 0
        """In how many in-peak calls it was among the largest contributors to its parent."""
        self.self_maxcount = 0
        """In how many its own code was among the largest contributors to itself."""
        self.root_cause = False
        """Whether it is on a root cause path. True for f0 from the start."""
        self.totals = Totals()
        """Over the calls in which its callees were compared; where they were not, ``called``."""
        self.called = Totals()
        """Over the same calls of f0 as that of all its siblings: those in which they were
        compared."""
        self.decision: Decision | None = None
        """Set when its callees have been compared."""
        self.end: Ending | None = None
        """Set when a root cause path ends here."""

    def __repr__(self) -> str:
        # Names are foreign text, and who prints this may not be able to print them.
        return f"<Fnode {self.id} {ascii(self.function.name)[1:-1]}>"

    @property
    def id(self) -> str:
        """The node's name for users, such as ``1.3.2``."""
        return ".".join(map(str, self.path))

    @property
    def compared_in(self) -> int:
        """In how many in-peak calls it was compared with its siblings: what ``maxcount`` is of."""
        return 0 if self.parent is None else self.parent.totals.ops

    @property
    def depth(self) -> int:
        """Number of nodes from f0 to this one, both included: 1 for f0."""
        return len(self.path)

    # -- what it calls --------------------------------------------------------------------------

    def add_child(
        self, function: Function, site: CallSite | None, number: int | None = None
    ) -> Fnode:
        """Append and return the node for a call of ``function`` at ``site``; its ``number`` is the
        next one, where none is given."""
        child = Fnode(function, site, self)
        if number is not None:
            child.path = (*self.path, number)
        self.children.append(child)
        return child

    def expect_more(self) -> None:
        """It has callees that only running can tell."""
        self.has_unknown_callees = True

    def resolve(self, function: Function) -> None:
        """That is the function which is really called, behind what leads to it."""
        self.function = function

    def mean(self, meaning: Meaning | None) -> None:
        """What its time means, if that has a meaning of its own."""
        self.meaning = meaning

    def locate(self, function: Function, site: CallSite | None) -> None:
        """The same function and call site, with their source lines."""
        self.function, self.site = function, site

    # -- what was counted -----------------------------------------------------------------------

    def voted(self, votes: int, totals: Totals) -> None:
        """Beside its siblings: the votes that it has had, and its calls."""
        self.maxcount = votes
        self.totals = self.called = totals

    def compared(self, own: int, totals: Totals) -> None:
        """With its callees: the votes that its own time has had, and its calls."""
        self.self_maxcount = own
        self.totals = totals

    # -- what comes of it -----------------------------------------------------------------------

    def await_decision(self) -> None:
        """Nothing is decided about it, or not any more."""
        self.state = NodeState.CANDIDATE

    def win(self) -> None:
        """It is on a root cause path."""
        self.root_cause = True

    def lose(self) -> None:
        """It is on none; all below it is rejected as well."""
        self.root_cause = False
        self.reject()

    def reject(self) -> None:
        """It was not chosen, and nothing below it is looked at."""
        for below in self.walk():
            below.state = NodeState.REJECTED

    def take_back(self) -> None:
        """It is no root cause after all, and no path ends there."""
        self.end, self.state, self.root_cause = None, NodeState.REJECTED, False

    def open(self) -> None:
        """Its callees are compared from now on: what had come of that before is nothing."""
        self.end = self.decision = None
        self.state = NodeState.ANALYSIS

    def close(self) -> None:
        """Everything about it is decided."""
        self.state = NodeState.ROOT_CAUSE

    def decide(self, decision: Decision) -> None:
        """Its callees have been compared: everything about it is decided."""
        self.decision = decision
        self.close()

    def end_path(self, ending: Ending | None) -> None:
        """A root cause path ends there so, or, by ``None``, none does."""
        self.end = ending

    # -- what an earlier run, or an earlier look, had come to -------------------------------------

    def restore(
        self,
        *,
        state: NodeState,
        root_cause: bool,
        votes: tuple[int, int],
        has_unknown_callees: bool,
        totals: Totals,
        called: Totals,
        decision: Decision | None,
        end: Ending | None,
    ) -> None:
        """What was known of it then. The ``votes`` are what it has had itself, and its own time."""
        self.state, self.root_cause = state, root_cause
        self.maxcount, self.self_maxcount = votes
        self.has_unknown_callees = has_unknown_callees
        self.totals, self.called = totals, called
        self.decision, self.end = decision, end

    def take_over(self, old: Fnode) -> None:
        """What was counted of the node of another tree that stood for this call, and what came of
        that. What it calls is known of the code by now."""
        self.restore(
            state=old.state,
            root_cause=old.root_cause,
            votes=(old.maxcount, old.self_maxcount),
            has_unknown_callees=self.has_unknown_callees,
            totals=old.totals,
            called=old.called,
            decision=old.decision,
            end=old.end,
        )

    def end_as_before(self, ending: Ending, decision: Decision | None) -> None:
        """The path ends there as an earlier look had it, by what that had decided."""
        self.end, self.decision = ending, decision
        self.close()

    # -- the tree -------------------------------------------------------------------------------

    def route(self) -> list[Fnode]:
        """The nodes from f0 to this one, both included."""
        nodes = [self]
        while nodes[-1].parent is not None:
            nodes.append(nodes[-1].parent)
        return nodes[::-1]

    @property
    def is_interrupt(self) -> bool:
        """Whether it is no call of its parent, but a handler that interrupted it."""
        return self.site is not None and self.site.kind is CallKind.INTERRUPT

    def walk(self) -> Iterator[Fnode]:
        """This node and all below it, each before its children, children in order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def copied(self) -> dict[Fnode, Fnode]:
        """A tree like this one, by the nodes of this one: what becomes of either is nothing to the
        other. This node is a root."""
        copies: dict[Fnode, Fnode] = {}
        for node in self.walk():
            made = copies[node] = copy.copy(node)
            made.children = []
            if node.parent is not None:
                made.parent = copies[node.parent]
                made.parent.children.append(made)
        return copies

    def find(self, node_id: str) -> Fnode:
        """The node with this :attr:`id` in the tree below (and including) this one.

        Raises :class:`~darc.model.errors.NotFoundError` when there is none.
        """
        for node in self.walk():
            if node.id == node_id:
                return node
        raise NotFoundError(f"no fnode {node_id}; 'darc tree' shows the ids that there are")


@dataclass(frozen=True)
class RootCausePath:
    """A path from f0 to a root cause."""

    nodes: tuple[Fnode, ...]
    """f0 first."""
    ending: Ending

    @property
    def is_sure(self) -> bool:
        """Whether its cause is the program's for all that is known."""
        return not self.doubts

    @property
    def doubts(self) -> tuple[Unclear, ...]:
        """Why it may not be."""
        return tuple(one for one in Unclear if one in _UNSURE & self.ending.unclear)

    def with_nodes(self, copies: Mapping[Fnode, Fnode]) -> RootCausePath:
        """The same path through copies of nodes, where there are some."""
        return RootCausePath(tuple(copies.get(node, node) for node in self.nodes), self.ending)
