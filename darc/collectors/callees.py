"""What an fnode calls: its call sites in live code, and the functions that they lead to.

Direct sites tell their callee; indirect ones have callees that are *learned* while the program
runs. An indirect site tells a few targets apart, each of which has a *lane*: its place among the
targets that the agent knows of that site.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from darc.code.architecture import Site
from darc.code.notrace import RETURNS_TWICE, VFORK, never_returns
from darc.code.program import Program
from darc.model.ftree import CallKind, CallSite, Cause, Fnode, Function, Meaning, NodeState
from darc.model.snapshot import SiteReport, SiteState
from darc.saved import refit

OTHERS = "<other targets>"
"""The symbol of the fnode that stands for all targets of an indirect call that have none."""


def is_others(node: Fnode) -> bool:
    """Whether it stands for targets of an indirect call that there was no room for."""
    return node.function.symbol == OTHERS


class SiteRules(Protocol):
    """Which call sites can be timed by the probes of one kind: all, where a class derived from this
    says no more."""

    @property
    def max_targets(self) -> int:
        """How many targets an indirect site can learn."""
        return sys.maxsize

    @property
    def max_tails(self) -> int:
        """How many tail calls, one behind the other in one frame, can be timed."""
        return sys.maxsize

    def problem(self, site: Site) -> str | None:
        """Why ``site`` cannot be timed, as far as its code tells."""
        del site
        return None

    def why_notrace(self, program: Program, callee: Function) -> str | None:
        """Why no call of ``callee`` can be timed."""
        del program, callee
        return None


@dataclasses.dataclass(frozen=True)
class CodeSite:
    """A call site as a function's code has it."""

    site: Site
    callee: Function | None
    """``None``: it is indirect."""
    problem: str | None
    """Why it cannot be timed, wherever the function is in the ftree."""


