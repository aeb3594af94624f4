"""Calling contexts: what each function took in the place where it was called (IntroPerf 3.2, 3.4).

A *context* is a function reached by one sequence of functions, from where a thread began or from
an f0 down. Call sites are not told apart: two calls of the same function in the same function are
one context. The contexts of a program are one tree (the paper's PA-CCT), whose root is nobody's
function: its children are the functions in which threads began, and the f0 that nobody was seen to
call.

Times are in ns. What was *measured* is by pads or breakpoints, what was *inferred* by the stacks of
events (:mod:`darc.model.inference`); where a context has both, the measured time counts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from darc.model.ftree import Fnode
from darc.model.libraries import is_c_library

_ALIAS = re.compile(r"^(?:__GI_)?_*(?:libc_)?(?=[a-z])")


class Origin(str, Enum):
    """Where a context's time is known from. The values are those of the report."""

    MEASURED = "measured"
    INFERRED = "inferred"


@dataclass(frozen=True)
class FunctionName:
    """A function as contexts know it, in whatever run: two are the same where both are."""

    name: str
    """For people, as :attr:`darc.model.ftree.Function.name`."""
    module: str
    """Base name of the file that holds it; empty where that is not known."""


def function_name(name: str, module: str) -> FunctionName:
    """What contexts call a function of that name in that file.

    The C library's functions have several names each, of which others take another one than darc:
    ``write`` is ``__write``, ``__libc_write`` and ``__GI___libc_write`` as well.
    """
    if is_c_library(module) and not name.startswith("__libc_start"):
        name = _ALIAS.sub("", name)
    return FunctionName(name, module)


NOBODY = FunctionName("", "")
"""Of the tree's root."""


@dataclass(frozen=True)
class Cost:
    """What a context took, over all its calls."""

    calls: float
    """Measured ones; of inferred ones the instances that events told apart, which may be several
    calls each (IntroPerf 3.3). Not a whole number where a tree was fitted into another."""
    ns: float
    """Their latencies: of an inferred one from its first event to its last, which is the paper's
    conservative estimate."""
    at_most: float
    """The same up to the first event that does not have it: the paper's aggressive estimate."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.calls + other.calls, self.ns + other.ns, self.at_most + other.at_most)

    def scaled(self, factor: float) -> Cost:
        """As if there had been ``factor`` times as many calls, as long on average."""
        return Cost(self.calls * factor, self.ns * factor, self.at_most * factor)

    @property
    def mean_ns(self) -> float:
        """Of one call; 0 where there was none."""
        return self.ns / self.calls if self.calls else 0.0


NOTHING = Cost(0, 0, 0)


class Context:
    """A node of the tree. Nodes are compared and hashed by identity."""

    __slots__ = ("children", "function", "inferred", "measured", "parent")

    def __init__(self, function: FunctionName = NOBODY, parent: Context | None = None) -> None:
        """The root of a new tree; every other node is made by :meth:`child`."""
        self.function = function
        self.parent = parent
        self.children: dict[FunctionName, Context] = {}
        self.measured: Cost | None = None
        self.inferred: Cost | None = None

    def __repr__(self) -> str:
        # Names are foreign text, and who prints this may not be able to print them.
        names = (ascii(one.function.name)[1:-1] for one in self.route())
        return f"<Context {' > '.join(names)}>"

    def child(self, function: FunctionName) -> Context:
        """The context of a function that is called here (the paper's ``getNode``)."""
        found = self.children.get(function)
        if found is None:
            found = self.children[function] = Context(function, self)
        return found

    @property
    def cost(self) -> Cost:
        """What counts of it."""
        return self.measured or self.inferred or NOTHING

    @property
    def origin(self) -> Origin | None:
        """Where :attr:`cost` is from; ``None`` where nothing is known of it."""
        if self.measured is not None:
            return Origin.MEASURED
        return None if self.inferred is None else Origin.INFERRED

    @property
    def own_ns(self) -> float:
        """What it took itself, without its callees (IntroPerf 3.4.1). Of totals, as means over
        different numbers of calls cannot be subtracted; and not below 0, which callees would bring
        about that were measured in other calls than their caller."""
        called = sum(child.cost.ns for child in self.children.values())
        return max(0.0, self.cost.ns - called)

    def route(self) -> list[Context]:
        """The nodes down to this one, without the root."""
        nodes = [self]
        while nodes[-1].parent is not None:
            nodes.append(nodes[-1].parent)
        return nodes[-2::-1]

    def walk(self) -> Iterator[Context]:
        """All nodes below this one, each before its children."""
        stack = list(reversed(self.children.values()))
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children.values()))


