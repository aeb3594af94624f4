"""What is corrected in the paths of a search that is over.

Votes are those of the agent, or of breakpoints, in some twenty calls for each level. Ops that were
kept whole know more: when their threads were off their processors, and what a path explains of
them. And what could not be told apart while votes were counted is told of each path here.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence

from darc.analyses.offvotes import (
    OffVotes,
    Rules,
    conclude,
    own_time,
    slow_all_the_same,
    time_of_program,
    votes,
)
from darc.analyses.peakprofile import PeakProfile
from darc.collectors.learnedtargets import is_others
from darc.model.enumerated import ends, first_few
from darc.model.ftree import Cause, Cut, Ending, Fnode, RootCausePath, Unclear
from darc.model.offtimes import SHORTEST_TURN
from darc.model.ops import LEAST_FOR_ESTIMATES, KeptOps, OffReason, Op, OpClass
from darc.model.parameters import Loops, Parameters
from darc.model.shares import share_of, slight, weigh
from darc.search.contest import Vote

_MUCH = 0.25
"""Of the time of calls: so much of it is told of."""

"""Notes of paths that blame nobody: they go on in what their last functions call."""

_LISTED = 3
"""Causes that a line names."""

_NOTHING = 64
"""How many times what a function takes the fastest call inside the peak takes at least, for it to
have no part in that: where one of twenty calls is slow there, it takes a twentieth."""


class Corrections:
    """Of the ``paths`` from ``root`` to what makes the calls of a peak of ``profile`` slow, as far
    as they are known in the end. Changes the ftree."""

    def __init__(
        self,
        paths: Sequence[RootCausePath],
        root: Fnode,
        profile: PeakProfile,
        parameters: Parameters,
    ) -> None:
        self._paths = paths
        self._root = root
        self._profile = profile
        self._parameters = parameters
        self.notes: list[str] = []
        """What the user is to be told,"""
        self.doubts: list[str] = []
        """and to know beside the paths."""

    def without_ops(self) -> None:
        """By the votes alone: no op was kept whole."""
        if self._parameters.auto:
            self._leave_out_passed(None)

    def by_ops(self, kept: KeptOps, *, were_watched: bool, are_all: bool) -> None:
        """By what the ops that were ``kept`` whole say; ``were_watched``: when their threads left
        their processors was seen. ``are_all``: no other path is under way."""
        rules = self._rules(kept)
        if were_watched:
            self.doubts += hear_ops(self._paths, self._root, kept, rules)
        else:
            tell_blocked(self._paths, self._root, kept, rules)
            self.doubts += tell_ready(self._paths, self._root, kept, rules)
        if not self._parameters.auto:
            return
        self.notes += leave_out_slight(self._paths, kept)
        self._leave_out_passed(kept)
        fast = self._profile.mean_below()
        self.doubts += leave_out_all(
            self._paths, kept, fast, by_longest=rules.by_longest, are_all=are_all
        )

    def _leave_out_passed(self, kept: KeptOps | None) -> None:
        self.notes += leave_out_passed(self._paths, kept, self._profile.limits()[0])

    def _rules(self, kept: KeptOps) -> Rules:
        return Rules(
            resolution=self._parameters.resolution,
            by_longest=self._parameters.loops is Loops.PAPER,
            percentage=self._parameters.maxcount_percentage,
            slow_from=self._profile.slow_from(_times_of_fastest(kept)),
            has_faster=self._profile.limits_of_fastest() != (0, 0),
            turn=round(SHORTEST_TURN * kept.hz),
        )


def _times_of_fastest(kept: KeptOps) -> list[int]:
    """What the ``kept`` ops of the fastest peak took of the program's own time."""
    watched = (op for op in kept.sample(OpClass.FASTEST) if op.off is not None)
    return [time_of_program(op) for op in watched]


def hear_ops(paths: Sequence[RootCausePath], root: Fnode, kept: KeptOps, rules: Rules) -> list[str]:
    """What ``kept`` ops of f0 (``root``) say of ``paths``, as it is known of them when their
    threads were on a processor: what a function's own time was, and whether the peak is one of
    calls that were preempted, or that the debugger held, whatever they were doing (paper 3.6). In a
    kernel the paths end in the scheduler itself where a task was off the processor, and tell all
    that. Changes the ftree; returns what the user is to be told."""
    ops = [op for op in kept.sample(OpClass.IN_PEAK) if op.off is not None]
    if len(ops) < LEAST_FOR_ESTIMATES:
        return []
    found = conclude(paths, root, ops, rules=rules, compared=kept.compared)
    for node, ending in found.endings.items():
        node.end_path(ending)
    if found.beside is None:
        few = {
            node.function.name: found.voted.votes.get(node, Vote()).votes for node in found.disputed
        }
        return of_few(few, len(ops)) + _of_ready(found.voted)
    for node in found.disputed:
        for below in node.walk():
            below.take_back()
    if root.end is None:
        root.end_path(found.beside)
    return _of_others(ops, root, rules) if found.beside.cause is Cause.STOPPED else []


