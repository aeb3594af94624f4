"""What is told about call sites: which were timed, and why others could not be."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from darc.code.architecture import Site
from darc.code.notrace import RETURNS_TWICE, VFORK, never_returns
from darc.code.program import Program
from darc.collectors.codesites import place_of
from darc.model.ftree import Fnode, Function
from darc.model.snapshot import SiteReport, SiteState


class SiteReports:
    """Of the call sites of ``program`` that were looked at, by their functions."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._reports: dict[tuple[int, str], SiteReport] = {}

    def take_over(self, before: SiteReports) -> None:
        """What is told of probes of another kind is told on."""
        self._reports = dict(before.all)

    @property
    def all(self) -> Mapping[tuple[int, str], SiteReport]:
        """By the call site's address and the name of its function."""
        return self._reports

    def add(self, node: Fnode, site: Site, callee: str | None, problem: str | None) -> None:
        """A call site of ``node`` was found, which can be timed but for a ``problem``."""
        state = SiteState.TIMED if problem is None else SiteState.NOT_POSSIBLE
        name, offset = node.function.name, place_of(self._program, site).offset
        self._reports[site.address, name] = SiteReport(
            function=name,
            offset=offset,
            callee=callee,
            state=state,
            why=problem,
            address=site.address,
        )

    def may_fall_back(self, node: Fnode, site: Site) -> bool:
        """Whether the probes before could not time it, and others may."""
        report = self._reports.get((site.address, node.function.name))
        return report is not None and may_fall_back(report)

    def fell_back(self, node: Fnode, site: Site) -> None:
        """Probes of another kind than the first time it."""
        key = site.address, node.function.name
        self._reports[key] = dataclasses.replace(self._reports[key], state=SiteState.FELL_BACK)

    def fail(self, node: Fnode, site: Site, why: str) -> None:
        """A site that was to be timed cannot be."""
        key = (site.address, node.function.name)
        if key not in self._reports:  # an interrupt's
            self.add(node, site, self._program.names.function_at(site.address).name, why)
        before = self._reports[key]
        if before.why is not None and before.state is SiteState.FELL_BACK:
            why = f"{before.why}; {why}"
        self._reports[key] = dataclasses.replace(before, state=SiteState.NOT_POSSIBLE, why=why)

    def of_used(self, addresses: Iterable[int]) -> tuple[SiteReport, ...]:
        """The sites at these addresses, which were timed, and those that could not be."""
        used = frozenset(addresses)
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
