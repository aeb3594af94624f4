"""Which callees take the time of a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from darc.model.ftree import Function
from darc.model.part import Part


@dataclass(frozen=True)
class Shares(Part):
    """The callees' parts, from 0 to 1, of the time of all calls in which they were timed."""

    key: ClassVar[str] = "shares"
    of: tuple[tuple[Function, float], ...] = ()
