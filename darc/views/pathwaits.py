"""Under which root cause path a wait is told: that in which calls waited; else by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from darc.model.ftree import Cause, RootCausePath
from darc.model.libraries import is_c_library
from darc.model.ops import ObjectKind
from darc.model.waits import WaitedFor
from darc.views.waitsview import waited_text


def path_of_wait(one: WaitedFor, paths: Sequence[RootCausePath]) -> RootCausePath | None:
    """The one of ``paths`` in which calls waited for this, by the functions that they were in;
    ``None``: in none of them, or in several functions."""
    if one.kind is ObjectKind.PROCESSOR:
        found = [path for path in paths if path.ending.cause is Cause.PREEMPTION]
    else:
        found = [path for path in paths if one.path and _is_in(one.path, path)]

    def alike(path: RootCausePath) -> int:
        return sum(node.function.name in one.path for node in path.nodes)

    return max(found, key=alike, default=None)


def _is_in(where: Sequence[str], path: RootCausePath) -> bool:
    """Whether a wait in these functions, innermost first, is in what a path ends in. The C
    library's functions, which wait, are not among the first ones, and inlined ones, which are, are
    no fnodes."""
    own = [node for node in path.nodes if not is_c_library(node.function.module)]
    last = own[-1] if own else path.nodes[0]
    name = last.function.name
    if name not in where and last.parent is not None:  # f0 may have handed its frame on
        return False
    below = where[: where.index(name)] if name in where else where
    others = {child.function.name for child in last.children if child not in path.nodes}
    return (others - {path.ending.loop_callee}).isdisjoint(below)


def apart_text(
    one: WaitedFor, cycles: int, paths: Sequence[RootCausePath], show: Callable[[str], str]
) -> str:
    """What was waited for where no path of ``paths`` tells of that, with whose it is."""
    if one.kind is ObjectKind.PROCESSOR:
        whose = "these calls " if len(paths) > 1 else ""
        return f"{whose}{waited_text(one, cycles, show)}"
    if not one.path:
        whose = "in several functions: " if len(paths) > 1 else ""
        return f"{whose}{waited_text(one, cycles, show)}"
    whose = "elsewhere: " if paths else ""
    return f"{whose}{waited_text(one, cycles, show, has_place=bool(paths))}"
