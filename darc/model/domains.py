"""What values each parameter of a session takes, and how they are written: by the user, and in
session files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from darc.model.errors import UsageError
from darc.model.parameters import MAX_DEPTH, MAX_RESOLUTION, Loops, OnFinish, Probes
from darc.model.peaks import choose_peak
from darc.model.profile import Profile, parse_time

MAX_THREAD_ID = 1 << 22
"""Linux's PID_MAX_LIMIT."""


@dataclass(frozen=True)
class Domain:
    """The values that one ``field`` of :class:`~darc.model.parameters.Parameters` takes. ``valid``
    says in words which; ``parse`` raises :class:`ValueError` for a text that is none of them;
    ``none`` is the word for ``None``; ``unit`` is written behind a number.
    """

    field: str
    valid: str
    parse: Callable[[str], object]
    none: str | None = None
    unit: str = ""

    @property
    def name(self) -> str:
        """What users and files call the parameter."""
        return self.field.replace("_", "-")

    def read(self, text: str) -> object:
        """The value that ``text`` stands for.

        Raises:
            ValueError: it stands for none.
            UsageError: the same, where there is more to say of it.
        """
        text = text.strip()
        return None if text == self.none else self.parse(text)

    def text(self, value: object) -> str:
        """``value`` as :meth:`read` takes it."""
        if isinstance(value, Enum):
            return str(value.value)
        if isinstance(value, bool):
            return "on" if value else "off"
        if value is None:
            assert self.none is not None
            return self.none
        return f"{value:g}{self.unit}" if isinstance(value, float) else str(value)


def integer(low: int, high: int) -> Callable[[str], int]:
    """Parses the whole numbers from ``low`` to ``high``."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise ValueError(text)
        return int(text)

    return read


def _task(text: str) -> int | str:
    if text.isdecimal():
        return integer(1, MAX_THREAD_ID)(text)
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


DOMAINS: tuple[Domain, ...] = (
    Domain(
        field="peak",
        valid="a peak: N, last, bins as 17-19, '>4ms', p99, or none",
        parse=_peak,
        none="none",
    ),
    Domain(
        field="start_ops",
        valid="a whole number from 1 to 1000000000, or auto",
        parse=integer(1, 10**9),
        none="auto",
    ),
    Domain(
        field="start_time",
        valid="a time above 0 as 10s, 2min or 500ms, or none",
        parse=_duration,
        none="none",
        unit="s",
    ),
    Domain(
        field="decision_ops",
        valid="a whole number from 1 to 1000000000, or auto",
        parse=integer(1, 10**9),
        none="auto",
    ),
    Domain(
        field="maxcount_percentage",
        valid="above 0 and at most 1 (or 100%)",
        parse=_fraction,
    ),
    Domain(
        field="max_depth",
        valid=f"a whole number from 1 to {MAX_DEPTH}",
        parse=integer(1, MAX_DEPTH),
    ),
    Domain(
        field="max_probes",
        valid="a whole number from 1 to 100000",
        parse=integer(1, 100_000),
    ),
    Domain(
        field="lookahead",
        valid="a whole number from 1 to 1000, or auto",
        parse=integer(1, 1000),
        none="auto",
    ),
    Domain(
        field="loops",
        valid="one of together, paper",
        parse=Loops,
    ),
    Domain(
        field="max_time",
        valid="a time above 0 as 30s, 2min or 500ms, or none",
        parse=_duration,
        none="none",
        unit="s",
    ),
    Domain(
        field="resolution",
        valid=f"a whole number from 1 to {MAX_RESOLUTION}",
        parse=integer(1, MAX_RESOLUTION),
    ),
    Domain(
        field="thread",
        valid=f"a thread id of the system from 1 to {MAX_THREAD_ID}, or all",
        parse=integer(1, MAX_THREAD_ID),
        none="all",
    ),
    Domain(
        field="task",
        valid=f"a process id from 1 to {MAX_THREAD_ID}, a task's name as ps shows it, or all",
        parse=_task,
        none="all",
    ),
    Domain(
        field="probes",
        valid="one of auto, pad, breakpoint",
        parse=Probes,
    ),
    Domain(
        field="on_finish",
        valid="one of stop, continue",
        parse=OnFinish,
    ),
    Domain(
        field="auto",
        valid="on or off",
        parse=_switch,
    ),
    Domain(
        field="verbose",
        valid="on or off",
        parse=_switch,
    ),
)
"""One for each field, in the order of the fields."""
