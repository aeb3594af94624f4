"""How much of a stop goes to what no decision needs yet."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator

_SECONDS = 0.004
"""Of the processor's time at a stop, after which no node is looked into any more that no decision
needs yet: as far as probes allow that took 300 ms in large libraries, and a level more takes one
stop more."""


class GuessTime:
    """For one search, on the debugger's own thread."""

    def __init__(self) -> None:
        self._since = time.thread_time()

    def stands(self) -> None:
        """The program stands still from now on."""
        self._since = time.thread_time()

    def stands_for_user(self) -> None:
        """It does so anyway."""
        self._since = math.inf

    @contextlib.contextmanager
    def uncounted(self) -> Iterator[None]:
        """What is done meanwhile is done once: no less is to be guessed for that."""
        asked = time.thread_time()
        yield
        self._since += time.thread_time() - asked

    def is_left(self) -> bool:
        """Whether a node may be looked into that no decision needs yet, with the program standing
        still. (Where its code was read ahead that takes no time to speak of.)"""
        return time.thread_time() - self._since < _SECONDS
