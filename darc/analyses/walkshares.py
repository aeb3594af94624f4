"""What a window has shown of the calls of one function: the shares that its callees have of each
thread's time."""

from __future__ import annotations

from collections.abc import Iterable

from darc.analyses.walkcode import WalkCode
from darc.analyses.walkedges import Edges
from darc.analyses.walkgroups import ThreadGroup, WalkNode
from darc.code.standard_library import is_of_cxx
from darc.collectors.manyduties import Counted, ThreadStack
from darc.model.libraries import plain_name
from darc.model.waitcalls import EVENT_WAITS, HANDED, SLEEPS, WAITS_FOR_NEXT

_ENDED = frozenset(
    """pthread_join pthread_clockjoin_ex pthread_timedjoin_np pthread_clockjoin_np thrd_join
    wait waitpid wait3 wait4""".split()
)
"""What a thread calls that waits until another one, or a child, is at its end."""

_WAITS = WAITS_FOR_NEXT | HANDED | SLEEPS | _ENDED
"""Where a thread waits for work, if a function that it never leaves calls that."""

_SYSTEM_CALL = "syscall"
"""The C library's, which C++'s makes to wait for a word to change, and not for locks."""


class LevelShares:
    """Of a ``group`` of threads in a window of ``length`` cycles, in which calls of ``node`` were
    timed. ``root`` is the entry of the function that the walk begins with, where that is no
    thread's start. Each of the group's threads is added, and then :meth:`tell` tells of all."""

    def __init__(
        self,
        group: ThreadGroup,
        node: WalkNode,
        code: WalkCode,
        edges: Edges,
        *,
        length: int,
        root: int | None,
    ) -> None:
        self._group = group
        self._node = node
        self._code = code
        self._edges = edges
        self._length = length
        self._root = root
        self._members = {function.address: function for function in code.callees(node)}
        self._below: dict[int, WalkNode] = {}
        self._own: dict[int, float] = {}
        """Of each thread's time: calls of the root."""
        self._now: dict[int, float] = {}
        """The same: calls of ``node``."""
        group.event_waits = {}

    # ------------------------------------------------------------------ one thread

    def add(self, before: ThreadStack, after: ThreadStack | None, counted: Counted) -> None:
        """A thread that stood so as the window began, and as it ended, if it was there yet."""
        key, node = before.key, self._node
        held, event = _cycles(counted)
        if self._edges.is_base(node, before, after):
            node.base |= {key}
        else:
            node.base -= {key}
        stays: set[int] = set()
        for address, cycles, lasts in self._edges.seeds(node, before, after, counted.first):
            held[address] = held.get(address, 0.0) + cycles
            stays |= {address} if lasts else set()
        seeded = self._edges.event_wait(before, after, counted)
        inside = {self._code.entry(frame) for frame in before.frames} if seeded else set()
        for address, cycles in held.items():
            if address in stays:  # its other event waits are no part of what was seeded
                cycles -= event + seeded
            elif address in inside:
                cycles -= seeded
            self._hold(address, key, cycles, counted, stays=address in stays)
        self._waited(key, event + seeded)

    def _hold(
        self, address: int, key: int, cycles: float, counted: Counted, *, stays: bool
    ) -> None:
        """A thread has spent so long in the function there."""
        part = min(max(cycles, 0.0) / self._length, 1.0)
        if address == self._root:
            self._own[key] = part
        elif address == self._node.function.address:
            self._now[key] = part
        elif address in self._members:
            node = WalkNode(self._members[address], self._node, {})
            one = self._below.setdefault(address, node)
            one.share[key] = part
            one.base |= {key} if stays else frozenset()
            one.calls[key] = sum(n for f, n in counted.calls.items() if f.address == address)

    def _waited(self, key: int, cycles: float) -> None:
        """A thread has waited so long for whatever comes next."""
        waited = min(cycles / self._length, 1.0)
        if waited:
            self._group.event_waits[key] = waited
        if self._root is None:
            self._group.root.share[key] = 1.0 - waited

    # ------------------------------------------------------------------------- all

    def tell_own(self) -> None:
        """What the function had of the time itself, while it was looked into."""
        self._node.had(self._now, self._whole())

    def _whole(self) -> dict[int, float]:
        return dict(self._group.root.share if self._root is None else self._own)

    def tell(self) -> None:
        """The group, and the functions on its way, have these shares from now on."""
        whole = self._whole()
        if self._root is not None:
            self._group.root.share = self._own
        for one in self._below.values():
            one.whole = whole
        self._keep(self._below.values())

    def _keep(self, below: Iterable[WalkNode]) -> None:
        """Of what the threads' own loops call, waits for work are idle time, and no callees; also
        where C++'s library stands between them."""
        node = self._node
        waits = _WAITS | {_SYSTEM_CALL} if is_of_cxx(node.function) else _WAITS
        for one in below:
            if plain_name(one.function.symbol) in waits:
                self._make_idle(one)
            elif is_of_cxx(one.function):
                one.lends = node.lends_on
            if one.share:
                node.below.append(one)
        for one in reversed(node.path):
            if one.lends:
                one.tell_idling()

    def _make_idle(self, wait: WalkNode) -> None:
        """What of these calls are waits for work."""
        node, group, name = self._node, self._group, wait.function.name
        for key in [key for key in wait.share if node.is_lent(key)]:
            node.waited[name] = node.waited.get(name, 0.0) + wait.share.pop(key)
        for key in node.base & wait.share.keys():
            part = wait.share.pop(key)
            node.idle[key] = node.idle.get(key, 0.0) + part
            group.waits[name] = group.waits.get(name, 0.0) + part
        wait.base -= node.base


def _cycles(counted: Counted) -> tuple[dict[int, float], float]:
    """Those in functions, by their addresses, and those in event waits."""
    held: dict[int, float] = {}
    event = 0.0
    for function, cycles in counted.cycles.items():
        if plain_name(function.symbol) in EVENT_WAITS:
            event += cycles
        else:
            held[function.address] = held.get(function.address, 0.0) + cycles
    return held, event
