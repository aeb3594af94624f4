"""What one analysis knows that others know nothing of: a part of the snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Self

from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile


@dataclass(frozen=True)
class Offer:
    """A search that the user may begin."""

    function: str
    """As it is spelled, and"""
    peak: str
    """the calls that it is of."""


class Part:
    """A frozen value of one analysis. How it is shown is a file of :mod:`darc.views.parts`. What
    is asked here those say that have something of the kind: no command and no view knows which."""

    key: ClassVar[str]
    """What it is called in :attr:`darc.model.snapshot.Snapshot.parts`, and in the JSON report."""

    is_answer: ClassVar[bool] = False
    """Whether it says by itself what is slow: then ``darc report --require answer`` asks it for
    :attr:`why_no_answer`."""

    def function(self, number: int) -> Function | None:
        """The function that users call by that ``number``, from 1 on, where they are shown some;
        ``None``: the number means nothing here. May raise
        :class:`~darc.model.errors.NotFoundError`."""
        del number
        return None

    def why_no_function(self, number: int) -> str | None:
        """What the user is told of a ``number`` that means nothing in any part; ``None``: this one
        has nothing to say of it."""
        del number
        return None

    @property
    def profiles(self) -> tuple[FunctionProfile, ...] | None:
        """Those of the functions that are called by numbers, from 1 on; ``None``: it has none."""
        return None

    @property
    def named(self) -> tuple[FunctionProfile, ...]:
        """Those of all functions that it names, with a number or without."""
        return self.profiles or ()

    def with_row_alone(self, row: FunctionProfile) -> Self:
        """It, where of all :attr:`profiles` that one is shown."""
        del row
        return self

    @property
    def offer(self) -> Offer | None:
        """What it offers to look into at its end, longer than it has; ``None``: nothing."""
        return None

    @property
    def why_no_answer(self) -> str | None:
        """Of one that :attr:`is_answer`: what it comes to, where that is none."""
        return None


def parts_of(*parts: Part) -> Mapping[str, Part]:
    """Parts by their keys."""
    return MappingProxyType({part.key: part for part in parts})
