"""``darc walk``: from where threads begin down to the calls that hold the time."""

from __future__ import annotations

import dataclasses
import re
from functools import partial

from darc.analyses.walk import THRESHOLD, WINDOW_SECONDS, CallWalk
from darc.app.commands.command import Actions, Command, Option, Parsed
from darc.app.commands.start import functions
from darc.app.finding import Request
from darc.app.options import Typed
from darc.collectors.walk_collector import WalkCollector
from darc.model.errors import UsageError
from darc.model.profile import parse_duration

_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")


def _parse(typed: Typed) -> Parsed:
    if len(typed.words) > 1:
        raise UsageError(f"darc walk begins with one function, not {' and '.join(typed.words)}")
    texts = typed.texts
    threshold, seconds = THRESHOLD, WINDOW_SECONDS
    if "--threshold" in texts:
        share = _SHARE.fullmatch(texts["--threshold"])
        threshold = float(share[1]) / 100 if share else 0.0
        if not 0.01 <= threshold <= 1:
            raise UsageError(
                f"--threshold: '{texts['--threshold']}' is no share from 1% to 100%, such as 25%"
            )
    if "--window" in texts:
        seconds = parse_duration(texts["--window"])
        if seconds < 0.05:
            raise UsageError("--window: a window takes at least 50ms, such as 2s")
    limit = None
    if "--time" in texts:
        limit = parse_duration(texts["--time"])
        if limit <= 0:
            raise UsageError("--time: a walk takes some time, such as 30s")
    return Parsed(typed.words, {"threshold": threshold, "seconds": seconds, "limit": limit})


def _walk(app: Actions, parsed: Parsed) -> None:
    threshold, seconds = parsed.options["threshold"], parsed.options["seconds"]
    assert isinstance(threshold, float)
    assert isinstance(seconds, float)
    limit = parsed.options["limit"]
    assert limit is None or isinstance(limit, float)
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
    options=(
        Option(
            "--threshold", "SHARE", "Share that a call must hold. Default: 25%.", ("10%", "25%")
        ),
        Option("--window", "TIME", "For how long each level is timed. Default: 2s."),
        Option(
            "--time",
            "TIME",
            "End after so long with what is known. Default: that of 'set darc max-time', none.",
        ),
    ),
    complete_argument=functions,
)
