"""What values each parameter of a session takes, and how they are written: by the user, and in
session files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum

from darc.model.parameters import MAX_DEPTH, MAX_RESOLUTION, Loops, OnFinish, Probes
from darc.model.peaks import LAST_PEAK, choose_peak
from darc.model.profile import Profile
from darc.model.values import ON_OFF, Kind, count, duration, fraction, one_of_enum

MAX_THREAD_ID = 1 << 22
"""Linux's PID_MAX_LIMIT."""


@dataclass(frozen=True)
class Domain:
    """The values that one ``field`` of :class:`~darc.model.parameters.Parameters` takes: those of
    a ``kind``, and ``None``, for which ``none`` is the word; ``unit`` is written behind a number: a
    share is one in percent where that is ``%``.
    """

    field: str
    kind: Kind[object]
    none: str | None = None
    unit: str = ""

    @property
    def name(self) -> str:
        """What users and files call the parameter."""
        return self.field.replace("_", "-")

    @property
    def valid(self) -> str:
        """What values these are, in words."""
        return self.kind.valid if self.none is None else f"{self.kind.valid}, or {self.none}"

    def read(self, text: str) -> object:
        """The value that ``text`` stands for.

        Raises:
            ValueError: it stands for none.
            UsageError: the same, where there is more to say of it.
        """
        text = text.strip()
        return None if text == self.none else self.kind.parse(text)

    def text(self, value: object) -> str:
        """``value`` as :meth:`read` takes it."""
        if isinstance(value, Enum):
            return str(value.value)
        if isinstance(value, bool):
            return "on" if value else "off"
        if value is None:
            assert self.none is not None
            return self.none
        if isinstance(value, float):
            return f"{100 * value if self.unit == '%' else value:g}{self.unit}"
        return str(value)

    def whole_text(self, value: object) -> str:
        """The same with every digit of a fraction, as files have it."""
        if not isinstance(value, float):
            return self.text(value)
        number = Decimal(repr(value)) * (100 if self.unit == "%" else 1)
        return f"{number:f}{self.unit}"


def _task(text: str) -> int | str:
    if text.isdecimal():
        return _THREAD_ID.parse(text)
    if not text:
        raise ValueError(text)
    return text


def _peak(text: str) -> str:
    choose_peak(text, Profile.empty(MAX_RESOLUTION, hz=1))
    return text


PEAK = Kind("a peak: N, last, bins as 17-19, '>4ms' or p99", _peak, LAST_PEAK, (LAST_PEAK,))
"""Which one there is, a profile tells."""

_THREAD_ID = replace(
    count(1, MAX_THREAD_ID), valid=f"a thread id of the system from 1 to {MAX_THREAD_ID}"
)
_TASK: Kind[int | str] = Kind(
    f"a process id from 1 to {MAX_THREAD_ID}, a task's name as ps shows it", _task, "1"
)

DOMAINS: tuple[Domain, ...] = (
    Domain("peak", PEAK, none="none"),
    Domain("start_ops", count(), none="auto"),
    Domain("start_time", duration(), none="none", unit="s"),
    Domain("decision_ops", count(), none="auto"),
    Domain("maxcount_percentage", fraction()),
    Domain("max_depth", count(1, MAX_DEPTH)),
    Domain("max_probes", count(1, 100_000)),
    Domain("lookahead", count(1, 1000), none="auto"),
    Domain("loops", one_of_enum(Loops)),
    Domain("max_time", duration(), none="none", unit="s"),
    Domain("resolution", count(1, MAX_RESOLUTION)),
    Domain("thread", _THREAD_ID, none="all"),
    Domain("task", _TASK, none="all"),
    Domain("probes", one_of_enum(Probes)),
    Domain("on_finish", one_of_enum(OnFinish)),
    Domain("auto", ON_OFF),
    Domain("verbose", ON_OFF),
)
"""One for each field, in the order of the fields."""
