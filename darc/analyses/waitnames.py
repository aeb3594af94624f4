"""Names for what a wait tells of: functions, objects and threads of the program."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Mapping

from darc.code.demangle import display_name
from darc.code.fields import field_at
from darc.code.processor import (
    PATCH_LENGTH,
    PLT_ENTRY,
    SIGNAL_RETURN,
    called_before,
    plt_slot,
)
from darc.code.program import Program
from darc.code.regions import region_at
from darc.code.unwind import callers
from darc.code.unwind import path as path_of
from darc.model.errors import DarcError
from darc.model.libraries import FIRST_CODE, is_c_library, is_thread_start
from darc.model.ops import ObjectKind, Stack


class ProgramNames:
    """Names of a program, whose threads have these ``threads`` for names, and which shares memory
    with processes whose names are those of ``outsiders``, by the ids of their threads. ``stacks``
    has addresses down to which stacks of threads reach, where they are known. ``own_back`` tells
    the program's own return address by one that leads to darc's code; ``name_of`` the names of
    other threads, as far as they are there."""

    def __init__(
        self,
        program: Program,
        threads: Mapping[int, str],
        outsiders: Mapping[int, str] | None = None,
        *,
        own_back: Callable[[int], int | None] = lambda word: None,
        name_of: Callable[[int], str] = lambda thread: "",
        stacks: Mapping[int, int] | None = None,
    ) -> None:
        self._program = program
        self._threads = dict(threads)
        self._outsiders = outsiders or {}
        self._own_back = own_back
        self._name_of = name_of
        self._stacks = stacks or {}

    def path(self, stack: Stack, within: str | None) -> tuple[str, ...]:
        """The functions of a thread, innermost first, up to the one that is called ``within``, or
        to the C library's that begins threads."""
        found: list[str] = []
        backs = self._backs(stack)
        for back in backs:
            if self._is_signal_return(back):
                found.append("(signal handler)")
                break
            jumped = self._jumped_from(back)
            if jumped is not None and not (found and found[-1].startswith(jumped)):  # or its part
                found.append(jumped)
                if jumped == within:
                    break
            name = self._program.names.function_at(back - 1).name
            if is_thread_start(name) or name == FIRST_CODE:
                break
            found += [*self._inlined_at(back - 1), name]
            if name == within:
                break
        return tuple(found)

    def function(self, address: int) -> str:
        """The function that is there."""
        return self._program.names.function_at(address).name

    def place(self, stack: Stack) -> tuple[str, ...]:
        """All functions in which a thread sleeps, innermost first: the C library's as well, as far
        as they have names."""
        hidden, _ = self._frames(stack)
        inside = (self._program.names.function_at(address).name for address in hidden)
        named = (name for name in inside if not _NAMELESS.search(name))
        return (*dict.fromkeys(named), *self.path(stack, None))

    def _backs(self, stack: Stack) -> tuple[int, ...]:
        """The return addresses, innermost first, behind the C library's function that it is in."""
        if not stack.pc:
            return callers(self._program, stack.pointer, stack.frame, stack.words)
        return self._frames(stack)[1]

    def _frames(self, stack: Stack) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Where it is in the C library, innermost first, and the return addresses behind that."""
        if not stack.pc:
            return (), self._backs(stack)
        inside = self._program.module_at(stack.pc)
        words = [self._own_back(word) or word for word in stack.words]
        backs = path_of(
            self._program, stack.pc, stack=stack.pointer, frame=stack.frame, words=words
        )[1:]
        if inside is None or not is_c_library(inside.name):
            return (), backs
        is_inside = itertools.takewhile(lambda b: self._program.module_at(b) is inside, backs)
        hidden = tuple(is_inside)
        return (stack.pc, *(back - 1 for back in hidden)), backs[len(hidden) :]

    def _inlined_at(self, address: int) -> tuple[str, ...]:
        """The program's own functions that were inlined there, innermost first, as far as debug
        information tells."""
        found: tuple[str, ...] = ()
        with contextlib.suppress(DarcError):  # then it is as if there were none
            found = self._program.inlined_at(address)
        return tuple(name for name in reversed(found) if not _LIBRARYS.match(name))

    def _is_signal_return(self, back: int) -> bool:
        """Whether what is returned to makes the kernel take up what a signal has interrupted."""
        return self._code(back, len(SIGNAL_RETURN)) == SIGNAL_RETURN

    def _code(self, address: int, size: int) -> bytes | None:
        """Code as its file has it: the program may be gone, and nobody may ask the debugger."""
        try:
            return self._program.live.in_file(address, size)
        except DarcError:
            return None

    def _jumped_from(self, back: int) -> str | None:
        """The function that the call before ``back`` calls. Where another one is in its frame, it
        has handed that on by a tail call, and stands on no stack."""
        code, module = self._code(back - PATCH_LENGTH, PATCH_LENGTH), self._program.module_at(back)
        target = None if code is None else called_before(code, back)
        if target is None or module is None or target not in range(module.start, module.end):
            return None
        entry = self._code(target, PLT_ENTRY)
        if entry is None or self._program.is_thunk(target) or plt_slot(entry, target) is not None:
            return None
        return self._program.names.function_at(target).name

    def object(self, kind: ObjectKind, address: int) -> str:
        """Its symbol, and which field of that it is, as far as debug information tells; else the
        module and where it is in that; else its address, and in what memory that is."""
        if kind is ObjectKind.THREAD:
            return f"thread {address:#x}"
        before = [module for module in self._program.modules if module.start <= address]
        if before:
            module = before[-1]
            found = module.image.symbols.object_at(address - module.bias)
            if found is not None:
                name, offset = found
                shown = display_name(name)
                return shown + self._field(shown, address - offset, offset)
            if module.image.segment_of(address - module.bias) is not None:  # also what no file has
                return f"{module.name}+{address - module.bias:#x}"
        return f"{address:#x}{self._memory(address)}"

    def _memory(self, address: int) -> str:
        """In what memory without a file there is something. An arena of glibc's, of which each
        thread may have one, begins where such memory does (``heap_for_ptr``, malloc/arena.c)."""
        region = region_at(self._program.regions, address)
        if region is None:
            return ""
        if self.is_shared(address):
            return " in shared memory"
        if (thread := self._on_stack(address, region.start)) is not None:
            return f" on thread {thread}'s stack"
        if region.is_stack:
            return " on a stack"
        if region.is_heap:
            return " on the heap"
        if region.inode:
            return ""
        return " on the heap" if region.start % _ARENA == 0 else " in anonymous memory"

    def _on_stack(self, address: int, start: int) -> int | None:
        """On whose stack it is: with the nearest end below it, in the same mapping, which begins at
        ``start``."""
        ends = ((end, thread) for thread, end in self._stacks.items())
        below = [one for one in ends if start <= one[0] <= address]
        return max(below)[1] if below else None

    def is_shared(self, address: int) -> bool:
        """Whether other processes may have the memory that is there, too."""
        region = region_at(self._program.regions, address)
        return region is not None and bool(region.inode) and "s" in region.permissions

    def outsider(self, number: int) -> str | None:
        """What the process is called that has a thread with that id, if it is another one."""
        return self._outsiders.get(number)

    def _field(self, variable: str, start: int, offset: int) -> str:
        found = None
        with contextlib.suppress(DarcError):  # then it is as if there were no debug information
            shape = self._program.shape_of(variable, start)
            found = None if shape is None else field_at(shape, offset)
        if found is None:
            return f"+{offset:#x}" if offset else ""
        return found

    def thread(self, number: int) -> str:
        """What it is called; empty where that is not known."""
        if number not in self._threads:
            self._threads[number] = self._name_of(number) if number else ""
        return self._threads[number]


_ARENA = 64 << 20
"""Bytes of which each arena's memory begins at a multiple: glibc's ``HEAP_MAX_SIZE``."""

_NAMELESS = re.compile(r"\+0x[0-9a-f]+$")

_LIBRARYS = re.compile(r"std::|core::|alloc::|<|__")
"""Names of inlined functions that only pass on what is waited for."""
