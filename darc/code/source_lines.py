"""Where the fnodes stand in the source, as the debugger tells."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from darc.code.program import Program
from darc.model.ftree import CallSite, Fnode, Function, NodeState
from darc.target.target import Target


class SourceLines:
    """The source lines of a program's functions and call sites, each asked for once.

    They are looked up when they are shown: debuggers read debug information slowly, a whole file's
    for one line, and a stop is to be short. Where the debugger has not read the file that the
    program has there it is not asked.
    """

    def __init__(self, target: Target, program: Program) -> None:
        self._target = target
        self._program = program
        self._lines: dict[int, tuple[str, int]] = {}
        """By address,"""
        self._inlined: dict[int, tuple[str, ...]] = {}
        """and what is inlined there, of call sites."""

    def add(self, nodes: Iterable[Fnode]) -> None:
        """Fills in those of ``nodes``, copies that are about to be shown, where they have none."""
        for node in nodes:
            if node.state is NodeState.REJECTED and not node.maxcount:
                continue
            site = None if node.site is None else self._of_site(node.site)
            node.locate(self._of_function(node.function), site)

    def _of_function(self, function: Function) -> Function:
        if function.file is not None:
            return function
        found = self._line(function.address)
        if found is None:
            return function
        return dataclasses.replace(function, file=found[0], line=found[1])

    def _of_site(self, site: CallSite) -> CallSite:
        if site.file is not None:
            return site
        at = site.address
        found = self._line(at)
        if found is None:
            return site
        if at not in self._inlined:
            self._inlined[at] = self._target.symbols.inlined_at(at)
        file, line = found
        return dataclasses.replace(site, file=file, line=line, inlined=self._inlined[at])

    def _line(self, address: int) -> tuple[str, int] | None:
        """That of an address; ``None``: nobody knows, as yet."""
        if address not in self._lines and self._program.knows(address):
            found = self._target.symbols.line_at(address)
            if found is not None:
                self._lines[address] = found
        return self._lines.get(address)
