"""Whether a function looks at its own return address: reads its code, and asks each rule."""

from __future__ import annotations

from darc.code.architecture import MAX_FUNCTION, Surroundings
from darc.code.linkage import Linkage
from darc.code.processor import decode, is_looked_at
from darc.model.errors import TargetError

LOOKS_BACK = "it looks at its own return address"
"""Why a function is not called through a pad that would find that of a landing there."""

_TSAN = "__tsan_func_entry"
"""Takes a return address for ThreadSanitizer's reports, and calls nobody there."""


class BackLooks:
    """Whether functions look at their caller's address: each one's code is read once, until that is
    to be forgotten."""

    def __init__(self, around: Surroundings, linkage: Linkage) -> None:
        self._around = around
        self._linkage = linkage
        self._known: dict[int, bool] = {}

    def forget_code(self) -> None:
        """The program's bytes have changed."""
        self._known.clear()

    def at_caller(self, address: int) -> bool:
        """Whether the function, or part of one, at ``address`` looks at its return address itself.
        What it jumps to is asked by itself (:meth:`darc.code.jumps.Jumps.out_of`)."""
        found = self._known.get(address)
        if found is None:
            found = self._known[address] = self._read(address)
        return found

    def _read(self, address: int) -> bool:
        extent = self._around.outlines.extent(address)
        if extent is None or extent[1] - extent[0] > MAX_FUNCTION:
            return False
        try:
            code = decode(self._around.read(address, extent[1] - address), address)
        except TargetError:
            return False
        rules = self._around.outlines.frame_rule if address == extent[0] else None
        return is_looked_at(address, code, rules, self._only_notes)

    def _only_notes(self, target: int) -> bool:
        return _TSAN in self._linkage.names_of(target)