def measured_tree(root: Fnode, hz: int) -> Context | None:
    """What was measured of an ftree, as a tree below one node for f0; ``None`` before its first
    decision. Cycles are of ``hz``.

    Each level of an ftree was counted over other calls of f0 than the one above. So the calls of
    each node are scaled to those of f0 over which its own callees were compared, and its time to
    that which its caller took in these: a callee that had all of its caller's time has all of it
    here, whichever calls that was seen in.
    """
    if not root.totals.ops or not root.totals.calls:
        return None
    tree = Context()
    scale: dict[Fnode, tuple[Context, float, float]] = {}
    for fnode in root.walk():
        above = None if fnode.parent is None else scale.get(fnode.parent)
        if fnode.parent is not None and (above is None or not fnode.called.calls):
            continue  # it was not called where calls were counted
        parent, often, long = above or (tree, 1.0, 1.0)
        counted, totals = fnode.called if fnode.parent is not None else fnode.totals, fnode.totals
        ns = counted.sum * 1e9 / hz * long
        made = parent.child(function_name(fnode.function.name, fnode.function.module))
        cost = Cost(counted.calls * often, ns, ns)
        made.measured = cost if made.measured is None else made.measured + cost
        more = counted.ops / totals.ops if totals.ops else 1.0
        longer = counted.sum / totals.sum if totals.sum else 1.0
        scale[fnode] = made, often * more, long * longer
    return tree


# ------------------------------------------------------------------------------------- merging


def merged(trees: Sequence[Context], inferred: Context | None = None) -> Context:
    """One tree of all that was measured and inferred in ``trees``, and of what is ``inferred``.

    What was inferred is added, and so are measured trees of the same f0. A tree whose f0 stands in
    one context of what is there already is put there, and scaled to the time of that: it tells how
    that time divides. Where it stands in several, nobody knows which one the calls were of: it
    stays below the root.

    ``inferred`` is changed; ``trees`` are not.
    """
    tree = Context() if inferred is None else inferred
    for one in trees:
        _add_inferred(tree, one)
    sums = _measured_sums(trees)
    for function in _outer_first(sums):
        _put(tree, sums[function])
    return tree


def folded(trees: Sequence[Context]) -> list[Context]:
    """What was measured in ``trees``, as one tree for each f0: what is kept of many analyses grows
    with the functions that they were of, not with their number."""
    roots = []
    for function, total in _measured_sums(trees).items():
        root = Context()
        root.children[function] = total
        total.parent = root
        roots.append(root)
    return roots


def _measured_sums(trees: Sequence[Context]) -> dict[FunctionName, Context]:
    by_f0: dict[FunctionName, list[Context]] = defaultdict(list)
    for one in trees:
        for f0 in _measured_parts(one):
            by_f0[f0.function].append(f0)
    return {function: _sum(nodes) for function, nodes in by_f0.items()}


def _add_inferred(into: Context, tree: Context) -> None:
    made = {tree: into}
    for node in tree.walk():
        assert node.parent is not None
        above = made.get(node.parent)
        if node.inferred is None or above is None:
            continue
        made[node] = above.child(node.function)
        made[node].inferred = (made[node].inferred or NOTHING) + node.inferred


def _measured_parts(tree: Context) -> list[Context]:
    """Of each f0 what was measured of it and below, by itself."""
    made: dict[Context, Context] = {}
    found = []
    for node in tree.walk():
        if node.measured is None or not node.measured.calls:
            continue
        above = None if node.parent is None else made.get(node.parent)
        made[node] = Context(node.function) if above is None else above.child(node.function)
        made[node].measured = node.measured
        if above is None:
            found.append(made[node])
    return found


def _sum(nodes: Sequence[Context]) -> Context:
    """The trees of one f0 as one. A context that some of them did not look into counts as it is in
    the others: its figures are scaled to the calls of all."""
    calls = sum(node.cost.calls for node in nodes)
    total = Context(nodes[0].function)
    stack = [(total, [(node, node.cost.calls) for node in nodes])]
    while stack:
        into, same = stack.pop()
        weight = sum(ops for _, ops in same)
        cost = NOTHING
        for node, _ in same:
            cost += node.cost
        into.measured = cost.scaled(calls / weight)
        below: dict[FunctionName, list[tuple[Context, float]]] = {}
        looked = sum(ops for node, ops in same if node.children)
        for node, ops in same:
            for function, child in node.children.items():
                below.setdefault(function, []).append((child, ops))
        for function, children in below.items():
            # One that looked into its caller, and did not see it called, counts as well.
            seen = sum(ops for _, ops in children)
            absent = [] if looked == seen else [(Context(function), looked - seen)]
            stack.append((into.child(function), children + absent))
    return total


def _outer_first(sums: dict[FunctionName, Context]) -> list[FunctionName]:
    """The f0, each behind those in whose trees it is called."""
    below = {function: {node.function for node in f0.walk()} for function, f0 in sums.items()}
    left, order = list(sums), []
    while left:
        free = [one for one in left if not any(one in below[two] for two in left if two != one)]
        order += free or left[:1]
        left = [one for one in left if one not in order]
    return order


