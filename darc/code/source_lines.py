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
        self._functions: dict[int, tuple[str, int]] = {}
        self._sites: dict[int, tuple[tuple[str, int], tuple[str, ...]]] = {}

    def add(self, nodes: Iterable[Fnode]) -> None:
        """Fills in those of ``nodes``, copies that are about to be shown, where they have none."""
        for node in nodes:
            if node.state is NodeState.REJECTED and not node.maxcount:
                continue
            node.function = self._of_function(node.function)
            if node.site is not None:
                node.site = self._of_site(node.site)

    def _of_function(self, function: Function) -> Function:
        if function.file is not None:
            return function
        at = function.address
        if at not in self._functions:
            found = self._target.symbols.line_at(at) if self._program.knows(at) else None
            if found is None:
                return function
            self._functions[at] = found
        file, line = self._functions[at]
        return dataclasses.replace(function, file=file, line=line)

    def _of_site(self, site: CallSite) -> CallSite:
        if site.file is not None:
            return site
        at = site.address
        if at not in self._sites:
            found = self._target.symbols.line_at(at) if self._program.knows(at) else None
            if found is None:
                return site
            self._sites[at] = found, self._target.symbols.inlined_at(at)
        (file, line), inlined = self._sites[at]
        return dataclasses.replace(site, file=file, line=line, inlined=inlined)
