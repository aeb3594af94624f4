"""Calling contexts: the most costly paths as a heat map of paths by functions (IntroPerf figure 7).

A row for each path, a column for each function on it, the outer ones on the left: how much it took
itself, on a logarithmic scale, and how many calls it is away from the path's hottest function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from rich.text import Text

from darc.model.contexts import Context, Coverage, RankedPath, coverage
from darc.model.enumerated import first_few
from darc.model.inference import Trace
from darc.model.profile import format_cycles
from darc.saved.contexts import (
    FORMAT,
    SLOWEST,
    VERSION,
    coverage_to_json,
    nodes_to_json,
)
from darc.views.style import Style, write
from darc.views.words import Shown, counted, threads_text, way

_HEAT = "█▓▒░"
_COLOURS = ("bold red", "red", "yellow", "dim")
_NOTHING = "·"
_LEAST_CELLS = 4
_NEW = 0.1
"""Of a path's time: so much is to be in contexts that no path before it has."""

_BEFORE, _AFTER = 3, 2
"""Functions around the hottest one that are named in any case."""


@dataclass(frozen=True)
class RankedContexts:
    """What is known, and what ranks it."""

    tree: Context
    paths: tuple[RankedPath, ...]
    """All of them, the most costly one first."""
    top: int
    """So many are shown."""
    base: str | None = None
    """The file that they are held against."""
    trace: Trace | None = None
    """What stacks were read, if any."""
    sources: tuple[str, ...] = field(default=())
    """Files whose trees were merged in."""


def table(known: RankedContexts, style: Style) -> Shown:
    """The heat map, and the functions of each path below it."""
    return write(_lines(known, style), style)


def to_json(known: RankedContexts) -> dict[str, Any]:
    """All contexts, and the paths that are shown: numbers are those of ``nodes``, parts in ns."""
    nodes, numbers = nodes_to_json(known.tree)
    trace = known.trace
    both = any(node.measured is not None for node in known.tree.walk()) and trace is not None
    return {
        "format": FORMAT,
        "version": VERSION,
        "base": known.base,
        "sources": list(known.sources),
        "trace": None
        if trace is None
        else {
            "events": trace.events,
            "threads": trace.threads,
            "seconds": trace.seconds,
            "cut": trace.cut,
            "bare": trace.bare,
            "lost": trace.lost,
        },
        "coverage": coverage_to_json(known.tree) if both else None,
        "paths": [
            {
                "ns": path.ns,
                "new": path.is_new,
                "hottest": path.hottest,
                "functions": [node.function.name for node in path.nodes],
                "nodes": [numbers[node] for node in path.nodes],
                "parts": list(path.parts),
            }
            for path in known.paths[: known.top]
        ],
        "nodes": nodes,
    }


def _lines(known: RankedContexts, style: Style) -> Iterator[Text]:
    count = sum(1 for _ in known.tree.walk())
    against = "" if known.base is None else f" against {style.name(known.base)}"
    many = "path" if len(known.paths) == 1 else "paths"
    yield Text(f"darc: {count} contexts on {len(known.paths)} {many}{against}", "bold")
    yield from _origins(known, style)
    shown, repeated = known.paths[: known.top], 0
    if not style.verbose:
        shown, repeated = _distinct(known.paths, known.top)
    if known.base is not None:
        shown = tuple(path for path in shown if path.ns > 0)
    if not shown:
        yield Text("nothing takes longer than there")
        return
    yield from _map(shown, style)
    for number, path in enumerate(shown, 1):
        yield _names(number, path, style)
    if repeated:
        ends = "1 path ends" if repeated == 1 else f"{repeated} paths end"
        yield Text(f"{ends} elsewhere below these, and have little else", "dim")
    more = len(known.paths) - len(shown) - repeated
    if more > 0:
        yield Text(f"{more} more: '--top {len(known.paths)}'", "dim")


def _distinct(paths: Sequence[RankedPath], top: int) -> tuple[tuple[RankedPath, ...], int]:
    """The first ``top`` of those that tell of something new; and how many before these are the same
    but for what takes a small part of their time: a function that calls many others, none of which
    matters, is on the path to each of them."""
    shown: list[RankedPath] = []
    known: set[Context] = set()
    repeated = 0
    for path in paths:
        if len(shown) == top:
            break
        pairs = zip(path.nodes, path.parts, strict=True)
        new = sum(abs(part) for node, part in pairs if node not in known)
        if shown and new < _NEW * abs(path.ns):
            repeated += 1
            continue
        shown.append(path)
        known.update(path.nodes)
    return tuple(shown), repeated


