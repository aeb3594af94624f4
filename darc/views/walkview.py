"""Where the time goes, as chains of calls: a line each below its group of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from darc.model.enumerated import first_few
from darc.model.profile import time_below
from darc.model.walk import Chain, End, Walk, WalkGroup
from darc.views.waitsview import quota_told
from darc.views.words import threads_text

_LONGER = 1.1
"""Times what was asked for: longer windows are told."""

_NAMED = 3
"""Functions that a chain's end names."""

_NOTHING = 0.001
"""Of the time: what is less may be chance, as the windows of a group are several."""


_SHORTER, _SHORTEST = 10, 0.05
"""Windows are so many times shorter, and have so many seconds at least, where those that were
asked for are too long for a program."""


def draw_walk(known: Walk, show: Callable[[str], str], *, is_over: bool) -> Iterator[Text]:
    """The lines of all groups, and what can be done next; ``is_over``: nothing comes behind it."""
    many = "window" if known.windows == 1 else "windows"
    yield Text(
        f"  {known.windows} {many} of {known.seconds:g}s{_more(known)}; calls that hold at least "
        f"{known.threshold:.0%} of their threads' time that is not idle"
    )
    is_any = any(group.is_known for group in known.groups)
    if not is_any and is_over:
        shorter = time_below(max(known.seconds / _SHORTER, _SHORTEST))
        yield Text(
            f"it ended before anything was known: 'darc walk --window {shorter}' begins anew, and "
            "takes less time for each level"
        )
    elif not is_any:
        yield Text("nothing is known yet: let the program go on")
    number = 0
    for group in known.groups:
        yield Text(f"{show(group.name)}: {_group(group, show)}", "bold")
        for chain in group.chains:
            number += 1
            yield Text(f"{number:3}  {_chain(chain, show)}")
    if (quota := quota_told(known.by_quota)) is not None:
        yield Text(quota)
    if known.lost and is_over:
        yield Text(_lost(known.lost))
    if known.left_out:
        names = first_few([show(function.name) for function, _ in known.left_out], 4)
        yield Text(f"not timed: {names} (the JSON report says why)", "dim")
    if (best := known.worthwhile) is not None:
        yield Text(
            f"'darc start {best}' looks for what makes calls of chain {best}'s last function slow",
            "dim",
        )


def _more(known: Walk) -> str:
    """What is to be said of windows that are longer, as the program's stops took long."""
    return f" to {known.longest:.1f}s" if known.longest > _LONGER * known.seconds else ""


def _lost(threads: Sequence[int]) -> str:
    """Of those that are missing above."""
    shown = first_few([str(thread) for thread in threads], _NAMED)
    which = "stacks do" if len(threads) > 1 else "stack does"
    return (
        f"left out: {threads_text(len(threads))} ({shown}), whose {which} not lead to where "
        "that began: 'darc walk FUNCTION' goes down from a function that 'bt' shows there"
    )


def _group(group: WalkGroup, show: Callable[[str], str]) -> str:
    if not group.is_known:
        return f"{threads_text(group.threads)}; not looked into yet"
    if group.is_of_callers and not group.threads:
        return "no thread was seen in it"
    parts = [threads_text(group.threads) + (" that ran it" if group.is_of_callers else "")]
    if group.idle:
        where = ", ".join(show(name) for name, _ in group.idle[:3])
        parts.append(f"idle {group.idle_share:.1%} of the time, in {where}")
    if group.ran is not None and group.ready is not None:
        rest = max(1 - group.ran - group.idle_share, 0.0)
        ready = min(group.ready, rest)
        if group.idle and group.ready - ready > _NOTHING:
            parts[-1] += f" (in {group.ready - ready:.1%} woken, but without a processor)"
        parts.append(f"ran {group.ran:.1%}, ready {ready:.1%}, blocked {rest - ready:.1%}")
    if not group.chains:
        parts.append("nothing else to walk down")
    return "; ".join(parts)


def _chain(chain: Chain, show: Callable[[str], str]) -> str:
    steps = " → ".join(f"{show(one.function.name)} {one.share:.1%}" for one in chain.steps)
    end = chain.end.value
    if chain.end is End.UNTIMED and chain.untimed:
        names = first_few([show(name) for name in chain.untimed], _NAMED)
        end = f"holds the time itself, or calls of {names}, which cannot be timed"
    if chain.spread:
        shares = [f"{show(one.function.name)} {one.share:.1%}" for one in chain.spread]
        return f"{steps}: in calls of {first_few(shares, _NAMED)}; itself {chain.own:.1%}"
    return f"{steps}: {end} ({chain.own:.1%})"
