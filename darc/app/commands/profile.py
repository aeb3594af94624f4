"""``darc profile``: many functions at once."""

from __future__ import annotations

from functools import partial

from darc.analyses.functionset import FunctionProfiles
from darc.app.commands.analysing import functions
from darc.app.commands.command import Actions, Command, Option, Parsed, Value
from darc.app.commands.filenames import files
from darc.app.finding import Request
from darc.app.options import Typed
from darc.code.patterns import parse_patterns
from darc.collectors.setmembers import Members
from darc.model.errors import UsageError
from darc.model.functionset import TOP
from darc.model.profile import longer_time
from darc.model.values import count, duration

_MOST_INTERVALS = 1000

_TIME = Option(
    "--time", "TIME", "For how long the program runs meanwhile.", duration(), default="5s"
)
_EVERY = Option(
    "--every",
    "TIME",
    "Count in intervals of so long; 10ms and more.",
    duration(0.01, example="20ms"),
)
_TOP = Option("--top", "N", "So many rows are shown.", count(), default=f"{TOP}")
_SECONDS: Value[float] = Value("seconds")
_ROWS: Value[int] = Value("top")
_INTERVAL: Value[float | None] = Value("every")


def _parse(typed: Typed) -> Parsed:
    if not typed.words:
        raise UsageError("darc profile needs functions: darc profile 'read_*' [--time 5s]")
    seconds, every, top = _TIME.value_in(typed), _EVERY.typed_in(typed), _TOP.value_in(typed)
    if every is not None and every > seconds / 2:
        raise UsageError("--every: at least two intervals must fit into --time")
    if every is not None and seconds / every > _MOST_INTERVALS:
        raise UsageError(
            f"--every: --time may have {_MOST_INTERVALS} intervals: take one of "
            f"{longer_time(seconds / _MOST_INTERVALS)}"
        )
    own = {**_SECONDS.put(seconds), **_ROWS.put(top), **_INTERVAL.put(every)}
    return Parsed(typed.words, own)


def _patterns(app: Actions, typed: str) -> list[str]:
    if typed.startswith("@"):
        return [f"@{name}" for name in files(typed[1:])]
    return functions(app, typed)


def _profile(app: Actions, parsed: Parsed) -> None:
    seconds, top, every = _SECONDS.of(parsed), _ROWS.of(parsed), _INTERVAL.of(parsed)
    texts = parsed.arguments
    analysis = partial(FunctionProfiles, seconds=seconds, top=top, every=every)
    app.analyse(
        Request(
            "profile",
            "main",  # before it runs
            app.parameters,
            analysis,
            finder=Members(" ".join(texts), tuple(parse_patterns(texts))),
            verb="profiles",
            replaces_finished=True,
        )
    )


PROFILE = Command(
    name="profile",
    summary="Profile many functions at once, to see where to look.",
    usage="darc profile PATTERN… [--time 5s] [--every TIME] [--top N]",
    details=(
        "Up to 2,000 functions, each for itself, in all threads; of more, those that are under "
        "way and what they call, then those that most calls lead to. PATTERN may be a glob as "
        "'read_*' or 'Cache::*', a regular expression as '/^(read|write)_/', one of these behind "
        "'lib.so!' or 'lib*!', a source file, or @FILE with a pattern in each line. Without a "
        "library it means functions of the program's own file, and where that has none, of its "
        "libraries. The most interesting function comes first: that with the most excess, which "
        "is the time that calls took beyond those of its fastest peak. 'darc histogram 3' draws "
        "the third row's profile, and 'darc start 3' looks for the cause. With --every that also "
        "has its calls by latency and time, and peaks that come at equal distances are told below"
        " the table, with what else the numbers of calls let one suppose. Ends after --time in "
        "which the program runs; 'darc status' shows the table at any stop, 'darc stop' ends it "
        "before."
    ),
    examples=(
        ("darc profile '*'", "All functions of the program, for five seconds."),
        ("darc profile 'libz.so!*' 'read_*' --time 20s", "Those of a library, and some more."),
        ("darc profile '*' --time 1m --every 500ms", "What comes and goes with the time."),
        ("darc profile handler.c --top 50", "Those of a source file; fifty rows."),
    ),
    parse=_parse,
    action=_profile,
    begins=True,
    saves="the functions' profiles, to compare others with ('darc compare')",
    options=(_TIME, _EVERY, _TOP),
    complete_argument=_patterns,
)
