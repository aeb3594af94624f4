"""What is told on one line while the program runs."""

from __future__ import annotations

from collections.abc import Iterator

from darc.model.bare import Bare
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.views.parts import PARTS
from darc.views.parts.part import Doing
from darc.views.render import peak_name, wanted_text
from darc.views.style import Style
from darc.views.words import (
    Shown,
    calls_text,
    columns,
    counted,
    elapsed_text,
    shorten,
    to_ascii,
)

_BARE = {
    Bare.STEPS: "without probes while you step",
    Bare.LET_GO: "without probes for a moment",
    Bare.SIGNAL: "without probes, as the signal may end the program",
}


def live(snapshot: Snapshot, style: Style, *, bare: Bare | None = None) -> Shown:
    """One line that fits the width: what the search is doing now. ``bare`` says by what the program
    runs without probes, where it does."""
    function = style.name(snapshot.function)
    doing, *counts = _calls_and_peak(snapshot)
    probes = snapshot.program.probes  # below f0, whose own one is there in any case
    for own in _doings(snapshot):
        doing, counts = own.text, [*own.counts, *(() if own.is_all else counts)]
        probes = None if own.is_all else probes
    if bare is not None:
        doing, probes = f"{doing}, {_BARE[bare]}", None
    parts = [f"darc: {function}: {doing}", *counts]
    if probes:
        parts.append(counted(probes, "probe"))
    parts.append(elapsed_text(snapshot.elapsed_seconds))
    separator = " · "
    excess = columns(separator.join(parts)) - style.width
    if excess > 0:
        function = shorten(function, max(columns(function) - excess, 8))
        parts[0] = f"darc: {function}: {doing}"
    while len(parts) > 1 and columns(separator.join(parts)) > style.width:
        parts.pop()
    line = shorten(separator.join(parts), style.width)
    return Shown(line if style.unicode else to_ascii(line)[: style.width])


def _doings(snapshot: Snapshot) -> Iterator[Doing]:
    """What parts say in the place of the status."""
    for key, part in snapshot.parts.items():
        doing = PARTS[key].doing(part) if key in PARTS else None
        if doing is not None:
            yield doing


def _calls_and_peak(snapshot: Snapshot) -> list[str]:
    """What the search is doing, which calls it has seen, and which ones it waits for."""
    parts = [snapshot.status.value]
    if snapshot.profile is not None and snapshot.collected is not None:
        parts.append(calls_text(snapshot.profile.count))
    if snapshot.generated:
        parts.append(f"{snapshot.generated} by generated code, which are not timed")
    if snapshot.status is Status.PROFILING and _looks_for_peak(snapshot):
        parts.append(f"none in peak {snapshot.parameters.peak} yet")
    is_searching = snapshot.status is not Status.PROFILING  # a resumed one knows its peak before
    if snapshot.peak is not None and snapshot.needed and is_searching:
        if snapshot.collected is None:
            parts.append(f"waits for {calls_text(snapshot.needed)} in {peak_name(snapshot.peak)}")
        else:
            parts.append(f"{peak_name(snapshot.peak)} {snapshot.collected}/{snapshot.needed}")
        if snapshot.level is not None:
            parts.append(f"level {snapshot.level}")
    elif snapshot.collected is None and (wanted := wanted_text(snapshot, snapshot.needed)):
        parts.append(f"waits for {wanted}")
    return parts


def untimed(snapshot: Snapshot, style: Style) -> Shown:
    """What is to be done where all calls come from code that was generated."""
    many = calls_text(snapshot.generated)
    told = (
        f"darc: {style.name(snapshot.function)}: none of {many} is timed: they come from code that "
        "was generated, and its runtime may look for the return addresses; functions that are "
        "called below can be timed: 'darc profile PATTERN' shows which take long, 'darc start' why"
    )
    return Shown(told if style.unicode else to_ascii(told))


def _looks_for_peak(snapshot: Snapshot) -> bool:
    """Whether enough was seen, but not the peak that is asked for."""
    wanted, profile = snapshot.parameters, snapshot.profile
    is_asked = wanted.peak is not None and wanted.start_time is None and profile is not None
    return is_asked and profile is not None and profile.count > 4 * wanted.profile_calls
