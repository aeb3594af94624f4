"""``darc walk``: from where threads begin down to the calls that hold the time."""

from __future__ import annotations

import dataclasses
from functools import partial

from darc.analyses.walk import THRESHOLD, WINDOW_SECONDS, CallWalk
from darc.app.commands.analysing import functions
from darc.app.commands.command import Actions, Command, Option, Parsed, Value
from darc.app.finding import Request
from darc.app.options import Typed
from darc.collectors.walk_collector import WalkCollector
from darc.model.errors import UsageError
from darc.model.values import duration, fraction

_THRESHOLD = Option(
    "--threshold",
    "SHARE",
    "Share that a call must hold.",
    fraction(0.01, in_percent=True, words=("10%", "25%")),
    default=f"{THRESHOLD:.0%}",
)
_WINDOW = Option(
    "--window",
    "TIME",
    "For how long each level is timed.",
    duration(0.05, example="2s"),
    default=f"{WINDOW_SECONDS:g}s",
)
_TIME = Option(
    "--time",
    "TIME",
    "End after so long with what is known.",
    duration(),
    default="that of 'set darc max-time', none",
)
_SHARE: Value[float] = Value("threshold")
_SECONDS: Value[float] = Value("seconds")
_LIMIT: Value[float | None] = Value("limit")


def _parse(typed: Typed) -> Parsed:
    if len(typed.words) > 1:
        raise UsageError(f"darc walk begins with one function, not {' and '.join(typed.words)}")
    own = {
        **_SHARE.put(_THRESHOLD.value_in(typed)),
        **_SECONDS.put(_WINDOW.value_in(typed)),
        **_LIMIT.put(_TIME.typed_in(typed)),
    }
    return Parsed(typed.words, own)


def _walk(app: Actions, parsed: Parsed) -> None:
    threshold, seconds, limit = _SHARE.of(parsed), _SECONDS.of(parsed), _LIMIT.of(parsed)
    parameters = app.parameters
    if limit is not None:
        parameters = dataclasses.replace(parameters, max_time=limit)
    below = bool(parsed.arguments)
    app.analyse(
        Request(
            "walk",
            parsed.arguments[0] if below else "main",  # before it runs
            parameters,
            partial(CallWalk, threshold=threshold, seconds=seconds, goes_below=below),
            way=WalkCollector.below(goes_below=below),
            verb="walks down",
            replaces_finished=True,
            stops_unseen=True,
            needs_main=below,
        )
    )


WALK = Command(
    name="walk",
    summary="Walk down the calls that hold the time, to see where to look.",
    usage="darc walk [FUNCTION] [--threshold 25%] [--window 2s] [--time T]",
    details=(
        "From main and from where each thread began, or from FUNCTION, level by level: the calls "
        "that a function makes are timed for --window, and those that hold at least --threshold of "
        "the time of its group of threads are looked into next. Threads with the same start "
        "function are a group; their waits for work are idle time, which is told and counts in no "
        "share. Ends where functions hold the time themselves, or in a system call; 'darc start 1' "
        "goes on with the last function of chain 1."
    ),
    examples=(
        ("darc walk", "From main and from the start of every thread."),
        ("darc walk handle --threshold 10%", "Down from handle, with less important calls."),
        ("darc walk --window 500ms", "Quicker, where calls are many and short."),
        ("darc walk --time 30s", "For half a minute at most; tells what is known by then."),
    ),
    parse=_parse,
    action=_walk,
    takes_one=True,
    begins=True,
    options=(_THRESHOLD, _WINDOW, _TIME),
    complete_argument=functions,
)
