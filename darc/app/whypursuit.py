"""``darc why``: one analysis after the other, without a word of the user's.

What comes next is an :class:`~darc.search.inquiry.Inquiry`'s to say, and what is made of it all its
evidence's. Here are the sessions, the clock, and what they have cost the program.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import time
from collections.abc import Callable

from darc.analyses.why import DONE_BY_LOOPS, SuspectCauses, SuspectProfiles
from darc.analyses.whyanswer import answer_to
from darc.app.finding import Request
from darc.app.pursuit import Pursuit
from darc.code.patterns import parse_patterns
from darc.collectors.setmembers import Members
from darc.model.errors import DarcError
from darc.model.ftree import Function
from darc.model.functionset import FunctionSet
from darc.model.parameters import OnFinish, Parameters
from darc.model.part import parts_of
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.model.why import Answer, Why
from darc.search.inquiry import PROFILE_PART, Elsewhere, Inquiry, Search
from darc.session.session import Session

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
        spelling: Callable[[], Callable[[Function], str]] = lambda: lambda function: function.name,
    ) -> None:
        """``seconds`` are for all of it, from when functions are timed; the ``max_time`` of the
        ``parameters`` from when it was asked for. At a stop ``spelling`` gives what tells what to
        type for a function, for as long as that lasts."""
        self._spelling = spelling
        self._spelled: dict[int, str] = {}
        """What that has told, by address."""
        self._seconds = seconds
        self._parameters = parameters
        self._inquiry = Inquiry(parameters)
        self._begun: float | None = None
        """When functions were timed first,"""
        self._made: float | None = None
        """and when it was asked for, on the monotonic clock, less what the user took meanwhile."""
        self._searched: list[tuple[Answer, Session]] = []
        """Each answer of a search that was begun, and the session that has found it."""
        self._stood: list[tuple[Session, ProgramFigures]] = []
        """Each session that is over, and what it has cost the program;"""
        self._between = self._longest_between = 0.0
        """seconds in which the program stood still between two of them, in all and at most."""

    def first(self) -> Request:
        """What comes first: profiles of the program's own functions."""
        return self._profiles(
            Members(
                WHOLE_PROGRAM,
                tuple(parse_patterns("*")),
                done_by_loops=DONE_BY_LOOPS,
                takes_unnamed=True,
            ),
            min(self._seconds, self._left),
        )

    def _further(self, places: tuple[int, ...]) -> Request:
        """What comes behind that where the program works elsewhere, at these ``places``."""
        return self._profiles(Members(WHERE_IT_WORKS, (), places=places), self._rest)

    def _profiles(self, members: Members, seconds: float) -> Request:
        """Of these ``members``, with a part of the ``seconds`` that there are."""
        left = None if self._parameters.max_time is None else self._left
        parameters = dataclasses.replace(self._parameters, on_finish=OnFinish.STOP, max_time=left)
        return Request(
            "why",
            "main",  # before it runs
            parameters,
            functools.partial(SuspectProfiles, limit=PROFILE_PART * seconds),
            finder=members,
            verb="times",
            replaces_finished=True,
            stops_unseen=True,
        )

    # --------------------------------------------------------------------- steps

    def may_follow(self, session: Session) -> bool:
        return not session.alive and session.analysis.status in _ENDED

    def take(self, session: Session, shown: Snapshot) -> None:
        analysis, inquiry = session.analysis, self._inquiry
        if self._made is None:
            self._made = time.monotonic() - shown.elapsed_seconds - self.setup_seconds
        self._stood.append((session, shown.program))
        if isinstance(analysis, SuspectProfiles):
            if self._begun is None:
                self._begun = analysis.timed_from
            inquiry.profiled(analysis.known, analysis.elsewhere)
            self._learn_to_spell()
        elif (answer := self._answer(session, shown)) is not None:
            self._searched.append((answer, session))
            inquiry.answered(answer, session.root)

    def _learn_to_spell(self) -> None:
        """What to type for those that are told of, while the program is there to be asked."""
        with contextlib.suppress(DarcError):
            spell = self._spelling()
            for function in self._inquiry.told_of:
                self._spelled[function.address] = spell(function)

    def stood_still(self, seconds: float) -> None:
        self._between += seconds
        self._longest_between = max(self._longest_between, seconds)

    def _answer(self, session: Session, shown: Snapshot) -> Answer | None:
        """What a search has found, ``shown``, as an answer; ``None``: it is none."""
        suspect = self._inquiry.suspect
        if suspect is None:
            return None
        return answer_to(suspect, shown, self._inquiry.known, session.program)

    def failed(self, why: str) -> None:
        self._inquiry.failed(why)

    def next(self) -> tuple[int, Request] | None:
        match self._inquiry.next(self._rest):
            case Elsewhere(places):
                return 0, self._further(places)
            case Search(suspect, parameters):
                function = suspect.row.function
                spec = self._spelled.get(function.address, suspect.name)
                request = Request("why", spec, parameters, SuspectCauses, verb="searches")
                return function.address, request
        return None

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
    def sessions(self) -> list[Session]:
        """Those that have searched."""
        return [session for _, session in self._searched]

    @property
    def best(self) -> Session | None:
        first = self._inquiry.best
        return next((session for answer, session in self._searched if answer is first), None)

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
        evidence = self._inquiry.evidence(
            shown.part(FunctionSet),
            self._answer(session, shown),
            has_ended=not session.alive and session.analysis.status is Status.ENDED,
        )
        spent = [figures for _, figures in self._stood]
        if all(one is not session for one, _ in self._stood):
            spent.append(shown.program)
        return dataclasses.replace(
            evidence.why(),
            spelled=dict(self._spelled),
            stops=sum(figures.stops for figures in spent),
            stopped_seconds=sum(figures.stopped_seconds for figures in spent) + self._between,
            longest_stop=max([self._longest_between, *(one.longest_stop for one in spent)]),
            setup_seconds=self.setup_seconds,
            is_over=self._inquiry.is_over or not session.alive,
            is_cut=(self._parameters.max_time or math.inf) < self._seconds,
        )
