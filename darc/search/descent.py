"""The search for root causes, as a pure state machine: votes in, orders out (paper section 3).

The agent in the program counts votes for each in-peak call of f0; after some of them, a
:class:`Descent` has them judged (:mod:`darc.search.judge`), goes on into the callees that are root
causes and orders what to time next. It knows nothing of probes, processes or debuggers.

Two things go beyond the paper. *Lookahead*: callees of nodes that nothing was decided about yet
may be timed as well, so that several levels can be decided from the same votes. *Batches*: where
the paper would go by basic blocks since a function has more call sites than ``max_probes``, these
are timed in turns. While some callees are not timed, their time passes for the function's own; so
nothing is decided before a last round, among the best of each batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from darc.model.errors import UsageError
from darc.model.ftree import Cause, Cut, Ending, Fnode, RootCausePath
from darc.model.parameters import Parameters
from darc.model.status import Status
from darc.search.contest import Contest, call_sites, in_batches, likely_share
from darc.search.contest import Vote as Vote
from darc.search.contest import Votes as Votes
from darc.search.judge import Judge, Ruling, what_was_seen

AUTO_LOOKAHEAD = 3
"""Levels under analysis at one time when ``lookahead`` is auto, but see
:mod:`darc.search.lookahead`."""

AUTO_SPECULATION = 32
"""Call sites that are timed ahead at most when ``lookahead`` is auto."""


@dataclass(frozen=True)
class Orders:
    """What is to be timed from now on; the counts of votes start anew."""

    analyse: tuple[Fnode, ...] = ()
    """All nodes whose callees are to be timed and compared: those that a decision is due for, and
    then those that are looked ahead at, each after its parent. The nodes above them must be
    followed but not timed."""
    batches: Mapping[Fnode, tuple[Fnode, ...]] = field(default_factory=dict)
    """Which children of a node in ``analyse`` to time. A node that is not here: all of them, and
    those yet to be learned."""
    exact: AbstractSet[Fnode] = frozenset()
    """Nodes of which nothing beside their batch is timed: no callee that is yet to be learned."""
    remove: tuple[Fnode, ...] = ()
    """Nodes that the orders before needed and these do not."""
    finished: bool = False
    """The search is over: every probe can come out."""

    @property
    def tracked(self) -> set[Fnode]:
        """The nodes whose calls are followed: those to be analysed, and all above them."""
        return {above for node in self.analyse for above in node.route()}


class Descent:
    """The descent from f0 to the root causes of one peak.

    ``expand`` is called once for each node that is looked into and adds its statically known
    callees to ``node.children``, and says where there are others. A node that has children
    already, as in a search that is resumed, is not expanded. Callees that are learned while the
    program runs may be added to ``node.children`` at any time between two decisions.

    ``has_time`` is asked before a node is expanded that no decision needs yet (``--lookahead
    auto``): the program stands still meanwhile. A timed call takes ``probe_cost`` cycles, as far as
    is known by then, or ``probe_doubt`` more. The fastest call inside the peak takes ``least``
    cycles: what takes next to nothing of that is no root cause.
    """

    def __init__(
        self,
        root: Fnode,
        parameters: Parameters,
        expand: Callable[[Fnode], None],
        *,
        has_time: Callable[[], bool] = lambda: True,
        probe_cost: Callable[[], int] = lambda: 0,
        least: int = 0,
        probe_doubt: Callable[[], int] = lambda: 0,
    ) -> None:
        self._judge = Judge(parameters, probe_cost, least, probe_doubt)
        self._passed: dict[tuple[Fnode, Fnode], str] = {}
        self._root = root
        self._parameters = parameters
        self._expand = expand
        self._has_time = has_time
        self._expanded: set[Fnode] = set()
        self._reopened: Mapping[Fnode, tuple[Fnode, ...]] = {}
        self._frontier: list[Fnode] = []
        self._contests: dict[Fnode, Contest] = {}
        self._pending: list[Fnode] = []
        self._candidates: list[Fnode] = []
        self._inconclusive: dict[Fnode, str] = {}
        self._shares: dict[Fnode, float] = {self._root: 1.0}
        """Of a root cause: in what part of the in-peak calls it was on the path, at least."""
        self._last = Orders()
        self._timed: dict[Fnode, None] = {}
        self._confidence: float | None = None
        self._level = 0
        self._status = Status.SEARCHING

    @property
    def status(self) -> Status:
        """SEARCHING until the search is over; then MAX_DEPTH when the depth cut any path off,
        INCONCLUSIVE when there is no path, else FOUND."""
        return self._status

    @property
    def level(self) -> int:
        """Depth of the deepest node that a decision is due for, or was: 1 while f0's own callees
        are compared."""
        return self._level

    @property
    def under_way(self) -> int:
        """How many paths have not ended: those that the next decisions are about, on all levels."""
        return len(self._frontier)

    @property
    def confidence(self) -> float | None:
        """How sure the least sure decision so far is, from 0 to 1; None before the first."""
        return self._confidence

    @property
    def pending(self) -> tuple[Fnode, ...]:
        """In manual mode, the root causes that wait for :meth:`choose`."""
        return tuple(self._pending)

    def begin(self, contests: Iterable[Contest] = ()) -> Orders:
        """The first orders.

        On a tree that an earlier search left, the search goes on where that one stopped, also
        below the nodes where it had reached its maximum depth if this one's is larger. The votes
        of its ``contests`` (see :meth:`open_contests`), whose nodes are those of this tree, count.
        """
        limit = self._parameters.max_probes
        self._contests = {c.node: c for c in contests if len(call_sites(c.node.children)) <= limit}
        self._root.win()
        for node in list(self._root.walk()):
            if not node.root_cause or any(child.root_cause for child in node.children):
                continue
            if node.end and node.end.cut is Cut.DEPTH:
                node.end_path(None)
            if node.end is None:
                self._enter(node, ask=False)
        orders = self._orders()
        if any(self._is_due(contest) for contest in self._due_contests()):
            return self._decide()
        return orders

    def reopen(self, nodes: Mapping[Fnode, tuple[Fnode, ...]]) -> Orders:
        """The first orders of a search that goes on at these ``nodes`` of a tree alone, whose paths
        an earlier one has ended: their own time is compared with that of the children that are
        named, and of others yet to be learned. All other children had lost."""
        self._reopened = nodes
        for node, children in nodes.items():
            self._expanded.add(node)
            node.open()
            for child in children:
                child.await_decision()
            self._frontier.append(node)
        return self._orders()

    def decide(self, votes: Votes, seen: int) -> Orders:
        """Take the votes of ``seen`` in-peak calls, all that were counted since the last orders,
        and decide as many levels as they suffice for."""
        for contest in self._contests.values():
            contest.add(votes, seen)
        for contest in self._contests.values():
            contest.show(self._contests)
        return self._decide()

    def open_contests(self, votes: Votes, seen: int) -> tuple[Contest, ...]:
        """What is counted and not decided yet, with the votes of the ``seen`` in-peak calls since
        the last orders, for a later search to :meth:`begin` with. Changes nothing here. Callees
        that are compared in batches are left out: their rounds begin anew."""
        found = []
        for contest in self._contests.values():
            if contest.last_round and contest.batch is None:
                copy = replace(
                    contest,
                    votes=dict(contest.votes),
                    callee_totals=dict(contest.callee_totals),
                )
                copy.add(votes, seen)
                found.append(copy)
        return tuple(contest for contest in found if contest.seen)

    def leaders(self, votes: Votes) -> list[Fnode]:
        """Before a decision is due: what would win by the ``votes`` since the last orders and is
        not compared with its own callees yet. Changes nothing."""
        found = []
        ready = deque(node for node in self._frontier if node in self._contests)
        while ready:
            contest = self._contests[ready.popleft()]
            counts = [
                contest.votes.get(child, 0) + (votes[child].votes if child in votes else 0)
                for child in contest.node.children
            ]
            chosen = self._judge.chosen(counts)
            for child, wins in zip(contest.node.children, chosen, strict=True):
                if wins and child in self._contests:
                    ready.append(child)
                elif wins and not self._is_deepest(child):
                    found.append(child)
        return found

    def _decide(self) -> Orders:
        ready = deque(node for node in self._frontier if node in self._contests)
        while ready:
            for child in self._conclude(self._contests[ready.popleft()]):
                ahead = self._contests.get(child)
                if ahead is not None and self._is_due(ahead):
                    ready.append(child)
        return self._orders()

    def choose(self, nodes: Iterable[Fnode] = ()) -> Orders:
        """In manual mode, go on into these nodes only; into all that are pending when none is
        given. A candidate of the last decision that was not chosen may be given too.

        Raises :class:`~darc.model.errors.UsageError` for any other node.
        """
        nodes = list(dict.fromkeys(nodes)) or self._pending
        if not nodes:
            raise UsageError("no fnode waits to be descended into; 'darc status' says what does")
        for node in nodes:
            if node not in self._candidates or node.end is not None:
                raise UsageError(
                    f"fnode {node.id} is not a candidate of the last decision; "
                    "'darc tree' shows which are"
                )
        self._pending = []
        self._candidates = []
        for node in nodes:
            node.win()
            self._enter(node, ask=False)
        return self._orders()

    def in_peak_needed(self) -> int:
        """How many in-peak calls of f0 to collect, counted from the last orders, before
        :meth:`decide`; 0 when there is nothing to decide."""
        return min((self._missing(c) for c in self._due_contests()), default=0)

    def paths(self) -> tuple[RootCausePath, ...]:
        """The root cause paths that have ended so far, in the order of the tree."""
        return ended_paths(self._root)

    def explain(self) -> str:
        """What was seen where a path ended without a conclusion; empty when none did."""
        return "; ".join(self._inconclusive.values())

    @property
    def passed(self) -> tuple[str, ...]:
        """What had the votes of a root cause, and took next to nothing: in words, if anything."""
        names = ", ".join(self._passed.values())
        told = (
            f"no root cause, though chosen by votes: {names}; next to nothing of a call inside the "
            "peak is spent there"
        )
        return (told,) if names else ()

    # -- decisions ------------------------------------------------------------------------------

    def _conclude(self, contest: Contest) -> list[Fnode]:
        """Decide about one node of the frontier if it is due: the children to go on with."""
        if not self._is_due(contest):
            return []
        if not contest.last_round:
            limits = self._parameters.maxcount_percentage, self._parameters.max_probes
            contest.next_round(*limits, self._judge.weigh)
            if not contest.last_round or contest.batch:
                return []
        node = contest.node
        self._frontier.remove(node)
        contest.show(self._contests)
        ruling = self._judge.rule(contest, self._contests)
        del self._contests[node]
        node.decide(ruling.decision)
        if ruling.decision.is_conclusive:
            return self._follow(contest, ruling)
        self._inconclusive[node] = what_was_seen(contest, ruling.decision.needed)
        for child in node.children:
            self._forget(child)
            child.reject()
        return []

    def _follow(self, contest: Contest, ruling: Ruling) -> list[Fnode]:
        """The tree is as the ruling has it: the children to go on with."""
        node = contest.node
        self._confidence = min(
            ruling.confidence, 1.0 if self._confidence is None else self._confidence
        )
        self._passed |= {(node, one): text for one, text in ruling.passed.items()}
        if not self._parameters.auto:
            self._candidates += node.children
        for child in node.children:
            if child in ruling.winners:
                child.win()
            else:
                self._forget(child)
                child.lose()
            self._shares[child] = likely_share(contest.called(child), contest.seen)
        note = None if node in self._reopened else _note(contest)
        node.end_path(self._judge.ending(contest, ruling, note))
        for child in ruling.divided:
            child.end_path(Ending(Cause.FUNCTION, child.maxcount, cut=Cut.DIVIDES))
            child.close()
            self._forget(child)
        going_on = [child for child in ruling.winners if child.end is None]
        return [child for child in going_on if self._enter(child, ask=not self._parameters.auto)]

    def _enter(self, node: Fnode, ask: bool) -> bool:
        """Go on below a root cause; False when its path ends there, or waits for the user."""
        self._look_into(node)
        node.close()
        if node.meaning is not None:
            cause, note = node.meaning
            node.end_path(Ending(cause, node.maxcount, note=note))
        elif _is_leaf(node):
            node.end_path(Ending(Cause.FUNCTION, node.maxcount))
        elif self._is_deepest(node):
            node.end_path(Ending(Cause.FUNCTION, node.maxcount, cut=Cut.DEPTH))
        elif ask:
            self._pending.append(node)
        else:
            for below in node.walk():
                below.await_decision()
            node.open()
            self._frontier.append(node)
            return True
        self._forget(node)
        return False

    def _is_deepest(self, node: Fnode) -> bool:
        """Whether nothing below it is looked at, as the parameters have it."""
        return node.depth >= self._parameters.max_depth

    def _forget(self, node: Fnode) -> None:
        for below in node.walk():
            self._contests.pop(below, None)

    def _look_into(self, node: Fnode) -> None:
        if node not in self._expanded:
            self._expanded.add(node)
            if not node.children:
                self._expand(node)

    # -- how many votes -------------------------------------------------------------------------

    def _due_contests(self) -> Iterator[Contest]:
        return (self._contests[node] for node in self._frontier if node in self._contests)

    def _share(self, node: Fnode) -> float:
        """In what part of the in-peak calls the node is on the path, at least. Of one that an
        earlier search decided for, as often as it won there."""
        if node not in self._shares and node.parent is not None:
            above, won = max(node.parent.totals.ops, 1), min(node.maxcount, node.parent.totals.ops)
            self._shares[node] = self._share(node.parent) * likely_share(won, above)
        return self._shares[node]

    def _missing(self, contest: Contest) -> int:
        return self._judge.missing(contest, self._share(contest.node))

    def _is_due(self, contest: Contest) -> bool:
        return self._judge.is_due(contest, self._contests, self._share(contest.node))

    # -- orders ---------------------------------------------------------------------------------

    def _orders(self) -> Orders:
        analyse: list[Fnode] = []
        sites: set[object] = set()
        for node in self._frontier:
            contest = self._contests.get(node)
            running = contest is not None
            contest = contest or self._new_contest(node)
            more = sites | call_sites(contest.timed)
            # The others wait for their turn.
            if running or not analyse or len(more) <= self._parameters.max_probes:
                self._contests[node] = contest
                analyse.append(node)
                sites = more
        if analyse:
            self._level = max(node.depth for node in analyse)
        if self._parameters.auto:
            self._look_ahead(analyse, sites)
        self._contests = {node: self._contests.get(node) or Contest(node) for node in analyse}
        idle = not analyse and not self._pending
        self._status = outcome(self.paths()) if idle else Status.SEARCHING
        return self._changed(analyse)

    def _new_contest(self, node: Fnode) -> Contest:
        if node in self._reopened:
            return Contest(node, batch=self._reopened[node])
        if len(call_sites(node.children)) <= self._parameters.max_probes:
            return Contest(node)
        first, *others = in_batches(node.children, self._parameters.max_probes)
        return Contest(node, batch=first, waiting=others, last_round=False)

    def _look_ahead(self, analyse: list[Fnode], sites: set[object]) -> None:
        """Add nodes below the frontier, breadth first, as far as the number of probes allows."""
        levels, budget = self._parameters.lookahead, self._parameters.max_probes
        is_auto = levels is None
        if levels is None:
            levels, budget = AUTO_LOOKAHEAD, min(budget, len(sites) + AUTO_SPECULATION)
        above = [node for node in analyse if self._contests[node].batch is None]
        for _ in range(levels - 1):
            callees = [child for node in above for child in node.children]
            # What is being counted already goes on being counted.
            callees.sort(key=lambda child: child not in self._contests)
            above = []
            for node in callees:
                if len(sites) >= budget:
                    break
                if self._is_deepest(node):
                    continue
                if is_auto and node not in self._expanded and not self._has_time():
                    continue
                self._look_into(node)
                more = sites | call_sites(node.children)
                if not _is_leaf(node) and len(more) <= budget:
                    sites = more
                    above.append(node)
            analyse += above

    def _changed(self, analyse: Sequence[Fnode]) -> Orders:
        # Callees that were learned since the last orders are timed as well.
        before = self._timed | dict.fromkeys(
            child
            for node in self._last.analyse
            if node not in self._last.batches
            for child in node.children
        )
        self._timed = {}
        for node in analyse:
            self._timed |= dict.fromkeys([*node.route(), *self._contests[node].timed])
        for node in self._pending:
            self._timed |= dict.fromkeys(node.route())
        self._last = Orders(
            analyse=tuple(analyse),
            batches={n: c.batch for n, c in self._contests.items() if c.batch is not None},
            remove=tuple(node for node in before if node not in self._timed),
            finished=self._status is not Status.SEARCHING,
        )
        return self._last


def ended_paths(root: Fnode) -> tuple[RootCausePath, ...]:
    """The root cause paths in the tree below f0, in its order."""
    return tuple(
        RootCausePath(tuple(node.route()), node.end) for node in root.walk() if node.end is not None
    )


def open_paths(root: Fnode) -> list[list[Fnode]]:
    """Of a search that is ended: what was chosen so far, from ``root`` down to the last one, where
    no path has ended yet."""
    return [
        node.route()
        for node in root.walk()
        if node is not root
        and node.root_cause
        and node.end is None
        and not any(child.root_cause for child in node.children)
    ]


def end_where_it_is(root: Fnode) -> None:
    """Of a search that is ended before it has found anything: :func:`open_paths` are paths."""
    for *_, node in open_paths(root):
        node.end_path(Ending(Cause.FUNCTION, node.maxcount, cut=Cut.EARLY))


def outcome(paths: Iterable[RootCausePath]) -> Status:
    """What a search is in the end that has found ``paths``: MAX_DEPTH when the depth cut any of
    them off, INCONCLUSIVE when there is none, else FOUND."""
    cuts = [path.ending.cut for path in paths]
    if not cuts:
        return Status.INCONCLUSIVE
    return Status.MAX_DEPTH if Cut.DEPTH in cuts else Status.FOUND


def _is_leaf(node: Fnode) -> bool:
    return not node.children and not node.has_unknown_callees


def _note(contest: Contest) -> str | None:
    if contest.batch is None:
        return None
    return f"the last round compared {len(contest.batch)} of {len(contest.node.children)} callees"