def _of_others(ops: Sequence[Op], root: Fnode, rules: Rules) -> list[str]:
    """What calls are slow for that the debugger's stops do not explain."""
    others = slow_all_the_same(ops, rules)
    if not others:
        return []
    counted = votes(others, root, [root], rules).votes
    own = counted.get(root, Vote()).own
    most = max(root.children, default=root, key=lambda child: counted.get(child, Vote()).votes)
    few = counted.get(most, Vote()).votes if most is not root else 0
    where = f"in {most.function.name} in {few}" if few > own else f"in none of its calls in {own}"
    return [
        f"without the debugger's stops {len(others)} of {len(ops)} calls that were kept whole "
        f"would be slow all the same; of these, most of the time is {where}"
    ]


def of_few(votes: Mapping[str, int], count: int) -> list[str]:
    """Of functions, with how many of ``count`` kept ops they have the most time in."""
    where = (
        f"of {count} calls that were kept whole, of the time in which they had a processor or "
        "waited for something"
    )
    if len(votes) <= _LISTED:
        return [
            f"{name} has the most time in {f'only {few}' if few else 'none'} {where}"
            for name, few in votes.items()
        ]
    most = max(votes.values())
    few = f"{most} at most" if most else "none"
    return [f"{_listed(list(votes))} have the most time in {few} {where}"]


def tell_blocked(paths: Iterable[RootCausePath], root: Fnode, kept: KeptOps, rules: Rules) -> None:
    """In a kernel paths end in its scheduler where a task was off the processor, but not where that
    is below a call that could not be timed: then it is in a function's own time. Where most of that
    was spent so in the ``kept`` ops of f0 (``root``), the path's ending says it. Changes the
    ftree."""
    ops = [op for op in kept.sample(OpClass.IN_PEAK) if op.off is not None]
    if len(ops) < LEAST_FOR_ESTIMATES:
        return
    for path in paths:
        last, ending = path.nodes[-1], path.ending
        if ending.cause is not Cause.FUNCTION or (last.children and last not in kept.compared):
            continue
        own = own_time(last, root, ops, rules)
        blocked = own.off.get(OffReason.BLOCKED, 0)
        if own.cause is Cause.BLOCKED and 2 * blocked > own.ran + sum(own.off.values()):
            maxcount = own.won[Cause.BLOCKED]
            last.end_path(dataclasses.replace(ending, cause=Cause.BLOCKED, maxcount=maxcount))


def tell_ready(
    paths: Iterable[RootCausePath], root: Fnode, kept: KeptOps, rules: Rules
) -> list[str]:
    """In a kernel: where much of the time of the ``kept`` ops of f0 (``root``) was spent ready, and
    no path ends as another task ran, as that was begun by an interrupt and by no call that is
    timed. What causes explain is told of the rest, of which that time is no part."""
    ops = [op for op in kept.sample(OpClass.IN_PEAK) if op.off is not None]
    if len(ops) < LEAST_FOR_ESTIMATES or any(p.ending.cause is Cause.PREEMPTION for p in paths):
        return []
    counted = votes(ops, root, [root], rules)
    return _ready_text(counted) if counted.ready >= _MUCH * counted.latency else []


def tell_unheard(paths: Iterable[RootCausePath], kept: KeptOps | None, why: str) -> None:
    """Votes alone do not tell a function that computes from one that waits. Where ``kept`` ops
    could, but there are too few of them (``why``), the ending of each path that ends in a
    function's own time says so. Changes the ftree."""
    sample = () if kept is None else kept.sample(OpClass.IN_PEAK)
    if sum(op.off is not None for op in sample) >= LEAST_FOR_ESTIMATES:
        return
    for path in paths:
        ending, how = path.ending, Unclear.HOW_SPENT
        if ending.cause is Cause.FUNCTION and ending.cut is None and how not in ending.unclear:
            path.nodes[-1].end_path(ending.noting(f"{how.text}: {why}", how))


def tell_held(paths: Iterable[RootCausePath]) -> None:
    """Most of the time that counts as blocked may be the debugger's: the endings of paths that end
    in what waits say so. Changes the ftree."""
    _doubt((path for path in paths if path.ending.cause is Cause.BLOCKED), Unclear.WHO_HELD)


def tell_own_doing(paths: Iterable[RootCausePath]) -> None:
    """The calls of the peak are so short that what probes stop may have made them slow: the ends of
    all ``paths`` say so. Changes the ftree."""
    _doubt(paths, Unclear.WHOSE_DOING)


def _doubt(paths: Iterable[RootCausePath], why: Unclear) -> None:
    for path in paths:
        path.nodes[-1].end_path(path.ending.noting(why.text, why))


def _of_ready(counted: OffVotes) -> list[str]:
    """Where much of the time was spent ready, and is not what makes the calls slow."""
    if 2 * counted.all_the_same < counted.ops or counted.ready < _MUCH * counted.latency:
        return []
    return _ready_text(counted)


def _ready_text(counted: OffVotes) -> list[str]:
    return [
        f"their threads were off the processor though ready for "
        f"{100 * counted.ready / counted.latency:.0f} % of these calls' time: without that "
        f"{counted.all_the_same} of {counted.ops} would be slow all the same"
    ]


