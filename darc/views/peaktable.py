"""The peaks of a profile as a table below its histogram, and what of the calls is in none."""

from __future__ import annotations

from rich.text import Text

from darc.model.peaks import PeakRange
from darc.model.profile import Profile, format_cycles
from darc.model.snapshot import Snapshot
from darc.views.bars import CHOSEN
from darc.views.words import typed

_MANY_OUTSIDE = 0.05
"""Of the calls, in no peak, are told."""

_MORE_CALLS = 8
"""Times as many are asked for to find peaks that hold more of them."""


def peak_table(snapshot: Snapshot, profile: Profile) -> list[Text]:
    """The peaks of a profile, with the chosen one, and what calls are in each."""
    chosen = snapshot.peak
    rows = [("peak", "bins", "latency", "calls", "share")]
    marked = []
    for peak in snapshot.peaks:
        if chosen is not None and chosen.number == peak.number:
            marked.append(len(rows))
            shown = chosen
        else:
            shown = PeakRange(peak.number, peak.first_bin, peak.last_bin)
        rows.append(_peak_row(str(peak.number), shown, profile))
    if chosen is not None and not marked:
        marked.append(len(rows))
        rows.append(_peak_row("chosen", chosen, profile))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = []
    for index, row in enumerate(rows):
        mark = "●" if index in marked else " "
        name, bins, latency, calls, share = (
            cell.rjust(width) for cell, width in zip(row, widths, strict=True)
        )
        latency = row[2].ljust(widths[2])
        style = CHOSEN if index in marked else "bold" if index == 0 else ""
        lines.append(Text(f"{mark} {name}  {bins}  {latency}  {calls}  {share}", style))
    return lines


def _peak_row(name: str, peak: PeakRange, profile: Profile) -> tuple[str, str, str, str, str]:
    count = peak.calls_in(profile.bins)
    low = format_cycles(profile.low(peak.first_bin), profile.hz)
    if peak.last_bin is None:
        latency = f"{low} and more"
    else:
        latency = f"{low} – {format_cycles(profile.high(peak.last_bin), profile.hz)}"
    share = f"{100 * count / profile.count:.1f} %" if profile.count else ""
    return name, bins_text(peak), latency, str(count), share


def bins_text(peak: PeakRange) -> str:
    """``12``, ``12–14`` or, without an end, ``20–``."""
    if peak.last_bin is None:
        return f"{peak.first_bin}–"
    if peak.first_bin == peak.last_bin:
        return str(peak.first_bin)
    return f"{peak.first_bin}–{peak.last_bin}"


def in_no_peak(snapshot: Snapshot, profile: Profile) -> list[Text]:
    """What is to be known where many calls that came behind the choice are in none of its peaks."""
    chosen, first = snapshot.peak, snapshot.profile_calls
    if chosen is None or not 0 < first < profile.count:
        return []
    peaks = [chosen, *(PeakRange(p.number, p.first_bin, p.last_bin) for p in snapshot.peaks)]
    outside = sum(n for b, n in profile.bins.items() if not any(b in peak for peak in peaks))
    if outside <= _MANY_OUTSIDE * profile.count:
        return []
    more = f"darc start {typed(snapshot.function)} --start-ops {_MORE_CALLS * first}"
    return [
        Text(
            f"{100 * outside / profile.count:.0f} % of the calls lie in no peak: the peaks are "
            f"those of the first {first}, in which nothing else was timed; '{more}' finds those of "
            "more"
        )
    ]
