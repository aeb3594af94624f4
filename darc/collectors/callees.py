"""What an fnode calls: its call sites in live code, and the functions that they lead to.

Direct sites tell their callee; indirect ones have callees that are *learned* while the program
runs (:mod:`darc.collectors.learnedtargets`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from darc.code.architecture import Site
from darc.code.program import Program
from darc.collectors.codesites import CodeSites, place_of
from darc.collectors.learnedtargets import LearnedTargets, is_others
from darc.collectors.sitereports import SiteReports
from darc.model.ftree import CallSite, Fnode, Function, NodeState


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


class Callees:
    """The call sites of every fnode that was looked into; what is ``told`` about each, and which
    ``targets`` the indirect ones have. ``code`` reads them.

    ``note`` takes what the user should know.
    """

    def __init__(self, program: Program, rules: SiteRules, note: Callable[[str], None]) -> None:
        self._program = program
        self._rules = rules
        self._note = note
        self._sites: dict[Fnode, Site] = {}
        self._indirect: dict[Fnode, list[Site]] = {}
        self.told = SiteReports(program)
        self.targets = LearnedTargets(program, rules, self.told, self._add_child)
        self.code = CodeSites(program, rules.problem, rules.why_notrace)

    @property
    def sites(self) -> Mapping[Fnode, Site]:
        """Where each node is called by its parent."""
        return self._sites

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
        self.told.take_over(before.told)
        for node in root.walk():
            site = before.sites.get(node)
            if site is None:
                continue
            self._sites[node] = site
            if is_others(node):
                continue
            if site.target is None and node.root_cause and node.parent is not None:
                self.targets.take_over(node, site)

    def fall_back(self, node: Fnode) -> list[Fnode]:
        """Adds those callees of ``node`` that the probes before could not time, as far as these
        can, and returns them. There may be indirect calls besides (see :meth:`indirect`)."""
        found = []
        for site in self._program.function(node.function.address).sites:
            if not self.told.may_fall_back(node, site):
                continue
            problem = self._rules.problem(site)
            if problem is not None:
                self.told.fail(node, site, problem)
                continue
            self.told.fell_back(node, site)
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
        calls = self.code.of(entry)
        if calls is None:
            self._note(f"the code of {node.function.name} cannot be read")
            return
        for seen in calls:
            site, function = seen.site, seen.callee
            problem = self._problem(node, site) or seen.problem
            self.told.add(node, site, None if function is None else function.name, problem)
            if problem is not None:
                continue
            if function is not None:
                self._add_child(node, site, function)
            else:
                self._indirect.setdefault(node, []).append(site)
                node.expect_more()
        self._expect_interrupts(node)

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
        child = node.add_child(function, place_of(self._program, site))
        self._sites[child] = site
        return child

    def called(self, node: Fnode, site: Site, target: int) -> Fnode:
        """The fnode of an indirect site's target, of probes that tell all of them apart; it is
        added where it never had any."""
        return self.targets.called(node, site, target)

    # ------------------------------------------------------------------- resuming

    def call_sites(self, node: Fnode) -> list[CallSite]:
        """The indirect call sites of ``node``, by address (see :class:`darc.saved.refit.Live`)."""
        sites = {site.address: site for site in self.indirect(node)}
        return [place_of(self._program, site) for _, site in sorted(sites.items())]

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
        return self.targets.relearn(identities, node, site, callee)

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


def _tails_to(node: Fnode) -> int:
    """How many tail calls handed the frame of ``node`` on."""
    count = 0
    while node.site is not None and node.site.kind.is_tail and node.parent is not None:
        count, node = count + 1, node.parent
    return count
