"""Where the time of a program's threads goes, from their start down by calls (CrossWalk 3.1)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import ClassVar

from darc.model.errors import NotFoundError
from darc.model.ftree import Function
from darc.model.leftout import LeftOut
from darc.model.part import Part


class End(str, Enum):
    """Why a chain goes no further down than its last function."""

    ITSELF = "holds the time itself"
    INDIRECT = "holds the time itself, or indirect calls that were not seen"
    TAIL = "holds the time itself, or functions that it ends in, which could not be told apart"
    SYSTEM_CALL = "in its system call"
    UNTIMED = "calls that cannot be timed"
    SPREAD = "in calls that hold less each"
    GONE = "hardly called any more while it was looked into"
    CUT_SHORT = "the walk ended here"


@dataclass(frozen=True)
class ChainStep:
    """A function on a chain, and its share of its group's time, from 0 to 1."""

    function: Function
    share: float


@dataclass(frozen=True)
class Chain:
    """From where the walk began down to the function that holds the time."""

    steps: tuple[ChainStep, ...]
    end: End
    own: float
    """Share that the last function does not hand on to a callee that was timed."""
    untimed: tuple[str, ...] = ()
    """Callees that could not be timed, which may have some of it: all the rest is its own."""
    spread: tuple[ChainStep, ...] = ()
    """Those that have most of it together, where none has enough to go on: the largest first."""


@dataclass(frozen=True)
class WalkGroup:
    """Threads with the same start function, together. Shares of ``idle``, ``ran`` and ``ready``
    are of the threads' whole time, those of the chains of what is not idle."""

    name: str
    threads: int
    idle: tuple[tuple[str, float], ...]
    """The waits for work, and their shares."""
    chains: tuple[Chain, ...]
    """The one with the largest share first."""
    _: KW_ONLY
    ran: float | None = None
    ready: float | None = None
    """Waited for a processor. ``None``: the system does not tell."""
    is_of_callers: bool = False
    """Whether it is the threads that have called the function with which the walk began."""
    is_known: bool = True
    """Whether it was looked into."""

    @property
    def idle_share(self) -> float:
        """Of all waits for work."""
        return min(sum(share for _, share in self.idle), 1.0)


@dataclass(frozen=True)
class Walk(Part):
    """What is known of a walk: the part of ``darc walk``. ``seconds`` are those of each level's
    window."""

    key: ClassVar[str] = "walk"

    groups: tuple[WalkGroup, ...]
    threshold: float
    seconds: float
    _: KW_ONLY
    windows: int = 0
    left_out: tuple[tuple[Function, LeftOut], ...] = ()
    """Callees that could not be timed, and why."""
    longest: float = 0.0
    """Seconds of the longest window: those are longer where stops take long."""
    by_quota: float = 0.0
    """What part of the time in which threads were ready their CPU quota was used up, at most."""
    lost: tuple[int, ...] = ()
    """Threads, by the system's ids, whose stacks did not lead to where they have begun: nothing is
    known of them."""

    @property
    def worthwhile(self) -> int | None:
        """The number of the chain that has most time behind it, of those whose last function is
        called more than once in a thread's life, as far as the chain tells; ``None``: there is
        none."""
        chains = [(group, chain) for group in self.groups for chain in group.chains]
        found = [
            (-group.threads * (1.0 - group.idle_share) * chain.steps[-1].share, number)
            for number, (group, chain) in enumerate(chains, 1)
            if len(chain.steps) > 1 or group.is_of_callers
        ]
        return min(found)[1] if found else None

    def function(self, number: int) -> Function:
        """The last function of a chain, by its number over all groups, from 1. Raises
        :class:`~darc.model.errors.NotFoundError`: there is no such chain."""
        chains = [chain for group in self.groups for chain in group.chains]
        if not 1 <= number <= len(chains):
            there = f"1 to {len(chains)}" if chains else "none yet"
            raise NotFoundError(f"there is no chain {number} of a walk: there are {there}")
        return chains[number - 1].steps[-1].function
