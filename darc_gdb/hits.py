"""Which stops gdb goes on from by itself: breakpoints whose commands end with ``continue``.

gdb tells of such a stop as of any other, and carries the commands out when everybody has heard of
it. Nobody is told when one of them has failed, and the program stands still after all: only before
a prompt, and a script has none. So only those commands count that cannot fail, and that show
nothing of code and stacks.
"""

from __future__ import annotations

import re

import gdb

from darc.debuggee import clock
from darc.target.ownthread import Turn, own_thread

_CONTINUES = re.compile("c|cont|continue|fg")
_SAYS = re.compile(r'silent|echo(?: (?:[^\\]|\\[\\nt"])*)?')
_PRINTS = re.compile(r"(?:p|print|output)(?:/[acdotux])? +(?P<value>.+)")
_FORMATS = re.compile(r'printf +"(?P<format>(?:[^"\\]|\\[\\abfnrtv"])*)" *(?:,(?P<values>.*))?')
_PLAIN = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->)[A-Za-z_]\w*|\[\w+\])*")
"""A variable, a member, an element of an array: looking at it changes nothing."""

_CONVERSION = re.compile(r"%(?:%|c|[-0]?\d*(?:ll?|z)?[diouxX])")


@own_thread
class Hits:
    """What gdb counts of the user's breakpoints, and which of these have stopped the program."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._counts: dict[int, tuple[int, int]] = {}
        self._stopped: set[int] = set()
        self.since: int | None = None
        """The time-stamp counter when the program came to the first of these. gdb tells of the stop
        itself only when it has shown it."""
        self._calls = 0
        """How many functions of the program gdb is calling now, one in another."""

    def heard_of(self, breakpoint_: gdb.Breakpoint) -> None:
        """A breakpoint was made, changed or hit."""
        number = int(breakpoint_.number)
        before = self._counts.get(number)
        now = (int(breakpoint_.hit_count), int(breakpoint_.ignore_count))
        self._counts[number] = now
        if before is not None and now == (before[0] + 1, before[1]):
            self._stopped.add(number)
            if self.since is None:
                self.since = clock.tsc_now()

    @property
    def have_commands(self) -> bool:
        """Whether gdb has commands to carry out at this stop, of those that have stopped it."""
        return any(_lines(one) for one in gdb.breakpoints() if one.number in self._stopped)

    def forget(self) -> None:
        """The program goes on."""
        self._stopped.clear()
        self.since = None

    def on_call(self, event: gdb.InferiorCallPreEvent | gdb.InferiorCallPostEvent) -> None:
        """gdb calls a function in the program, or has. Where it stops in that it carries out no
        commands."""
        self._calls += 1 if isinstance(event, gdb.InferiorCallPreEvent) else -1

    def will_go_on(self, event: gdb.StopEvent) -> bool:
        """Whether gdb lets the program go on from a stop of the user's by itself, for sure, and
        nobody sees code or stacks before: by the commands of all breakpoints that have stopped it.
        The event also names some whose conditions did not hold, with no commands then."""
        if self._calls or not isinstance(event, gdb.BreakpointEvent):
            return False
        return all(
            breakpoint_.number in self._stopped and _goes_on(breakpoint_)
            for breakpoint_ in event.breakpoints
        )

    def all_go_on(self) -> bool:
        """As :meth:`will_go_on`, before gdb tells of the stop: of those that have stopped it."""
        stopped = [one for one in gdb.breakpoints() if one.number in self._stopped]
        return bool(stopped) and not self._calls and all(map(_goes_on, stopped))

    def may_go_on(self, event: gdb.StopEvent) -> bool:
        """Whether it probably does, whoever sees something before."""
        if self._calls or not isinstance(event, gdb.BreakpointEvent):
            return False
        return all(map(_continues, event.breakpoints))


def _lines(breakpoint_: gdb.Breakpoint) -> list[str]:
    """Its commands."""
    text = breakpoint_.commands or ""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _continues(breakpoint_: gdb.Breakpoint) -> bool:
    return any(map(_CONTINUES.fullmatch, _lines(breakpoint_)[-1:]))


def _goes_on(breakpoint_: gdb.Breakpoint) -> bool:
    return _continues(breakpoint_) and all(map(_is_harmless, _lines(breakpoint_)))


def _is_harmless(command: str) -> bool:
    if _SAYS.fullmatch(command) or _CONTINUES.fullmatch(command):
        return True
    if (found := _PRINTS.fullmatch(command)) is not None:
        return _can_be_shown(found["value"])
    if (found := _FORMATS.fullmatch(command)) is None:
        return False
    values = [value.strip() for value in (found["values"] or "").split(",") if value.strip()]
    taken = [one for one in _CONVERSION.findall(found["format"]) if one != "%%"]
    is_known = "%" not in _CONVERSION.sub("", found["format"])
    return is_known and len(taken) == len(values) and all(map(_is_number, values))


def _can_be_shown(expression: str) -> bool:
    return _value(expression) is not None


def _is_number(expression: str) -> bool:
    value = _value(expression)
    kind = None if value is None else value.type.strip_typedefs().code
    return kind in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_BOOL)


def _value(expression: str) -> gdb.Value | None:
    """``None`` where looking at it may do something, or cannot be done."""
    if _PLAIN.fullmatch(expression.strip()) is None:
        return None
    try:
        value = gdb.parse_and_eval(expression)
        if not value.is_optimized_out:
            value.fetch_lazy()
            return value
    except (gdb.error, RuntimeError, UnicodeError):
        pass
    return None
