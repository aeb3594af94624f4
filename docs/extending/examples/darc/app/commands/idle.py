"""``darc idle``: how much of a function's time its thread is off the processor."""

from __future__ import annotations

from darc.analyses.idle import Idle
from darc.app.commands.analysing import functions, parameters_of, parse_function, search_options
from darc.app.commands.command import Actions, Command, Parsed
from darc.app.finding import Request
from darc.app.options import options_of

_TAKEN = options_of("start_ops", "decision_ops", "max_time", "probes", "thread", "on_finish")


def _idle(app: Actions, parsed: Parsed) -> None:
    parameters = parameters_of(app, parsed, _TAKEN)
    app.analyse(Request("idle", parsed.arguments[0], parameters, Idle, verb="keeps calls of"))


IDLE = Command(
    name="idle",
    summary="Tell how much of a function's time its thread is off the processor.",
    usage="darc idle FUNCTION [OPTIONS]",
    details="Of calls that are kept one by one, as many as --decision-ops says.",
    examples=(("darc idle handle --decision-ops 50", "In fifty calls."),),
    parse=parse_function,
    action=_idle,
    begins=True,
    options=search_options(lambda parameter: parameter.default_text, _TAKEN),
    complete_argument=functions,
)
