"""The calls of one thread that are under way, from f0's on, as hits tell of them.

A call is known by the address of the stack word that holds its return address (its *slot*), which
names a frame while the frame lives. Stacks grow downwards: a frame whose slot lies below the stack
pointer is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from darc.collectors.hitclock import Instant
from darc.collectors.tally import CallTimes, Sums
from darc.model.ftree import Fnode

NEAR_STACK = 8 << 20
"""The usual limit of a stack, in bytes: what is further away is on another one."""


@dataclass
class OpenCall:
    """A call under way. ``nodes`` are its fnode and those that took its frame over by a tail call,
    with the instants at which they did; the last is ``None`` when it left the ftree."""

    slot: int
    back: int
    nodes: list[tuple[Fnode | None, Instant]]

    @property
    def node(self) -> Fnode | None:
        """The fnode whose code the frame executes."""
        return self.nodes[-1][0]


@dataclass
class OpenOp:
    """A call of f0, and what it is in the middle of: innermost last."""

    begin: Instant
    calls: list[OpenCall]
    latency: Callable[[Instant, Instant], int]
    """Cycles from one instant to another."""
    sums: Sums = field(default_factory=dict)
    left: Instant | None = None
    """When the latest longjmp began."""
    lost: int = 0
    """Calls that did not return, and whose end nothing tells."""

    @property
    def f0(self) -> OpenCall:
        """The call of f0 itself."""
        return self.calls[0]

    def find(self, slot: int) -> OpenCall | None:
        """The call that has this slot."""
        return next((call for call in reversed(self.calls) if call.slot == slot), None)

    def open(self, parent: OpenCall, call: OpenCall) -> None:
        """``parent`` makes a call: all that was deeper is over. Where no longjmp has ended it, an
        exception has just now, as the first thing that a handler does is a call."""
        self._leave(parent, call.nodes[0][1])
        self.calls.append(call)

    def hand_over(self, call: OpenCall, node: Fnode | None, now: Instant) -> None:
        """A tail call: the frame of ``call`` is that of ``node`` from now on."""
        self._leave(call, now)
        call.nodes.append((node, now))

    def close(self, call: OpenCall, end: Instant) -> None:
        """A call has returned. What was deeper and has not, ended nobody knows when."""
        self._leave(call, None)
        self._account(call, end)
        self.calls.pop()

    def caught(self, slot: int, end: Instant) -> bool:
        """An exception was caught; ``slot`` is where the return address of the function that begins
        the handler stands. Calls up to there have ended. True: f0 is one of them."""
        while self.calls and 0 <= slot - self.calls[-1].slot < NEAR_STACK:
            call = self.calls[-1]
            self._account(call, end)
            self.calls.pop()
        return not self.calls

    def jumps(self, begin: Instant) -> None:
        """A longjmp begins: frames that turn out to be gone later ended here."""
        self.left = begin

    def forget(self, node: Fnode) -> None:
        """A node is not timed any more: what is known of it is only a part."""
        self.sums.pop(node, None)
        for call in self.calls[1:]:
            if any(one is node for one, _ in call.nodes):
                del self.calls[self.calls.index(call) :]
                return

    def _leave(self, live: OpenCall, end: Instant | None) -> None:
        """The frames below that of ``live`` are gone: since the latest longjmp if that is later
        than they are, else since ``end``."""
        while self.calls[-1] is not live:
            call = self.calls.pop()
            jumped = self.left is not None and self.left.ns >= call.nodes[0][1].ns
            ended = self.left if jumped else end
            if ended is not None:
                self._account(call, ended)
            else:
                self.lost += 1

    def _account(self, call: OpenCall, end: Instant) -> None:
        for node, begin in call.nodes:
            if node is not None:
                self.sums.setdefault(node, CallTimes()).add(self.latency(begin, end))
