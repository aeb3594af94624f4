"""The ftree as lines of text, with its maxcounts, states and source lines."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from rich.text import Text

from darc.model.addresses import is_kernels
from darc.model.ftree import (
    CallSite,
    Cause,
    Cut,
    Decision,
    Ending,
    Fnode,
    Function,
    NodeState,
    RootCausePath,
    Totals,
    Unclear,
)
from darc.search.loops import LEAST_REPEATS, repeats, weight
from darc.views.words import MOST_ON_WAY, columns, message, name, shorten, way

_FAR = 1 << 20
"""A call so many bytes behind its function's entry is in a part of it that stands elsewhere."""

_LEAST_NAME = 20
"""Columns for which details make room; a name has some of these at least, and a mark."""

_LEAST_HIDDEN = 4
"""Calls of functions that stand further up: so many, one in another, and more are a line."""

SHOWN_REJECTED = 3
"""Callees without a part in the result that are listed at a node, the best ones."""


@dataclass(frozen=True)
class _Mark:
    """How a node's state is shown: by a sign before its number, and by the style of its name."""

    sign: str
    style: str
    name_style: str = ""


_MARKS = {
    NodeState.CANDIDATE: _Mark("·", "dim", "dim"),
    NodeState.ANALYSIS: _Mark("○", "yellow"),
    NodeState.ROOT_CAUSE: _Mark("●", "bold red", "bold"),
    NodeState.REJECTED: _Mark("×", "dim", "dim"),
}


Show = Callable[[str], str]
"""Makes a name fit to be shown, as :func:`darc.views.words.name` does."""


def draw_tree(
    root: Fnode,
    width: int,
    verbose: bool,
    *,
    latency: Callable[[float], str],
    show: Show = name,
) -> Iterator[Text]:
    """The lines of the tree, at most ``width`` wide unless ``verbose``.

    ``latency`` formats cycles.
    """
    stack: list[tuple[Fnode | str, str, str]] = [(root, "", "")]

    def guided(guides: str, text: str, style: str) -> Text:
        guides = guides if verbose else _last_of(guides, _room_for_guides(width))
        line = Text(guides + text, style)
        if not verbose:
            line.truncate(width, overflow="ellipsis")
        return line

    while stack:
        item, first, rest = stack.pop()
        if isinstance(item, str):
            yield guided(first, item, "dim")
            continue
        yield _line(item, first=first, width=width, verbose=verbose, latency=latency, show=show)
        bar = "│ " if item.children else "  "
        if item.end is not None:
            yield guided(
                f"{rest}{bar}  ", ending_text(item.function.name, item.end, show), "italic"
            )
        elif item.decision is not None and not item.decision.is_conclusive:
            yield guided(f"{rest}{bar}  ", inconclusive_text(item.decision), "italic")
        below = _below(item, verbose)
        for index, child in reversed(list(enumerate(below))):
            is_last = index == len(below) - 1
            branch, guide = ("└─", "  ") if is_last else ("├─", "│ ")
            hidden = [] if verbose or isinstance(child, str) else _recursion(child)
            if hidden:
                child = next(one for one in hidden[-1].children if not _is_plain(one))
                stack.append((child, rest + guide + "└─", rest + guide + "  "))
                child = f"… ×{len(hidden)}: {_of_recursion(hidden, show)}, one in another"
            stack.append((child, rest + branch, rest + guide))


def _recursion(node: Fnode) -> list[Fnode]:
    """From ``node`` down those that have no line, as their functions are under way further up, and
    call each other. None where they are few."""
    above = {one.function for one in node.route()[:-1]}
    found: list[Fnode] = []
    while node.function in above and node.end is None:
        further = [child for child in node.children if not _is_plain(child)]
        if len(further) != 1 or further[0].function not in above:
            break
        found.append(node)
        node = further[0]
    return found if len(found) >= _LEAST_HIDDEN else []


def _of_recursion(nodes: Sequence[Fnode], show: Show) -> str:
    """The functions of these."""
    return ", ".join(map(show, dict.fromkeys(node.function.name for node in nodes)))


