"""What spoils figures, told beside them: stops that are the user's, or the debugger's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from darc.code.program import Program
from darc.model.errors import TargetError
from darc.model.ftree import Cause, Fnode, RootCausePath
from darc.target.target import Target


def users_breakpoints(
    paths: Iterable[RootCausePath], program: Program, target: Target
) -> list[str]:
    """The user's breakpoints in functions on ``paths``, or in any that was called where these end
    in the debugger's stops. What the debugger takes for conditions, hits that it counts and the
    like is told to nobody: it counts as the time of the call that it comes in."""
    nodes = {node.function.address: node for path in paths for node in _concerned(path)}
    if not nodes or target.pid is None:
        return []
    try:
        places = target.user_breaks.addresses()
        hit = {program.names.function_at(place).address for place in places}
    except TargetError:
        return []
    return [
        f"a breakpoint of yours stands in {node.function.name}: what the debugger takes at "
        "each hit counts as its time; disable it, and begin anew"
        for address, node in nodes.items()
        if address in hit
    ]


def _concerned(path: RootCausePath) -> Iterable[Fnode]:
    if path.ending.cause is not Cause.STOPPED:
        return path.nodes
    return (*path.nodes, *(node for node in path.nodes[-1].walk() if node.called.ops))


_OF_WEIGHT = 20
"""Stops that could be one in so many of the calls in a peak could make one."""


def stopped_for_files(count: int, *, in_peak: int, spec: str) -> list[str]:
    """That the debugger has stopped the program ``count`` times for files that it loaded, where
    these stops may have to do with the ``in_peak`` calls that the search rests on. They are the
    debugger's own, and how long they last it does not tell."""
    if not in_peak or count * _OF_WEIGHT < in_peak:
        return []
    many = f"{count} times" if count > 1 else "once"
    return [
        f"the program loaded or unloaded files {many} meanwhile: the debugger stops it there, and "
        f"calls of {spec} that are under way take as much longer"
    ]


def cut_short(count: int, lacks: Callable[[int], str]) -> list[str]:
    """That stops for the user have kept ``count`` calls from being measured, and what the analysis
    ``lacks`` by that."""
    if not count:
        return []
    many = f"{count} calls were" if count > 1 else "1 call was"
    return [f"{many} not measured: the program stopped for you in the middle{lacks(count)}"]
