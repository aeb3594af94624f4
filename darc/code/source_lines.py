"""Where the fnodes stand in the source, as the debugger tells."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from darc.code.program import Program
from darc.model.ftree import Fnode, NodeState
from darc.target.target import Target


def add_lines(target: Target, program: Program, nodes: Iterable[Fnode]) -> None:
    """Fills in the source lines of the functions and call sites of ``nodes``, which are about to be
    shown, where they have none yet, and the debugger has read the file that ``program`` has there.

    They are looked up when they are shown: debuggers read debug information slowly, a whole file's
    for one line, and a stop is to be short.
    """
    for node in nodes:
        if node.state is NodeState.REJECTED and not node.maxcount:
            continue
        if node.function.file is None and program.knows(node.function.address):
            found = target.symbols.line_at(node.function.address)
            if found is not None:
                node.function = dataclasses.replace(node.function, file=found[0], line=found[1])
        site = node.site
        if site is not None and site.file is None and program.knows(site.address):
            found = target.symbols.line_at(site.address)
            if found is not None:
                node.site = dataclasses.replace(
                    site,
                    file=found[0],
                    line=found[1],
                    inlined=target.symbols.inlined_at(site.address),
                )
