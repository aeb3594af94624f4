"""The ops that were kept: as a list, and one of them as a timeline."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from darc.model.errors import UsageError
from darc.model.ftree import Fnode
from darc.model.ops import KeptOps, OffReason, Op, OpClass, Span
from darc.model.peaks import PeakRange, find_peaks
from darc.model.profile import format_cycles
from darc.model.snapshot import Snapshot
from darc.views.nonekept import why_none_by_end
from darc.views.render import peak_name
from darc.views.style import Style, write
from darc.views.treeview import Show
from darc.views.waitsview import quota_text, saved_run_text
from darc.views.words import Shown, calls_text, columns, counted_were, shorten

SHOWN_CALLS = 40
"""Calls of an op that have a line of their own, the longest ones, unless all are asked for."""

SHOWN_SUMS = 10
"""The same of callees whose calls were too short for one."""

_LEAST_GAP = 0.05
"""What lies between two calls has a line of its own from this part of the op on."""

_LEAST_READY = 0.25
"""Of its time an op's thread was ready: so much is told in the list."""

_LEAST_WIDTH = 60
_LEAST, _MOST_NAME = 8, 44
"""Columns of a name, and the least ones of a bar."""

_FIGURES = 7
_RUNS, _SHORT = "█", "▏"
_OFF = {
    OffReason.BLOCKED: "░",
    OffReason.READY: "▒",
    OffReason.STOPPED: "▓",
    OffReason.UNKNOWN: "?",
}
_STYLES = {_RUNS: "cyan", _SHORT: "cyan", "░": "yellow", "▒": "red", "▓": "dim", "?": "dim"}


def need_ops(snapshot: Snapshot) -> KeptOps:
    """The ops that there are.

    Raises:
        UsageError: there are none, with why not.
    """
    if snapshot.ops is not None and snapshot.ops.ops:
        return snapshot.ops
    by_end = why_none_by_end(snapshot)
    if by_end is not None and snapshot.probes.can.keeps_ops:
        raise UsageError(by_end)
    if snapshot.peak is None:
        raise UsageError("no op is kept yet: choose a peak first ('darc peak N')")
    if not snapshot.probes.can.keeps_ops:
        raise UsageError(f"no op is kept where calls are timed by a {snapshot.probes.value}")
    raise UsageError(f"no op of {peak_name(snapshot.peak)} is kept yet: let the program go on")


def find_op(kept: KeptOps, number: int) -> Op:
    """The op that users call by this number.

    Raises:
        UsageError: there is none.
    """
    for op in kept.ops:
        if op.number == number:
            return op
    raise UsageError(f"there is no op {number}: 'darc ops' lists 1 to {len(kept.ops)}")


