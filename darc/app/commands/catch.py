"""``darc catch``: a breakpoint on latency."""

from __future__ import annotations

from functools import partial

from darc.analyses.catching import LEAST_SECONDS, Catcher
from darc.app.commands.analysing import functions
from darc.app.commands.command import Actions, Command, Option, Parsed, Value
from darc.app.commands.peak import peaks
from darc.app.finding import Request
from darc.app.options import START_OPTIONS, Typed
from darc.model.catching import Catching
from darc.model.domains import PEAK
from darc.model.errors import UsageError
from darc.model.part import parts_of
from darc.model.peaks import choose_peak
from darc.model.snapshot import Snapshot
from darc.model.values import duration

_PEAK = Option(
    "--peak",
    "P",
    "As long as the calls of this peak take.",
    PEAK,
    default="the chosen one",
    complete=peaks,
    unlike=START_OPTIONS["--peak"],  # which is looked for, and may be none
)
_ABOVE = Option(
    "--above",
    "TIME",
    "For how long at least.",
    duration(LEAST_SECONDS, example="4ms", needs_unit=True),
)
_LATE_PEAK: Value[str | None] = Value("peak")
_LATE: Value[float | None] = Value("above")


def _parse(typed: Typed) -> Parsed:
    names = typed.words
    if len(names) > 1:
        raise UsageError(f"'darc catch' takes one function, not {len(names)}")
    if len(typed.texts) > 1:
        raise UsageError("'darc catch' takes --peak or --above, not both")
    peak, above = _PEAK.typed_in(typed), _ABOVE.typed_in(typed)
    return Parsed(names, {**_LATE_PEAK.put(peak), **_LATE.put(above)})


def _seconds_of(known: Snapshot | None, peak: str | None) -> float:
    """From when on a call is of the ``peak``, or of the one that was chosen in the analysis
    ``known``, in seconds.

    Raises:
        UsageError: nothing was chosen, or it is not there.
    """
    profile = None if known is None else known.profile
    if known is None or profile is None or not profile.bins:
        raise UsageError(
            "say how long is late: '--above TIME' (without it, the peak of an analysis of this "
            "function is taken)"
        )
    chosen = known.peak if peak is None else choose_peak(peak, profile)
    if chosen is None:
        raise UsageError("no peak was chosen: '--peak P', or '--above TIME'")
    low, last = profile.low(chosen.first_bin) / profile.hz, chosen.last_bin
    if last is not None and profile.low(last + 1) / profile.hz <= LEAST_SECONDS:
        return low
    return max(low, LEAST_SECONDS)


def _catch(app: Actions, parsed: Parsed) -> None:
    function = parsed.arguments[0] if parsed.arguments else None
    peak, above = _LATE_PEAK.of(parsed), _LATE.of(parsed)
    before = app.session
    if function is None:
        if before is None:
            raise UsageError("say of which function: 'darc catch FUNCTION --above TIME'")
        function = before.spec
    known = before if before is not None and before.spec == function else None
    found = None if known is None else known.snapshot()
    if known is not None and isinstance(known.analysis, Catcher):
        found = known.analysis.known
        if above is None and peak is None and (found is None or found.peak is None):
            above = known.analysis.seconds
    if above is None:
        above = _seconds_of(found, peak)
    if above < LEAST_SECONDS:
        raise UsageError("'darc catch' stops in calls of at least 1ms: give a longer --above TIME")
    app.analyse(
        Request(
            "catch",
            function,
            app.parameters,
            partial(Catcher, seconds=above, known=found),
            verb="catches late calls of",
            replaces_finished=True,
            reads_beside=True,
            next_one="the next late call",
            parts=parts_of(Catching(above, caught=0, missed=0)),
        )
    )


CATCH = Command(
    name="catch",
    summary="Stop inside the next call of FUNCTION that is slow, while it is.",
    usage="darc catch [FUNCTION] [--peak P | --above TIME]",
    details=(
        "A breakpoint on latency: the program goes on until a call of FUNCTION has been under way "
        "for TIME, at least 1ms, and stops inside it, in its thread. Without FUNCTION it is the "
        "one that was analysed last; without TIME, the fastest call of the peak that was chosen "
        "there, or of --peak; where none was, the TIME of the last 'darc catch'. 'continue' goes "
        "on to the next one, 'darc stop' ends it. It takes the place of a search that has ended: "
        "'darc save' or 'darc report -o' keeps that, 'darc contexts' still has its tree."
    ),
    examples=(
        ("darc catch serve --above 4ms", "Stop in a call that takes longer."),
        ("darc catch", "After a search: stop in a call of the peak that was explained."),
    ),
    parse=_parse,
    action=_catch,
    takes_one=True,
    begins=True,
    options=(_PEAK, _ABOVE),
    complete_argument=functions,
)
