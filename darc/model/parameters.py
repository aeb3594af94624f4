"""The parameters of a session (paper section 6), each declared once.

One :class:`Parameter` serves the option of ``darc start``, ``set darc`` and ``show darc``: it has
the name as typed, the documentation, the parser with its range and the values to complete.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from darc.model.errors import UsageError, near
from darc.model.peaks import choose_peak
from darc.model.profile import Profile, parse_time

MAX_THREAD_ID = 1 << 22
"""Linux's PID_MAX_LIMIT."""

MAX_DEPTH = 1000
"""Levels that a search may descend."""

MAX_RESOLUTION = 8
"""Bins for each doubling of the latency at most."""


AUTO_START_OPS = 100
"""Calls to see before the peak is looked for, unless a number or a time is given."""

MOST_CALLS = 1 << 62
"""More calls than are ever made."""


class Probes(str, Enum):
    """How latency is collected. ``AUTO`` takes the cheapest kind that is safe at each place."""

    AUTO = "auto"
    PAD = "pad"
    BREAKPOINT = "breakpoint"


class Loops(str, Enum):
    """What counts of a callee that is called again and again. ``TOGETHER``: all of its calls."""

    TOGETHER = "together"
    PAPER = "paper"


class OnFinish(str, Enum):
    """What the program does once the answer is known."""

    STOP = "stop"
    CONTINUE = "continue"


@dataclass(frozen=True)
class Parameters:
    """The parameters of one session; the defaults are the paper's where it has the parameter.

    ``None`` stands for: no peak chosen, ``start_ops``, ``decision_ops`` and ``lookahead`` auto, no
    time limit (``start_time`` and ``max_time`` are in seconds), all threads and tasks. ``thread``
    is the system's thread id, ``task`` the process id or the name of a kernel's tasks. Raises
    :class:`UsageError` for a peak that cannot be at this resolution.
    """

    peak: str | None = None
    start_ops: int | None = None
    start_time: float | None = None
    decision_ops: int | None = 20
    maxcount_percentage: float = 0.5
    max_depth: int = 32
    max_probes: int = 1000
    lookahead: int | None = None
    loops: Loops = Loops.TOGETHER
    max_time: float | None = None
    resolution: int = 1
    thread: int | None = None
    task: int | str | None = None
    probes: Probes = Probes.AUTO
    on_finish: OnFinish = OnFinish.STOP
    auto: bool = True
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.peak is not None:
            choose_peak(self.peak, Profile.empty(self.resolution, hz=1))

    @property
    def profile_calls(self) -> int:
        """After how many calls to look for the peak, if not after ``start_time`` already."""
        if self.start_ops is not None:
            return self.start_ops
        return AUTO_START_OPS if self.start_time is None else MOST_CALLS

    def overridden(self, overrides: Mapping[str, Any]) -> Parameters:
        """These parameters with the values of ``overrides``, keyed by field name."""
        return dataclasses.replace(self, **overrides)

    def with_text(self, name: str, text: str) -> Parameters:
        """These parameters with the one called ``name`` as typed by the user.

        Raises :class:`UsageError` for an unknown name and for a value that is not valid.
        """
        parameter = find_parameter(name)
        return self.overridden({parameter.field: parameter.read(text)})

    def text_of(self, name: str) -> str:
        """The value of the parameter called ``name``, as the user would type it."""
        parameter = find_parameter(name)
        return parameter.text(getattr(self, parameter.field))


@dataclass(frozen=True)
class Parameter:
    """One parameter: ``name`` as typed after ``set darc``, ``option`` as typed after ``darc start``
    (``None``: not an option). ``values`` are words that it takes; ``valid`` says what is valid;
    ``unit`` is written behind a number.
    """

    field: str
    name: str
    option: str | None
    metavar: str
    doc: str
    valid: str
    values: tuple[str, ...]
    parse: Callable[[str], object]
    unit: str = ""

    @property
    def default(self) -> object:
        """The value that :class:`Parameters` has when nobody sets it."""
        return getattr(Parameters(), self.field)

    @property
    def label(self) -> str:
        """The option where there is one, else the name: what a message calls this parameter."""
        return self.option or self.name

    def read(self, text: str) -> object:
        """The value that ``text`` stands for.

        Raises :class:`UsageError`, in one line with the value, what is valid and what to type.
        """
        text = text.strip()
        try:
            return self.parse(text)
        except ValueError:
            example = f"{self.option} " if self.option else f"set darc {self.name} "
            raise UsageError(
                f"{self.label}: '{text}' is not {self.valid}; "
                f"type for example '{example}{self.example}'"
            ) from None

    def text(self, value: object) -> str:
        """``value`` as the user would type it."""
        if isinstance(value, Enum):
            return str(value.value)
        if isinstance(value, bool):
            return "on" if value else "off"
        if value is None:
            return next(word for word in _FOR_NONE if word in self.values)
        return f"{value:g}{self.unit}" if isinstance(value, float) else str(value)

    @property
    def example(self) -> str:
        """A valid value, for messages."""
        default = self.text(self.default)
        return self.values[0] if default == "none" else default


