"""``darc why``: one analysis after the other, without a word of the user's.

First profiles of many functions, until one stands out; then the search for what makes that one
slow, and up to two more that have nothing to do with it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from darc.analyses.offvotes import Rules, own_time
from darc.analyses.why import (
    SuspectCauses,
    SuspectProfiles,
    handed_in,
    idle_in,
    is_preempted,
    lacks_processor,
    seldom_waits_in,
)
from darc.app.finding import Members, Request
from darc.app.pursuit import Pursuit
from darc.code.callers import callers_of
from darc.code.patterns import parse_patterns
from darc.code.program import Program
from darc.model.errors import DarcError
from darc.model.ftree import Cause, Function, Unclear
from darc.model.functionset import FunctionSet
from darc.model.leftout import CALLED_OFF, LeftOutFor
from darc.model.ops import LEAST_FOR_ESTIMATES, OpClass
from darc.model.parameters import OnFinish, Parameters
from darc.model.part import parts_of
from darc.model.profile import OCTAVES
from darc.model.shares import SLIGHT, explained_together
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.model.why import Answer, Suspect, Verdict, Why
from darc.search.suspects import (
    LEAST_TO_JUDGE,
    agree,
    always_takes_it,
    are_alike,
    choice,
    does_the_work,
    held_up,
    is_disturbed,
    longest_tail,
    returns,
    suspects,
    usual,
    without,
)
from darc.session.session import Session

SECONDS = 30.0
"""For how long in all, where nobody says."""

_PROFILE_PART = 0.5
"""Of the time, at most, is for finding a function that stands out."""

_START_SECONDS = 0.5
"""Of a search: its function's profile is known."""

_LEAST_SECONDS = 1.0
"""A search that has less is not begun."""

_ROUNDS = 24
"""That a deep search takes, of functions that call too many for several levels at once;"""

_OF_THE_TIME = 0.8
"""and so much of its time may be for their votes."""

MOST_ANSWERS = 3
_MOST_SPELLED = 12
_MOST_SEARCHES = 6
"""With those that end in a wait for whatever comes next."""

ENOUGH_VOTES = 0.9
"""So many of the votes agree, where an answer is sure."""

_DISTURBED = (
    "calls of all functions take longer now and then, in the same measure: the machine is busy, or "
    "its host"
)

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

_ENDED = (Status.FOUND, Status.MAX_DEPTH, Status.INCONCLUSIVE, Status.DONE)
"""How an analysis has ended that another one may follow."""

WHOLE_PROGRAM = "the program's functions"
WHERE_IT_WORKS = "functions of its libraries"


