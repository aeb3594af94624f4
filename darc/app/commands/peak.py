"""``darc peak`` and ``darc descend``: what the user chooses."""

from __future__ import annotations

from darc.analyses.rootcauses import RootCauses
from darc.app.commands.analysing import known_now
from darc.app.commands.command import Actions, Command, Parsed
from darc.app.options import Typed
from darc.app.parameters import find_parameter, peaks_in
from darc.model.errors import UsageError
from darc.model.ftree import NodeState
from darc.model.peaks import LAST_PEAK
from darc.session.session import Session


def _parse_peak(typed: Typed) -> Parsed:
    words = typed.words
    if not words:
        raise UsageError("darc peak needs a peak: N, last, bins as 17-19, '>4ms' or p99")
    try:
        value = find_parameter("peak").kind.read("".join(words), "darc peak")  # "> 4ms"
    except UsageError:
        if len(words) == 1:
            raise
        got = " ".join(words)
        raise UsageError(
            f"darc peak takes one peak, not '{got}': N, last, bins as 17-19, '>4ms' or p99"
        ) from None
    if not isinstance(value, str):
        raise UsageError("darc peak takes a peak: N, last, bins as 17-19, '>4ms' or p99")
    return Parsed((value,))


def _parse_descend(typed: Typed) -> Parsed:
    for fnode in typed.words:
        if not all(part.isdecimal() for part in fnode.split(".")):
            raise UsageError(
                f"'{fnode}' is not an fnode; type its number as 'darc tree' shows it, as 1.3.2"
            )
    return Parsed(typed.words)


def _peak(app: Actions, parsed: Parsed) -> None:
    (spec,) = parsed.arguments
    session = app.need_session()
    app.need_stopped()
    search = _search_of(session, "peak")
    session.follow(lambda: search.choose_peak(spec))
    if session.analysis.finished:
        app.tell()
    else:
        app.emit(f"darc: peak {spec} of {session.spec} is chosen: 'continue' to descend")


def _descend(app: Actions, parsed: Parsed) -> None:
    session = app.need_session()
    app.need_stopped()
    nodes = [session.root.find(i) for i in parsed.arguments]
    search = _search_of(session, "descend")
    session.follow(lambda: search.descend(nodes))
    if session.analysis.finished:
        app.tell()


def _search_of(session: Session, name: str) -> RootCauses:
    """The search of a session, in which ``darc NAME`` chooses. Raises UsageError: it has none."""
    if not isinstance(session.analysis, RootCauses):
        raise UsageError(f"'darc {name}' is for what 'darc start' has begun")
    return session.analysis


def peaks(app: Actions, _prefix: str = "") -> list[str]:
    """What ``darc peak`` may take now."""
    return [*known_now(peaks_in, app), LAST_PEAK]


def _fnodes(app: Actions, _prefix: str) -> list[str]:
    root = app.snapshot().ftree
    nodes = root.walk() if root is not None else ()
    return [node.id for node in nodes if node.state is not NodeState.REJECTED]


PEAK = Command(
    name="peak",
    summary="Choose the peak to explain.",
    usage="darc peak P",
    details=(
        "P is a number that the histogram shows (1 is the leftmost), 'last', bins (17-19), "
        "a latency ('>4ms') or a percentile (p99). Then let the program go on."
    ),
    examples=(
        ("darc peak 3", "The third peak from the left."),
        ("darc peak last", "The slowest one; of the only one, its tail."),
        ("darc peak '>4ms'", "Every call above 4 ms."),
    ),
    parse=_parse_peak,
    action=_peak,
    complete_argument=peaks,
    takes_one=True,
)

DESCEND = Command(
    name="descend",
    summary="Go on into these nodes of the tree only.",
    usage="darc descend [FNODE...]",
    details=(
        "For 'set darc auto off': at each decision the search waits for this command. "
        "Without FNODE it goes on into every root cause."
    ),
    examples=(
        ("darc descend", "Into every root cause of this level."),
        ("darc descend 1.3.2", "Into this one only, as 'darc tree' numbers it."),
    ),
    parse=_parse_descend,
    action=_descend,
    complete_argument=_fnodes,
)