def drawn_nodes(root: Fnode, verbose: bool) -> Iterator[Fnode]:
    """The nodes that :func:`draw_tree` has a line for."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += [below for below in _below(node, verbose) if isinstance(below, Fnode)]


def decided(root: Fnode | None) -> list[Fnode]:
    """Down from f0 the callees that have won, by most votes, of a search that has found no end."""
    found: list[Fnode] = []
    while root is not None:
        found.append(root)
        winners = [child for child in root.children if child.root_cause]
        root = max(winners, key=lambda child: child.maxcount, default=None)
    return found


def ending_text(function: str, ending: Ending, show: Show = name) -> str:
    """Why a root cause path ends at the function called ``function``."""
    name = show(function)
    if ending.cut in (Cut.EARLY, Cut.DIVIDES):
        return f"in {name} or what it calls: {message(ending.remark or '')}"
    if ending.cut is Cut.DEPTH:
        text = f"{ending.cut.text} at {name}: a larger --max-depth goes on from there"
        return f"{text} ({message(ending.note)})" if ending.note else text
    if ending.cause is Cause.UNTOLD:
        return f"cause: {message(ending.note or 'in targets that could not be told apart')}"
    if ending.cause is Cause.LOOP and ending.loop_callee is not None:
        share = (
            f", {ending.loop_share:.0%} of its time".replace("%", " %")
            if ending.loop_share is not None
            else ""
        )
        callee = show(ending.loop_callee)
        if ending.loop_calls is None:
            text = f"loop: calls {callee}{share}"
        elif f"{ending.loop_calls:.1f}" == "1.0":
            text = f"cause: its one call of {callee}{share}"
        else:
            text = f"loop: calls {callee} {times(ending.loop_calls)}{share}"
    else:
        is_untold = Unclear.HOW_SPENT in ending.unclear
        text = {
            Cause.FUNCTION: f"cause: {name} {'running or waiting' if is_untold else 'itself'}",
            Cause.LOOP: f"loop: short calls in {name}",
            Cause.BLOCK: f"cause: a basic block of {name}",
            Cause.INTERRUPT: f"cause: interrupted by {name}",
            Cause.PREEMPTION: f"cause: preempted in {name}",
            Cause.STOPPED: f"cause: the debugger's stops in {name}, nothing of the program's",
            Cause.BLOCKED: f"cause: blocked in {name}",
        }[ending.cause]
    return f"{text} ({message(ending.note)})" if ending.note else text


def inconclusive_text(decision: Decision) -> str:
    """Why a path ends where nothing could be decided."""
    if decision.ops < decision.needed:
        return f"not conclusive, {decision.ops} of {decision.needed}"
    return f"not conclusive: no votes in {decision.ops}"


def votes_text(node: Fnode) -> str:
    """``20 of 20``: the maxcount of a callee, and in how many calls it was compared."""
    return f"{node.maxcount} of {node.compared_in}"


def _repetition(node: Fnode) -> str:
    """``×20,000``: how often a callee is called in one call of f0 where these calls count together;
    where they did so above already, how often its caller calls it. ``one of 20,000 calls`` where a
    single one is half of them all."""
    totals = node.called
    if not totals.ops or totals.calls < LEAST_REPEATS * totals.ops:
        return ""
    if not repeats(totals):
        return f"one of {totals.calls / totals.ops:,.0f} calls"
    caller = node.parent.totals if node.parent is not None else Totals()
    calls = caller.calls if repeats(caller) else totals.ops
    each = totals.calls / calls
    return f"×{each:,.0f}" if each >= LEAST_REPEATS else ""


def _own_votes(node: Fnode) -> str:
    """``itself 0 of 20``: the same of a node's own time."""
    if (decided := node.decision) is not None:
        return f"itself {decided.own} of {decided.ops}"
    if node.state is NodeState.ANALYSIS and node.totals.ops:
        return f"itself {node.self_maxcount} of {node.totals.ops}"
    return ""


def times(mean: float) -> str:
    """``2 times``, ``1.3 times on average``, ``400 times``: how often something happens."""
    if mean < 9.5 and not f"{mean:.1f}".endswith(".0"):
        return f"{mean:.1f} times on average"
    return "once" if round(mean) == 1 else f"{mean:.0f} times"


def place(site: CallSite, caller: Function, show: Show = name) -> str:
    """The source line of a call site, or its offset in the module where there is none; in a kernel
    that in its function, as the kernel itself writes it (``%pS``)."""
    if site.file is None:
        inside = site.address - caller.address
        if is_kernels(caller.address):  # which may have moved: no offset in its file
            is_near = 0 <= inside < _FAR
            return f"{show(caller.name)}+{inside:#x}" if is_near else f"{site.address:#x}"
        return f"{show(PurePath(site.module).name)}+{site.offset:#x}"
    line = f":{site.line}" if site.line is not None else ""
    return f"{show(PurePath(site.file).name)}{line}"