class Callees:
    """The call sites of every fnode that was looked into, and what is told about each.

    ``note`` takes what the user should know.
    """

    def __init__(self, program: Program, rules: SiteRules, note: Callable[[str], None]) -> None:
        self._program = program
        self._rules = rules
        self._note = note
        self._sites: dict[Fnode, Site] = {}
        self._indirect: dict[Fnode, list[Site]] = {}
        self._learned: dict[tuple[Fnode, int, int], Fnode] = {}
        self._by_target: dict[tuple[Fnode, int, int], Fnode] = {}
        self._others: dict[tuple[Fnode, int], Fnode] = {}
        self._relearned: dict[int, list[int]] = {}
        self._passed: dict[int, dict[int, bool]] = {}
        self._reports: dict[tuple[int, str], SiteReport] = {}
        self._ahead: dict[int, tuple[CodeSite, ...]] = {}
        """What functions call that were read while the program ran, by their entries."""

    @property
    def sites(self) -> Mapping[Fnode, Site]:
        """Where each node is called by its parent."""
        return self._sites

    @property
    def told(self) -> Mapping[tuple[int, str], SiteReport]:
        """What is told about each call site, by its address and the name of its function."""
        return self._reports

    def site(self, node: Fnode) -> Site:
        """Where its parent calls ``node``."""
        return self._sites[node]

    def indirect(self, node: Fnode) -> Sequence[Site]:
        """The indirect call sites of ``node`` that can be timed."""
        return self._indirect.get(node, ())

    @property
    def with_indirect(self) -> Mapping[Fnode, Sequence[Site]]:
        """The indirect call sites of every node that has any."""
        return self._indirect

    def wanted(
        self, node: Fnode, batch: Sequence[Fnode] | None, *, is_exact: bool = False
    ) -> list[tuple[Site, list[Fnode]]]:
        """The call sites to time where the callees of ``node`` are compared, or those in ``batch``
        alone, with the known callees of each; indirect sites may have others besides. ``is_exact``:
        only the call sites of the batch's."""
        found = self.by_site(
            child
            for child in node.children
            if (child.state is not NodeState.REJECTED if batch is None else child in batch)
        )
        if is_exact:
            return found
        known = {site.address for site, _ in found}
        others = {s.address: s for s in self.indirect(node) if s.address not in known}
        return found + [(site, []) for site in others.values()]

    def by_site(self, children: Iterable[Fnode]) -> list[tuple[Site, list[Fnode]]]:
        """These callees of one fnode by the call sites that they are called at."""
        found: dict[int, tuple[Site, list[Fnode]]] = {}
        for child in children:
            site = self.site(child)
            found.setdefault(site.address, (site, []))[1].append(child)
        return list(found.values())

    # ------------------------------------------------------------------- going on

    def take_over(self, before: Callees, root: Fnode) -> None:
        """Takes over the tree below ``root``, and what is told about it, from probes of another
        kind. No node of it is looked into again but by :meth:`fall_back`."""
        self._reports = dict(before.told)
        for node in root.walk():
            site = before.sites.get(node)
            if site is None:
                continue
            self._sites[node] = site
            if is_others(node):
                continue
            if site.target is None and node.root_cause and node.parent is not None:
                targets = self._relearned.setdefault(site.address, [])
                if node.function.address not in targets:
                    targets.append(node.function.address)
                lane = targets.index(node.function.address)
                self._learned[node.parent, site.address, lane] = node

    def fall_back(self, node: Fnode) -> list[Fnode]:
        """Adds those callees of ``node`` that the probes before could not time, as far as these
        can, and returns them. There may be indirect calls besides (see :meth:`indirect`)."""
        found = []
        for site in self._program.function(node.function.address).sites:
            report = self._reports.get((site.address, node.function.name))
            if report is None or not may_fall_back(report):
                continue
            problem = self._rules.problem(site)
            if problem is not None:
                self.fail(node, site, problem)
                continue
            key = site.address, node.function.name
            self._reports[key] = dataclasses.replace(report, state=SiteState.FELL_BACK)
            if site.target is None:
                self._indirect.setdefault(node, []).append(site)
                node.expect_more()
            else:
                callee = self._program.linkage.callee_at(site.target)
                found.append(self._add_child(node, site, callee))
        return found

    # ------------------------------------------------------------------ live code

    def expand(self, node: Fnode) -> None:
        """Fills in what ``node`` calls, from its live code; once, before orders name it. Callees of
        indirect calls join them as they are seen."""
        if is_others(node):
            return
        node.mean(self._program.meaning(node))
        entry = self._code_of(node)
        if entry is None or node.meaning is not None:
            return
        calls: Iterable[CodeSite] | None = self._ahead.get(entry)
        if calls is None:
            if not self._program.function(entry).ranges:
                self._note(f"the code of {node.function.name} cannot be read")
                return
            calls = self._look(entry)
        for seen in calls:
            site, function = seen.site, seen.callee
            problem = self._problem(node, site) or seen.problem
            self._report(node, site, None if function is None else function.name, problem)
            if problem is not None:
                continue
            if function is not None:
                self._add_child(node, site, function)
            else:
                self._indirect.setdefault(node, []).append(site)
                node.expect_more()
        self._expect_interrupts(node)

    def _look(self, entry: int) -> Iterator[CodeSite]:
        """The call sites of the function at ``entry``."""
        for site in self._program.function(entry).sites:
            problem = self._rules.problem(site)
            if site.kind.is_indirect:
                yield CodeSite(site, None, problem)
                continue
            assert site.target is not None
            callee = self._program.linkage.callee_at(site.target)
            why = problem or self._rules.why_notrace(self._program, callee)
            yield CodeSite(site, callee, why)

    def look_ahead(self, function: Function) -> Iterator[None]:
        """While the program runs: reads what ``function`` calls before :meth:`expand` asks, step by
        step.

        Raises:
            NotNowError: it cannot be read while the program runs.
        """
        resolved = self._program.linkage.resolve(function.address)
        if resolved is None or resolved[0] in self._ahead:
            return
        if not self._program.function(resolved[0]).ranges:
            return
        found = []
        for seen in self._look(resolved[0]):
            found.append(seen)
            yield
        self._ahead[resolved[0]] = tuple(found)

    def seen_ahead(self, function: Function) -> Sequence[CodeSite]:
        """What ``function`` calls, as far as it was read ahead."""
        resolved = self._program.linkage.resolve(function.address)
        return () if resolved is None else self._ahead.get(resolved[0], ())

    def is_known(self, function: Function) -> bool:
        """Whether what ``function`` calls was read ahead."""
        resolved = self._program.linkage.resolve(function.address)
        return resolved is not None and resolved[0] in self._ahead

    def forget_ahead(self) -> None:
        """Other places may be possible by now than when code was read ahead."""
        self._ahead.clear()

    def _problem(self, node: Fnode, site: Site) -> str | None:
        most = self._rules.max_tails
        if site.kind.is_tail and _tails_to(node) >= most:
            return f"more than {most} tail calls lead on in one frame"
        return None

    def _expect_interrupts(self, node: Fnode) -> None:
        for site in self._program.interrupts:
            if self._rules.problem(site) is None:
                self._indirect.setdefault(node, []).append(site)
                node.expect_more()

    def _code_of(self, node: Fnode) -> int | None:
        """Where the node's function has its code, through a PLT entry that is bound by now."""
        resolved = self._program.linkage.resolve(node.function.address)
        if resolved is None:
            return None
        address, name = resolved
        if address != node.function.address:
            node.resolve(self._program.names.function_at(address, name or node.function.symbol))
        return address

    def _add_child(self, node: Fnode, site: Site, function: Function) -> Fnode:
        child = node.add_child(function, self._call_site(site))
        self._sites[child] = site
        return child

    def _call_site(self, site: Site) -> CallSite:
        module = self._program.module_at(site.address)
        name, bias = (module.name, module.bias) if module is not None else ("", 0)
        return CallSite(site.address, site.kind, name, site.address - bias)

    # ------------------------------------------------------------ learned targets

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
        """The fnode of an indirect site's target, of probes that tell all of them apart; it is
        added where it never had any."""
        child = self._by_target.get((node, site.address, target))
        if child is None:
            child = self._add_child(node, site, self._program.linkage.callee_at(target))
            self._by_target[node, site.address, target] = child
        return child

    def others(self, node: Fnode, site: Site) -> Fnode:
        """The fnode of all targets of an indirect site that have no lane. A path may end there."""
        key = node, site.address
        if key not in self._others:
            at = self._call_site(site)
            where = f"{node.function.name}{at.offset - node.function.offset:+#x}"
            name = f"other targets of {where}"
            why = f"in one of more targets of the call at {where} than could be told apart"
            if at.kind is CallKind.INTERRUPT:
                name, why = "other interrupts", "in one of more interrupts than could be told apart"
            child = self._add_child(
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
                self.fail(node, site, f"it calls {callee.name}: {why}")
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

    def call_sites(self, node: Fnode) -> list[CallSite]:
        """The indirect call sites of ``node``, by address (see :class:`darc.saved.refit.Live`)."""
        sites = {site.address: site for site in self.indirect(node)}
        return [self._call_site(site) for _, site in sorted(sites.items())]

    def relearn(
        self,
        identities: Mapping[str, str],
        node: Fnode,
        place: CallSite,
        callee: Function,
    ) -> Fnode | None:
        """Adds the fnode of a stored callee of an indirect site, which the agent is to be told of
        when the site is prepared; ``None`` where there is no such function now or no lane left.

        ``identities`` are those of the files that the callee was stored with, by name.
        """
        site = next(s for s in self._indirect[node] if s.address == place.address)
        if callee.symbol == OTHERS:
            return self.others(node, site)
        address = refit.locate(callee, self._program.modules, identities)
        targets = self._relearned.setdefault(place.address, [])
        full = len(targets) >= self._rules.max_targets
        if address is None or (address not in targets and full):
            return None
        if address not in targets:
            targets.append(address)
        child = node.add_child(self._program.names.function_at(address, callee.symbol), place)
        self._sites[child] = site
        self._by_target[node, site.address, address] = child
        self._learned[node, site.address, targets.index(address)] = child
        return child

    def take_relearned(self, site: Site) -> Sequence[int]:
        """The targets that the agent is to be told of at ``site``; each is given once."""
        return self._relearned.pop(site.address, ())

    def positions(self) -> dict[Fnode, tuple[int, int]]:
        """Of each learned fnode, which of its parent's indirect call sites leads to it, counted
        by address from 0, and how many there are."""
        found = {}
        for node, own in self._indirect.items():
            sites = sorted({site.address for site in own})
            for child in node.children:
                address = self._sites[child].address
                if address in sites:
                    found[child] = (sites.index(address), len(sites))
        return found

    # -------------------------------------------------------------------- reports

    def _report(self, node: Fnode, site: Site, callee: str | None, problem: str | None) -> None:
        state = SiteState.TIMED if problem is None else SiteState.NOT_POSSIBLE
        name, offset = node.function.name, self._call_site(site).offset
        self._reports[site.address, name] = SiteReport(
            function=name,
            offset=offset,
            callee=callee,
            state=state,
            why=problem,
            address=site.address,
        )

    def fail(self, node: Fnode, site: Site, why: str) -> None:
        """A site that was to be timed cannot be."""
        key = (site.address, node.function.name)
        if key not in self._reports:  # an interrupt's
            self._report(node, site, self._program.names.function_at(site.address).name, why)
        before = self._reports[key]
        if before.why is not None and before.state is SiteState.FELL_BACK:
            why = f"{before.why}; {why}"
        self._reports[key] = dataclasses.replace(before, state=SiteState.NOT_POSSIBLE, why=why)

    def reports(self, used: Iterable[int]) -> tuple[SiteReport, ...]:
        """The sites at the addresses ``used``, which were timed, and those that could not be."""
        used = frozenset(used)
        return tuple(
            report
            for (address, _), report in self._reports.items()
            if report.state is not SiteState.TIMED or address in used
        )

    def missed(self, function: Function) -> list[SiteReport]:
        """The calls of ``function`` that could not be timed and may last."""
        return [
            report
            for report in self._reports.values()
            if report.function == function.name and _may_last(report)
        ]


def may_fall_back(report: SiteReport) -> bool:
    """Whether a breakpoint may time it in place of a pad, as far as its callee tells."""
    return _may_last(report) and report.callee not in VFORK


def _may_last(report: SiteReport) -> bool:
    """Whether it is of a call that could not be timed, and may take its time."""
    if report.state is not SiteState.NOT_POSSIBLE or report.callee in RETURNS_TWICE:
        return False
    return not never_returns(report.callee)  # only calls that have returned are measured


def _tails_to(node: Fnode) -> int:
    """How many tail calls handed the frame of ``node`` on."""
    count = 0
    while node.site is not None and node.site.kind.is_tail and node.parent is not None:
        count, node = count + 1, node.parent
    return count
