"""What a helper reads while the profile grows: the search that follows finds it read."""

from __future__ import annotations

import time
from collections.abc import Iterator

from darc.code.modules import Module
from darc.code.program import Program

_SECONDS = 2.0
"""Of the processor's time that a helping thread takes to read files before the search begins."""


class Warming:
    """What a helper reads of the files of ``program``, those near the function at ``address``
    first. One thread."""

    def __init__(self, program: Program, address: int) -> None:
        self._program = program
        self._address = address
        self._near: Iterator[Module] | None = None
        """Those that are still to be read."""

    def step(self) -> bool:
        """Reads the tables of one more; ``False``: there is none, or no time left."""
        if time.thread_time() >= _SECONDS:
            return False
        if self._near is None:
            self._near = self._program.modules_near(self._address)
        for module in self._near:
            if not module.is_vdso:  # is read anew for each analysis, and is small
                module.image.warm_up()
            return True
        return False
