"""What ``darc why`` looks into, in which order, and for how long: first profiles of many functions,
then searches for what makes one of them slow, and up to two more that have nothing to do with it.

It is told what each step has found and how much time is left, and says what comes next.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from darc.model.ftree import Fnode, Function
from darc.model.functionset import FunctionSet
from darc.model.ops import LEAST_FOR_ESTIMATES
from darc.model.parameters import OnFinish, Parameters
from darc.model.profile import OCTAVES
from darc.model.why import Answer, Suspect
from darc.search.suspects import (
    are_alike,
    choice,
    held_up,
    is_disturbed,
    suspects,
    tails,
    too_few,
    usual,
    without,
)
from darc.search.verdict import MOST_ANSWERS, Evidence, ranked

SECONDS = 30.0
"""For how long in all, where nobody says."""

PROFILE_PART = 0.5
"""Of the time, at most, is for finding a function that stands out."""

_START_SECONDS = 0.5
"""Of a search: its function's profile is known."""

_LEAST_SECONDS = 1.0
"""A search that has less is not begun."""

_ENOUGH_SECONDS = 6.0
"""In which most searches come to their end, also on a busy machine."""

_ROUNDS = 24
"""That a deep search takes, of functions that call too many for several levels at once;"""

_OF_THE_TIME = 0.8
"""and so much of its time may be for their votes."""

_MOST_SEARCHES = 6
"""With those that end in a wait for whatever comes next."""

_MOST_SPELLED = 12
"""Functions of each kind that may be told of."""


@dataclass(frozen=True)
class Elsewhere:
    """The next step: profiles of what the program does its work in."""

    places: tuple[int, ...]
    """Where that is, the most frequent first."""


@dataclass(frozen=True)
class Search:
    """The next step: for what makes a suspect slow."""

    suspect: Suspect
    parameters: Parameters


class Inquiry:
    """One, by these ``parameters``."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self.known = FunctionSet(())
        """The profiles."""
        self.suspect: Suspect | None = None
        """Whom the search that goes on is for."""
        self.is_over = False
        """Whether nothing comes next."""
        self._usual: Mapping[int, tuple[Suspect, Function]] = {}
        """Of the profiles, as :func:`~darc.search.suspects.usual`."""
        self._answers: list[Answer] = []
        self._seen: set[int] = set()
        """Addresses of functions that need no search of their own any more."""
        self._is_profiled = False
        self._elsewhere: tuple[int, ...] | None = None
        """Where the work is, in none of the program's own functions, yet to be profiled;"""
        self._was_elsewhere = False
        """it was."""

    # --------------------------------------------------------------- what was found

    def profiled(self, known: FunctionSet, elsewhere: tuple[int, ...] | None) -> None:
        """Functions were timed; the program works ``elsewhere``, at these places."""
        self.known, self._is_profiled = known, True
        self._elsewhere = None if self._was_elsewhere else elsewhere
        self._usual = usual(known)

    def answered(self, answer: Answer, root: Fnode | None) -> None:
        """A search has ended; ``root`` is its tree, where it was begun."""
        self.suspect = None
        self._answers.append(answer)
        suspect = answer.suspect
        self._seen.add(suspect.row.function.address)
        if answer.found is not None and not answer.paths:  # nor would it be known of the same calls
            alike = (one for one in suspects(self.known) if are_alike(one, suspect))
            self._seen |= {one.row.function.address for one in alike}
        if answer.paths:
            all_of_it = root.walk() if root is not None and answer.idle is None else ()
            nodes = (*all_of_it, *(node for path in answer.paths for node in path.nodes))
            self._seen |= {node.function.address for node in nodes}

    def failed(self, why: str) -> None:
        """What came next could not be begun."""
        if self.suspect is not None:
            self.answered(Answer(self.suspect, None, why=why), None)
        else:
            self._is_profiled = True  # what it was before

    # ---------------------------------------------------------------- what comes next

    def next(self, rest: float) -> Elsewhere | Search | None:
        """The next step, where ``rest`` is left of the seconds; ``None``: that was all."""
        self.suspect = None
        places, self._elsewhere = self._elsewhere, None
        if places is not None and rest >= _LEAST_SECONDS:
            self._was_elsewhere, self._is_profiled = True, False
            return Elsewhere(places)
        suspect = self._choice()
        if suspect is None or rest < _LEAST_SECONDS or self._searches_left <= 0:
            self.is_over = True
            return None
        self.suspect = suspect
        found = without(suspects(self.known), self._is_seen)
        is_last = self._searches_left == 1 or all(are_alike(one, suspect) for one in found)
        return Search(suspect, self._for_search(suspect, rest, is_last=is_last))

    def _choice(self) -> Suspect | None:
        """Whom to look into now."""
        heard = [one for one in self._answers if one.idle is None and one.handed is None]
        told = [one.suspect for one in heard if one.paths]
        suspect = choice(self.known, self._is_seen, told)
        if suspect is None and self._answers and not heard:
            return held_up(self.known, self._is_seen)
        if suspect is not None and heard and is_disturbed(self.known, suspect):
            return None  # one is enough to hear who had the processor
        return suspect

    @property
    def _searches_left(self) -> int:
        """As far as answers that are told, and all, are limited."""
        answered = sum(bool(one.paths) for one in ranked(self._answers))
        return min(MOST_ANSWERS - answered, _MOST_SEARCHES - len(self._answers))

    def _for_search(self, suspect: Suspect, rest: float, *, is_last: bool) -> Parameters:
        """What a search is to be made by, which may take half of the time where it is not the last
        one, and all where half of it is too little: what comes first costs most."""
        part = max(rest / 2, min(rest, _ENOUGH_SECONDS))
        seconds = max(_LEAST_SECONDS, rest if is_last else part)
        return dataclasses.replace(
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

    def _votes(self, suspect: Suspect, seconds: float) -> int | None:
        """On how many slow calls a decision rests: as ever, or on fewer where they are so rare that
        a search would not come to its end with that many."""
        asked = self._parameters.decision_ops
        if asked is None:
            return None
        known = _OF_THE_TIME * seconds / _ROUNDS * suspect.slow / self.known.seconds
        return min(asked, max(LEAST_FOR_ESTIMATES, round(known)))

    def _is_seen(self, function: Function) -> bool:
        return function.address in self._seen or function.address in self._usual

    # ------------------------------------------------------------------ what is known

    @property
    def told_of(self) -> list[Function]:
        """The functions that the user may be told to look into."""
        found = [one.row.function for one in suspects(self.known)[:_MOST_SPELLED]]
        found += [one.row.function for one, _ in self._usual.values()][:_MOST_SPELLED]
        rare = too_few(self.known, self._is_seen)
        found += [] if rare is None else [rare.row.function]
        return found + [one.row.function for one in tails(self.known)[:_MOST_SPELLED]]

    @property
    def best(self) -> Answer | None:
        """The first answer, where that is one."""
        first = next(iter(ranked(self._answers)), None)
        return first if first is not None and first.paths else None

    def evidence(
        self, profiles: FunctionSet | None, answer: Answer | None, *, has_ended: bool
    ) -> Evidence:
        """All that is known by now, with what the step that goes on has found so far: ``profiles``,
        or an ``answer``. The program may have ended meanwhile."""
        return Evidence(
            known=self.known if self._is_profiled or profiles is None else profiles,
            answers=(*self._answers, *(() if answer is None else (answer,))),
            usual=self._usual,
            seen=self._seen,
            is_profiled=self._is_profiled,
            has_ended=has_ended,
        )
