"""What one analysis knows that others know nothing of: a part of the snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from darc.model.ftree import Function


class Part:
    """A frozen value of one analysis. How it is shown is a file of :mod:`darc.views.parts`."""

    key: ClassVar[str]
    """What it is called in :attr:`darc.model.snapshot.Snapshot.parts`, and in the JSON report."""

    def function(self, number: int) -> Function | None:
        """The function that users call by that ``number``, from 1 on, where they are shown some;
        ``None``: the number means nothing here. May raise
        :class:`~darc.model.errors.NotFoundError`."""
        del number
        return None


def parts_of(*parts: Part) -> Mapping[str, Part]:
    """Parts by their keys."""
    return MappingProxyType({part.key: part for part in parts})
