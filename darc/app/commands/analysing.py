"""What commands share that begin an analysis: their function, and the options of all searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from darc.app.commands.command import Actions, Option, Parsed
from darc.app.options import START_OPTIONS, Typed
from darc.app.parameters import Parameter, by_field
from darc.model.errors import DarcError, UsageError
from darc.model.parameters import Parameters
from darc.model.snapshot import Snapshot


def parse_function(typed: Typed) -> Parsed:
    """The parser of a command that takes one function, whose name may hold spaces inside quotes,
    ``()`` or ``<>``. Raises :class:`UsageError`: it is missing, or there are two."""
    names = typed.words
    if not names:
        raise UsageError(f"{typed.command} needs a function: {typed.usage}")
    if len(names) > 1:
        raise UsageError(
            f"{typed.command} takes one function, not '{names[0]}' and '{names[1]}'; "
            "put quotes around a name that holds spaces"
        )
    return Parsed(names)


def parameters_of(
    app: Actions, parsed: Parsed, taken: Mapping[str, Parameter] = START_OPTIONS
) -> Parameters:
    """What is set of the ``taken`` options, with what was typed of them, and what ``set darc``
    alone has. The other options are at their defaults, whatever ``set darc`` says: they mean
    nothing to such a command."""
    others = (one for option, one in START_OPTIONS.items() if option not in taken)
    unset = {one.field: one.default for one in others}
    return app.parameters.overridden({**unset, **by_field(parsed.overrides)})


def search_options(
    default: Callable[[Parameter], str],
    taken: Mapping[str, Parameter] = START_OPTIONS,
    docs: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Option[object], ...]:
    """The options of ``darc start``, or those of them that are ``taken``
    (:func:`~darc.app.options.options_of`); ``default`` tells what holds for a parameter that is not
    given. ``docs`` say what an option means to a command to which it is something else."""
    unknown = set(docs) - set(taken)
    assert not unknown, f"what is said of {unknown} is of no option here"
    return tuple(
        Option(
            name,
            parameter.metavar,
            docs.get(name, parameter.doc),
            parameter.kind,
            default=default(parameter),
            complete=None
            if parameter.values_in is None
            else partial(known_now, parameter.values_in),
            overrides=parameter,
        )
        for name, parameter in taken.items()
    )


def known_now(
    values: Callable[[Snapshot], list[str]], app: Actions, _prefix: str = ""
) -> list[str]:
    """The ``values`` that are there in what is known now, for completion."""
    try:
        return values(app.snapshot(lines=False))
    except DarcError:  # nothing is
        return []


def functions(app: Actions, prefix: str) -> list[str]:
    """Names of functions, for completion."""
    return app.complete_function(prefix)