_FOR_NONE = ("auto", "all", "none")
"""The words for ``None``: a parameter takes one of them at most."""


def _or_word(word: str, parse: Callable[[str], object]) -> Callable[[str], object]:
    def read(text: str) -> object:
        return None if text == word else parse(text)

    return read


def _integer(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise ValueError(text)
        return int(text)

    return read


def _task(text: str) -> int | str:
    if text.isdecimal():
        return _integer(1, MAX_THREAD_ID)(text)
    if not text:
        raise ValueError(text)
    return text


def _fraction(text: str) -> float:
    value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 < value <= 1:
        raise ValueError(text)
    return value


def _duration(text: str) -> float:
    try:
        seconds = parse_time(f"{text}s" if re.fullmatch(r"[0-9.]+", text) else text)
    except UsageError:
        raise ValueError(text) from None
    if not 0 < seconds < math.inf:
        raise ValueError(text)
    return seconds


def _switch(text: str) -> bool:
    if text in ("on", "yes", "1", "true", "enable", ""):
        return True
    if text in ("off", "no", "0", "false", "disable"):
        return False
    raise ValueError(text)


def _peak(text: str) -> str:
    choose_peak(text, Profile.empty(MAX_RESOLUTION, hz=1))
    return text


PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        field="peak",
        name="peak",
        option="--peak",
        metavar="P",
        doc=(
            "The peak to explain: a number N, 'last', bins as 17-19, '>4ms' or a percentile as "
            "p99. Without it the program stops once the profile is known, for the choice."
        ),
        valid="a peak: N, last, bins as 17-19, '>4ms', p99, or none",
        values=("last", "none"),
        parse=_or_word("none", _peak),
    ),
    Parameter(
        field="start_ops",
        name="start-ops",
        option="--start-ops",
        metavar="N|auto",
        doc=(
            "Calls of the function to see before its profile is shown and the peak is looked for. "
            f"'auto' is {AUTO_START_OPS}, or as many as come in --start-time."
        ),
        valid="a whole number from 1 to 1000000000, or auto",
        values=("auto",),
        parse=_or_word("auto", _integer(1, 10**9)),
    ),
    Parameter(
        field="start_time",
        name="start-time",
        option="--start-time",
        metavar="T",
        doc=(
            "The same as a time, for rare peaks: 10s, 2min, 500ms; a plain number is seconds. It "
            "takes the place of a number of calls; with --start-ops whichever comes first."
        ),
        valid="a time above 0 as 10s, 2min or 500ms, or none",
        values=("10s", "none"),
        parse=_or_word("none", _duration),
        unit="s",
    ),
    Parameter(
        field="decision_ops",
        name="decision-ops",
        option="--decision-ops",
        metavar="N|auto",
        doc=(
            "Calls inside the peak to see at each level before its root causes are decided. "
            "'auto' decides as soon as the votes are decisive."
        ),
        valid="a whole number from 1 to 1000000000, or auto",
        values=("auto",),
        parse=_or_word("auto", _integer(1, 10**9)),
    ),
    Parameter(
        field="maxcount_percentage",
        name="maxcount-percentage",
        option="--maxcount-percentage",
        metavar="F",
        doc=(
            "The share of the largest maxcount that makes a callee a root cause as well. "
            "1 follows only the largest; small values follow several paths."
        ),
        valid="above 0 and at most 1 (or 100%)",
        values=(),
        parse=_fraction,
    ),
    Parameter(
        field="max_depth",
        name="max-depth",
        option="--max-depth",
        metavar="N",
        doc="Levels to descend at most; the function itself is level 1.",
        valid=f"a whole number from 1 to {MAX_DEPTH}",
        values=(),
        parse=_integer(1, MAX_DEPTH),
    ),
    Parameter(
        field="max_probes",
        name="max-probes",
        option="--max-probes",
        metavar="N",
        doc="Call sites to time at once at most. More callees than that are timed in turns.",
        valid="a whole number from 1 to 100000",
        values=(),
        parse=_integer(1, 100_000),
    ),
    Parameter(
        field="lookahead",
        name="lookahead",
        option="--lookahead",
        metavar="K|auto",
        doc=(
            "Levels to time at once, so that rare peaks need fewer calls. 1 goes level by level, "
            "as the paper does; auto is 3, but 1 where the function is short, hot, and wanted "
            "often."
        ),
        valid="a whole number from 1 to 1000, or auto",
        values=("auto", "1"),
        parse=_or_word("auto", _integer(1, 1000)),
    ),
    Parameter(
        field="loops",
        name="loops",
        option="--loops",
        metavar="together|paper",
        doc=(
            "What counts of a callee that is called again and again: all of its calls together, so "
            "that the path goes on into it; or the longest one alone, as in the paper, so that the "
            "path ends at the caller."
        ),
        valid="one of together, paper",
        values=tuple(choice.value for choice in Loops),
        parse=Loops,
    ),
    Parameter(
        field="max_time",
        name="max-time",
        option="--max-time",
        metavar="T",
        doc="End after this time with what is known: 30s, 2min, 500ms; a plain number is seconds.",
        valid="a time above 0 as 30s, 2min or 500ms, or none",
        values=("30s", "none"),
        parse=_or_word("none", _duration),
        unit="s",
    ),
    Parameter(
        field="resolution",
        name="resolution",
        option="--resolution",
        metavar="R",
        doc="Bins for each doubling of the latency.",
        valid=f"a whole number from 1 to {MAX_RESOLUTION}",
        values=tuple(str(bins) for bins in range(1, MAX_RESOLUTION + 1)),
        parse=_integer(1, MAX_RESOLUTION),
    ),
    Parameter(
        field="thread",
        name="thread",
        option="--thread",
        metavar="TID|all",
        doc="Analyse the calls of this thread only; TID is the system's thread id.",
        valid=f"a thread id of the system from 1 to {MAX_THREAD_ID}, or all",
        values=("all",),
        parse=_or_word("all", _integer(1, MAX_THREAD_ID)),
    ),
    Parameter(
        field="task",
        name="task",
        option="--task",
        metavar="PID|COMM|all",
        doc="In a kernel: analyse only the calls that this process makes, or tasks of this name.",
        valid=f"a process id from 1 to {MAX_THREAD_ID}, a task's name as ps shows it, or all",
        values=("all",),
        parse=_or_word("all", _task),
    ),
    Parameter(
        field="probes",
        name="probes",
        option="--probes",
        metavar="KIND",
        doc=(
            "How latency is collected: jump pads or breakpoints. 'auto' takes pads, and "
            "breakpoints for what can take none, where they do no harm. Breakpoints stop the "
            "program at every call that is timed: they are for functions that take milliseconds."
        ),
        valid="one of auto, pad, breakpoint",
        values=tuple(kind.value for kind in Probes),
        parse=Probes,
    ),
    Parameter(
        field="on_finish",
        name="on-finish",
        option="--on-finish",
        metavar="stop|continue",
        doc="What the program does when the root causes are known.",
        valid="one of stop, continue",
        values=tuple(choice.value for choice in OnFinish),
        parse=OnFinish,
    ),
    Parameter(
        field="auto",
        name="auto",
        option=None,
        metavar="on|off",
        doc="Descend without asking. When off, 'darc descend' chooses the nodes at each decision.",
        valid="on or off",
        values=("on", "off"),
        parse=_switch,
    ),
    Parameter(
        field="verbose",
        name="verbose",
        option=None,
        metavar="on|off",
        doc="Show every callee in trees and the traceback of errors.",
        valid="on or off",
        values=("on", "off"),
        parse=_switch,
    ),
)


def find_parameter(name: str) -> Parameter:
    """The parameter called ``name`` (dashes or underscores).

    Raises :class:`UsageError` that names the near ones when there is none.
    """
    wanted = name.replace("_", "-")
    for parameter in PARAMETERS:
        if parameter.name == wanted:
            return parameter
    names = [parameter.name for parameter in PARAMETERS]
    hint = near(wanted, names) or f"; there are {', '.join(names)}"
    raise UsageError(f"darc has no parameter '{name}'{hint}")
