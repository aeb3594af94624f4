"""``darc start``: the search for root causes."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from functools import partial

from darc.analyses.rootcauses import RootCauses
from darc.app.commands.analysing import functions, parameters_of, parse_function, search_options
from darc.app.commands.command import Actions, Command, Parsed
from darc.app.finding import Request, rows_called, spelled
from darc.app.options import number_in
from darc.model.errors import AmbiguousError, UsageError
from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.parameters import AUTO_START_OPS, Parameters
from darc.model.peaks import LAST_PEAK, choose_peak
from darc.model.profile import OCTAVES
from darc.model.snapshot import Snapshot
from darc.saved.storage import Stored

_TO_SEE = 10
"""Calls of a peak that show it."""


def _start(app: Actions, parsed: Parsed) -> None:
    (function,) = parsed.arguments
    parameters = parameters_of(app, parsed)
    shown, number, lookup = app.table(), number_in(function), None
    if number is not None:
        found = _numbered(shown, number)
        row = None if shown is None else _row_of(shown, number)
        lookup = app.lookup()
        function = spelled(lookup, found)
        if row is not None:
            parameters = as_profiled(parameters, row)
    else:
        row, parameters = _called(shown, function, parameters)
    make = RootCauses if row is None else partial(RootCauses, profiled=row)
    app.analyse(Request("start", function, parameters, make, lookup=lookup))


def _called(
    shown: Snapshot | None, function: str, parameters: Parameters
) -> tuple[FunctionProfile | None, Parameters]:
    """The profile of a function that is typed by its name, and the ``parameters`` by that, where it
    is known which one that is, and has the peak that is wanted: a new profile may have one that
    this has not."""
    if shown is not None:
        with contextlib.suppress(AmbiguousError, UsageError):
            rows = rows_called(shown.named, function)
            if len(rows) == 1:
                return rows[0], as_profiled(parameters, rows[0])
    return None, parameters


def _row_of(shown: Snapshot, number: int) -> FunctionProfile | None:
    """The profile behind a number that stands for a function, where there is one."""
    profiles = shown.profiles or ()
    return profiles[number - 1] if number <= len(profiles) else None


def as_profiled(parameters: Parameters, row: FunctionProfile) -> Parameters:
    """These, for the function of a row: where its profile has several peaks, or one with a tail,
    the number of one, or ``last``, means that one of these, or the last of those that it turns out
    to be; and where nobody says after how many calls to look for it, it is after as many as show
    it, as far as the row tells.

    Raises:
        UsageError: the row has no such peak.
    """
    peaks, profile, spec = row.peaks, row.profile, parameters.peak
    peak = None if spec is None else choose_peak(spec, profile)
    if len(peaks) < 2 and (peak is None or not 0 < peak.calls_in(profile.bins) < profile.count):
        return parameters  # that has nothing of its own
    calls = min(peak.count for peak in peaks)
    if spec is not None:
        if peak is None:
            raise UsageError(f"there is no peak {spec}: that row has {len(peaks)}")
        calls = peak.calls_in(profile.bins)
        if peak.number is not None or spec == LAST_PEAK:
            each, last = parameters.resolution, peak.last_bin
            end = OCTAVES * each if last is None else (last + 1) * each - 1
            which = f"{LAST_PEAK} of " if spec == LAST_PEAK else ""
            parameters = replace(parameters, peak=f"{which}{peak.first_bin * each}-{end}")
    if parameters.start_ops is None and parameters.start_time is None:
        part = min(1.0, _TO_SEE / max(calls, 1))
        start_ops = max(AUTO_START_OPS, math.ceil(profile.count * part))
        parameters = replace(parameters, start_ops=start_ops)
    return parameters


def _numbered(shown: Snapshot | None, number: int) -> Function:
    """The function that stands behind a number, from 1, of a table or a list of answers."""
    parts = [] if shown is None else list(shown.parts.values())[::-1]
    for part in parts:
        found = part.function(number)
        if found is not None:
            return found
    for part in parts:
        why = part.why_no_function(number)
        if why is not None:
            raise UsageError(why)
    raise UsageError(
        f"{number} is no function; numbers are those of rows that 'darc profile' has shown, of "
        "chains of 'darc walk', or of answers of 'darc why', and none has shown any yet"
    )


def _goes_on(stored: Stored, parameters: Parameters, _parsed: Parsed) -> Request:
    return Request("start", stored.spec, parameters, RootCauses.resumed(stored))


START = Command(
    name="start",
    summary="Find the root causes of a latency peak of FUNCTION.",
    usage="darc start FUNCTION [--peak P] [OPTIONS]",
    details=(
        "FUNCTION may be f, file.c:f, lib.so!f, Class::f, FILE+0xOFFSET or *ADDRESS. Before 'run' "
        "darc waits for the program and its libraries. After --start-ops calls the profile is "
        "shown; without --peak the program then stops for the choice. 'set darc PARAMETER' "
        "keeps the same options for every start, in place of the defaults below."
    ),
    examples=(
        ("darc start handle", "Profile handle, stop at the profile."),
        ("darc start handle --peak last", "Explain its slowest peak without a stop."),
        (
            "darc start server.c:handle --peak '>4ms' --max-time 5min",
            "Explain the calls above 4 ms, for 5 minutes at most.",
        ),
        (
            "darc start 'Cache<int>::find' --start-ops 2000 --resolution 2",
            "A finer profile of a C++ function.",
        ),
    ),
    parse=parse_function,
    action=_start,
    takes_one=True,
    begins=True,
    saves=(
        "f0, the parameters, the profile, the peak, the tree with its maxcounts, the votes that "
        "were not decided yet and the ops that were kept"
    ),
    goes_on=_goes_on,
    options=search_options(lambda parameter: parameter.default_text),
    complete_argument=functions,
)
