"""Where an analysis is, and what is known by then: ``darc status``, and the program's end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from darc.model.part import Part
from darc.model.snapshot import Snapshot
from darc.model.status import EndedBy, Status
from darc.views.parts import PARTS
from darc.views.render import main_path_lines, probes_text, seen_text, status_text
from darc.views.style import Style, write_sentences
from darc.views.treeview import decided
from darc.views.words import Shown, way


def status(snapshot: Snapshot, style: Style) -> Shown:
    """Where the search is, and the root cause paths so far."""
    if (lines_of_part := part_lines(snapshot, style)) is not None:
        return write_sentences(lines_of_part, style)
    lines = [Text(f"darc: {style.name(snapshot.function)}: {status_text(snapshot)}", "bold")]
    lines.append(Text(f"  {seen_text(snapshot, style)}"))
    if snapshot.status is Status.SEARCHING and snapshot.level is not None:
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
    return write_sentences(lines, style)


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
    return write_sentences(lines, style)


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


def part_lines(snapshot: Snapshot, style: Style) -> Iterable[Text] | None:
    """All that there is to show, where that is the part of an analysis."""
    for key, part in _parts(snapshot):
        view = PARTS[key]
        notes = snapshot.notes if view.with_notes else ()
        told = [Text(f"note: {style.note(note)}") for note in notes]
        return [*view.lines(snapshot, part, style), *told]
    return None


def place(snapshot: Snapshot, style: Style) -> Shown | None:
    """Where the program stands, by the part of the analysis that has stopped it; ``None``: no part
    tells."""
    found = (PARTS[key].place(snapshot, part, style) for key, part in _parts(snapshot))
    return next((one for one in found if one is not None), None)


def _parts(snapshot: Snapshot) -> Iterator[tuple[str, Part]]:
    """Those that can be shown, the last one first."""
    return ((key, one) for key, one in reversed(list(snapshot.parts.items())) if key in PARTS)
