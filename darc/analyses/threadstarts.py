"""With which function of the program a thread has begun, by its stack."""

from __future__ import annotations

from collections.abc import Sequence

from darc.analyses.walkcode import WalkCode
from darc.code.processor import is_system_call, jump_target
from darc.code.program import Program
from darc.code.standard_library import begins_threads, is_named_of_library, is_of_cxx
from darc.collectors.manyduties import ThreadStack
from darc.model.ftree import Function
from darc.model.libraries import is_c_library, is_thread_start

_OUTERMOST = 4
"""Frames of a stack in which that is."""


class ThreadStarts:
    """Those of one program, whose first thread begins with ``root``."""

    def __init__(self, program: Program, code: WalkCode, root: Function) -> None:
        self._program = program
        self._code = code
        self._root = root

    def is_whole(self, stack: ThreadStack) -> bool:
        """Whether it goes back to where the C library has begun the thread."""
        return any(is_thread_start(f.symbol) for f in self._entered(stack)[:_OUTERMOST])

    def _entered(self, stack: ThreadStack) -> list[Function]:
        return [self._program.names.function_at(frame.at) for frame in stack.frames]

    def of(self, stack: ThreadStack) -> Function | None:
        """That of the thread with this stack; ``None``: it is none of the program's."""
        entered = self._entered(stack)
        for number, function in reversed(list(enumerate(entered[:_OUTERMOST]))):
            if is_thread_start(function.symbol) and number + 1 < len(entered):
                below = entered[number + 1 :]
                return self._own([f for f in below if not self._is_unnamed_of_c(f)])
        root = self._root.address
        return next((f for f in entered if f.address == root), self._start_without_names(entered))

    def _own(self, entered: Sequence[Function]) -> Function | None:
        """Of what a thread began with the first function that is no library's way to it."""
        for number, function in enumerate(entered):
            is_last = number + 1 == len(entered) or is_c_library(entered[number + 1].module)
            hands_on = not number and begins_threads(function)
            if is_last or not (hands_on or self._is_way_in(function)):
                return function
        return None

    def _is_way_in(self, function: Function) -> bool:
        """Whether it is the library's by its name, and calls one function that is not, once: where
        there are more, or there is a loop, that is the program's code, compiled into it."""
        if not is_named_of_library(function):
            return False
        code = self._program.function(function.address)
        jumps = ((at, jump_target(one)) for at, one in code.instructions.items())
        if any(to is not None and to <= at and code.contains(to) for at, to in jumps):
            return False
        called = (self._code.target(site) for site in code.sites)
        own = [f for f in called if f is None or not (is_c_library(f.module) or _is_of_library(f))]
        return len(own) <= 1

    def _start_without_names(self, entered: Sequence[Function]) -> Function | None:
        """Of a thread that was begun by functions that no symbol names."""
        if len(entered) < 2 or self._program.names.at(entered[0].address):
            return None
        if self._is_unnamed_of_c(entered[0]):
            return next((f for f in entered[1:3] if not is_c_library(f.module)), None)
        code = self._program.function(entered[0].address)
        is_clone = any(map(is_system_call, code.instructions.values()))  # of a static program
        return entered[2] if is_clone and len(entered) > 2 else None

    def _is_unnamed_of_c(self, function: Function) -> bool:
        return is_c_library(function.module) and not self._program.names.at(function.address)


def _is_of_library(function: Function) -> bool:
    return is_named_of_library(function) or is_of_cxx(function)