def leave_out_slight(paths: Sequence[RootCausePath], kept: KeptOps) -> list[str]:
    """Votes of 20 calls may fall to what they merely pass through: one of ``paths`` that explains
    next to nothing, beside one that explains much of the peak, is none of its root causes. Changes
    the ftree; returns what the user is to be told."""
    notes = []
    for path, share, most in slight(paths, kept):
        _leave_out(path)
        notes.append(
            f"{path.nodes[-1].function.name} was chosen by votes, but explains {100 * share:.0f} % "
            f"of the peak's time, another cause {100 * most:.0f} %: it is no root cause"
        )
    return notes


def leave_out_passed(paths: Sequence[RootCausePath], kept: KeptOps | None, least: int) -> list[str]:
    """Where calls are slow here and there, some twenty of them may all be slow elsewhere, and pass
    through a function in nanoseconds, where something has their votes all the same. Of ``paths``
    those whose ``kept`` ops show so, or where no kept op shows anything the calls that had the
    votes, are no root causes, if others are left; the fastest call inside the peak takes ``least``
    cycles. Changes the ftree; returns what the user is to be told."""
    passed = [path for path in paths if _takes_nothing(path, kept, least)]
    if not passed or len(passed) == len(paths):
        return []
    for path in passed:
        _leave_out(path)
    were = "was" if len(passed) == 1 else "were"
    return [
        f"{_listed(_names_of(passed))} {were} chosen by votes of calls that take next to nothing "
        "there: no root cause"
    ]


def _takes_nothing(path: RootCausePath, kept: KeptOps | None, least: int) -> bool:
    share = share_of(path, kept)
    if share is not None:
        return share * _NOTHING < 1
    return any(_is_passed(node, least) for node in path.nodes[1:])


def _is_passed(node: Fnode, least: int) -> bool:
    totals = node.totals
    return (
        not node.is_interrupt
        and totals.ops >= LEAST_FOR_ESTIMATES
        and totals.sum * _NOTHING < least * totals.ops
    )


def leave_out_all(
    paths: Sequence[RootCausePath],
    kept: KeptOps,
    fast: float,
    *,
    by_longest: bool,
    are_all: bool = True,
) -> list[str]:
    """Votes tell what is the largest, however little that is: where all ``paths`` together explain
    next to nothing of what makes calls slow, there is no root cause among them. What is known of
    that is :func:`~darc.model.shares.weigh`'s, by the same arguments. Changes the ftree; returns
    what the user is to be told, also where they explain the smaller part and ``are_all``: no other
    path was being followed when the search was ended."""
    weight = weigh(paths, kept, fast, by_longest=by_longest)
    if weight is None or not weight.is_minor:
        return []
    share, names = f"{100 * weight.share:.0f} % of the peak's time", _names_of(paths)
    explain = "explains" if len(names) == 1 else "together explain"
    if not weight.is_next_to_nothing:
        told = f"{_listed(names)} {explain} {share}: most of it has other causes"
        return [told] if are_all else []
    for path in paths:
        _leave_out(path)
    were, are = ("was", "it is no") if len(names) == 1 else ("were", "none is a")
    return [f"{_listed(names)} {were} chosen by votes, but {explain} {share}: {are} root cause"]


def _names_of(paths: Iterable[RootCausePath]) -> list[str]:
    return list(dict.fromkeys(map(_name_of, paths)))


def _name_of(path: RootCausePath) -> str:
    """What the path ends in, with what f0 calls for it: ``flush → … → write``."""
    return " → ".join(ends([node.function.name for node in path.nodes]))


def _listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and 3 more``."""
    if len(names) > _LISTED:
        return first_few(names, _LISTED)
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _leave_out(path: RootCausePath) -> None:
    """It is no root cause path: nor is any node on it that no other one goes through."""
    path.nodes[-1].end_path(None)
    for node in reversed(path.nodes[1:]):
        if node.end is not None or any(child.root_cause for child in node.children):
            break
        node.take_back()


def _other_target(names: Sequence[str], of: Fnode) -> str:
    """What the calls of ``names`` won, as that one of them did."""
    won = f"won in {of.maxcount} of {of.compared_in} calls"
    return f"{_listed(names)}, more than could be told apart, {won}"


def tell_others(paths: Iterable[RootCausePath]) -> None:
    """Says in the endings of ``paths`` which indirect calls on them had other targets than those
    that were told apart."""
    for path in paths:
        last, end = path.nodes[-1], path.ending
        untold = [
            child
            for node in path.nodes
            for child in node.children
            if is_others(child) and child not in path.nodes and child.called.ops
        ]
        others = [_other_target([c.function.name], c) for c in untold if c.maxcount]
        if lost := [child for child in untold if not child.maxcount]:
            most = max(lost, key=lambda child: child.compared_in)
            others.append(_other_target([child.function.name for child in lost], most))
        if others and end.cut is not Cut.DEPTH:
            last.end_path(functools.reduce(Ending.noting, others, end))
