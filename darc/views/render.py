"""What the user sees of a session: profile, tree, waits and root cause paths.

Each view makes text from a :class:`~darc.model.snapshot.Snapshot` and a :class:`Style`. Without
colour the text has no escape codes; without unicode it has ASCII characters only. Names are made
fit to be shown before they are laid out and styled (:mod:`darc.views.words`).
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from darc.model.ftree import Cause, Fnode, RootCausePath
from darc.model.ops import KeptOps, ObjectKind
from darc.model.parameters import MOST_CALLS
from darc.model.peaks import PeakRange, choose_peak, far_right, far_right_text, least_calls, tail_of
from darc.model.profile import Profile, format_cycles, longer_time, time_above, time_below
from darc.model.shares import (
    Explained,
    explain,
    is_minor,
    is_own,
    led_there,
    longest_with_most,
    most_time,
    weigh_all,
)
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.model.waits import Role, WaitedFor, Waits, over_paths
from darc.views.bars import draw
from darc.views.littlecauses import together_line, told_together
from darc.views.nonekept import why_none_by_end
from darc.views.pathwaits import apart_text, path_of_wait
from darc.views.peaktable import bins_text, in_no_peak, peak_table
from darc.views.style import Style, write, write_sentences
from darc.views.treeview import (
    draw_tree,
    ending_text,
    path_text,
    place,
)
from darc.views.waitsview import (
    draw_waits,
    is_due_to_somebody,
    is_outsider_untold,
    is_place_untold,
    is_processor_untold,
    processor_text,
    quota_text,
    saved_run_text,
    waited_text,
)
from darc.views.words import (
    Shown,
    calls_text,
    counted,
    counted_were,
    longest_stop_text,
    shorten,
    typed,
    way,
)

SHOWN_PATHS = 8
"""Root cause paths that are told while it goes on; a report has all."""


def tree(snapshot: Snapshot, style: Style) -> Shown:
    """The ftree with maxcounts and states."""
    return write(tree_lines(snapshot, style), style)


def waits(snapshot: Snapshot, style: Style) -> Shown:
    """Who kept the in-peak ops waiting."""
    return write_sentences(wait_lines(snapshot, style), style)


def duration(seconds: float) -> str:
    """A time of any length, such as 4.1ms."""
    return format_cycles(seconds * 1e9, 10**9)


def seen_text(snapshot: Snapshot, style: Style) -> str:
    """How many calls were seen, and of how many the peak was or is to be made."""
    profile = snapshot.profile
    calls = profile.count if profile is not None else 0
    if is_lost(snapshot):
        return (
            f"{calls_text(calls)} seen, and no later one could be read: {_GONE}" if calls else _LOST
        )
    if snapshot.peak is not None and profile is not None:
        inside = snapshot.peak.calls_in(profile.bins)
        return f"{calls_text(calls)} seen, {inside} in {peak_name(snapshot.peak)}"
    wanted = snapshot.parameters.profile_calls
    of = f" of {wanted}" if calls <= wanted else ""
    if not calls and snapshot.status is Status.INCONCLUSIVE:
        return f"no call of {style.name(snapshot.function)} was seen to its end"
    if profile is not None and calls > wanted and snapshot.parameters.peak is not None:
        of = f", {_too_late(snapshot.status, profile, snapshot.parameters.peak)}"
    elif snapshot.parameters.start_time is not None:
        of = f"; the profile takes {wanted_text(snapshot, snapshot.parameters.profile_calls)}"
    return f"{calls_text(calls)} seen{of}"


def is_lost(snapshot: Snapshot) -> bool:
    """Whether the program has taken with it what was counted last."""
    return snapshot.status is Status.ENDED and snapshot.collected is None


_GONE = "the program was gone at once, with what was counted"
_LOST = f"its calls could not be read: {_GONE}"


def _too_late(status: Status, profile: Profile, spec: str) -> str:
    """What there is by now of a peak that was not found when it was looked for."""
    peak = choose_peak(spec, profile)
    inside = 0 if peak is None else peak.calls_in(profile.bins)
    told = f"{inside or 'none'} of them in the peak '{spec}'"
    if not inside or status is Status.PROFILING:
        return told
    later = f"'--start-ops {profile.count // 2}', or a longer run"
    return f"{told}, which was not there yet when it was looked for: {later}"


def paths(snapshot: Snapshot, style: Style) -> Shown:
    """The root cause paths, one ``darc: root cause of peak 3: a → b`` each; "" for none."""
    doubts = [Text(f"  {style.note(warning)}") for warning in snapshot.warnings]
    if any(_is_of_targets(path) for path in snapshot.paths):
        doubts.append(Text(_TARGETS, "dim"))
    return write_sentences([*main_path_lines(snapshot, style), *doubts], style)


_TARGETS = (
    "  'darc profile PATTERN', of what these targets are called, times each by itself, whoever "
    "calls it; 'darc catch' stops in the middle of a slow call"
)


def _is_of_targets(path: RootCausePath) -> bool:
    """Whether it ends in one of more targets of a call than could be told apart. (An interrupt is
    none.)"""
    return path.ending.cause is Cause.UNTOLD and not path.nodes[-1].is_interrupt


def peak_name(peak: PeakRange) -> str:
    """What a peak is called: ``peak 3``, or its bins when they were given by hand."""
    return f"peak {peak.number}" if peak.number is not None else f"bins {bins_text(peak)}"


def profile_lines(snapshot: Snapshot, style: Style) -> list[Text]:
    """The profile drawn, with its peaks and what else might be explained."""
    profile = snapshot.profile
    if profile is None or not profile.bins:
        function = style.name(snapshot.function)
        if is_lost(snapshot):
            return [Text(f"no call of {function} could be read")]
        return [Text(f"no call of {function} was seen yet")]
    function = shorten(style.name(snapshot.function), style.width // 2)
    title = f"{function}: {calls_text(profile.count)}"
    lines = draw(title, profile, peaks=snapshot.peaks, peak=snapshot.peak, width=style.width)
    if snapshot.peaks or snapshot.peak is not None:
        lines += [Text(), *peak_table(snapshot, profile), *in_no_peak(snapshot, profile)]
    return [*lines, *_hints(snapshot, profile)]


def _hints(snapshot: Snapshot, profile: Profile) -> list[Text]:
    """What else might be explained, where nothing was chosen yet."""
    if snapshot.peak is not None or not snapshot.peaks:
        return []
    lines = []
    is_row = snapshot.profiles is not None  # of a table: its search is yet to begin
    start = f"darc start {typed(snapshot.function)} " if is_row else ""
    if (beyond := far_right(snapshot.peaks, profile.bins)) > 0:
        largest = max(peak.count for peak in snapshot.peaks)
        seconds = snapshot.profile_seconds * 4 * least_calls(largest) / beyond
        lines.append(
            Text(
                f"{far_right_text(beyond)}: too few for a peak: "
                f"'{start}--start-time {longer_time(max(10.0, seconds))}' would see more"
            )
        )
    if (tail := tail_of(snapshot.peaks, profile)) is not None:
        last, first = tail
        longest = format_cycles(profile.high(last), profile.hz)
        spec = f">{time_above(profile.low(first) / profile.hz)}"
        command = f"{start}--peak {spec}" if is_row else f"darc peak {spec}"
        lines.append(Text(f"one peak with a tail up to {longest}: '{command}' takes that"))
    return lines


def tree_lines(snapshot: Snapshot, style: Style) -> list[Text]:
    """The ftree, or why there is none."""
    if snapshot.ftree is None:
        if snapshot.status is Status.DONE:
            return [Text("no function tree: 'darc start' looks for root causes, and makes one")]
        return [Text(f"no function tree yet: {snapshot.status.value}")]
    hz = snapshot.profile.hz if snapshot.profile is not None else 0

    def latency(cycles: float) -> str:
        return format_cycles(cycles, hz) if hz else f"{cycles:.0f} cycles"

    return list(
        draw_tree(
            snapshot.ftree,
            style.tree_width,
            verbose=style.verbose,
            latency=latency,
            show=style.name,
        )
    )


def wait_lines(snapshot: Snapshot, style: Style) -> list[Text]:
    """Who kept the in-peak ops waiting, or why that is not known."""
    waits, kept = snapshot.waits, snapshot.ops
    if waits is None or kept is None:
        return [Text(_why_none_kept(snapshot))]
    if (why := _why_no_waits(snapshot, waits, kept)) is not None:
        return [Text(why)]

    def latency(cycles: float) -> str:
        return format_cycles(cycles, kept.hz)

    against = snapshot.waits_of_fastest
    quota = quota_text(kept)
    lines = list(draw_waits(waits, against, f0=snapshot.function, latency=latency, show=style.name))
    if not style.verbose:
        for line in lines:
            line.truncate(style.tree_width, overflow="ellipsis")
    if (saved := saved_run_text(kept)) is not None:
        lines.append(Text(saved))
    if quota is not None:  # before all that ran meanwhile, which is to blame for the rest alone
        lines.insert(1, Text(quota))
    return [*lines, *_what_waits_lack(waits, kept)]


def _why_none_kept(snapshot: Snapshot) -> str:
    """Why no op was kept whole."""
    if (why := why_none_by_end(snapshot)) is not None and snapshot.status is not Status.ENDED:
        return why
    if snapshot.status.is_final:
        return f"no call was kept whole by its end: {status_text(snapshot)}"
    return "no op was kept yet: choose a peak, and let the program go on"


def _why_no_waits(snapshot: Snapshot, waits: Waits, kept: KeptOps) -> str | None:
    """Why it is not known what ops that were kept waited for."""
    if not waits.ops and (why := why_none_by_end(snapshot)) is not None:
        return why
    if not waits.ops and not snapshot.status.is_final:
        return "no call inside the peak was kept yet: let the program go on"
    if not waits.ops:
        return "no op inside the peak was kept: 'darc start' with a peak that is frequent"
    if kept.sees_waits:
        return None
    if kept.of_saved_run:
        return "what they waited for was not watched in the run that was saved"
    if kept.why_no_waits is not None:
        return f"what they waited for was not watched: {kept.why_no_waits}"
    return (
        "what the calls that were kept waited for was not watched: the search ended before its "
        "last round, in which that is done"
    )


def _what_waits_lack(waits: Waits, kept: KeptOps) -> list[Text]:
    """What is not told of them, and why."""
    lines = []
    if kept.why_no_wakers and any(one.kind is ObjectKind.CALL for one in waits.objects):
        why = f"who ends what calls are blocked in is not told: {kept.why_no_wakers}"
        lines.append(Text(why, "dim"))
    if kept.why_no_places and is_place_untold(waits):
        why = f"in which calls they slept is not told: {kept.why_no_places}"
        lines.append(Text(why, "dim"))
    if kept.why_no_wakers and is_outsider_untold(waits):
        why = f"what other processes release is not seen from this one: {kept.why_no_wakers}"
        lines.append(Text(why, "dim"))
    if is_processor_untold(waits):
        why = "the kernel tells it root, or whoever has CAP_PERFMON"
        lines.append(Text(f"who had the processor meanwhile was not seen: {why}", "dim"))
    if kept.not_followed:
        many = counted_were(kept.not_followed, "wait")
        lines.append(Text(f"{many} not followed: too many at the same time", "dim"))
    if kept.not_kept:
        many = counted_were(kept.not_kept, "call")
        lines.append(Text(f"{many} not kept whole: there was no free place for them", "dim"))
    return lines


def wanted_text(snapshot: Snapshot, calls: int) -> str:
    """After what the peak is looked for."""
    parts = [calls_text(calls)] if 0 < calls < MOST_CALLS else []
    if snapshot.parameters.start_time is not None:
        parts.append(f"{snapshot.parameters.start_time:g}s")
    return " or ".join(parts)


def main_path_lines(snapshot: Snapshot, style: Style) -> list[Text]:
    """Those that explain the most, as a function that calls itself may have very many."""
    others = len(snapshot.paths) - SHOWN_PATHS
    if others <= 0:
        return path_lines(snapshot.paths, snapshot, style)
    by_share = sorted(snapshot.paths, key=lambda path: -(explain(path, snapshot).share or 0))
    most = {id(path) for path in by_share[:SHOWN_PATHS]}
    chosen = [path for path in snapshot.paths if id(path) in most]
    paths = "one more path" if others == 1 else f"{others} more paths"
    more = Text(f"  … and {paths}: 'darc report' shows all")
    return [*path_lines(chosen, snapshot, style), more]


def path_lines(paths: Sequence[RootCausePath], snapshot: Snapshot, style: Style) -> list[Text]:
    """Root cause paths, with their endings and what each explains."""
    of = f" of {peak_name(snapshot.peak)}" if snapshot.peak is not None else ""
    so_far = ", so far" if snapshot.status is Status.SEARCHING else ""  # ops may yet deny it
    is_lesser = bool(paths) and not so_far and is_minor(snapshot)
    lines = minor_lines(snapshot, style) if is_lesser else []
    usual = _lesser(snapshot) if is_lesser else "root cause"
    most, waits = None if is_lesser else _most_behind(snapshot), snapshot.waits
    of_path = None if most is None else path_of_wait(most, paths)
    little = told_together(paths, snapshot) if is_lesser else []
    for path in paths:
        if path in little:
            continue
        cause = usual if path.is_sure else _POSSIBLE
        told = f"darc: {cause}{of}{so_far}: {path_text(path, style.name, style.most_on_way)}"
        lines += [Text(told, "bold"), *_below_path(path, snapshot, style)]
        if path is of_path and most is not None and waits is not None:
            lines.append(Text(f"  {waited_text(most, waits.cycles, style.name)} ('darc waits')"))
    if little:
        lines.append(together_line(little, snapshot, f"{usual}s{of}", style))
    if paths and (had := _others_had_it(snapshot)) is not None:
        lines.append(Text(f"  {had}"))
    if most is None or waits is None or of_path is not None:
        return lines
    who = apart_text(most, waits.cycles, paths, style.name)
    if paths:
        lines.append(Text(f"  {who} ('darc waits')"))
    elif snapshot.status is Status.INCONCLUSIVE:
        lines.append(Text(f"darc: no path{of} is sure, but its calls {who} ('darc waits')", "bold"))
    return lines


def _below_path(path: RootCausePath, snapshot: Snapshot, style: Style) -> list[Text]:
    """How a path ends, and what its cause explains."""
    ending = ending_text(path.nodes[-1].function.name, path.ending, style.name)
    by = _calls_apart(path, snapshot.paths, style)
    lines = [f"by the call at {by}"] if by else []
    lines.append(ending)
    if path.ending.cause is Cause.PREEMPTION and (quota := quota_text(snapshot.ops)):
        lines.append(quota)
    if told := explained_text(explain(path, snapshot), snapshot):
        lines.append(told)
    return [Text(f"  {line}") for line in lines]


_POSSIBLE = "possible cause"
_MUCH = 0.25
"""Of all time: a wait of which that is known of somebody is told with the paths."""


def _others_had_it(snapshot: Snapshot) -> str | None:
    """For how long a process's threads waited for a processor, where that is much, and no cause
    says it: a call that is blocked until it is woken seems to be so until it goes on."""
    kept, waits = snapshot.ops, snapshot.waits
    if kept is None or waits is None or not kept.sees_waits or kept.sees_wake_ups:
        return None
    if any(path.ending.cause is Cause.PREEMPTION for path in snapshot.paths):
        return None
    return processor_text(waits) if 2 * waits.without_processor > waits.ready else None


def _most_behind(snapshot: Snapshot) -> WaitedFor | None:
    """What a process's calls waited for most, where it is known for whom, and much."""
    kept, waits = snapshot.ops, snapshot.waits
    if kept is None or waits is None or not kept.sees_waits or kept.sees_wake_ups:
        return None
    known = (one for one in over_paths(waits) if is_due_to_somebody(one, Role.RAN))
    return next((one for one in known if one.cycles >= _MUCH * waits.cycles), None)


