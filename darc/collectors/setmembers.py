"""Which functions a set has: those that patterns mean, or those where the program works.

Of too many those come first that are under way and what these call, then those that are called from
the most places.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from darc.code.callers import called_by_loops, most_called, reached
from darc.code.patterns import Chosen, Pattern, choose, told_of_missing
from darc.code.program import Program
from darc.code.stacks import under_way
from darc.collectors.finder import Finder, FinderBrief, FoundFunctions
from darc.collectors.set_collector import MOST_FUNCTIONS, SetCollector
from darc.model.errors import UnsupportedError, UsageError
from darc.model.ftree import Function
from darc.model.leftout import too_many
from darc.model.leftoutmany import LeftOutMany

_MOST_REACHED = 500
"""Functions that are taken where the program works: most of what these call is not."""

_MOST_FILES = 4
"""Modules of a kernel's that are named."""


@dataclass(frozen=True)
class Members(Finder):
    """The functions of a set, as ``text`` was typed."""

    text: str
    patterns: tuple[Pattern, ...]
    done_by_loops: frozenset[str] = frozenset()
    """What functions are called in libraries that are timed as well where a loop of the program's
    own calls them that never returns."""
    places: tuple[int, ...] | None = None
    """Addresses in functions: where they are given, these and what they call are meant, in whatever
    file, and no pattern."""
    takes_unnamed: bool = False
    """Whether functions of the program's own file without symbols are among them."""

    @property
    def named(self) -> Sequence[Pattern]:
        return () if self.takes_unnamed else self.patterns

    def find(self, brief: FinderBrief) -> FoundFunctions:
        """Raises NotFoundError: no pattern means any; UnsupportedError: there are no sets here."""
        if (why := SetCollector.problem(brief.debuggee)) is not None:
            raise UnsupportedError(why)
        chosen = self.choose(brief)
        if not chosen.functions:
            raise UsageError(f"{self.text}: {chosen.left_out[0][1].text}")
        way = SetCollector.of(
            chosen.functions,
            left_out=chosen.left_out,
            runs=brief.runs,
            progress=brief.progress,
        )
        notes = [*told_of_modules(chosen.elsewhere), *told_of_missing(chosen.missing)]
        return FoundFunctions(chosen.functions[0].address, way, notes)

    def choose(self, brief: FinderBrief) -> Chosen:
        """Those that are timed, and those that are not. Raises NotFoundError."""
        program, progress = brief.program, brief.progress
        active = functools.cache(functools.partial(under_way, program, brief.target))
        if self.places is not None:
            progress("looks for functions where the program works")
            places = self.places or active()
            return _whole(program, Chosen(tuple(reached(program, places, _MOST_REACHED))))
        entry = brief.debuggee.entry()
        own = None if entry is None else program.module_at(entry)
        chosen = choose(
            program,
            brief.target,
            patterns=self.patterns,
            own=own or program.first_file,
            progress=progress,
            unnamed=self.takes_unnamed,
        )
        elsewhere, missing = chosen.elsewhere, chosen.missing
        chosen = most_called(
            program,
            chosen,
            most=MOST_FUNCTIONS,
            progress=progress,
            active=active if brief.debuggee.sees_all_threads else tuple,
        )
        if own is not None and self.done_by_loops:
            loops = called_by_loops(program, active(), own, self.done_by_loops)
            chosen = _with_others(chosen, loops)
        chosen = _whole(program, chosen) if self.takes_unnamed else chosen
        return replace(chosen, elsewhere=elsewhere, missing=missing)


def told_of_modules(elsewhere: Sequence[str]) -> list[str]:
    """What to say of functions that a set is without, as a kernel's modules have them."""
    if not elsewhere:
        return []
    more = len(elsewhere) - _MOST_FILES
    which = ", ".join(elsewhere[:_MOST_FILES]) + (f" and {more} others" if more > 0 else "")
    return [f"modules have more: {which}"]


def _whole(program: Program, chosen: Chosen) -> Chosen:
    """Without the parts of functions that a compiler has split off."""
    whole = tuple(one for one in chosen.functions if program.outlines.may_be_function(one.address))
    return replace(chosen, functions=whole) if whole else chosen


def _with_others(chosen: Chosen, others: Sequence[Function]) -> Chosen:
    """With ``others`` in place of the last ones, where there are too many with them."""
    room = MOST_FUNCTIONS - len(others)
    taken, rest = chosen.functions[:room], chosen.functions[room:]
    why = too_many(MOST_FUNCTIONS)
    left_out = LeftOutMany.of(chosen.left_out) + ((function, why) for function in rest)
    return Chosen((*taken, *others), left_out)