def inlined(site: CallSite | None, callee: str, show: Show = name) -> str:
    """``(inlined a, b)`` for a call that stands in inlined functions, or nothing.

    A compiler that inlines a function in parts repeats its name, and may call the rest of it by
    the same name: it is shown once.
    """
    names = [name for name, _ in itertools.groupby(site.inlined if site is not None else ())]
    if names and names[-1] == callee:
        names.pop()
    return f"(inlined {', '.join(map(show, names))})" if names else ""


def _line(
    node: Fnode,
    *,
    first: str,
    width: int,
    verbose: bool,
    latency: Callable[[float], str],
    show: Show,
) -> Text:
    state = NodeState.ROOT_CAUSE if node.root_cause else node.state
    mark = _MARKS[state]
    totals = node.totals if node.site is None else node.called
    mean = latency(weight(totals) / totals.ops) if totals.ops else ""
    is_called = node.site is not None and node.parent is not None
    details = [
        (votes_text(node) if is_called else "", 0),
        (mean, 0),
        (_repetition(node) if is_called else "", 1),
        (_place_of(node, show), 3),
        (inlined(node.site, node.function.name, show) if is_called else "", 4),
        (_own_votes(node), 5),
        ("in analysis" if node.state is NodeState.ANALYSIS else "", 2),
    ]
    number, name = node.id, show(node.function.name)
    if not verbose:
        first = _last_of(first, _room_for_guides(width))
        number = _short_number(number, _room_for_guides(width))
        room = width - columns(f"{first}{mark.sign} {number}   ")
        details = _fitting(details, room - min(columns(name), _LEAST_NAME))
        name = shorten(name, max(room - columns(_joined(details)), _LEAST_NAME // 3))
    tail = _joined(details)
    line = Text()
    line.append(first, "dim")
    line.append(f"{mark.sign} ", mark.style)
    line.append(f"{number} ", "dim")
    line.append(name, mark.name_style)
    line.append(f"  {tail}" if tail else "", "dim")
    if not verbose:
        line.truncate(width, overflow="ellipsis")
    return line


def _place_of(node: Fnode, show: Show) -> str:
    if node.site is None or node.parent is None:
        return ""
    return place(node.site, node.parent.function, show)


def _room_for_guides(width: int) -> int:
    """So many columns are for what leads to an fnode, and as many for its number: the rest is for
    the fnode."""
    return max(width // 4 - 4, 4)


def _fitting(details: Sequence[tuple[str, int]], room: int) -> list[tuple[str, int]]:
    """Those of ``details`` that fit into so many columns: each comes with a number, and the one
    with the highest goes first. Those with 0 stay."""
    left = [detail for detail in details if detail[0]]
    while columns(_joined(left)) > room and (most := max((n for _, n in left), default=0)):
        left = [detail for detail in left if detail[1] != most]
    return left


def _joined(details: Iterable[tuple[str, int]]) -> str:
    return "  ".join(text for text, _ in details if text)


def _last_of(text: str, width: int) -> str:
    """The last ``width`` characters, with a mark where some are missing."""
    return text if len(text) <= width else f"…{text[len(text) - width + 1 :]}"


def _short_number(number: str, width: int) -> str:
    """The last places of an fnode's number, whole ones, with a mark where some are missing."""
    if len(number) <= width:
        return number
    first = number.find(".", len(number) - width)
    return f"…{number[(first if first >= 0 else number.rfind('.')) + 1 :]}"


def _below(node: Fnode, verbose: bool) -> Sequence[Fnode | str]:
    if verbose:
        return node.children
    if node.state is NodeState.REJECTED and not node.root_cause:
        return []  # timed ahead; nothing was decided there
    plain = [child for child in node.children if _is_plain(child)]
    best = sorted(plain, key=lambda child: -child.maxcount)[:SHOWN_REJECTED]
    shown: list[Fnode | str] = [
        child for child in node.children if child in best or not _is_plain(child)
    ]
    hidden = [child for child in plain if child not in best]
    if hidden:
        rejected = all(child.state is NodeState.REJECTED for child in hidden)
        callees = "callee" if len(hidden) == 1 else "callees"
        shown.append(f"… {len(hidden)} more {callees}{' rejected' if rejected else ''}")
    return shown


def _is_plain(node: Fnode) -> bool:
    return not node.root_cause and node.state in (NodeState.REJECTED, NodeState.CANDIDATE)


def path_text(path: RootCausePath, show: Show = name, most: int | None = MOST_ON_WAY) -> str:
    """``handle → (inlined flush_one) → write_out``: the path as one line, of ``most`` functions at
    most."""
    words: list[str] = []
    for node in path.nodes:
        within = inlined(node.site, node.function.name, show)
        words += [within] if within else []
        words.append(show(node.function.name))
    return way(words, most=most)