def minor_lines(snapshot: Snapshot, style: Style) -> list[Text]:
    """Where the paths explain the smaller part of the peak's time: what has the most, as far as it
    is known, and the command that goes on."""
    weight, peak = weigh_all(snapshot), snapshot.peak
    assert peak is not None
    whose = f"{peak_name(peak)}'s"
    if weight is None:
        led = f"{100 * (led_there(snapshot) or 0.0):.0f} %"
        told = f"most of {whose} time may have other causes: {led} of its calls led to those below"
        return [Text(f"darc: {told}", "bold"), Text("  a longer search tells more", "dim")]
    least = f"{100 * weight.share:.0f} %"
    lines = [Text(f"darc: most of {whose} time has another cause: {least} has those below", "bold")]
    waits = snapshot.waits if snapshot.ops is not None and snapshot.ops.sees_waits else None
    most = over_paths(waits)[:1] if waits is not None else ()
    nodes, share = most_time(snapshot)
    if waits is not None and most and most[0].cycles > weight.share * waits.cycles:
        lines.append(Text(f"  most time: {waited_text(most[0], waits.cycles, style.name)}"))
    elif len(nodes) > 1 and share > weight.share:
        names = way([style.name(node.function.name) for node in nodes])
        own = _OWN_BELOW if _is_told_below(nodes, snapshot) else ""
        lines.append(Text(f"  most time: {100 * share:.0f} % in {names}{own}"))
    goes_on = []
    longest, kept = longest_with_most(snapshot), snapshot.ops
    if longest is not None and kept is not None:
        spec = f">{time_below(longest / kept.hz)}"
        name = typed(snapshot.spec or snapshot.function)
        goes_on.append(f"'darc start {name} --peak {spec}' looks into the longest calls alone")
    if waits is not None and most:
        goes_on.append("'darc waits' shows who kept them waiting")
    return [*lines, *(Text(f"  {line}") for line in goes_on)]


