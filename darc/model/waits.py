"""What the ops of a peak waited for, and who kept them waiting (DepGraph III, IV): merged over ops.

A wait's time is divided: among those who held a lock one after the other, else between the time up
to the wake-up and the time until the thread ran again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from darc.model.ops import ObjectKind


class Role(str, Enum):
    """What somebody had to do with a wait. The values are those of the report."""

    HELD = "held"
    """It had the lock, and released it while the op waited."""
    HELD_FIRST = "held at the begin"
    """The lock said so when the wait began; no release was seen."""
    WOKE = "woke"
    """It signalled the condition, posted the semaphore, came last to the barrier, ended."""
    INTERRUPT = "interrupt"
    """A kernel's interrupt woke it,"""
    SOFT_INTERRUPT = "soft interrupt"
    """or what is done behind interrupts: timers, the network, disks."""
    RAN = "ran"
    """In a kernel: it had the processor meanwhile, at first."""
    HANDED_OVER = "handed over"
    """Nobody: the object was free, and the thread had not come to run yet."""
    NOT_SEEN = "not seen"
    """Whoever it was released it in a way that darc does not watch."""


@dataclass(frozen=True)
class Holder:
    """Who kept ops waiting, in which call: threads that do the same are one."""

    role: Role
    thread: str
    """Its name; empty where nobody is meant."""
    path: tuple[str, ...]
    """The functions that it was in when it released, innermost first."""
    cycles: int
    """Σ over all ops."""
    ops: int
    """In so many of them."""
    threads: tuple[int, ...] = ()
    """The ids of those that did so,"""
    is_outside: bool = False
    """which are processes, not the program's own threads."""


@dataclass(frozen=True)
class WaitedFor:
    """One object, waited for at one place."""

    kind: ObjectKind
    name: str
    """Its symbol, else where it is."""
    path: tuple[str, ...]
    """The functions in which f0's thread waited, innermost first, up to f0."""
    cycles: int
    """Σ over all ops."""
    ops: int
    waits: int
    holders: tuple[Holder, ...]
    """Most time first."""


@dataclass(frozen=True)
class Waits:
    """Of the ops of one class."""

    ops: int
    cycles: int
    """Σ of their latencies."""
    objects: tuple[WaitedFor, ...]
    """Most time first."""
    lost: int = 0
    """So many events there was no room for."""

    @property
    def waited(self) -> int:
        """Σ of all waits, in cycles."""
        return sum(one.cycles for one in self.objects)
