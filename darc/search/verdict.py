"""What ``darc why`` says in the end, how sure that is, and the words for it.

Of all that is known by then: profiles of many functions, and what searches have said of some.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from darc.model.ftree import Cause, Function, Unclear
from darc.model.functionset import FunctionSet
from darc.model.leftout import CALLED_OFF, LeftOutFor
from darc.model.shares import SLIGHT, explained_together
from darc.model.status import Status
from darc.model.why import Answer, Suspect, Verdict, Why
from darc.search.halves import agree
from darc.search.suspects import (
    LEAST_TO_JUDGE,
    are_alike,
    costs_more,
    is_disturbed,
    longest_tail,
    outweighs,
    seconds_for,
    suspects,
    too_few,
)

MOST_ANSWERS = 3

ENOUGH_VOTES = 0.9
"""So many of the votes agree, where an answer is sure."""

_ENOUGH_TIME = 0.5
"""Of the slow calls' time is explained by an answer that is sure."""

_MOST_NAMED = 5
"""Functions in a sentence."""

_FEW_CALLED = 20
"""Functions that were called: a program that works calls more."""

_MANY_LATE = 0.1
"""Of the functions that were to be timed,"""

_FEW_LATE = 20
"""and at least so many."""

_DISTURBED = (
    "calls of all functions take longer now and then, in the same measure: the machine is busy, or "
    "its host"
)


