"""The answer of ``darc why``: some ten lines, with the commands that go on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.text import Text

from darc.model.ftree import Cause, RootCausePath
from darc.model.profile import format_cycles, longer_time
from darc.model.shares import explain
from darc.model.snapshot import Snapshot
from darc.model.status import EndedBy
from darc.model.waits import WaitedFor, over_paths
from darc.model.why import Answer, Suspect, Verdict, Why
from darc.views.pathwaits import apart_text, path_of_wait
from darc.views.setview import making_told
from darc.views.treeview import Show, decided, ending_text
from darc.views.waitsview import (
    is_due_to_somebody,
    moments_text,
    processor_text,
    quota_text,
    waited_text,
)
from darc.views.words import calls_text, cost_text, functions_text, start_text, typed, way

_MOSTLY = 0.5
"""Of the time without a processor: a quota that took so much is told."""

_LEAST_AGAIN = 2.0
"""Seconds that a program has to run for something to be found."""

_LEAST_WAIT = 0.1
"""Of the time of the slow calls: a wait that takes less is not told here."""


def draw_why(
    known: Why,
    show: Show,
    note: Show,
    path_text: Callable[[RootCausePath, Show], str],
) -> Iterator[Text]:
    """The lines of the answer."""
    yield _headline(known, show)
    seen = f"{calls_text(known.calls)} of {functions_text(known.functions)} in {known.seconds:.1f}s"
    if known.making is not None:
        seen = making_told(known.making, is_over=known.is_over)
    yield Text(f"  {seen}")
    for number, one in enumerate(known.answers, 1):
        yield from _answer_lines(number, one, show=show, note=note, path_text=path_text)
        if known.is_over and not one.paths:
            command = start_text(known.start_of(one.suspect))
            yield Text(f"  {command} looks longer into that")
    for suspect in known.open:
        yield Text(_slow_text(suspect, show), "bold")
        yield Text(f"  not looked into: {start_text(known.start_of(suspect))}")
    yield from _not_told(known, show)
    for reason in known.reasons:
        prefix = "not sure of 1: " if known.verdict is Verdict.FOUND else ""
        yield Text(f"  {prefix}{note(reason)}")
    if known.stops:
        yield Text(f"  {cost_text(known)}")
    if known.is_over:
        yield from (Text(line, "dim") for line in _further(known, show))


def _headline(known: Why, show: Show) -> Text:
    how = "" if known.verdict is not Verdict.FOUND else ", sure" if known.is_sure else ", not sure"
    if known.costlier is not None:
        how += f": {_costs_more(known, known.costlier, show)}"
    elif known.answers and known.answers[0].is_preempted:
        how += f": {_who_had(known.answers[0])}"
    end = "" if known.is_over else " (it goes on)"
    return Text(f"darc: why: {known.verdict.value}{how}{end}", "bold")


def _not_told(known: Why, show: Show) -> Iterator[Text]:
    """What is none of the answers, and why not."""
    for suspect, wait in known.idle:
        how = "as in 1" if _waits_there(known, wait) else "as for its next work"
        why = f"waits in {show(wait)}, {how}"
        yield from _left_out(known, suspect, why, show)
    for suspect, whole in known.usual if known.verdict is not Verdict.FOUND else ():
        why = f"is slow once in each call of {show(whole.name)}, which always takes as long"
        yield from _left_out(known, suspect, why, show)
    if known.tail is not None:
        yield from _tail_lines(known, known.tail, show)
    if known.rare is not None:
        yield from _rare_lines(known, known.rare, show)


def _waits_there(known: Why, wait: str) -> bool:
    """Whether the first answer ends in the same wait: that of another function, which may be a
    caller of it, is not said to be one for work."""
    if known.verdict is not Verdict.FOUND or not known.answers:
        return False
    return any(node.function.name == wait for path in known.answers[0].paths for node in path.nodes)


def _who_had(one: Answer) -> str:
    """Who had the processor instead of its slow calls."""
    kept = None if one.found is None else one.found.ops
    is_quota = kept is not None and kept.quota_share > _MOSTLY
    return "its CPU quota was used up" if is_quota else "others had the processor"


def _tail_lines(known: Why, tail: Suspect, show: Show) -> Iterator[Text]:
    profile, name = tail.row.profile, show(tail.name)
    median = format_cycles(tail.fast_mean, profile.hz)
    yield Text(
        f"  {name} has no slow peak, but a long tail: {tail.slow} of {calls_text(profile.count)} "
        f"take eight times as long as most and more, not {median}"
    )
    yield Text(f"    {start_text(known.start_of(tail))} looks into these")


def _costs_more(known: Why, one: Suspect, show: Show) -> str:
    """That ``one`` costs more than the first answer, and what to type."""
    number = next((n for n, other in enumerate(known.answers, 1) if other.suspect is one), None)
    who = show(one.name) if number is None else f"answer {number}"
    found = None if number is None else known.answers[number - 1].found
    is_late = number is None or (found is not None and found.ended_by is EndedBy.TIME)
    why = "there was no time to look into it" if is_late else "why is not known"
    return f"{who} costs more, and {why}: {start_text(known.start_of(one))}"


def _rare_lines(known: Why, rare: Suspect, show: Show) -> Iterator[Text]:
    start, why = (longer_time(max(10.0, times * known.rare_seconds)) for times in (1, 2))
    yield Text(f"  too few calls to tell: {_slow_text(rare, show)}")
    name = typed(known.start_of(rare).function)
    yield Text(
        f"    'darc start {name} --start-time {start}' or 'darc why --time {why}' sees more of them"
    )


def _left_out(known: Why, suspect: Suspect, why: str, show: Show) -> Iterator[Text]:
    name = show(suspect.name)
    yield Text(f"  left out: {name} {why}")
    if known.verdict is not Verdict.FOUND:
        command = start_text(known.start_of(suspect))
        yield Text(f"    {command} looks into it all the same")


def _answer_lines(
    number: int,
    one: Answer,
    show: Show,
    *,
    note: Show,
    path_text: Callable[[RootCausePath, Show], str],
) -> Iterator[Text]:
    suspect, found = one.suspect, one.found
    yield Text(f"{number} {_slow_text(suspect, show)}", "bold")
    if found is None:
        why = (one.why or "").strip()
        yield Text(f"  not looked into: {note(why)}" if why else "  not looked into")
        return
    yield from _found_lines(found, show, path_text)
    if one.doubt is not None and number > 1:  # that of the first one is told below
        yield Text(f"    {note(one.doubt)}")


def _found_lines(
    found: Snapshot, show: Show, path_text: Callable[[RootCausePath, Show], str]
) -> Iterator[Text]:
    """What a search has found, with what its calls waited for."""
    waited = _most_waited(found)
    of_path = None if waited is None else path_of_wait(waited, found.paths)
    for path in found.paths:
        yield from _cause_lines(path, found, show, path_text)
        if path is of_path and waited is not None:
            yield Text(f"    {_waited_line(waited, found, show)}")
    if not found.paths:
        is_late = found.ended_by is EndedBy.TIME
        yield Text(f"  why is not known: {'no time was left' if is_late else found.status.value}")
        so_far = decided(found.ftree)
        if len(so_far) > 1:
            names = way([show(node.function.name) for node in so_far])
            yield Text(f"  so far it is in {names}")
    yield from _processor(found)
    if waited is not None and of_path is None:
        is_elsewhere = len(found.paths) > 1 or bool(found.paths and waited.path)
        indent = "  " if is_elsewhere else "    "
        yield Text(f"{indent}{_waited_line(waited, found, show, is_apart=True)}")


def _cause_lines(
    path: RootCausePath,
    found: Snapshot,
    show: Show,
    path_text: Callable[[RootCausePath, Show], str],
) -> Iterator[Text]:
    where, share = path_text(path, show), explain(path, found).share
    took = "" if share is None else f", {100 * share:.0f} % of the slow calls' time"
    if path.ending.cause.is_of_no_call:
        how = "preempted" if path.ending.cause is Cause.PREEMPTION else "held by the debugger"
        yield Text(f"  {how} in {where}{took}: no cause of its own", "bold")
        return
    yield Text(f"  root cause: {where}", "bold")
    yield Text(f"    {ending_text(path.nodes[-1].function.name, path.ending, show)}{took}")


def _slow_text(suspect: Suspect, show: Show) -> str:
    profile = suspect.row.profile
    slow, fast = (
        format_cycles(cycles, profile.hz) for cycles in (suspect.slow_mean, suspect.fast_mean)
    )
    least = format_cycles(suspect.threshold, profile.hz)
    how = f"take {least} and more, " if suspect.is_tail else "take "
    return (
        f"{show(suspect.name)}: {suspect.slow} of {calls_text(profile.count)} {how}about {slow}, "
        f"not {fast}: {100 * suspect.share:.0f} % of a thread's time"
    )


def _processor(found: Snapshot) -> Iterator[Text]:
    """For how long slow calls had no processor, where that is much, and no cause says it."""
    waits, kept = found.waits, found.ops
    if kept is None:
        return
    indent = "  " if len(found.paths) > 1 else "    "
    is_quota = kept.quota_share > _MOSTLY
    if is_quota:
        yield Text(f"{indent}{quota_text(kept)}")
    if waits is None or not kept.sees_waits or not waits.cycles:
        return
    is_told = is_quota or any(path.ending.cause is Cause.PREEMPTION for path in found.paths)
    if not is_told and (told := processor_text(waits)) is not None:
        yield Text(f"{indent}{told}")


def _most_waited(found: Snapshot) -> WaitedFor | None:
    """What was waited for longest, wherever it was, where it is known who had it."""
    waits, kept = found.waits, found.ops
    if kept is None or waits is None or not kept.sees_waits or not waits.cycles:
        return None
    most = next((one for one in over_paths(waits) if is_due_to_somebody(one)), None)
    return most if most is not None and most.cycles >= _LEAST_WAIT * waits.cycles else None


def _waited_line(one: WaitedFor, found: Snapshot, show: Show, *, is_apart: bool = False) -> str:
    """That wait of ``found``'s calls; ``is_apart``: no path tells of it."""
    waits = found.waits
    assert waits is not None
    told = waited_text(one, waits.cycles, show)
    if is_apart:
        told = apart_text(one, waits.cycles, found.paths, show)
    moments = moments_text(waits)
    return f"{told} (of {calls_text(waits.ops)}{moments})" if moments else told


def _further(known: Why, show: Show) -> Iterator[str]:
    """What to type next."""
    if known.verdict is Verdict.FOUND:
        waits_of = (a.found.waits for a in known.answers[:1] if a.found is not None)
        has_waits = any(any(map(is_due_to_somebody, w.objects)) for w in waits_of if w is not None)
        waits = ", 'darc waits' who kept it waiting" if has_waits else ""
        yield f"'darc tree' shows the search of 1, 'darc ops' some of its calls{waits}"
        return
    if known.answers or known.rare is not None:
        return  # what to type stands below each
    if known.verdict in (Verdict.NOTHING, Verdict.WAITS):
        yield (
            "'darc walk' tells which calls hold the time; 'darc profile PATTERN' times functions "
            "of libraries as well"
        )
    elif known.has_ended and known.seconds >= _LEAST_AGAIN:
        yield f"'darc why --time {int(known.seconds)}s', then 'run', comes to its end before that"
    elif known.is_cut:
        yield "'set darc max-time none', or more of it, lets 'darc why' look for longer"
    else:
        yield "'darc why' looks again, 'darc why --time 5min' for longer"