def _put(tree: Context, f0: Context) -> None:
    places = [node for node in _outermost(tree, f0.function) if node.cost.ns]
    if len(places) != 1:
        _fit(tree.child(f0.function), f0, 1.0)
        return
    _fit(places[0], f0, places[0].cost.ns / f0.cost.ns if f0.cost.ns else 1.0)


def _outermost(tree: Context, function: FunctionName) -> Iterator[Context]:
    """The contexts that end in a function, without those in which it has called itself."""
    stack = list(tree.children.values())
    while stack:
        node = stack.pop()
        if node.function == function:
            yield node
        else:
            stack.extend(node.children.values())


def _fit(node: Context, source: Context, factor: float) -> None:
    """Puts measured contexts in. What was measured in a context itself stays."""
    stack = [(node, source, factor)]
    while stack:
        into, one, scale = stack.pop()
        if into.measured is None:
            into.measured = one.cost.scaled(scale)
        elif one.cost.ns:
            scale = into.measured.ns / one.cost.ns
        stack.extend(
            (into.child(function), child, scale) for function, child in one.children.items()
        )


# ------------------------------------------------------------------------------------- coverage


@dataclass(frozen=True)
class Coverage:
    """How many of ``contexts`` that were measured stacks have shown too (IntroPerf 5.3)."""

    contexts: int
    seen: int

    @property
    def share(self) -> float:
        """From 0 to 1; 0 where nothing was measured."""
        return self.seen / self.contexts if self.contexts else 0.0


def coverage(tree: Context, slowest: float = 1.0) -> Coverage:
    """Of the measured contexts, or of that share of them that takes longest (at least one)."""
    measured = [node for node in tree.walk() if node.measured is not None]
    measured.sort(key=lambda node: -node.cost.mean_ns)
    chosen = measured[: max(1, round(len(measured) * slowest))] if measured else []
    return Coverage(len(chosen), sum(node.inferred is not None for node in chosen))


# -------------------------------------------------------------------------------------- ranking


@dataclass(frozen=True)
class RankedPath:
    """A path from where a thread began, or from an f0, to a function that calls nothing."""

    nodes: tuple[Context, ...]
    parts: tuple[float, ...]
    """What each node took itself, in ns; against a base, how much more than there."""
    is_new: bool
    """Whether the base does not have it, and has not measured a function on it without looking into
    what that calls either."""

    @property
    def ns(self) -> float:
        """What ranks it: the sum of its parts (the paper's c)."""
        return sum(self.parts)

    @property
    def hottest(self) -> int:
        """Which of its nodes has the largest part; the outer one of two."""
        return max(range(len(self.parts)), key=lambda index: (self.parts[index], -index))


def rank(tree: Context, base: Context | None = None) -> list[RankedPath]:
    """All paths, the most costly one first (IntroPerf 3.4.2, Algorithm 3); of equal ones the
    shorter one.

    Unlike the paper's, a path that the base does not have counts with what its functions took more
    than they did in the same contexts there, where these exist: else each rare path below a busy
    function would be ranked as if that had come with it. Contexts of an f0 that stands below the
    root in both are compared as if there had been as many calls of it in both.
    """
    found: list[RankedPath] = []
    factor = 1.0
    nodes: list[Context] = []
    parts: list[float] = []
    bases: list[Context | None] = []
    stack = [(node, 0) for node in reversed(tree.children.values())]
    while stack:
        node, depth = stack.pop()
        del nodes[depth:], parts[depth:], bases[depth:]
        above = base if not depth else bases[-1]
        same = None if above is None else above.children.get(node.function)
        if not depth:
            factor = _same_calls(node, same)
        nodes.append(node)
        bases.append(same)
        parts.append(node.own_ns - (0.0 if same is None else same.own_ns * factor))
        if node.children:
            stack.extend((child, depth + 1) for child in reversed(node.children.values()))
        else:
            is_new = base is not None and _is_new(bases)
            found.append(RankedPath(tuple(nodes), tuple(parts), is_new))
    found.sort(key=lambda path: (-path.ns, len(path.nodes)))
    return found


def _is_new(bases: Sequence[Context | None]) -> bool:
    """Whether a path with these contexts in the base is not there."""
    if None not in bases:
        return False
    last = bases[bases.index(None) - 1] if bases[0] is not None else None
    return last is None or bool(last.children) or last.measured is None


def _same_calls(node: Context, base: Context | None) -> float:
    """By what a tree of the base is scaled."""
    if base is None or node.measured is None or base.measured is None or not base.measured.calls:
        return 1.0
    return node.measured.calls / base.measured.calls