@dataclass(frozen=True)
class Evidence:
    """All that is known by now."""

    known: FunctionSet
    answers: Sequence[Answer]
    """In the order of the searches."""
    usual: Mapping[int, tuple[Suspect, Function]]
    """As :func:`~darc.search.suspects.usual`."""
    seen: AbstractSet[int]
    """Addresses of functions that need no search of their own any more."""
    is_profiled: bool
    """Whether the functions were timed for as long as it takes."""
    has_ended: bool
    """Whether the program is gone."""

    @functools.cached_property
    def ranked(self) -> list[Answer]:
        """The answers, the first one first: see :func:`ranked`."""
        return ranked(self.answers)

    @functools.cached_property
    def idle(self) -> list[Answer]:
        """Those that say that nothing is slow by itself there."""
        return [one for one in self.answers if one.idle is not None or one.is_disturbed]

    @functools.cached_property
    def open(self) -> tuple[Suspect, ...]:
        """Suspects that are slow by themselves, and that no search was for."""
        return tuple(
            one
            for one in suspects(self.known)
            if one.row.function.address not in self._looked and not is_disturbed(self.known, one)
        )

    @functools.cached_property
    def _looked(self) -> AbstractSet[int]:
        """Addresses of functions that need no search of their own, or had one, or the usual."""
        looked = {one.suspect.row.function.address for one in (*self.ranked, *self.idle)}
        return looked | self.seen | self.usual.keys()

    def why(self) -> Why:
        """What is made of that."""
        known = self.known
        verdict, reasons = self._verdict()
        rare = None
        if verdict in (Verdict.NOTHING, Verdict.WAITS) and (rare := self._rare()) is not None:
            verdict = Verdict.UNKNOWN
        tail = self._tail(verdict)
        costlier, is_sure = None, False
        if verdict is Verdict.FOUND:
            costlier = self._costlier()
            reasons = self._doubts(tail)
            is_sure = not reasons and costlier is None
        usual = [left_out for at, left_out in self.usual.items() if at not in self.seen]
        return Why(
            verdict=verdict,
            answers=tuple(self.ranked[:MOST_ANSWERS]),
            making=known.making,
            functions=len(known.counted),
            calls=sum(row.profile.count for row in known.rows),
            seconds=known.seconds,
            is_sure=is_sure,
            reasons=tuple(reasons),
            open=self.open[:MOST_ANSWERS],
            tail=tail,
            costlier=costlier,
            rare=rare,
            rare_seconds=0.0 if rare is None else seconds_for(rare),
            has_ended=self.has_ended,
            idle=tuple((o.suspect, o.idle) for o in self.idle if o.idle is not None),
            usual=tuple(usual[:MOST_ANSWERS]),
        )

    def _costlier(self) -> Suspect | None:
        """See :attr:`Why.costlier`."""
        first = self.ranked[0].suspect
        unknown = [one.suspect for one in self.ranked if not one.paths]
        unknown += [one for one in self.open if not are_alike(one, first)]
        found = [one for one in unknown if costs_more(one, first)]
        return max(found, key=lambda one: one.delay, default=None)

    def _rare(self) -> Suspect | None:
        """See :attr:`Why.rare`."""
        out = self._looked | self._out
        return too_few(self.known, lambda function: function.address in out)

    def _tail(self, verdict: Verdict) -> Suspect | None:
        """See :attr:`Why.tail`."""
        if verdict is Verdict.UNKNOWN:
            return None
        out = self._looked | self._out
        tail = longest_tail(self.known, lambda function: function.address in out)
        if tail is not None and verdict is Verdict.FOUND:
            return tail if outweighs(tail, self.ranked[0].suspect) else None
        return tail

    def _verdict(self) -> tuple[Verdict, list[str]]:
        """And why it is no better one."""
        known = self.known
        if self.ranked and self.ranked[0].paths:
            return Verdict.FOUND, []
        reasons = []
        if self.ranked:
            names = ", ".join(one.suspect.name for one in self.ranked)
            reasons.append(f"slow now and then, and why was not known by then: {names}")
        if self.open:
            reasons.append("it ended before all that is slow now and then was looked into")
        if reasons:
            return Verdict.UNKNOWN, reasons
        if not (known.rows or known.uncalled) or not known.seconds:
            why = "it ended before anything was timed: probes were still being made"
            if known.making is not None:
                return Verdict.UNKNOWN, _not_timed(known)  # how far they were is told
            return Verdict.UNKNOWN, [why, *_not_timed(known)]
        if not known.rows:
            why = (
                "no function that was timed was called: 'darc profile LIBRARY!*' times a library's"
            )
            return Verdict.UNKNOWN, [why, *_not_timed(known)]
        most = max(row.profile.count for row in known.rows)
        if most < LEAST_TO_JUDGE:
            why = f"no function was called {LEAST_TO_JUDGE} times in {known.seconds:.1f}s"
            return Verdict.UNKNOWN, [why, *_not_timed(known)]
        if not self.is_profiled and self.has_ended:
            return Verdict.UNKNOWN, [
                f"the program ended after {known.seconds:.1f}s, before half of the time was over, "
                "for which nothing has to stand out"
            ]
        if not self.is_profiled:
            return Verdict.UNKNOWN, ["it has only just begun"]
        if any(one.is_disturbed for one in self.idle):
            return Verdict.NOTHING, [_DISTURBED]
        verdict = Verdict.WAITS if self.idle else Verdict.NOTHING
        if verdict is Verdict.NOTHING and (little := _saw_little(known)) is not None:
            return Verdict.UNKNOWN, [little, *_went_out(known), *_not_timed(known)]
        if _are_many_late(known):  # the one that is slow may be among them
            verdict = Verdict.UNKNOWN
        return verdict, [*_went_out(known), *_not_timed(known)]

    def _doubts(self, tail: Suspect | None) -> list[str]:
        """Why the first answer is not sure; the ``tail`` is told beside it."""
        first, out = self.ranked[0], self._out
        doubts = []
        if not agree(self.known, lambda function: function.address in out):
            doubts.append("the two halves of the time choose different functions")
        slower = [
            one.suspect.name
            for one in self.ranked
            if not one.paths and one.suspect.delay > first.suspect.delay
        ]
        if slower:
            doubts.append(f"longer delays, and why was not known by then: {', '.join(slower)}")
        if tail is not None:
            doubts.append(f"a longer delay, as a long tail, was not looked into: {tail.name}")
        if first.doubt is not None:
            doubts.append(first.doubt)
        doubts += _unclear_ends(first)
        if first.agreement < ENOUGH_VOTES:
            doubts.append(f"{first.agreement:.0%} of the votes agree".replace("%", " %"))
        share = None if first.found is None else explained_together(first.paths, first.found)
        if share is not None and share < _ENOUGH_TIME:
            told = f"{share:.0%}".replace("%", " %")
            causes = "the root cause explains" if len(first.paths) == 1 else "the causes explain"
            doubts.append(f"{causes} {told} of the slow calls' time")
        if first.found is not None and first.found.status is not Status.FOUND:
            doubts.append("the search was not at its end")
        return doubts

    @property
    def _out(self) -> AbstractSet[int]:
        """Addresses of functions that are none to be chosen: those that are idle, with what they
        call on their paths, those that tell of another one's calls once more, and the usual."""
        told = (*self.ranked, *self.idle)
        repeated = [one for one in self.answers if all(one is not other for other in told)]
        paths = (path for one in self.idle for path in one.paths)
        out = {node.function.address for path in paths for node in path.nodes}
        out |= {one.suspect.row.function.address for one in (*self.idle, *repeated)}
        return out | self.usual.keys()


def _unclear_ends(answer: Answer) -> list[str]:
    """What is not known of the ends of its paths."""
    kept = None if answer.found is None else answer.found.ops
    is_watched = kept is not None and any(op.off is not None for op in kept.ops)
    ends = [(path.nodes[-1].function.name, path) for path in answer.paths]
    return [
        *(
            f"whether {name} ran or waited is not known"
            for name, path in ends
            if Unclear.HOW_SPENT in path.ending.unclear
            or (path.ending.cause is Cause.FUNCTION and not is_watched)
        ),
        *(
            f"calls of {name} could not be timed: {Unclear.WHOSE.text}"
            for name, path in ends
            if Unclear.WHOSE in path.ending.unclear
        ),
        *(f"of {name}: {one.text}" for name, path in ends for one in path.doubts),
    ]


