"""Whether both halves of the time choose the same function to look into."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest

from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet
from darc.model.profile import Profile
from darc.model.slices import less
from darc.model.why import Suspect
from darc.search.suspects import ALIKE, are_alike, choice, suspects


def agree(known: FunctionSet, is_out: Callable[[Function], bool]) -> bool:
    """Whether both halves of the time choose the same function first, of those that are not out. Of
    two with the same slow calls, one in the other, it is all the same which one is chosen: what
    they take in all differs by less than bins tell of a half."""
    halves = halves_of(known)
    if halves is None:
        return False
    one, two = (choice(half, is_out) for half in halves)
    if one is None or two is None:
        return False
    return one.row.function == two.row.function or _go_together(known, one, two)


def _go_together(known: FunctionSet, one: Suspect, two: Suspect) -> bool:
    """Whether two functions, each chosen in a half of the time, have the same slow calls, as far as
    it can be told: in all of the time, and as many of them in each interval."""
    all_of_it = {suspect.row.function: suspect for suspect in suspects(known)}
    first, second = (all_of_it.get(chosen.row.function) for chosen in (one, two))
    if first is None or second is None or not are_alike(first, second):
        return False
    pairs = list(zip_longest(_slow_by_interval(first), _slow_by_interval(second), fillvalue=0))
    if known.every and first.seconds != second.seconds:
        pairs = pairs[: int(min(first.seconds, second.seconds) / known.every)]  # whole ones of both
    return bool(pairs) and sum(map(min, pairs)) >= ALIKE * sum(map(max, pairs))


def _slow_by_interval(suspect: Suspect) -> list[int]:
    """How many of its slow calls each interval has."""
    first, last = suspect.peak.first_bin, suspect.peak.last_bin
    return [
        sum(n for b, n in bins.items() if b >= first and (last is None or b <= last))
        for bins in suspect.row.lapse
    ]


def halves_of(known: FunctionSet) -> tuple[FunctionSet, FunctionSet] | None:
    """What is known of the first half of the time and of the second, by the intervals that it was
    counted in; of a function that went out, those of the time until then. ``None`` where there are
    not two intervals."""
    intervals = max((len(row.lapse) for row in known.rows), default=0)
    if known.every is None or intervals < 2:
        return None
    middle = intervals // 2
    first, second = [], []
    for row in known.rows:
        if row.until is None:
            before, part, rest = _added(row.lapse[:middle]), None, None
        else:
            own = len(row.slices) // 2
            before, part = _added(row.slices[:own]), row.until * own / max(len(row.slices), 1)
            rest = row.until - part
        first.append(_part(row, before, part))
        second.append(_part(row, less(row.profile.bins, before), rest))
    seconds = middle * known.every
    whole = dataclasses.replace(known, uncalled=(), left_out=(), every=None)
    return (
        dataclasses.replace(whole, rows=tuple(filter(None, first)), seconds=seconds),
        dataclasses.replace(
            whole, rows=tuple(filter(None, second)), seconds=known.seconds - seconds
        ),
    )


def _added(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """The calls of all these, by bin."""
    found: dict[int, int] = {}
    for one in parts:
        for number, count in one.items():
            found[number] = found.get(number, 0) + count
    return found


def _part(
    row: FunctionProfile, bins: dict[int, int], until: float | None
) -> FunctionProfile | None:
    """The row with these of its calls alone, of so many seconds where it went out. Their sum is
    not known: by the middles of bins, scaled as those of all its calls."""
    if not bins:
        return None
    whole = row.profile
    total = round(sum(n * whole.scaled_cycles(b) for b, n in bins.items()))
    profile = Profile(
        resolution=whole.resolution, hz=whole.hz, bins=bins, count=sum(bins.values()), total=total
    )
    return dataclasses.replace(row, profile=profile, until=until, slices=(), lapse=())
