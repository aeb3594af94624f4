"""What functions on the way call, by their code and by the stacks of threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from darc.analyses.walkgroups import WalkNode
from darc.code.architecture import Site
from darc.code.program import Program
from darc.code.unwind import Frame
from darc.collectors.manyduties import ThreadStack
from darc.model.errors import TargetError
from darc.model.ftree import Function

_MOST_JUMPS = 12
"""Functions that hand one frame on, one to the other."""


class WalkCode:
    """The code of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def callees(self, node: WalkNode) -> list[Function]:
        """What it calls, as far as its code and what was seen tell."""
        program = self._program
        found: dict[int, Function] = {}
        resolved = program.linkage.resolve(node.function.address)
        code = program.function(node.function.address if resolved is None else resolved[0])
        for site in code.sites:
            callee = self.target(site)
            if callee is not None and not code.contains(callee.address):
                found[callee.address] = callee
        found.pop(node.function.address, None)
        for address in node.learned:
            found.setdefault(address, program.names.function_at(address))
        return list(found.values())

    def target(self, site: Site) -> Function | None:
        """What is called there, where the code tells."""
        target = site.target
        if target is None and site.pointer is not None:
            target = self._pointed(site.pointer)
        return None if target is None else self._program.linkage.callee_at(target)

    def has_unknown(self, node: WalkNode) -> bool:
        """Whether it makes calls of which its code does not tell where they lead."""
        return any(
            site.target is None and (site.pointer is None or self._pointed(site.pointer) is None)
            for site in self._program.function(node.function.address).sites
        )

    def _pointed(self, pointer: int) -> int | None:
        try:
            target = int.from_bytes(self._program.read(pointer, 8), "little")
        except TargetError:
            return None
        return target if self._program.is_code(target) else None

    def first_callees(self, node: WalkNode, stacks: Mapping[int, ThreadStack]) -> list[Function]:
        """As :meth:`callees`, those first that are under way on the stacks now."""
        places = (self.place(node, self.with_gone(node, one).frames) for one in stacks.values())
        called = {
            self._program.names.function_at(place[1].at).address
            for place in places
            if place is not None and place[1] is not None
        }
        return sorted(self.callees(node), key=lambda one: one.address not in called)

    def learn(self, node: WalkNode, stacks: Mapping[int, ThreadStack]) -> bool:
        """Callees that are on the stacks now and that the code does not tell of."""
        known = {function.address for function in self.callees(node)}
        for stack in stacks.values():
            place = self.place(node, self.with_gone(node, stack).frames)
            if place is not None and place[1] is not None:
                address = self._program.names.function_at(place[1].at).address
                if address not in known:
                    node.learned.add(address)
        return not node.learned <= known

    def place(self, node: WalkNode, found: Sequence[Frame]) -> tuple[Frame, Frame | None] | None:
        """The outermost frame of a function on a stack, and the frame of what it has called."""
        code = self._program.function(node.function.address)
        for number, frame in enumerate(found):
            if code.contains(frame.at):
                return frame, found[number + 1] if number + 1 < len(found) else None
        return None

    def with_gone(self, node: WalkNode, stack: ThreadStack) -> ThreadStack:
        """A stack with the functions on the way to ``node`` that have handed their frames on, as
        far as calls tell: where one leads to a function that is not on the stack, but one is that
        this jumps to."""
        way = {one.function.address for one in node.path}
        found: list[Frame] = []
        for frame in stack.frames:
            if found and self.entry(found[-1]) in way and found[-1].slot != frame.slot:
                found += [Frame(at, frame.slot) for at in self._gone(found[-1], frame)]
            found.append(frame)
        return ThreadStack(stack.key, tuple(found))

    def _gone(self, caller: Frame, frame: Frame) -> Sequence[int]:
        """The functions that had ``frame`` before, the one that ``caller`` has called first."""
        code = self._program.function(self.entry(caller))
        calls = (s for s in code.sites if s.back == caller.at + 1 and not s.kind.is_tail)
        site = next(calls, None)
        called = None if site is None else self.target(site)
        if called is None:
            return ()
        now = self.entry(frame)
        ways: list[tuple[int, ...]] = [(called.address,)]
        seen = {called.address}
        for way in ways:  # which grows
            if way[-1] == now:
                return way[:-1]
            for further in self._jumped_to(way[-1]) - seen:
                seen.add(further)
                ways += [(*way, further)] if len(way) < _MOST_JUMPS else []
        return ()

    def _jumped_to(self, address: int) -> set[int]:
        """The functions that one jumps to at its end."""
        sites = self._program.function(address).sites
        found = (self.target(site) for site in sites if site.kind.is_tail)
        return {one.address for one in found if one is not None}

    def entry(self, frame: Frame) -> int:
        """Of the function whose frame it is."""
        return self._program.names.function_at(frame.at).address

    def prefix(self, stack: ThreadStack, frame: Frame) -> list[tuple[int, int]] | None:
        """What tells a frame from others: its function and where that returns to, and all further
        out."""
        found = [(one.slot, self.entry(one)) for one in stack.frames]
        own = (frame.slot, self.entry(frame))
        return found[: found.index(own) + 1] if own in found else None