def ranked(answers: Sequence[Answer]) -> list[Answer]:
    """Those with an answer first, of these those that do not wait to be handed something, then
    those that are slow by themselves, unless that is slight beside what others, or the
    debugger, made them wait for, then those with the longest delay; none that is idle, or is
    slow only as all others are, or tells of another one's calls once more. One that could not
    look into all calls comes behind one that could, and may be of the same slow calls."""
    busy = [one for one in answers if one.idle is None and not one.is_disturbed]
    busy = [one for one in busy if not any(_repeats(one, o) for o in busy if o is not one)]
    whole = [one for one in busy if one.paths and not _is_cut_off(one)]

    own = [one.suspect.delay for one in busy if one.paths and not one.is_of_no_call]
    longest = max((one.suspect.delay for one in busy), default=0.0)
    has_own = SLIGHT * max(own, default=0.0) > longest

    def rank(one: Answer) -> tuple[bool, bool, bool, float, bool]:
        delay, is_cut_off = one.suspect.delay, _is_cut_off(one)
        if is_cut_off:
            alike = (o.suspect.delay for o in whole if are_alike(one.suspect, o.suspect))
            delay = min(delay, max(alike, default=delay))
        is_last = has_own and one.is_of_no_call
        return not one.paths, one.handed is not None, is_last, -delay, is_cut_off

    return sorted(busy, key=rank)


def _is_cut_off(one: Answer) -> bool:
    """Whether one of its paths ends where the time may be that of calls that could not be timed."""
    return any(Unclear.WHOSE in path.ending.unclear for path in one.paths)


def _repeats(one: Answer, other: Answer) -> bool:
    """Whether ``one`` tells of the same slow calls as ``other``, of two that are called one in the
    other: the outermost is told where all its slow calls are these, else the one with more."""
    below, above = _is_below(one, other), _is_below(other, one)
    if below == above:
        return False
    return below == are_alike(one.suspect, other.suspect)


def _is_below(one: Answer, other: Answer) -> bool:
    """Whether all that makes ``other`` slow is in calls of the function of ``one``."""
    function = one.suspect.row.function.address
    return bool(one.paths and other.paths) and all(
        any(node.function.address == function for node in path.nodes[1:]) for path in other.paths
    )


def _went_out(known: FunctionSet) -> list[str]:
    """Which functions were timed for a while only, those with most time first."""
    out = [row for row in known.rows if row.until is not None]
    if not out:
        return []
    out.sort(key=lambda row: -row.profile.total / known.seconds_of(row))
    names = [f"{row.function.name} ({row.until:.1f}s)" for row in out[:_MOST_NAMED]]
    if len(out) > _MOST_NAMED:
        names.append(f"{len(out) - _MOST_NAMED} more")
    return [
        "timed for a while only, as their calls are many and short, or call themselves: "
        f"{', '.join(names)}; what is slow in them less often was not seen: 'darc start' does not "
        "let them go out"
    ]


def _left_out(known: FunctionSet) -> Counter[LeftOutFor]:
    """How many functions were not timed, by the kind of the reason."""
    kinds: Counter[LeftOutFor] = Counter()
    for why, count in known.reasons.items():
        kinds[why.kind] += count
    return kinds


def _saw_little(known: FunctionSet) -> str | None:
    """Why nothing follows from that nothing stands out: few functions were called of those that
    were timed, and more were not timed at all, as they were too many, or took too long."""
    timed = len(known.rows) + len(known.uncalled)
    left = _left_out(known).total() - _left_out(known)[LeftOutFor.ITSELF]
    if left <= timed or len(known.rows) >= _FEW_CALLED:
        return None
    were = "was" if len(known.rows) == 1 else "were"
    return (
        f"only {len(known.rows)} of the {timed:,} functions that were timed {were} called, and "
        f"{left:,} others were not timed"
    )


def _are_many_late(known: FunctionSet) -> bool:
    """Whether the probes of so many functions were not made in time that nothing follows from what
    the others show."""
    timed = len(known.rows) + len(known.uncalled)
    late = _left_out(known)[LeftOutFor.TIME]
    return late >= max(_FEW_LATE, _MANY_LATE * (timed + late))


def _not_timed(known: FunctionSet) -> list[str]:
    """How many of the functions were left out, as there are too many of them, as their probes took
    too long, and as the user did not want to wait for that."""
    kinds = _left_out(known)
    told = []
    if called_off := kinds[LeftOutFor.USER]:
        told.append(f"{_functions(called_off)} not timed: {CALLED_OFF.text}")
    if late := kinds[LeftOutFor.TIME]:
        told.append(f"{_functions(late)} not timed: the probes were not made in time")
    if many := kinds[LeftOutFor.NUMBER]:
        told.append(
            f"{_functions(many)} not timed, as there are so many: 'darc profile PATTERN' times "
            "those that it names"
        )
    return told


def _functions(count: int) -> str:
    return "1 function was" if count == 1 else f"{count:,} functions were"