class WhyPursuit(Pursuit):
    """What ``darc why`` was asked for, and what it has come to."""

    def __init__(
        self,
        seconds: float,
        parameters: Parameters,
        spell: Callable[[Function], str] = lambda function: function.name,
    ) -> None:
        """``seconds`` are for all of it, from when functions are timed; the ``max_time`` of the
        ``parameters`` from when it was asked for. ``spell`` tells what to type for a
        function, at a stop."""
        self._spell = spell
        self._spelled: dict[int, str] = {}
        """What that has told, by address."""
        self._seconds = seconds
        self._parameters = parameters
        self._begun: float | None = None
        """When functions were timed first,"""
        self._made: float | None = None
        """and when it was asked for, on the monotonic clock, less what the user took meanwhile."""
        self._set = FunctionSet(())
        self._usual: Mapping[int, tuple[Suspect, Function]] = {}
        """Of the set, as :func:`~darc.search.suspects.usual`."""
        self._suspect: Suspect | None = None
        """Whom the search that goes on is for."""
        self._searched: list[tuple[Answer, Session | None]] = []
        """Each answer, and the session that has found it."""
        self._seen: set[int] = set()
        """Addresses of functions that need no search of their own any more."""
        self._profiled = False
        self._elsewhere: tuple[int, ...] | None = None
        """Where the work is, in none of the program's own functions, yet to be profiled;"""
        self._was_elsewhere = False
        """it was."""
        self._stood: list[tuple[Session, ProgramFigures]] = []
        """Each session that is over, and what it has cost the program;"""
        self._between = self._longest_between = 0.0
        """seconds in which the program stood still between two of them, in all and at most."""
        self._is_over = False

    def first(self) -> Request:
        """What comes first: profiles of the program's own functions."""
        return self._profiles(
            functools.partial(
                Members,
                WHOLE_PROGRAM,
                tuple(parse_patterns("*")),
                looks_at_stacks=True,
                takes_unnamed=True,
            ),
            min(self._seconds, self._left),
        )

    def _further(self, places: tuple[int, ...]) -> Request:
        """What comes behind that where the program works elsewhere, at these ``places``."""
        self._was_elsewhere, self._profiled = True, False
        members = functools.partial(Members, WHERE_IT_WORKS, (), places=places)
        return self._profiles(members, self._rest)

    def _profiles(self, members: Callable[..., Members], seconds: float) -> Request:
        """Of these ``members``, with a part of the ``seconds`` that there are."""
        chosen = members(
            analysis=functools.partial(SuspectProfiles, limit=_PROFILE_PART * seconds),
            of_processes="why",
        )
        left = None if self._parameters.max_time is None else self._left
        parameters = dataclasses.replace(self._parameters, on_finish=OnFinish.STOP, max_time=left)
        return Request(
            "why",
            "main",  # before it runs
            parameters,
            chosen.analysis,
            members=chosen,
            verb="times",
            replaces_finished=True,
            stops_unseen=True,
        )

    # --------------------------------------------------------------------- steps

    def may_follow(self, session: Session) -> bool:
        return not session.alive and session.analysis.status in _ENDED

    def take(self, session: Session, shown: Snapshot) -> None:
        analysis = session.analysis
        if self._made is None:
            self._made = time.monotonic() - shown.elapsed_seconds - self.setup_seconds
        self._stood.append((session, shown.program))
        if isinstance(analysis, SuspectProfiles):
            self._set, self._profiled = analysis.known, True
            self._elsewhere = None if self._was_elsewhere else analysis.elsewhere
            if self._begun is None:
                self._begun = analysis.timed_from
            self._usual = usual(self._set)
            self._learn_to_spell()
            return
        suspect, self._suspect = self._suspect, None
        if suspect is None:
            return
        answer = self._answer(suspect, shown, session.program)
        self._add(answer, session)
        if shown.paths:
            all_of_it = session.root.walk() if answer.idle is None else ()
            nodes = (*all_of_it, *(node for path in shown.paths for node in path.nodes))
            self._seen |= {node.function.address for node in nodes}

    def _learn_to_spell(self) -> None:
        """What to type for those that are told of, while the program is there to be asked."""
        tail = longest_tail(self._set)
        found = [one.row.function for one in suspects(self._set)[:_MOST_SPELLED]]
        found += [one.row.function for one, _ in self._usual.values()][:_MOST_SPELLED]
        for function in found if tail is None else (*found, tail.row.function):
            with contextlib.suppress(DarcError):
                self._spelled[function.address] = self._spell(function)

    def stood_still(self, seconds: float) -> None:
        self._between += seconds
        self._longest_between = max(self._longest_between, seconds)

    def _answer(self, suspect: Suspect, shown: Snapshot, program: Program) -> Answer:
        """What a search has found, ``shown``, as an answer."""
        lacks = lacks_processor(shown)
        is_all = is_disturbed(self._set, suspect) and not (is_preempted(shown.paths) or lacks)
        if lacks:
            return Answer(suspect, shown, is_disturbed=is_all, spent_alike=_spent_alike(shown))
        idle, handed = idle_in(shown), handed_in(shown.paths)
        wait = seldom_waits_in(shown)
        if wait is not None:
            callers = callers_of(program, suspect.row.function)
            if any(always_takes_it(self._set, one, suspect) for one in callers):
                idle = wait
            elif not does_the_work(self._set, suspect) and not (
                callers and all(returns(self._set, one) for one in callers)
            ):
                handed = wait
        return Answer(
            suspect,
            shown,
            idle=idle,
            is_disturbed=is_all,
            handed=handed,
            spent_alike=_spent_alike(shown),
        )

    def failed(self, why: str) -> None:
        suspect, self._suspect = self._suspect, None
        if suspect is not None:
            self._add(Answer(suspect, None, why=why), None)
        else:
            self._profiled = True  # what it was before

    def _add(self, answer: Answer, session: Session | None) -> None:
        self._searched.append((answer, session))
        suspect = answer.suspect
        self._seen.add(suspect.row.function.address)
        if answer.found is not None and not answer.paths:  # nor would it be known of the same calls
            alike = (one for one in suspects(self._set) if are_alike(one, suspect))
            self._seen |= {one.row.function.address for one in alike}

    def next(self) -> tuple[int, Request] | None:
        self._suspect = None
        rest = self._rest
        places, self._elsewhere = self._elsewhere, None
        if places is not None and rest >= _LEAST_SECONDS:
            return 0, self._further(places)
        found = without(suspects(self._set), self._is_seen)
        suspect = choice(self._set, self._is_seen)
        answered = len([one for one in self._ranked(self._answers) if one.paths])
        heard = any(one.idle is None for one in self._answers)
        if suspect is None and self._answers and not heard:
            suspect = held_up(self._set, self._is_seen)
            found = found or ((suspect,) if suspect is not None else ())
        if suspect is not None and heard and is_disturbed(self._set, suspect):
            suspect = None  # one is enough to hear who had the processor
        left = min(MOST_ANSWERS - answered, _MOST_SEARCHES - len(self._answers), len(found))
        if suspect is None or left <= 0 or rest < _LEAST_SECONDS:
            self._is_over = True
            return None
        self._suspect = suspect
        is_last = left == 1 or all(are_alike(one, suspect) for one in found)
        seconds = max(_LEAST_SECONDS, rest if is_last else rest / 2)
        parameters = dataclasses.replace(
            self._parameters,
            peak=suspect.spec(1, OCTAVES),
            resolution=1,
            start_ops=None,
            start_time=min(_START_SECONDS, rest / 4),
            max_time=seconds,
            decision_ops=self._votes(suspect, seconds),
            auto=True,
            on_finish=OnFinish.STOP,
        )
        spec = self._spelled.get(suspect.row.function.address, suspect.name)
        request = Request("why", spec, parameters, SuspectCauses, verb="searches")
        return suspect.row.function.address, request

    def _votes(self, suspect: Suspect, seconds: float) -> int | None:
        """On how many slow calls a decision rests: as ever, or on fewer where they are so rare that
        a search would not come to its end with that many."""
        asked = self._parameters.decision_ops
        if asked is None:
            return None
        known = _OF_THE_TIME * seconds / _ROUNDS * suspect.slow / self._set.seconds
        return min(asked, max(LEAST_FOR_ESTIMATES, round(known)))

    @property
    def _rest(self) -> float:
        """Seconds that are left."""
        begun = self._begun
        timed = 0.0 if begun is None else time.monotonic() - begun
        return min(self._seconds - timed, self._left)

    @property
    def _left(self) -> float:
        """Seconds of the limit for all of it, with what comes before functions are timed."""
        limit, made = self._parameters.max_time, self._made
        if limit is None:
            return math.inf
        return limit - (0.0 if made is None else time.monotonic() - made)

    @property
    def _answers(self) -> list[Answer]:
        return [answer for answer, _ in self._searched]

    def _is_seen(self, function: Function) -> bool:
        return function.address in self._seen or function.address in self._usual

    @property
    def sessions(self) -> list[Session]:
        """Those that have searched."""
        return [session for _, session in self._searched if session is not None]

    @property
    def best(self) -> Session | None:
        ranked = self._ranked(self._answers)
        if not ranked or not ranked[0].paths:
            return None
        return next(session for answer, session in self._searched if answer is ranked[0])

    # ---------------------------------------------------------------------- views

    def with_answer(self, session: Session, shown: Snapshot) -> Snapshot:
        """What ``session`` has found so far, which is ``shown``, with what is made of it, and what
        all sessions together have cost the program."""
        why = self.known(session, shown)
        figures = dataclasses.replace(
            shown.program,
            stops=why.stops,
            stopped_seconds=round(why.stopped_seconds, 6),
            setup_seconds=round(why.setup_seconds, 6),
            longest_stop=round(why.longest_stop, 6),
        )
        return dataclasses.replace(shown, program=figures, parts={**shown.parts, **parts_of(why)})

    def known(self, session: Session, shown: Snapshot) -> Why:
        """What is known by now, with what ``session`` has found so far, which is ``shown``."""
        answers, known, suspect = self._answers, self._set, self._suspect
        profiled = shown.part(FunctionSet)
        if not self._profiled and profiled is not None:
            known = profiled
        elif suspect is not None:
            answers.append(self._answer(suspect, shown, session.program))
        idle = [one for one in answers if one.idle is not None or one.is_disturbed]
        ranked = self._ranked(answers)
        told = (*ranked, *idle)
        repeated = [one for one in answers if all(one is not other for other in told)]
        has_ended = not session.alive and session.analysis.status is Status.ENDED
        verdict, reasons = self._verdict(known, ranked, idle, has_ended=has_ended)
        is_sure = False
        if verdict is Verdict.FOUND:
            reasons = self._doubts(known, ranked, idle, repeated)
            is_sure = not reasons
        spent = [figures for _, figures in self._stood]
        if all(one is not session for one, _ in self._stood):
            spent.append(shown.program)
        return Why(
            spelled=dict(self._spelled),
            stops=sum(figures.stops for figures in spent),
            stopped_seconds=sum(figures.stopped_seconds for figures in spent) + self._between,
            longest_stop=max([self._longest_between, *(one.longest_stop for one in spent)]),
            setup_seconds=self.setup_seconds,
            verdict=verdict,
            answers=tuple(ranked[:MOST_ANSWERS]),
            making=known.making,
            functions=len(known.rows),
            calls=sum(row.profile.count for row in known.rows),
            seconds=known.seconds,
            is_sure=is_sure,
            reasons=tuple(reasons),
            open=self._open(known, ranked, idle)[:MOST_ANSWERS],
            tail=longest_tail(known) if verdict in (Verdict.NOTHING, Verdict.WAITS) else None,
            is_over=self._is_over or not session.alive,
            has_ended=has_ended,
            is_cut=(self._parameters.max_time or math.inf) < self._seconds,
            idle=tuple((o.suspect, o.idle) for o in idle if o.idle is not None),
            usual=tuple(left_out for at, left_out in self._usual.items() if at not in self._seen)[
                :MOST_ANSWERS
            ],
        )

    @staticmethod
    def _ranked(answers: Sequence[Answer]) -> list[Answer]:
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

    def _verdict(
        self,
        known: FunctionSet,
        ranked: Sequence[Answer],
        idle: Sequence[Answer],
        *,
        has_ended: bool,
    ) -> tuple[Verdict, list[str]]:
        if ranked and ranked[0].paths:
            return Verdict.FOUND, []
        reasons = []
        if ranked:
            names = ", ".join(one.suspect.name for one in ranked)
            reasons.append(f"slow now and then, and why was not known by then: {names}")
        if self._open(known, ranked, idle):
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
        if not self._profiled and has_ended:
            return Verdict.UNKNOWN, [
                f"the program ended after {known.seconds:.1f}s, before half of the time was over, "
                "for which nothing has to stand out"
            ]
        if not self._profiled:
            return Verdict.UNKNOWN, ["it has only just begun"]
        if any(one.is_disturbed for one in idle):
            return Verdict.NOTHING, [_DISTURBED]
        verdict = Verdict.WAITS if idle else Verdict.NOTHING
        if verdict is Verdict.NOTHING and (little := _saw_little(known)) is not None:
            return Verdict.UNKNOWN, [little, *_went_out(known), *_not_timed(known)]
        if _are_many_late(known):  # the one that is slow may be among them
            verdict = Verdict.UNKNOWN
        return verdict, [*_went_out(known), *_not_timed(known)]

    def _open(
        self, known: FunctionSet, ranked: Sequence[Answer], idle: Sequence[Answer]
    ) -> tuple[Suspect, ...]:
        """Suspects that are slow by themselves, and that no search was for."""
        looked = {one.suspect.row.function.address for one in (*ranked, *idle)} | self._seen
        looked |= self._usual.keys()
        return tuple(
            one
            for one in suspects(known)
            if one.row.function.address not in looked and not is_disturbed(known, one)
        )

    def _doubts(
        self,
        known: FunctionSet,
        ranked: Sequence[Answer],
        idle: Sequence[Answer],
        repeated: Sequence[Answer],
    ) -> list[str]:
        """Why the first answer is not sure."""
        first = ranked[0]
        doubts = []
        out = {node.function.address for one in idle for path in one.paths for node in path.nodes}
        out |= {one.suspect.row.function.address for one in (*idle, *repeated)}
        out |= self._usual.keys()
        if not agree(known, lambda function: function.address in out):
            doubts.append("the two halves of the time choose different functions")
        slower = [
            one.suspect.name
            for one in ranked
            if not one.paths and one.suspect.delay > first.suspect.delay
        ]
        if slower:
            doubts.append(f"longer delays, and why was not known by then: {', '.join(slower)}")
        if first.handed is not None:
            doubts.append(f"whether it waits in {first.handed} for its next work, nobody can tell")
        kept = None if first.found is None else first.found.ops
        is_watched = kept is not None and any(op.off is not None for op in kept.ops)
        doubts += [
            f"whether {path.nodes[-1].function.name} ran or waited is not known"
            for path in first.paths
            if Unclear.HOW_SPENT in path.ending.unclear
            or (path.ending.cause is Cause.FUNCTION and not is_watched)
        ]
        doubts += [
            f"calls of {path.nodes[-1].function.name} could not be timed: {Unclear.WHOSE.value}"
            for path in first.paths
            if Unclear.WHOSE in path.ending.unclear
        ]
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


