"""Orders carried out: which call sites are patched, and the ftree as the agent sees it.

The agent knows the live fnodes by numbers, f0 is 0; a site's *routes* tell it from the number of
the caller to that of the callee. Every round numbers them anew. Where its targets are compared, an
indirect site takes as many numbers as it has lanes (see :mod:`darc.collectors.callees`), and one
for all targets that have none; or fewer, where there is not room for so many. Further up, where it
is decided which targets the paths go through, these alone have numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from darc.agent.rows import EVERY_LANE, Node, Route
from darc.code.architecture import Site
from darc.code.live import NotNowError
from darc.collectors.callees import Callees
from darc.collectors.duties import Timing
from darc.model.errors import TargetError
from darc.model.ftree import Fnode, Function, Totals
from darc.model.refusal import Refusal
from darc.pads.installer import PadInstaller
from darc.pads.patching import Patch
from darc.search.contest import Vote, call_sites
from darc.search.descent import Orders

_TARGET_ROUNDS = 8
"""How often an indirect call with many targets gets room for others."""

_LEAST_OF_BEST = 4
"""It does where these have the best one's votes, divided by this, or more."""

_MOST_BELOW = 64
"""Callees of a node that what they call is read ahead of, in case the search looks ahead as far."""


@dataclass
class _Numbering:
    """The numbers of one round."""

    numbers: dict[Fnode, int]
    backs: dict[Fnode, int]
    """Where a node's frame returns to: into the pad that it was entered through."""
    rows: list[Node] = field(default_factory=lambda: [Node(0, 0, 0, timed=True)])
    lanes: dict[int, tuple[Fnode, Site, int]] = field(default_factory=dict)
    """The caller, indirect site and lane of a number."""
    routes: dict[int, list[Route]] = field(default_factory=dict)
    """The routes of a site, by its address."""
    used: dict[int, Patch] = field(default_factory=dict)
    """The patches that are wanted, by their sites' addresses."""

    def add(
        self,
        parent: Fnode,
        child: Fnode | None,
        patch: Patch,
        *,
        timed: bool,
        passes: bool = False,
        is_others: bool = False,
    ) -> None:
        """Takes the next number for a callee of ``parent``, for one to be learned, for one that
        is left alone, or for all that have no number."""
        if child is not None:
            self.numbers[child] = len(self.rows)
            self.backs[child] = patch.pad_back or self.backs[parent]  # a tail call has none
        others_of = patch.index if is_others else None
        self.rows.append(
            Node(
                parent=self.numbers[parent],
                first_child=0,
                child_count=0,
                timed=timed,
                passes=passes,
                others_of=others_of,
            )
        )

    def adopt(self, node: Fnode, first: int) -> None:
        """The numbers from ``first`` on are those of the callees of ``node``, to be compared."""
        number = self.numbers[node]
        parent = self.rows[number].parent
        self.rows[number] = Node(parent, first, len(self.rows) - first, timed=True)


