"""Which threads a walk is about: in groups, by what they have begun with."""

from __future__ import annotations

from collections.abc import Mapping

from darc.analyses.threadstarts import ThreadStarts
from darc.analyses.walkgroups import ThreadGroup, WalkNode
from darc.code.standard_library import begins_threads
from darc.collectors.manyduties import ThreadStack
from darc.model.ftree import Function


class WalkThreads:
    """Threads that are new are seen at stops, by their stacks. Without ``starts`` all are one
    group, that of the callers of f0, which is ``root`` and which the user knows as ``spec``."""

    def __init__(self, root: Function, spec: str, starts: ThreadStarts | None) -> None:
        self._starts = starts
        self.groups: list[ThreadGroup] = []
        if starts is None:
            node = WalkNode(root, None, {})
            self.groups = [ThreadGroup(spec, set(), node, is_of_callers=True)]
        self.lost: dict[int, int] = {}
        """Those that nobody knows the start of, by their keys."""
        self._late: set[int] = set()
        """Threads that were seen when their group had been measured."""

    def see(self, stacks: Mapping[int, ThreadStack]) -> None:
        """These are all threads, and where they stand."""
        if self._starts is None:
            self.groups[0].threads.update(stack.key for stack in stacks.values())
            return
        known = set().union(self._late, *(group.threads for group in self.groups))
        self.lost.clear()
        for thread, stack in stacks.items():
            if stack.key in known:
                continue
            begins = self._starts.of(stack)
            if begins is not None:
                if not begins_threads(begins):  # else it has just begun
                    self._add(stack.key, begins)
            elif not self._starts.is_whole(stack):
                self.lost[stack.key] = thread  # looked at again, at the next stop

    def _add(self, key: int, begins: Function) -> None:
        """A thread joins the group of those that have begun with this function."""
        at = begins.address
        group = next((one for one in self.groups if one.root.function.address == at), None)
        if group is not None and group.root.is_done:
            self._late.add(key)
            return
        if group is None:
            group = ThreadGroup(begins.name, set(), WalkNode(begins, None, {}))
            self.groups.append(group)
        group.threads.add(key)
        group.root.share[key] = 1.0
        group.root.base |= {key}