_OWN_BELOW = ", by all calls of it and with what held these up: below is what its own code took"


def _is_told_below(nodes: Sequence[Fnode], snapshot: Snapshot) -> bool:
    """Whether a path ends in the own code of the same functions: then there are two numbers."""
    functions = [node.function for node in nodes]
    return any(
        is_own(path.ending) and [node.function for node in path.nodes] == functions
        for path in snapshot.paths
    )


def status_text(snapshot: Snapshot) -> str:
    """How far it is; where root cause paths explain the smaller part, no cause is called found."""
    if snapshot.status is Status.FOUND and is_minor(snapshot):
        return f"only a {_lesser(snapshot)} found"
    if snapshot.paths and not any(path.is_sure for path in snapshot.paths):
        return f"only a {_POSSIBLE} found"
    return snapshot.status.value


def _lesser(snapshot: Snapshot) -> str:
    """What is said of a path in place of a root cause."""
    return _POSSIBLE if weigh_all(snapshot) is None else "smaller cause"


def _calls_apart(path: RootCausePath, paths: Sequence[RootCausePath], style: Style) -> str:
    """The call sites by which it differs from those of the same functions; "" for the only one."""
    names = [node.function for node in path.nodes]
    alike = [other for other in paths if [node.function for node in other.nodes] == names]
    return ", ".join(
        place(node.site, path.nodes[number].function, style.name)
        for number, node in enumerate(path.nodes[1:])
        if node.site is not None
        and any(other.nodes[number + 1].site != node.site for other in alike)
    )


