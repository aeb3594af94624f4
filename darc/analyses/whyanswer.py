"""What a search of ``darc why`` has said of a suspect: whether that is slow by itself, waits for
its next work, or lacks a processor."""

from __future__ import annotations

from collections.abc import Sequence

from darc.analyses.offvotes import Rules, own_time
from darc.code.callers import callers_of
from darc.code.program import Program
from darc.model.ftree import Cause, Fnode, RootCausePath
from darc.model.functionset import FunctionSet
from darc.model.libraries import plain_name
from darc.model.ops import KeptOps, Op, OpClass
from darc.model.snapshot import Snapshot
from darc.model.waitcalls import HANDED, SLEEPS, WAITS_FOR_NEXT
from darc.model.why import Answer, Suspect
from darc.search.suspects import always_takes_it, does_the_work, is_disturbed, returns

_ALWAYS = 0.5
"""Of the fast calls wait as well where a function is one that waits for whatever comes next,"""

_ALL_OF_IT = 0.8
"""and so much of their time is sleep where a function does nothing else."""


def answer_to(suspect: Suspect, shown: Snapshot, known: FunctionSet, program: Program) -> Answer:
    """What a search for the suspect, of the functions ``known``, has found in the program, which is
    ``shown``, as an answer."""
    lacks = lacks_processor(shown)
    is_all = is_disturbed(known, suspect) and not (is_preempted(shown.paths) or lacks)
    idle = handed = None
    if not lacks or waits_all_the_same(suspect, shown):
        idle, handed = idle_in(shown), handed_in(shown.paths)
        wait = seldom_waits_in(shown)
        if wait is not None:
            callers = callers_of(program, suspect.row.function)
            if any(always_takes_it(known, one, suspect) for one in callers):
                idle = wait
            elif not does_the_work(known, suspect) and not (
                callers and all(returns(known, one) for one in callers)
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


def is_preempted(paths: Sequence[RootCausePath]) -> bool:
    """Whether another thread or program had the processor."""
    return any(path.ending.cause is Cause.PREEMPTION for path in paths)


def lacks_processor(shown: Snapshot) -> bool:
    """Whether its slow calls' threads were awake, and had no processor, for most of the time: what
    they were woken for had come by then."""
    waits = shown.waits
    return waits is not None and 2 * waits.without_processor > waits.cycles


def waits_all_the_same(suspect: Suspect, shown: Snapshot) -> bool:
    """Of such calls: whether, without what they lacked a processor, they would be among the slow
    ones by what they waited before. On a busy machine whoever waits for work waits for a processor
    as well, when that has come."""
    waits = shown.waits
    if waits is None or not waits.ops:
        return False
    return waits.cycles - waits.without_processor >= suspect.threshold * waits.ops


def idle_in(shown: Snapshot) -> str | None:
    """Where all of its paths end in a wait for whatever comes next that fast calls end in as well,
    or in a sleep that they consist of as well, the function that waits. A function that waits in
    its slow calls alone is none that waits for work, whatever it waits in. Where fast calls were
    not seen nobody can tell: then it is."""
    waits = _waits_in(shown.paths, WAITS_FOR_NEXT)
    if waits and not _is_seldom(waits, shown.ops):
        return waits[0].function.name
    sleeps = _waits_in(shown.paths, SLEEPS)
    if sleeps and _is_all(sleeps, shown.ops):
        return sleeps[0].function.name
    return None


def seldom_waits_in(shown: Snapshot) -> str | None:
    """Where all of its paths end in a wait for whatever comes next that few fast calls come to, the
    function that waits: it may be for work, or for an answer that the call needs."""
    waits = _waits_in(shown.paths, WAITS_FOR_NEXT)
    return waits[0].function.name if waits and _is_seldom(waits, shown.ops) else None


def handed_in(paths: Sequence[RootCausePath]) -> str | None:
    """Where all of these paths end in a wait until another thread or program hands something over,
    the function that waits. Whether that is work, nobody can tell."""
    waits = _waits_in(paths, HANDED)
    return waits[0].function.name if waits else None


def _waits_in(paths: Sequence[RootCausePath], names: frozenset[str]) -> list[Fnode]:
    """The first node with one of these names on each path, where all that may have have one."""
    waits: list[Fnode] = []
    for path in paths:
        if path.ending.cause not in (Cause.BLOCKED, Cause.FUNCTION):
            continue
        found = [node for node in path.nodes if plain_name(node.function.symbol) in names]
        if not found:
            return []
        waits += found[:1]
    return waits


def _is_seldom(waits: Sequence[Fnode], kept: KeptOps | None) -> bool:
    """Whether few fast calls come to any of these waits, as far as they were seen: there may be one
    that they never come to on the way."""
    if kept is None:
        return False
    slow, fast = kept.sample(OpClass.IN_PEAK), kept.sample(OpClass.FASTEST)
    if not slow or not fast:
        return False
    for wait in waits:
        timed = [node for node in _way(wait) if any(_calls(op, node) for op in slow)]
        if not timed:
            return False
        if min(sum(_calls(op, node) for op in fast) for node in timed) >= _ALWAYS * len(fast):
            return False
    return True


def _is_all(sleeps: Sequence[Fnode], kept: KeptOps | None) -> bool:
    """Whether fast calls consist of these sleeps, or of others, as the slow ones do. Of a sleep
    that no kept op had timed, what comes to it tells."""
    if kept is None:
        return False
    slow, fast = kept.sample(OpClass.IN_PEAK), kept.sample(OpClass.FASTEST)
    timed = {one.node for op in (*slow, *fast) for one in op.sums}
    lowest = {next((node for node in _way(sleep) if node in timed), sleep) for sleep in sleeps}
    lowest |= {node for node in timed if plain_name(node.function.symbol) in SLEEPS}
    outermost = [node for node in lowest if lowest.isdisjoint(_way(node)[1:])]
    slept = sum(op.time_of(outermost) for op in fast)
    return slept >= _ALL_OF_IT * sum(op.latency for op in fast) > 0


def _way(node: Fnode) -> list[Fnode]:
    """From a node up to the one that f0 calls."""
    found: list[Fnode] = []
    above: Fnode | None = node
    while above is not None and above.parent is not None:
        found.append(above)
        above = above.parent
    return found


def _calls(op: Op, node: Fnode) -> bool:
    return any(one.node is node and one.calls for one in op.sums)
