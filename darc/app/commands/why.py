"""``darc why``: what is slow now and then, and why, without a function to begin with."""

from __future__ import annotations

from functools import partial

from darc.app.commands.command import Actions, Command, Option, Parsed, Value, advised
from darc.app.finding import spelled
from darc.app.options import Typed
from darc.app.whypursuit import WhyPursuit
from darc.model.errors import UsageError
from darc.model.values import duration
from darc.search.inquiry import SECONDS

_TIME = Option(
    "--time",
    "TIME",
    "For how long at most, once functions are timed.",
    duration(1.0, example="30s"),
    default=f"{SECONDS:g}s",
)


_SECONDS: Value[float] = Value("seconds")


def _parse(typed: Typed) -> Parsed:
    if typed.words:
        function = advised(typed.words[0], "FUNCTION")
        raise UsageError(f"darc why takes no function: 'darc start {function}' looks into that one")
    return Parsed((), _SECONDS.put(_TIME.value_in(typed)))


def _why(app: Actions, parsed: Parsed) -> None:
    seconds = _SECONDS.of(parsed)
    pursuit = WhyPursuit(seconds, app.parameters, lambda: partial(spelled, app.lookup()))
    app.analyse(pursuit.first(), pursuit)


WHY = Command(
    name="why",
    summary="Find what is slow now and then, and why, without a function.",
    usage="darc why [--time 30s]",
    details=(
        "Times the program's own functions, up to 2,000 of them, or those of libraries where all "
        "its work is in these, takes the one whose slow calls cost most, and looks for their "
        "root cause, for who was waited for, and for up to two others that are slow by "
        "themselves: 'darc profile', 'darc start' and 'darc waits' in one, and by itself. Ends "
        "after --time, counted from when they are timed, or before, and says what to type next. "
        "In a large program it takes a while until they are: 'set darc max-time 1min' is a limit "
        "for all of it. "
        "In gdb Ctrl-C ends it with what is known; in lldb 'darc stop' does."
    ),
    examples=(
        ("darc why", "Then 'run' or 'continue', and wait."),
        ("darc why --time 5min", "Where slow calls are rare."),
    ),
    parse=_parse,
    action=_why,
    begins=True,
    options=(_TIME,),
)
