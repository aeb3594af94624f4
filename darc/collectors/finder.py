"""What an analysis is of, where that is not one function that the user names.

Whatever begins such an analysis brings a :class:`Finder`, which tells at the beginning which
functions these are and how their latencies are collected. Who begins it knows no more than that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from darc.code.patterns import Pattern
from darc.code.program import Program
from darc.collectors.collector import Way
from darc.debuggee.debuggee import Debuggee
from darc.target.target import Target


@dataclass(frozen=True)
class FinderBrief:
    """Where an analysis begins: a program that stands still."""

    target: Target
    program: Program
    debuggee: Debuggee
    runs: bool = False
    """Whether it has been let go on before, and may have work to do."""
    progress: Callable[[str], None] = lambda _: None
    """Is told what is done, where that may take long."""


@dataclass(frozen=True)
class FoundFunctions:
    """The functions of an analysis that is to begin, and the collector that times them."""

    entry: int
    """The address of one of the functions, which stands for all,"""
    way: Way
    """and how they are collected."""
    notes: Sequence[str] = ()
    """What the user should know."""


class Finder(ABC):
    """Of one analysis that the user has asked for."""

    text: str
    """What was typed, or what messages call it."""

    @property
    def named(self) -> Sequence[Pattern]:
        """Patterns that mean functions of the program's file, or of libraries that are loaded with
        it, already before it runs; else nothing can come of it."""
        return ()

    @abstractmethod
    def find(self, brief: FinderBrief) -> FoundFunctions:
        """Which functions these are.

        Raises:
            DarcError: there are none, or they cannot be timed here.
        """