def _origins(known: RankedContexts, style: Style) -> Iterator[Text]:
    """Where what is shown is from, and what is missing."""
    f0 = [node for node in known.tree.walk() if node.measured is not None and _begins(node)]
    if f0:
        names = first_few([style.name(node.function.name) for node in f0], 4)
        yield Text(f"  measured: the calls of {names}, those of the peak")
    trace = known.trace
    if trace is None:
        return
    parts = [
        f"{counted(trace.events, 'event')} of {threads_text(trace.threads)} in {trace.seconds:.3g}s"
    ]
    if trace.lost:
        parts.append(f"{counted(trace.lost, 'event')} lost")
    if trace.cut:
        parts.append(f"{counted(trace.cut, 'stack')} cut, and left out")
    if trace.bare:
        parts.append(f"{counted(trace.bare, 'event')} without a stack")
    yield Text(f"  inferred: by {'; '.join(parts)}")
    if f0:
        every, slow = coverage(known.tree), coverage(known.tree, SLOWEST)
        yield Text(
            f"  of the measured contexts stacks have shown {_share(every)}; of the slowest "
            f"{SLOWEST:.0%} {_share(slow)}"
        )


def _begins(node: Context) -> bool:
    return node.parent is None or node.parent.measured is None


def _share(one: Coverage) -> str:
    return f"{one.share:.0%} ({one.seen} of {one.contexts})"


def _time(ns: float) -> str:
    sign = "-" if ns < 0 else ""
    return sign + format_cycles(abs(ns), 10**9)


def _map(paths: Sequence[RankedPath], style: Style) -> Iterator[Text]:
    hottest = max(max(path.parts) for path in paths)
    shared = _shared(paths)
    costs = [_time(path.ns) for path in paths]
    size, digits = max(map(len, costs)), len(str(len(paths)))
    room = max((style.tree_width - digits - size - 4) // 2, _LEAST_CELLS)
    steps = [hottest / 10, hottest / 100, hottest / 1000]
    legend = "  ".join(f"{mark} {_time(low)}" for mark, low in zip(_HEAT[:-1], steps, strict=True))
    yield Text(f"own time: {legend} and more  {_HEAT[-1]} less; 0: the path's hottest", "dim")
    if shared:
        names = way([style.name(node.function.name) for node in paths[0].nodes[:shared]])
        yield Text(f"all of these begin with {names} →", "dim")
    for number, (path, cost) in enumerate(zip(paths, costs, strict=True), 1):
        line = Text(f"{number:{digits}} {cost.rjust(size)}  ")
        line.append_text(_cells(path, shared, room, steps))
        yield line


def _shared(paths: Sequence[RankedPath]) -> int:
    """How many of the outermost functions are the same on all paths, and nothing to look at."""
    if len(paths) < 2:
        return 0
    levels = zip(*(path.nodes for path in paths), strict=False)
    same = sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, levels))
    return min(same, *(path.hottest for path in paths))


def _cells(path: RankedPath, shared: int, room: int, steps: Sequence[float]) -> Text:
    made = Text()
    first = shared
    if path.hottest - first >= room:
        first = path.hottest - room + 1
    for index in range(first, min(len(path.parts), first + room)):
        part, distance = path.parts[index], abs(index - path.hottest)
        level = sum(part < step for step in steps)
        mark, colour = (_HEAT[level], _COLOURS[level]) if part > 0 else (_NOTHING, "dim")
        made.append(mark, colour)
        made.append(str(distance) if distance < 10 else mark, "bold" if not distance else colour)
    return made


def _names(number: int, path: RankedPath, style: Style) -> Text:
    """The path's functions: those around the hottest, and the last."""
    hottest = path.hottest
    node, part = path.nodes[hottest], path.parts[hottest]
    whole = style.verbose or style.whole_names
    names: list[tuple[int, str]] = []
    for index, one in enumerate(path.nodes):
        near = hottest - _BEFORE <= index <= hottest + _AFTER
        if whole or near or index == len(path.nodes) - 1:
            names.append((index, style.name(one.function.name)))
        elif not names or names[-1][1] != "…":
            names.append((index, "…"))
    text = " → ".join(f"[{name}]" if index == hottest else name for index, name in names)
    origin = node.origin
    calls = node.cost.calls
    of = f" in {style.name(node.function.module)}" if node.function.module else ""
    new = "new; " if path.is_new else ""
    each = f"{_time(node.cost.mean_ns)} each of {calls:.{0 if calls >= 9.95 else 1}f}"
    # Whether its callees were timed, and took nothing, is not known of one that has none here.
    is_whole = node.measured is not None and not node.children
    itself = "in it and its callees" if is_whole else "itself"
    told = f"{_time(part)} {itself}{of}, {each}, {origin.value if origin else 'unknown'}"
    return Text(f"{number:3}  {text}: {new}{told}")
