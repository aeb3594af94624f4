"""What indirect call sites have called: the fnodes of their targets.

A site tells a few targets apart, each of which has a *lane*: its place among the targets that the
agent knows of that site. One fnode stands for all that have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from darc.code.architecture import Site
from darc.code.program import Program
from darc.collectors.codesites import place_of
from darc.collectors.sitereports import SiteReports
from darc.model.ftree import CallKind, Cause, Fnode, Function, Meaning
from darc.saved import refit

OTHERS = "<other targets>"
"""The symbol of the fnode that stands for all targets of an indirect call that have none."""


def is_others(node: Fnode) -> bool:
    """Whether it stands for targets of an indirect call that there was no room for."""
    return node.function.symbol == OTHERS


class TargetRules(Protocol):
    """Which targets can be timed: see :class:`darc.collectors.callees.SiteRules`."""

    @property
    def max_targets(self) -> int: ...
    def why_notrace(self, program: Program, callee: Function) -> str | None: ...


class LearnedTargets:
    """Of the indirect call sites of ``program``. ``add`` makes a function a callee of an fnode at a
    site, and ``told`` is told of targets that cannot be timed."""

    def __init__(
        self,
        program: Program,
        rules: TargetRules,
        told: SiteReports,
        add: Callable[[Fnode, Site, Function], Fnode],
    ) -> None:
        self._program = program
        self._rules = rules
        self._told = told
        self._add = add
        self._learned: dict[tuple[Fnode, int, int], Fnode] = {}
        self._by_target: dict[tuple[Fnode, int, int], Fnode] = {}
        self._others: dict[tuple[Fnode, int], Fnode] = {}
        self._relearned: dict[int, list[int]] = {}
        self._passed: dict[int, dict[int, bool]] = {}

    def learned(self, node: Fnode, site: Site, lane: int) -> Fnode | None:
        """The fnode of a target of an indirect site, once that was called. The lane behind all
        others is that of all targets that have none."""
        if lane >= self._rules.max_targets:
            return self._others.get((node, site.address))
        return self._learned.get((node, site.address, lane))

    def learn(self, node: Fnode, site: Site, lane: int, target: int) -> Fnode:
        """As :meth:`called`, where the target has a new lane."""
        child = self._learned[node, site.address, lane] = self.called(node, site, target)
        return child

    def called(self, node: Fnode, site: Site, target: int) -> Fnode:
        """See :meth:`darc.collectors.callees.Callees.called`."""
        child = self._by_target.get((node, site.address, target))
        if child is None:
            child = self._add(node, site, self._program.linkage.callee_at(target))
            self._by_target[node, site.address, target] = child
        return child

    def others(self, node: Fnode, site: Site) -> Fnode:
        """The fnode of all targets of an indirect site that have no lane. A path may end there."""
        key = node, site.address
        if key not in self._others:
            at = place_of(self._program, site)
            where = f"{node.function.name}{at.offset - node.function.offset:+#x}"
            name = f"other targets of {where}"
            why = f"in one of more targets of the call at {where} than could be told apart"
            if at.kind is CallKind.INTERRUPT:
                name, why = "other interrupts", "in one of more interrupts than could be told apart"
            child = self._add(
                node,
                site,
                Function(name=name, symbol=OTHERS, module=at.module, address=0, offset=0),
            )
            child.mean(Meaning(Cause.UNTOLD, why))
            self._others[key] = child
        return self._others[key]

    def others_of(self, node: Fnode, site: Site) -> Fnode | None:
        """The same, where there have been such calls."""
        return self._others.get((node, site.address))

    def passes(self, node: Fnode, site: Site, target: int) -> bool:
        """Whether calls of a target that an indirect site has called are left alone from
        now on."""
        passed = self._passed.setdefault(site.address, {})
        if target not in passed:
            callee = self._program.linkage.callee_at(target)
            why = self._rules.why_notrace(self._program, callee)
            passed[target] = why is not None
            if why is not None:
                self._told.fail(node, site, f"it calls {callee.name}: {why}")
        return passed[target]

    def keep(
        self, site: Site, targets: Sequence[int], wins: Callable[[Fnode], bool], late: int
    ) -> list[int]:
        """Frees the lanes of those ``targets`` of an indirect site that do not win for any fnode,
        and are timed: the targets that keep one, in the order of their new lanes. From the lane
        ``late`` on, all do."""
        lanes = {key: child for key, child in self._learned.items() if key[1] == site.address}
        passed = self._passed.get(site.address, {})
        kept: list[int] = []
        for key in lanes:
            del self._learned[key]
        for old, target in enumerate(targets):
            own = {key: child for key, child in lanes.items() if key[2] == old}
            if old >= late or passed.get(target) or any(map(wins, own.values())):
                for (node, address, _), child in own.items():
                    self._learned[node, address, len(kept)] = child
                kept.append(target)
        return kept

    # ------------------------------------------------------------------- resuming

    def take_over(self, node: Fnode, site: Site) -> None:
        """Probes of another kind have learned ``node``, a root cause, at an indirect site."""
        assert node.parent is not None
        lane = self._relearn(site.address, node.function.address)
        self._learned[node.parent, site.address, lane] = node

    def relearn(
        self, identities: Mapping[str, str], node: Fnode, site: Site, callee: Function
    ) -> Fnode | None:
        """Adds the fnode of a stored callee of an indirect site, which the agent is to be told of
        when the site is prepared; ``None`` where there is no such function now or no lane left.

        ``identities`` are those of the files that the callee was stored with, by name.
        """
        if callee.symbol == OTHERS:
            return self.others(node, site)
        address = refit.locate(callee, self._program.modules, identities)
        targets = self._relearned.setdefault(site.address, [])
        full = len(targets) >= self._rules.max_targets
        if address is None or (address not in targets and full):
            return None
        child = self._add(node, site, self._program.names.function_at(address, callee.symbol))
        self._by_target[node, site.address, address] = child
        self._learned[node, site.address, self._relearn(site.address, address)] = child
        return child

    def _relearn(self, site: int, target: int) -> int:
        """The lane that a target has among those that the agent is to be told of."""
        targets = self._relearned.setdefault(site, [])
        if target not in targets:
            targets.append(target)
        return targets.index(target)

    def take_relearned(self, site: Site) -> Sequence[int]:
        """The targets that the agent is to be told of at ``site``; each is given once."""
        return self._relearned.pop(site.address, ())
