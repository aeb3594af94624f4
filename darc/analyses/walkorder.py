"""What a walk looks into next."""

from __future__ import annotations

from collections.abc import Sequence

from darc.analyses.walkcode import WalkCode
from darc.analyses.walkgroups import ThreadGroup, WalkNode

_LEAST_LIBRARY = 0.2
"""Of the threshold: what of C++'s library a loop calls is looked into from there on, as its waits
are idle time, which all shares are without."""


class WalkOrder:
    """Down from the roots of groups, into what holds at least the ``threshold``'s share."""

    def __init__(self, code: WalkCode, threshold: float) -> None:
        self._code = code
        self._threshold = threshold

    def next(self, groups: Sequence[ThreadGroup]) -> tuple[ThreadGroup, WalkNode] | None:
        """The next function to look into, in the first of the groups that has one; ``None``: none
        has. What makes no calls is done, and so is a group without such a function."""
        for group in groups:
            while not group.is_done:
                node = self._open_node(group)
                if node is None:
                    group.is_done = True
                    break
                if self._code.callees(node) or self._code.has_unknown(node):
                    return group, node
                node.is_done = True
        return None

    def _open_node(self, group: ThreadGroup) -> WalkNode | None:
        """The next function of the group to look into: those first that threads never leave, as
        the waits for work are told from those."""
        nodes = [node for node in group.nodes() if not node.is_done]
        for node in nodes:
            if node.base:
                return node
        for node in nodes:
            least = self._threshold * _LEAST_LIBRARY
            if node.lends and not node.repeats and group.share(node) >= least:
                return node
        for node in nodes:
            if self._is_wanted(group, node) and not node.repeats:
                return node
        return None

    def _is_wanted(self, group: ThreadGroup, node: WalkNode) -> bool:
        return node.above is None or group.share(node) >= self._threshold
