"""Text, for people: what ``darc status`` and ``darc report`` show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.text import Text

from darc.model.ftree import Fnode, RootCausePath
from darc.model.snapshot import SiteReport, SiteState, Snapshot
from darc.model.status import EndedBy, Status
from darc.views.exporters.exporter import Exporter
from darc.views.parts import PARTS
from darc.views.render import (
    main_path_lines,
    path_lines,
    probes_text,
    profile_lines,
    seen_text,
    status_text,
    tree_lines,
    wait_lines,
)
from darc.views.style import Style, write
from darc.views.treeview import decided, inconclusive_text, inlined, place, votes_text
from darc.views.words import Shown, way

SHOWN_SITES = 10
"""Call sites that are not timed, listed in a report unless it is verbose."""

_HEADING = "bold underline"


def status(snapshot: Snapshot, style: Style) -> Shown:
    """Where the search is, and the root cause paths so far."""
    if (lines_of_part := _part_lines(snapshot, style)) is not None:
        return write(lines_of_part, style)
    lines = [Text(f"darc: {style.name(snapshot.function)}: {status_text(snapshot)}", "bold")]
    lines.append(Text(f"  {seen_text(snapshot, style)}"))
    if snapshot.status is Status.SEARCHING:
        lines.append(
            Text(
                f"  level {snapshot.level}: {snapshot.collected} of {snapshot.needed} calls "
                "inside the peak"
            )
        )
    if snapshot.status is Status.NO_PEAK and snapshot.peaks:
        lines.append(Text(f"  type 'darc peak N' (1 to {len(snapshot.peaks)}) or 'darc peak last'"))
    lines.append(Text(f"  {probes_text(snapshot)}"))
    lines += main_path_lines(snapshot, style)
    lines += [Text(f"  {style.note(note)}") for note in snapshot.notes]
    return write(lines, style)


def early_end(snapshot: Snapshot, style: Style) -> Shown:
    """The program ended before the search did: one line, what had been decided by then, what
    makes that doubtful, and of a function of which no call was timed what is known of that."""
    if not PARTS.keys().isdisjoint(snapshot.parts):
        return status(snapshot, style)
    executed = EndedBy.EXECUTED
    end = (executed if snapshot.ended_by is executed else snapshot.status).value
    line = f"darc: {style.name(snapshot.function)}: {end}: {seen_text(snapshot, style)}"
    lines = [Text(line), *_by_then(snapshot, style)]
    told = snapshot.warnings
    if snapshot.profile is not None and not snapshot.profile.count:
        told = tuple(dict.fromkeys((end, *snapshot.notes)))[1:]  # that stands in the line already
    lines += [Text(f"  {style.note(note)}") for note in told]
    return write(lines, style)


def _by_then(snapshot: Snapshot, style: Style) -> list[Text]:
    """How far a search had come that the program's end has ended, and what to do."""
    if snapshot.ftree is None or snapshot.peak is None:
        return []
    so_far = decided(snapshot.ftree)
    names = way([style.name(node.function.name) for node in so_far])
    known = f"so far it is in {names}: 'darc tree' shows the votes"
    if len(so_far) < 2:
        known = "it ended before the first decision: 'darc histogram' shows the profile"
    few = "a longer run tells more, or '--decision-ops 5', by which fewer calls decide"
    return [Text(f"  {known}"), Text(f"  {few}", "dim")]


def report(snapshot: Snapshot, style: Style) -> Shown:
    """Everything: profile, peaks, root cause paths, ftree and what was done to the program."""
    function = style.name(snapshot.function)
    if (lines_of_part := _part_lines(snapshot, style)) is not None:
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


def _part_lines(snapshot: Snapshot, style: Style) -> Iterable[Text] | None:
    """All that there is to show, where that is the part of an analysis."""
    for key, part in reversed(list(snapshot.parts.items())):
        if key in PARTS:
            view = PARTS[key]
            notes = snapshot.notes if view.with_notes else ()
            told = [Text(f"note: {style.note(note)}") for note in notes]
            return [*view.lines(snapshot, part, style), *told]
    return None


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
