"""Text, for people: what ``darc report`` shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from darc.model.ftree import Fnode, RootCausePath
from darc.model.snapshot import SiteReport, SiteState, Snapshot
from darc.views.exporters.exporter import Exporter
from darc.views.general.status import part_lines
from darc.views.render import (
    path_lines,
    probes_text,
    profile_lines,
    status_text,
    tree_lines,
    wait_lines,
)
from darc.views.style import Style, write
from darc.views.treeview import inconclusive_text, inlined, place, votes_text
from darc.views.words import Shown

SHOWN_SITES = 10
"""Call sites that are not timed, listed in a report unless it is verbose."""

_HEADING = "bold underline"


def report(snapshot: Snapshot, style: Style) -> Shown:
    """Everything: profile, peaks, root cause paths, ftree and what was done to the program."""
    function = style.name(snapshot.function)
    if (lines_of_part := part_lines(snapshot, style)) is not None:
        return write(lines_of_part, style)
    lines = [Text(f"darc report: {function}: {status_text(snapshot)}", "bold"), Text()]
    lines += [*profile_lines(snapshot, style), Text()]
    if snapshot.paths:
        lines += [Text("Root cause paths", _HEADING)]
        lines += path_lines(snapshot.paths, snapshot, style)
        lines += [Text(), *_call_lines(snapshot.paths, style)]
        lines.append(Text())
    elif snapshot.program.in_peak_calls is not None:
        lines += [Text(f"No root cause: {snapshot.status.value}."), Text()]
    if snapshot.ftree is not None and (decided := _decision_lines(snapshot.ftree, style)):
        lines += [Text("Decisions", _HEADING), *decided, Text()]
    if snapshot.ftree is not None:
        lines += [Text("Function tree", _HEADING), *tree_lines(snapshot, style), Text()]
    if snapshot.waits is not None and snapshot.waits.objects:
        lines += [Text("Waits", _HEADING), *wait_lines(snapshot, style), Text()]
    lines += [Text("Program", _HEADING), *_program_lines(snapshot, style)]
    lines += [Text(f"note: {style.note(note)}") for note in snapshot.notes]
    return write(lines, style)


def _call_lines(root_cause_paths: Sequence[RootCausePath], style: Style) -> list[Text]:
    show = style.name
    lines: list[Text] = []
    seen: set[Fnode] = set()
    for path in root_cause_paths:
        for caller, node in zip(path.nodes, path.nodes[1:], strict=False):
            if node.site is None or node in seen:
                continue
            seen.add(node)
            within = inlined(node.site, node.function.name, show)
            at = place(node.site, caller.function, show)
            lines.append(
                Text(
                    f"  {node.id}  {show(caller.function.name)} calls {show(node.function.name)} "
                    f"at {at}{f' {within}' if within else ''}, "
                    f"maxcount {votes_text(node)}"
                )
            )
    return lines


def _decision_lines(root: Fnode, style: Style) -> list[Text]:
    """On how many votes each decision rests."""
    lines = []
    for node in root.walk():
        if (decision := node.decision) is None:
            continue
        name = style.name(node.function.name)
        winners = [
            f"{style.name(child.function.name)} {child.maxcount}"
            for child in node.children
            if child.root_cause
        ]
        if decision.is_conclusive:
            votes = f"{', '.join([*winners, f'itself {decision.own}'])} of {decision.ops}"
        else:
            votes = inconclusive_text(decision)
        lines.append(Text(f"  {node.id}  {name}: {votes}"))
    return lines


def _program_lines(snapshot: Snapshot, style: Style) -> list[Text]:
    sites = snapshot.program.sites
    lines = [Text(probes_text(snapshot))]
    states = Counter(site.state for site in sites)
    if sites:
        counts = ", ".join(f"{states[state]} {state.word}" for state in SiteState if states[state])
        lines.append(Text(f"call sites: {counts}"))
    other = [site for site in sites if site.state is not SiteState.TIMED]
    shown = other if style.verbose else other[:SHOWN_SITES]
    lines += [Text(f"  {_site(site, style)}") for site in shown]
    if len(other) > len(shown):
        lines.append(Text(f"  … {len(other) - len(shown)} more; 'set darc verbose on' lists them"))
    return lines


def _site(site: SiteReport, style: Style) -> str:
    function = style.name(site.function)
    callee = style.name(site.callee) if site.callee else "an indirect call"
    why = f": {style.note(site.why)}" if site.why else ""
    return f"{function} → {callee} at {site.place}: {site.state.value}{why}"


TEXT = Exporter(name="text", suffixes=(".txt",), text=report)