def op_list(snapshot: Snapshot, style: Style) -> Shown:
    """A line for each op, and how many they were chosen from.

    Raises:
        UsageError: there are none.
    """
    kept = need_ops(snapshot)
    began = min(op.start for op in kept.ops)
    rows = [("op", "latency", "thread", "when", "peak", "")]
    for op in kept.ops:
        rows.append(
            (
                str(op.number),
                format_cycles(op.latency, kept.hz),
                str(op.thread) if op.thread else "?",
                f"+{format_cycles(op.start - began, kept.hz)}",
                _short_name(snapshot, op.kept_as),
                "; ".join(_remarks(op)),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    remarks = max(len(row[5]) for row in rows)
    gap = "  " if sum(widths) + 2 * len(widths) + remarks <= style.width else " "
    room = max(style.width - sum(widths) - len(widths), _LEAST)
    lines = [
        Text(
            gap.join(
                [*(c.rjust(w) for c, w in zip(row, widths, strict=False)), shorten(row[5], room)]
            ),
            "bold" if index == 0 else "",
        )
        for index, row in enumerate(rows)
    ]
    return write([*lines, Text(), *map(Text, _kept_of(snapshot, kept))], style)


def _remarks(op: Op) -> Iterator[str]:
    if op.is_slowest:
        yield "● the slowest"
    if op.lost:
        yield f"{calls_text(op.lost)} lost"
    ready = op.off_time(OffReason.READY) / max(op.latency, 1)
    if ready >= _LEAST_READY:
        yield f"{100 * min(ready, 1.0):.0f} % ready, without a processor"


def _kept_of(snapshot: Snapshot, kept: KeptOps) -> Iterator[str]:
    seen_of = {OpClass.IN_PEAK: kept.in_peak_seen, OpClass.FASTEST: kept.fastest_seen}
    for kept_as, seen in seen_of.items():
        if count := len(kept.of(kept_as)):
            told = f"{count} of {seen} ops of {class_name(snapshot, kept_as)} are kept"
            is_apart = len(kept.sample(kept_as)) < count
            yield told + ("; the slowest is in no average" if is_apart else "")
    if saved := saved_run_text(kept):
        yield saved
    if quota := quota_text(kept):
        yield quota
    if kept.not_kept:
        yield f"{kept.not_kept} more could not be watched: too many were under way at the same time"


def class_name(snapshot: Snapshot, kept_as: OpClass) -> str:
    """What a class of ops is called: ``peak 3``."""
    if kept_as is OpClass.IN_PEAK:
        return peak_name(snapshot.peak) if snapshot.peak is not None else "the chosen peak"
    fastest = fastest_peak(snapshot)
    return peak_name(fastest) if fastest is not None else "the fastest peak"


def _short_name(snapshot: Snapshot, kept_as: OpClass) -> str:
    return class_name(snapshot, kept_as).removeprefix("peak ").removeprefix("the ")


def fastest_peak(snapshot: Snapshot) -> PeakRange | None:
    """The leftmost peak."""
    peaks = snapshot.peaks
    if not peaks and snapshot.profile is not None:
        peaks = find_peaks(snapshot.profile.bins, snapshot.profile.resolution)
    if not peaks:
        return None
    return PeakRange(peaks[0].number, peaks[0].first_bin, peaks[0].last_bin)


# ------------------------------------------------------------------------------ one op


@dataclass(frozen=True)
class _Row:
    """A line of the timeline: a call of ``node``, or a time in which that was in no call that has
    a line."""

    node: Fnode
    start: int
    end: int
    latency: int
    own: int | None = None
    is_gap: bool = False


def timeline(snapshot: Snapshot, number: int, style: Style) -> Shown:
    """One op: each call in its time, with its share and what it took itself.

    Raises:
        UsageError: there is no such op.
    """
    kept = need_ops(snapshot)
    op = find_op(kept, number)
    lines = [Text(line, "bold" if not index else "") for index, line in enumerate(_head(
        snapshot, kept, op, style
    ))]  # fmt: skip
    root = _root_of(snapshot, op)
    rows, hidden = _rows(op, root, style.verbose)
    lines += _drawn(op, rows, kept.hz, style)
    if hidden:
        lines.append(Text(f"… {hidden} shorter calls; 'set darc verbose on' shows them", "dim"))
    lines += map(Text, _rest(op, kept, style))
    return write(lines, style)


def _head(snapshot: Snapshot, kept: KeptOps, op: Op, style: Style) -> Iterator[str]:
    latency = format_cycles(op.latency, kept.hz)
    thread = f", thread {op.thread}" if op.thread else ""
    when = format_cycles(op.start - min(other.start for other in kept.ops), kept.hz)
    slowest = ", the slowest" if op.is_slowest else ""
    yield (
        f"darc: op {op.number} of {style.name(snapshot.function)}: {latency} in "
        f"{class_name(snapshot, op.kept_as)}{slowest}{thread}, at +{when}"
    )


def _root_of(snapshot: Snapshot, op: Op) -> Fnode:
    for total in op.sums:
        return total.node.route()[0]
    assert snapshot.ftree is not None
    return snapshot.ftree


def _rows(op: Op, root: Fnode, verbose: bool) -> tuple[list[_Row], int]:
    """The lines, callers before callees; and how many calls have none."""
    longest = sorted(op.spans, key=lambda span: (-span.latency, span.node.depth))
    spans = set(longest if verbose else longest[:SHOWN_CALLS])
    whole = _Row(
        node=root, start=op.start, end=op.end, latency=op.latency, own=op.own_time_of(root)
    )
    below = _below(op.spans)
    calls = {total.node: total for total in op.sums}
    rows: list[_Row] = []

    def gaps(row: _Row, inside: Sequence[Span]) -> Iterator[_Row]:
        """Where the call of ``row`` was in none of its callees' that have a span."""
        at = row.start
        for start, end in [*((s.start, s.end) for s in inside), (row.end, row.end)]:
            if inside and start - at >= _LEAST_GAP * (op.end - op.start):
                latency = (start - at) * op.latency // (op.end - op.start)  # less the probes' part
                yield _Row(row.node, at, start, latency, is_gap=True)
            at = max(at, end)

    stack: list[tuple[_Row, Span | None]] = [(whole, None)]
    while stack:
        row, span = stack.pop()
        rows.append(row)
        if row.is_gap:
            continue
        inside = below[span]
        entries: list[tuple[_Row, Span | None]] = [(gap, None) for gap in gaps(row, inside)]
        for callee in inside:
            own = callee.latency - sum(s.latency for s in below[callee])
            total = calls.get(callee.node)
            if total is not None and total.calls == 1:
                own = op.own_time_of(callee.node)
            if callee in spans:
                times = callee.start, callee.end, callee.latency
                entries.append((_Row(callee.node, *times, max(own, 0)), callee))
        stack += sorted(entries, key=lambda entry: -entry[0].start)
    return rows, len(op.spans) - sum(not row.is_gap for row in rows) + 1


def _below(spans: Sequence[Span]) -> defaultdict[Span | None, list[Span]]:
    """The calls below each call that have a span, and no other one between; of f0 those of
    ``None``."""
    below: defaultdict[Span | None, list[Span]] = defaultdict(list)
    under_way: list[Span] = []
    for span in spans:
        under_way = [one for one in under_way if one.end > span.start]
        above = span.node.route()[:-1]
        callers = [one for one in under_way if one.node in above]
        below[callers[-1] if callers else None].append(span)
        under_way.append(span)
    return below


def _drawn(op: Op, rows: Sequence[_Row], hz: int, style: Style) -> list[Text]:
    names = [_name(row, style.name) for row in rows]
    figures = [("share", "time", "itself"), *(_figures(op, row, hz) for row in rows)]
    widths = [max(_FIGURES, *(len(one[column]) for one in figures)) for column in range(3)]
    width = max(style.width, _LEAST_WIDTH)
    taken = sum(widths) + len(widths) + 2
    most = max(_LEAST, min(_MOST_NAME, width // 2 - 10, width - taken - _LEAST))
    most = min(most, max(map(columns, names)))
    lines = []
    for name, texts, row in zip(["", *names], figures, [None, *rows], strict=True):
        line, shown = Text(), shorten(name, most)
        line.append(shown + " " * (most - columns(shown)), "dim" if row and row.is_gap else "")
        cells = "".join(f" {text.rjust(w)}" for text, w in zip(texts, widths, strict=True))
        line.append(cells + "  ", "dim" if row else "bold")
        for character in _bar(op, row, width - taken - most) if row else "":
            line.append(character, _STYLES.get(character, ""))
        lines.append(line)
    return lines


def _figures(op: Op, row: _Row, hz: int) -> tuple[str, str, str]:
    share = min(1.0, row.latency / max(op.latency, 1))
    own = "" if row.own is None else format_cycles(row.own, hz)
    return f"{100 * share:.1f} %", format_cycles(row.latency, hz), own


def _name(row: _Row, show: Show) -> str:
    indent = "  " * (row.node.depth - 1)
    return f"{indent}  (between calls)" if row.is_gap else indent + show(row.node.function.name)


def _bar(op: Op, row: _Row, room: int) -> str:
    """The call in the op's time, in ``room`` columns: what the thread did for most of each."""
    whole = max(op.end - op.start, 1)
    first = (row.start - op.start) * room // whole
    last = max(first, ((row.end - op.start) * room - 1) // whole)
    first, last = min(max(first, 0), room - 1), min(last, room - 1)
    if (row.end - row.start) * room < whole // 2:
        return " " * first + _SHORT
    cells = []
    for cell in range(first, last + 1):
        start = max(row.start, op.start + cell * whole // room)
        end = min(row.end, op.start + (cell + 1) * whole // room)
        cells.append(_state(op, start, end))
    return " " * first + "".join(cells)


def _state(op: Op, start: int, end: int) -> str:
    times: Counter[str] = Counter()
    for off in op.off or ():
        if (time := off.within(start, end)) > 0:
            times[_OFF[off.reason]] += time
    times[_RUNS] = max(0, end - start - sum(times.values()))
    return max(times, key=lambda state: times[state])


def _rest(op: Op, kept: KeptOps, style: Style) -> Iterator[str]:
    """What has no line of its own."""
    cycles: Callable[[float], str] = lambda value: format_cycles(value, kept.hz)  # noqa: E731
    spans: Counter[Fnode] = Counter(span.node for span in op.spans)
    times: Counter[Fnode] = Counter()
    for span in op.spans:
        times[span.node] += span.latency
    short = [
        (total.calls - spans[total.node], max(0, total.sum - times[total.node]), total.node)
        for total in op.sums
        if total.calls > spans[total.node]
    ]
    short.sort(key=lambda one: -one[1])
    if short:
        yield f"too short for a line, below {cycles(op.least)} each:"
    for calls, time, node in short if style.verbose else short[:SHOWN_SUMS]:
        of = style.name(node.function.name)
        what = "1 call" if calls == 1 else f"{calls:,} calls"
        yield f"  {what} of {of}, {cycles(time)} in all"
    if not style.verbose and len(short) > SHOWN_SUMS:
        yield f"  … and calls of {len(short) - SHOWN_SUMS} more"
    if op.lost:
        yield f"{counted_were(op.lost, 'call')} lost: there is room for {len(op.spans)} in an op"
    if op.off is None:
        why = "" if kept.why_no_waits is None else f": {kept.why_no_waits}"
        yield f"whether the thread ran or waited was not watched{why}"
    elif not op.off:
        yield "the thread was on the processor all the time"
    else:
        whole = max(op.end - op.start, 1)
        yield "off the processor: " + ", ".join(
            f"{_OFF[reason]} {reason.value} {cycles(time)} ({100 * time / whole:.1f} %)"
            for reason in OffReason
            if (time := op.off_time(reason))
        )
        if op.off_time(OffReason.READY) and (quota := quota_text(kept)):
            yield f"of all ops that are kept {quota}"