def explained_text(explained: Explained, snapshot: Snapshot) -> str:
    """What a cause explains, over how many kept ops: "" where there are too few."""
    if explained.share is None:
        return ""
    whose = f"{peak_name(snapshot.peak)}'s" if snapshot.peak is not None else "the"
    text = f"{100 * explained.share:.0f} % of {whose} time, over {calls_text(explained.ops)}"
    without = explained.without
    if without is None:
        return text
    bins = bins_text(PeakRange(None, without.first_bin, without.last_bin))
    name = "bin" if without.first_bin == without.last_bin else "bins"
    peak = f" (peak {without.peak})" if without.peak is not None else ""
    return f"{text}; without it these would lie in {name} {bins}{peak}"


def probes_text(snapshot: Snapshot) -> str:
    """By what probes calls were timed, and what that has cost in stops, and before these."""
    program = snapshot.program
    stops = counted(program.stops, "stop")
    nanoseconds = round(program.stopped_seconds * 1e9)
    if nanoseconds:
        longest = longest_stop_text(program.stops, program.stopped_seconds, program.longest_stop)
        stops = f"{stops}, {format_cycles(nanoseconds, 10**9)} stopped{longest}"
    if made := round(program.setup_seconds * 1e9):
        stops += f"; before, {format_cycles(made, 10**9)} for its probes"
    timed = "" if program.probes is None else f", {counted(program.probes, 'call site')} timed"
    calls = program.in_peak_calls
    inside = "" if calls is None else f"{calls_text(calls)} inside the peak; "
    return f"probes: {snapshot.probes.value}{timed}; {inside}{stops}"
