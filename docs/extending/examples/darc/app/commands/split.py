"""``darc split``: which callees take the time of a function."""

from __future__ import annotations

from darc.analyses.split import Split
from darc.app.commands.analysing import functions, parameters_of, parse_function, search_options
from darc.app.commands.command import Actions, Command, Parsed
from darc.app.finding import Request
from darc.app.options import options_of

_TAKEN = options_of("start_ops", "decision_ops", "max_time", "probes", "thread", "on_finish")


def _split(app: Actions, parsed: Parsed) -> None:
    parameters = parameters_of(app, parsed, _TAKEN)
    app.analyse(Request("split", parsed.arguments[0], parameters, Split, verb="times callees of"))


SPLIT = Command(
    name="split",
    summary="Tell which callees take the time of a function.",
    usage="darc split FUNCTION [OPTIONS]",
    details="They are timed in as many of its calls as --decision-ops says.",
    examples=(("darc split handle --decision-ops 50", "In fifty calls."),),
    parse=parse_function,
    action=_split,
    begins=True,
    options=search_options(lambda parameter: parameter.default_text, _TAKEN),
    complete_argument=functions,
)
