"""The parameters of a session as the user meets them, each declared once.

One :class:`Parameter` serves the option of ``darc start``, ``set darc`` and ``show darc``: it has
the documentation and the words to complete; what may be typed is its domain's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from darc.model.domains import DOMAINS, Domain
from darc.model.errors import UsageError, near
from darc.model.parameters import (
    AUTO_START_OPS,
    MAX_RESOLUTION,
    Loops,
    OnFinish,
    Parameters,
    Probes,
)
from darc.model.peaks import LAST_PEAK
from darc.model.snapshot import Snapshot
from darc.model.values import Kind


@dataclass(frozen=True)
class Parameter:
    """The parameter that is called ``name`` after ``set darc``, and ``option`` after ``darc start``
    (``None``: not an option). ``values`` are words that it takes.
    """

    name: str
    option: str | None
    metavar: str
    doc: str
    values: tuple[str, ...]
    is_for_showing: bool = False
    """Whether it holds at once, also for what an analysis that has begun shows."""
    is_of_one_run: bool = False
    """Whether it means nothing in another run (see :func:`darc.saved.refit.new_parameters`)."""
    values_in: Callable[[Snapshot], list[str]] | None = None
    """Which values are there in what is known now, beside its ``values``: completion has both."""

    @property
    def domain(self) -> Domain:
        """What values it takes, and how they are written."""
        return next(domain for domain in DOMAINS if domain.name == self.name)

    @property
    def field(self) -> str:
        """That of :class:`Parameters`."""
        return self.domain.field

    @property
    def default(self) -> object:
        """The value that :class:`Parameters` has when nobody sets it."""
        return getattr(Parameters(), self.field)

    @property
    def default_text(self) -> str:
        """The same, as the user would type it."""
        return self.text_in(Parameters())

    @property
    def label(self) -> str:
        """The option where there is one, else the name: what a message calls this parameter."""
        return self.option or self.name

    @property
    def example(self) -> str:
        """A valid value, for messages."""
        return self.values[0] if self.default_text == "none" else self.default_text

    @property
    def kind(self) -> Kind[object]:
        """What may be typed for it, with the word for ``None``."""
        all_told = self.domain.kind.has_no_others and self.domain.none is None
        return Kind(
            valid=self.domain.valid,
            parse=self.domain.read,
            example=self.example,
            words=self.values,
            has_no_others=all_told,
        )

    def read(self, text: str, *, is_set: bool = False) -> object:
        """The value that ``text`` stands for, behind the option or, where it ``is_set`` so, behind
        ``set darc``.

        Raises :class:`UsageError`, in one line with the value, what is valid and what to type.
        """
        if is_set or self.option is None:
            return self.kind.read(text, self.name, f"set darc {self.name}")
        return self.kind.read(text, self.option)

    def text_in(self, parameters: Parameters) -> str:
        """Its value in ``parameters``, as the user would type it."""
        return self.domain.text(getattr(parameters, self.field))


PROBES_MEAN = (
    "jump pads or breakpoints. 'auto' takes pads, and breakpoints for what can take none, where "
    "they do no harm."
)
"""The kinds of ``--probes``, for every command that has it."""


def peaks_in(snapshot: Snapshot) -> list[str]:
    """The numbers of its peaks."""
    return [str(peak.number) for peak in snapshot.peaks]


PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        name="peak",
        option="--peak",
        metavar="P",
        doc=(
            "The peak to explain: a number N, 'last', bins as 17-19, '>4ms' or a percentile as "
            "p99. Without it the program stops once the profile is known, for the choice."
        ),
        values=(LAST_PEAK, "none"),
        values_in=peaks_in,
    ),
    Parameter(
        name="start-ops",
        option="--start-ops",
        metavar="N|auto",
        doc=(
            "Calls of the function to see before its profile is shown and the peak is looked for. "
            f"'auto' is {AUTO_START_OPS}, in a program of many threads 8 for each or 0.25s of "
            "them, where they are all alike as many as come in a second, for a percentile as p99 "
            "as many as leave 20 beyond it, 5s at most, or as many as come in --start-time."
        ),
        values=("auto",),
    ),
    Parameter(
        name="start-time",
        option="--start-time",
        metavar="T",
        doc=(
            "The same as a time, for rare peaks: 10s, 2min, 500ms; a plain number is seconds. It "
            "takes the place of a number of calls; with --start-ops whichever comes first."
        ),
        values=("10s", "none"),
    ),
    Parameter(
        name="decision-ops",
        option="--decision-ops",
        metavar="N|auto",
        doc=(
            "Calls inside the peak to see at each level before its root causes are decided. "
            "'auto' decides as soon as the votes are decisive."
        ),
        values=("auto",),
    ),
    Parameter(
        name="maxcount-percentage",
        option="--maxcount-percentage",
        metavar="F",
        doc=(
            "The share of the largest maxcount that makes a callee a root cause as well. "
            "1 follows only the largest; small values follow several paths."
        ),
        values=(),
    ),
    Parameter(
        name="max-depth",
        option="--max-depth",
        metavar="N",
        doc="Levels to descend at most; the function itself is level 1.",
        values=(),
    ),
    Parameter(
        name="max-probes",
        option="--max-probes",
        metavar="N",
        doc="Call sites to time at once at most. More callees than that are timed in turns.",
        values=(),
    ),
    Parameter(
        name="lookahead",
        option="--lookahead",
        metavar="K|auto",
        doc=(
            "Levels to time at once, so that rare peaks need fewer calls. 1 goes level by level, "
            "as the paper does; auto is 3, but 1 where the function is short, hot, and wanted "
            "often."
        ),
        values=("auto", "1"),
    ),
    Parameter(
        name="loops",
        option="--loops",
        metavar="together|paper",
        doc=(
            "What counts of a callee that is called again and again: all of its calls together, so "
            "that the path goes on into it; or the longest one alone, as in the paper, so that the "
            "path ends at the caller."
        ),
        values=tuple(choice.value for choice in Loops),
    ),
    Parameter(
        name="max-time",
        option="--max-time",
        metavar="T",
        doc="End after this time with what is known: 30s, 2min, 500ms; a plain number is seconds.",
        values=("30s", "none"),
    ),
    Parameter(
        name="resolution",
        option="--resolution",
        metavar="R",
        doc="Bins for each doubling of the latency.",
        values=tuple(str(bins) for bins in range(1, MAX_RESOLUTION + 1)),
    ),
    Parameter(
        name="thread",
        option="--thread",
        metavar="TID|all",
        doc="In a process: analyse the calls of this thread only; TID is the system's thread id.",
        values=("all",),
        is_of_one_run=True,
    ),
    Parameter(
        name="task",
        option="--task",
        metavar="PID|COMM|all",
        doc="In a kernel: analyse only the calls that this process makes, or tasks of this name.",
        values=("all",),
    ),
    Parameter(
        name="probes",
        option="--probes",
        metavar="KIND",
        doc=(
            f"How latency is collected: {PROBES_MEAN} Breakpoints stop the program at every call "
            "that is timed: they are for functions that take milliseconds."
        ),
        values=tuple(kind.value for kind in Probes),
    ),
    Parameter(
        name="on-finish",
        option="--on-finish",
        metavar="stop|continue",
        doc="What the program does when the analysis has ended.",
        values=tuple(choice.value for choice in OnFinish),
    ),
    Parameter(
        name="auto",
        option=None,
        metavar="on|off",
        doc="Descend without asking. When off, 'darc descend' chooses the nodes at each decision.",
        values=("on", "off"),
    ),
    Parameter(
        name="verbose",
        option=None,
        metavar="on|off",
        doc="Show every callee in trees and the traceback of errors.",
        values=("on", "off"),
        is_for_showing=True,
    ),
)
"""In the order of the fields."""


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


def by_field(overrides: Mapping[Parameter, object]) -> dict[str, object]:
    """These values, by the fields of :class:`Parameters`."""
    return {parameter.field: value for parameter, value in overrides.items()}


def with_text(parameters: Parameters, name: str, text: str) -> Parameters:
    """``parameters`` with the one called ``name`` as typed by the user.

    Raises :class:`UsageError` for an unknown name and for a value that is not valid.
    """
    parameter = find_parameter(name)
    return parameters.overridden({parameter.field: parameter.read(text, is_set=True)})
