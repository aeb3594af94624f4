"""What commands share that begin an analysis: their function, and the options of all searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from darc.app.commands.command import Actions, Option, Parsed
from darc.app.options import START_OPTIONS, Typed, parse_start_options
from darc.app.parameters import Parameter
from darc.model.parameters import Parameters


def parse_function(typed: Typed) -> Parsed:
    """The parser of a command that takes a function, and options that :func:`search_options` has
    made. Raises :class:`~darc.model.errors.UsageError`."""
    function, overrides = parse_start_options(typed)
    return Parsed((function,), overrides)


def parameters_of(
    app: Actions, parsed: Parsed, taken: Mapping[str, Parameter] = START_OPTIONS
) -> Parameters:
    """What is set of the ``taken`` options, with what was typed of them, and what ``set darc``
    alone has. The other options are at their defaults, whatever ``set darc`` says: they mean
    nothing to such a command. Of what was typed the command's own options are no parameters."""
    fields = {one.field for one in taken.values()}
    others = {one.field for one in START_OPTIONS.values()} - fields
    typed = {field: value for field, value in parsed.options.items() if field in fields}
    unset = {field: getattr(Parameters(), field) for field in others}
    return app.parameters.overridden({**unset, **typed})


def search_options(
    default: Callable[[Parameter], str],
    taken: Mapping[str, Parameter] = START_OPTIONS,
    docs: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Option[object], ...]:
    """The options of ``darc start``, or those of them that are ``taken``
    (:func:`~darc.app.options.options_of`); ``default`` tells what holds for a parameter that is not
    given. ``docs`` say what an option means to a command to which it is something else."""
    return tuple(
        Option(
            name,
            parameter.metavar,
            docs.get(name, parameter.doc),
            parameter.kind,
            default=default(parameter),
        )
        for name, parameter in taken.items()
    )


def functions(app: Actions, prefix: str) -> list[str]:
    """Names of functions, for completion."""
    return app.complete_function(prefix)