def _spent_alike(shown: Snapshot) -> float:
    """See :attr:`Answer.spent_alike`: over all paths that end in what a function's own time was
    spent in, each with the kept calls that voted for it."""
    ops = () if shown.ops is None else shown.ops.sample(OpClass.IN_PEAK)
    won = asked = 0
    for path in shown.paths:
        root, last, cause = path.nodes[0], path.nodes[-1], path.ending.cause
        is_own = last.decision is not None and last.self_maxcount
        if is_own and (cause is Cause.BLOCKED or (cause is Cause.PREEMPTION and last is not root)):
            own = own_time(last, root, ops, Rules(shown.parameters.resolution))
            won, asked = won + own.won[cause], asked + own.ops
    return won / asked if asked else 1.0


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


def _saw_little(known: FunctionSet) -> str | None:
    """Why nothing follows from that nothing stands out: few functions were called of those that
    were timed, and more were not timed at all, as they were too many, or took too long."""
    timed = len(known.rows) + len(known.uncalled)
    left = sum(why.kind is not LeftOutFor.ITSELF for _, why in known.left_out)
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
    late = sum(why.kind is LeftOutFor.TIME for _, why in known.left_out)
    return late >= max(_FEW_LATE, _MANY_LATE * (timed + late))


def _not_timed(known: FunctionSet) -> list[str]:
    """How many of the functions were left out, as there are too many of them, as their probes took
    too long, and as the user did not want to wait for that."""
    kinds = Counter(why.kind for _, why in known.left_out)
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
