"""What those ask of a session that work for it."""

from __future__ import annotations

from typing import Protocol

from darc.analyses.analysis import Analysis
from darc.collectors.collector import Collector


class Probing(Protocol):
    """What is in a program at this moment, and what it is there for. Any thread."""

    @property
    def alive(self) -> bool:
        """Whether probes are in the program."""

    @property
    def collector(self) -> Collector:
        """What times and counts."""

    @property
    def analysis(self) -> Analysis:
        """What is made of it."""