class Instrumentation(Timing):
    """The patched call sites below f0 and what the agent counts for them."""

    def __init__(self, installer: PadInstaller, callees: Callees, root: Fnode) -> None:
        self._installer = installer
        self._tables = installer.tables
        self._callees = callees
        self._targets = callees.targets
        self._root = root
        self._orders = Orders()
        self._waiting: set[Fnode] = set()
        self._backs: dict[Fnode, int] = {}
        self._numbered: dict[int, Fnode] = {}
        self._lanes: dict[int, tuple[Fnode, Site, int]] = {}
        self._number_count = 1
        self._patched: dict[int, Patch] = {}
        self._used: set[int] = set()
        self._recycled: dict[int, int] = {}
        self._round = installer.tables.round  # of an earlier analysis, maybe

    @property
    def used(self) -> AbstractSet[int]:
        return self._used

    @property
    def probe_cost(self) -> int:
        return self._tables.full_cost

    @property
    def probe_doubt(self) -> int:
        return self._tables.cost_doubt

    def drop_open_calls(self) -> None:
        self._tables.begin_epoch()

    # ------------------------------------------------------------------ orders in

    def apply(self, orders: Orders) -> None:
        """Numbers the live nodes anew, and patches and restores call sites accordingly."""
        self._orders = orders
        new = _Numbering({self._root: 0}, {self._root: self._installer.f0_back})
        compared, waiting = self._number_all(new, orders)
        self._waiting = waiting & set(orders.analyse)
        self._backs = new.backs
        analysis = [new.numbers[node] for node in orders.analyse if node in compared]
        self._publish(new, analysis)
        self._numbered = {number: node for node, number in new.numbers.items()}
        self._lanes = new.lanes
        self._number_count = len(new.rows)

    def _number_all(self, new: _Numbering, orders: Orders) -> tuple[set[Fnode], set[Fnode]]:
        """The nodes of the orders whose callees are compared, and those that wait, with all that is
        below them, as there is no room for theirs."""
        analysed, tracked = set(orders.analyse), orders.tracked
        compared: set[Fnode] = set()
        waiting: set[Fnode] = set()
        leading = sum(
            sum(self._widths(self._wanted(node, orders, tracked), is_whole=False))
            for node in tracked - analysed
        )
        for node in sorted(tracked, key=lambda n: (n.depth, n.path)):
            if node not in new.numbers:
                if any(above in waiting for above in node.route()):
                    waiting.add(node)
                continue  # or its own call site could not be patched
            wanted = self._wanted(node, orders, tracked)
            room = self._installer.max_nodes - len(new.rows)
            widths = self._widths(wanted, is_whole=_is_whole(node, orders))
            if node in analysed:
                room -= leading
            else:
                leading -= sum(widths)
            if node in analysed and compared and sum(widths) > room:
                waiting.add(node)
                continue
            first = len(new.rows)
            self._number_sites(new, node, wanted, _narrowed(widths, room), timed=node in analysed)
            if node in analysed:
                new.adopt(node, first)
                compared.add(node)
        return compared, waiting

    def _number_sites(
        self,
        new: _Numbering,
        node: Fnode,
        wanted: Sequence[tuple[Site, list[Fnode]]],
        widths: Sequence[int],
        *,
        timed: bool,
    ) -> None:
        """Of a node, with as many numbers each; where that is none, it is told."""
        for (site, children), width in zip(wanted, widths, strict=True):
            if width:
                self._number(new, node, site=site, children=children, width=width, timed=timed)
            else:
                self._fail_for_room(node, site)

    def _wanted(
        self, node: Fnode, orders: Orders, tracked: AbstractSet[Fnode]
    ) -> list[tuple[Site, list[Fnode]]]:
        """Which call sites of a node get numbers."""
        if node in orders.analyse:
            batch, is_exact = orders.batches.get(node), node in orders.exact
            return self._callees.wanted(node, batch, is_exact=is_exact)
        return self._callees.by_site(child for child in node.children if child in tracked)

    def fits(self, orders: Orders) -> bool:
        tracked = orders.tracked
        needed = 1 + sum(
            sum(self._widths(self._wanted(node, orders, tracked), _is_whole(node, orders)))
            for node in tracked
        )
        return needed <= self._installer.max_nodes

    def apply_again(self) -> None:
        """The same orders once more, from the start."""
        self.apply(self._orders)

    def ahead(self, nodes: Iterable[Fnode], levels: int) -> Iterator[None]:
        """While the program runs: reads what these nodes call, which are timed, and makes pads for
        it, as deep as ``levels``, so that little is left to do at the stop that decides on them.
        Step by step."""
        known = [(node.function, back) for node in nodes if (back := self._back(node)) is not None]
        for _ in range(levels):
            below: list[tuple[Function, int]] = []
            for function, back in known:
                try:
                    yield from self._callees.code.look_ahead(function)
                except NotNowError:  # at the stop, then
                    yield
                for seen in self._callees.code.seen_ahead(function):
                    if seen.problem is not None:
                        continue
                    own = self._installer.prepare_ahead(seen.site, back)
                    if own is not None and seen.callee is not None:
                        below.append((seen.callee, own or back))
                    yield
            known = below[:_MOST_BELOW]

    def _back(self, node: Fnode) -> int | None:
        """Where a node's frame returns to; ``None``: it is not timed."""
        if node is self._root:
            return self._installer.f0_back
        if (known := self._backs.get(node)) is not None:
            return known
        patch = self._patched.get(self._callees.site(node).address)  # learned since the orders
        if patch is None or node.parent is None:
            return None
        return patch.pad_back or self._back(node.parent)

    def _widths(self, wanted: Sequence[tuple[Site, list[Fnode]]], is_whole: bool) -> list[int]:
        """How many numbers each site takes: ``is_whole`` says that its targets are compared."""
        every = self._installer.max_targets + 1
        return [
            1 if _is_single(site) else every if is_whole else len(children)
            for site, children in wanted
        ]

    def _numbered_lanes(
        self, node: Fnode, site: Site, children: Sequence[Fnode], width: int
    ) -> list[int]:
        """Which lanes of an indirect site get a number. Where these are too few for all: those
        whose calls are to be left alone, those that have won so far, then the first ones; and all
        others are one."""
        others = self._installer.max_targets
        if not _is_whole(node, self._orders):
            every = range(others + 1)
            return [lane for lane in every if self._targets.learned(node, site, lane) in children]
        targets = self._tables.sites.learned(self._patched[site.address].index)
        passed = {n for n, one in enumerate(targets) if self._targets.passes(node, site, one)}

        def rank(lane: int) -> tuple[bool, int]:
            child = self._targets.learned(node, site, lane)
            return lane not in passed, -1 if child is None else -child.maxcount

        if len(passed) >= width:
            self._fail_for_room(node, site)
            return []
        return [*sorted(sorted(range(others), key=rank)[: width - 1]), others]

    def _fail_for_room(self, node: Fnode, site: Site) -> None:
        has_room = f"'darc start {node.function.name}' has room"
        self._callees.told.fail(node, site, f"there was no room left for it, but {has_room}")

    def _number(
        self,
        new: _Numbering,
        node: Fnode,
        site: Site,
        *,
        children: Sequence[Fnode],
        width: int,
        timed: bool,
    ) -> None:
        """Numbers the callees of one call site of ``node``, if it can be patched: so many."""
        patch = self._prepare(site, new.backs[node], node)
        if patch is None:
            return
        lanes, bits = [0], EVERY_LANE
        targets: Sequence[int] = ()
        if not _is_single(site):
            lanes = self._numbered_lanes(node, site, children, width)
            bits = sum(1 << lane for lane in lanes)
            targets = self._tables.sites.learned(patch.index)
        if not lanes:
            return
        new.used[site.address] = patch
        route = Route(new.numbers[node], len(new.rows), bits)
        new.routes.setdefault(site.address, []).append(route)
        if site.target is not None:
            new.add(node, children[0], patch, timed=timed)
            return
        passed = [self._targets.passes(node, site, target) for target in targets]
        for lane in lanes:
            new.lanes[len(new.rows)] = (node, site, lane)
            passes = lane < len(passed) and passed[lane]
            is_others = lane == self._installer.max_targets
            child = self._targets.learned(node, site, lane)
            new.add(node, child, patch, timed=timed, passes=passes, is_others=is_others)

    def _prepare(self, site: Site, parent: int, node: Fnode) -> Patch | None:
        made = self._installer.prepare_site(site, parent)
        if isinstance(made, Refusal):
            self._callees.told.fail(node, site, made.why)
            return None
        if targets := self._targets.take_relearned(site):
            self._tables.sites.teach(made.index, targets)
        try:
            self._installer.activate(made)
        except TargetError as error:
            self._callees.told.fail(node, site, str(error))
            return None
        self._patched[site.address] = made
        self._used.add(site.address)
        return made

    def _publish(self, new: _Numbering, analysis: Sequence[int]) -> None:
        """Tells the agent, and restores the sites that are not wanted any more."""
        tables = self._tables
        routes: list[Route] = []
        for address, own in new.routes.items():
            index, site = new.used[address].index, new.used[address].site
            assert site is not None
            width = 1 if _is_single(site) else self._installer.max_targets + 1
            timed = any(
                row.timed
                for _, child, lanes in own
                for row in new.rows[child : child + (lanes % (1 << width)).bit_count()]
            )
            tables.sites.set_routes(index, len(routes), len(own), timed)
            routes += own
        for address, patch in self._patched.items():
            if address not in new.used:
                self._installer.deactivate(patch)
                tables.sites.set(patch.index, route_count=0)
        self._patched = {address: self._patched[address] for address in new.used}
        tables.sites.write_nodes(new.rows, routes, analysis)
        tables.kept.forget()
        self._round += 1
        tables.set(round=self._round)
        tables.begin_epoch()

    # ------------------------------------------------------------------ votes out

    def votes(self) -> dict[Fnode, Vote]:
        votes: dict[Fnode, Vote] = {}
        for number, total in self._tables.contexts.totals(self._number_count).items():
            node = self._numbered.get(number) or self._learn(number, total.ops)
            if node is None:
                continue
            summed = Totals(total.ops, total.calls, total.sum, total.max_sum)
            votes[node] = Vote(total.own, total.ops, total.votes, summed)
        for node in self._waiting:
            votes[node] = replace(votes.get(node, Vote()), counted=False)
        return votes

    @property
    def compared(self) -> frozenset[Fnode]:
        """The fnodes of which no callee is left for another turn."""
        batches, numbered = self._orders.batches, set(self._numbered.values())
        return frozenset(
            node
            for node in self._orders.analyse
            if node in numbered - self._waiting
            and not (node in self._orders.exact and self._callees.indirect(node))
            and call_sites(batches.get(node, node.children)) >= call_sites(node.children)
        )

    def node_of(self, number: int) -> Fnode | None:
        """The fnode that the agent knows by a number."""
        return self._numbered.get(number) or self._learn(number, 1)

    def _learn(self, number: int, ops: int) -> Fnode | None:
        """The fnode of an indirect site's target that was called for the first time."""
        place = self._lanes.get(number)
        if place is None or not ops:
            return None
        node, site, lane = place
        if lane == self._installer.max_targets:
            self._numbered[number] = self._targets.others(node, site)
            return self._numbered[number]
        targets: Sequence[int] = (site.address,)
        if not _is_single(site):
            targets = self._tables.sites.learned(self._patched[site.address].index)
        if lane >= len(targets):
            return None
        target = targets[lane]
        if self._targets.passes(node, site, target):
            return None
        child = self._targets.learn(node, site, lane, target)
        self._numbered[number] = child
        return child

    def make_room(self, votes: Mapping[Fnode, Vote]) -> bool:
        """Where an indirect call has more targets than can be told apart, and those without a lane
        may be what is looked for, those that never won make room."""
        made = False
        for node, sites in self._callees.with_indirect.items():
            most = max(_votes(votes, child) for child in node.children) if node.children else 0
            most = max(most, votes[node].own if node in votes else 0)
            for site in sites:
                others = self._targets.others_of(node, site)
                if others is None or not _votes(votes, others) * _LEAST_OF_BEST >= max(most, 1):
                    continue
                made = self._make_room_at(site, votes) or made
        if made:
            self.apply_again()
        return made

    def _make_room_at(self, site: Site, votes: Mapping[Fnode, Vote]) -> bool:
        patch = self._patched.get(site.address)
        tries = self._recycled.get(site.address, 0)
        if patch is None or tries >= _TARGET_ROUNDS:
            return False
        targets = self._tables.sites.learned(patch.index)
        late = self._installer.max_targets - self._installer.late_targets
        kept = self._targets.keep(site, targets, lambda child: _has_won(child, votes), late)
        lanes = {lane for _, one, lane in self._lanes.values() if one.address == site.address}
        if len(kept) >= len(lanes - {self._installer.max_targets}):
            return False  # there is none that anybody else could have
        self._recycled[site.address] = tries + 1
        self._tables.sites.keep(patch.index, kept)
        return True


def _votes(votes: Mapping[Fnode, Vote], node: Fnode) -> int:
    return votes[node].votes if node in votes else 0


def _has_won(node: Fnode, votes: Mapping[Fnode, Vote]) -> bool:
    return node.root_cause or (node in votes and votes[node].votes > 0)


def _is_whole(node: Fnode, orders: Orders) -> bool:
    """Whether all that its indirect calls may lead to is compared."""
    return node in orders.analyse and node not in orders.exact


def _narrowed(widths: Sequence[int], room: int) -> list[int]:
    """The same where there is room for fewer: all that take most take less, down to one of their
    own, and then the last ones nothing."""
    narrowed = list(widths)
    most = max(widths, default=0)
    while sum(narrowed) > room and most > 1:
        most -= 1
        narrowed = [min(width, most) for width in narrowed]
    found = []
    for width in narrowed:
        found.append(width if width <= room else 0)
        room -= found[-1]
    return found


def _is_single(site: Site) -> bool:
    """Whether only one function is ever called there."""
    return site.target is not None or site.is_own_callee
