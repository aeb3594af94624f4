"""Writing over the program's code, and taking it back.

A patch is *active* while the analysis wants it, and *in place* while its bytes are really there:
at a stop for the user all are taken out of the code, so that whoever disassembles, steps or dumps
core sees the program's own, and put back when it goes on. Bytes are only restored while they are
still darc's, as a file may have been unloaded and another one loaded in its place.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from darc.agent.memory import AgentMemory
from darc.code.architecture import Instruction, Site
from darc.code.processor import (
    BREAKPOINT,
    HOOK_LENGTH,
    PATCH_LENGTH,
    PROGRAM_COUNTER,
    is_hook,
)
from darc.code.program import Program
from darc.model.errors import DarcError, TargetError
from darc.target.target import Place, State, Target

_Code: TypeAlias = bytes


@dataclass(kw_only=True)
class Patch:
    """A place in the program's code that leads to a pad."""

    address: int
    original: bytes
    bytes: bytes
    index: int
    """Number of its ``struct darc_site``."""
    pad: int
    pad_back: int
    site: Site | None = None
    sectors: tuple[int, ...] = ()
    """The sectors of pads that its callers' frames are entered from."""
    moved: dict[int, int] = field(default_factory=dict)
    """Where the instructions that it displaces are in the pad."""
    displaced: tuple[Instruction, ...] = ()
    cells: dict[str, int] = field(default_factory=dict)
    through: Patch | None = None
    """The relay that a short jump goes through."""
    is_guard: bool = False
    """What hides pads from unwinders, say: in before all that it guards, and out behind that."""
    is_relay: bool = False
    """Its pad does nothing but what stood here: a thread can go back at every instruction."""
    cell: int | None = None
    """For a call among f0's first instructions: the constant in f0's pad that leads to it, which
    is changed instead of the code."""
    cell_value: int = 0
    code: _Code = b""
    """What stood from its address to its end, since it was first put there."""
    active: bool = False
    was_active: bool = False
    """Whether it ever was."""
    in_place: bool = False

    @property
    def place(self) -> Place:
        """As it is noted."""
        return Place(self.address, self.original, self.bytes)

    @property
    def end(self) -> int:
        """End of the code that is not executed where it stands while the patch is in place."""
        if self.displaced:
            return int(self.displaced[-1].next_ip)
        return self.site.back if self.site is not None else self.address + PATCH_LENGTH


class _DeferredError(Exception):
    """Not now, but perhaps later."""


class Patcher:
    """Owns every patch of one analysis."""

    def __init__(
        self,
        target: Target,
        program: Program,
        tables: AgentMemory,
        interrupted: Callable[[], Mapping[int, int]] = dict,
    ) -> None:
        """``interrupted`` is :meth:`darc.pads.foothold.Foothold.interrupted`."""
        self._target = target
        self._journal = target.journal  # notes are made ahead as well, by another thread
        self._interrupted = interrupted
        self._program = program
        self._tables = tables
        self._active: dict[int, Patch] = {}
        self._paused = False
        self._deferred = False
        self._taken: set[int] | None = None
        """While several patches are made together: the sites of those taken back."""
        self._counters: tuple[int, dict[int, int]] | None = None
        """Where threads stand, while several patches are made together, and at which stop."""
        self._saved: dict[int, int] | None = None
        """While several patches are made together: where handlers of signals come back to, by where
        that is saved. To look through memory takes milliseconds, and there may be a hundred
        patches."""
        self._has_guards = self._has_others = False
        """While several patches are made together: guards that wait to be put in, and others that
        wait to be taken out. What waits is written by addresses, and the debugger may be killed
        in between: an exception would find pads that nothing hides."""
        self._problems: list[str] = []
        self.vanished: dict[str, None] = {}
        """Functions in whose code a patch was no more, though nobody had taken it out: the program
        has read its code anew, or put its own bytes back. In the order in which that was seen."""
        self.written_over: dict[str, None] = {}
        """The same where a jump to elsewhere was: the program has hooked the function, may have
        saved the patch's bytes, and write them back when nobody looks any more. Their sites are
        patched still, as the tables say."""

    @property
    def paused(self) -> bool:
        """Whether the code is the program's own for now, or some of it."""
        return self._paused or self._deferred

    def note(self, patches: Iterable[Patch]) -> None:
        """Has the journal know them in one piece: they are many and about to be activated,
        or may be later."""
        new = [patch for patch in patches if patch.cell is None and not patch.in_place]
        self._journal.patches([patch.place for patch in new])

    def activate(self, patch: Patch) -> None:
        """From now on the place leads to its pad.

        Raises:
            TargetError: the code has changed, or a thread stands in it and cannot be moved.
        """
        if patch.active:
            return
        if patch.through is not None:
            self.activate(patch.through)
        patch.active = patch.was_active = True
        try:
            if patch.cell is not None:
                self._target.memory.write(patch.cell, struct.pack("<Q", patch.pad))
                return
            self._program.live.patches[patch.address] = patch.original
            if not self._paused:
                with self._target.companions:
                    self._try(patch)
            self._active[patch.address] = patch
        except TargetError:
            patch.active = False
            self._program.live.patches.pop(patch.address, None)
            raise

    def renew(self, patch: Patch) -> bool:
        """Puts a patch in again whose file was unloaded, and loaded again in the same place. Where
        nothing is there now, it is to be asked again. ``False``: there is other code.

        Raises:
            TargetError: a thread stands in it and cannot be moved.
        """
        if self._paused:
            return True  # to be asked again when it was resumed
        if patch.through is not None and not self.renew(patch.through):
            return False
        try:
            live = self._target.memory.read(patch.address, max(len(patch.code), len(patch.bytes)))
        except TargetError:
            patch.in_place = patch.in_place and self._runs_untold()
            return True
        there = live[: len(patch.bytes)]
        if patch.in_place and there in (patch.bytes, BREAKPOINT + patch.bytes[1:]):
            return True
        if not patch.code or not live.startswith(patch.code):
            return False
        patch.in_place = False
        if patch.active:
            with self._target.companions:
                self._try(patch)
        else:
            self.activate(patch)
        return True

    def deactivate(self, patch: Patch) -> None:
        """The place's own bytes are back for good."""
        if not patch.active:
            return
        patch.active = False
        if patch.cell is not None:
            self._target.memory.write(patch.cell, struct.pack("<Q", patch.cell_value))
            return
        with self._target.companions:
            self._take(patch)
            self._bring_back([patch])
        self._active.pop(patch.address, None)
        self._program.live.patches.pop(patch.address, None)
        if patch.through is not None:
            self.deactivate(patch.through)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """What is activated and taken back meanwhile, with all threads stopped, is done at once at
        the end. In this order, as the debugger may be killed at any moment and another one has to
        find every patch: what tells of patches, the code, what tells that some are no more."""
        if self._taken is not None:
            yield
            return
        tables = self._tables
        batch = range(tables.base, tables.base + tables.layout.size)
        with self._target.companions, self._target.memory.batched(batch):
            taken = self._taken = set[int]()
            try:
                yield
            finally:
                self._taken = self._counters = self._saved = None
                self._has_guards = self._has_others = False
                self._target.memory.flush()
                for index in sorted(taken):
                    self._forget(index)

    @property
    def in_use(self) -> frozenset[int]:
        """Which patches are active, by the numbers of their sites."""
        return frozenset(patch.index for patch in self._active.values())

    def pause(self) -> None:
        """Shows the program's own code until :meth:`resume`."""
        if self._paused:
            return
        self._paused = True
        with self.together():
            patches = reversed(self._active.values())  # what leads to a relay before it
            for patch in sorted(patches, key=lambda patch: patch.is_guard):
                self._take(patch)
            self._bring_back(self._active.values())

    def resume(self) -> None:
        """Puts all active patches back; those that cannot be are given up and named by
        :meth:`take_problems`."""
        self._paused = self._deferred = False
        with self.together():
            for patch in sorted(self._active.values(), key=lambda patch: not patch.is_guard):
                try:
                    self._try(patch)
                except TargetError as error:
                    self._problems.append(str(error))
                    self.deactivate(patch)

    def take_problems(self) -> list[str]:
        """What could not be put back, a line each; each is told once."""
        problems, self._problems = self._problems, []
        return problems

    def _try(self, patch: Patch) -> None:
        try:
            if not patch.in_place:
                self._put(patch)
        except _DeferredError:
            self._deferred = True

    def _put(self, patch: Patch) -> None:
        if self._has_guards and not patch.is_guard:
            self._target.memory.flush()
        self._has_guards = patch.is_guard
        live = self._target.memory.read(patch.address, len(patch.original))
        if live != patch.original:
            raise TargetError(f"{self._told(patch)} has changed since it was read")
        if self._tables.raw(patch.address, len(live))[1:] != live[1:]:
            self._target.memory.flush()  # another patch may have stood there until now
        if self._tables.raw(patch.address, len(live))[1:] != live[1:]:
            raise _DeferredError  # the debugger has a breakpoint of its own there, for a while
        if not patch.code:
            patch.code = self._target.memory.read(patch.address, patch.end - patch.address)
        self._move_threads(patch)
        # In this order: the debugger may be killed in between, and another one has to find it.
        self._journal.patches([patch.place])
        self._tables.sites.set(patch.index, patched=1)
        if self._taken is not None:
            self._taken.discard(patch.index)
        self._target.memory.write_code(patch.address, patch.bytes)
        if patch.is_relay:
            self._target.memory.flush()  # before anything leads there
        patch.in_place = True

    def _told(self, patch: Patch) -> str:
        """Whose code a patch stands in."""
        with contextlib.suppress(DarcError):
            name = self._program.names.function_at(patch.address).name
            return f"the code of {name} at {patch.address:#x}"
        return f"the code at {patch.address:#x}"

    def _take(self, patch: Patch) -> None:
        if not patch.in_place:
            return
        if self._has_others and patch.is_guard:
            self._target.memory.flush()
        self._has_others = not patch.is_guard
        patch.in_place = False
        try:
            live = self._target.memory.read(patch.address, len(patch.bytes))
            if live == patch.bytes:
                self._target.memory.write_code(patch.address, patch.original)
                if patch.through is not None:
                    self._target.memory.flush()  # before the relay is no more
            elif live == BREAKPOINT + patch.bytes[1:] and patch.bytes[:1] == patch.original[:1]:
                # A breakpoint of somebody else's (a kprobe) that will put one byte back: the call.
                self._target.memory.write_code(patch.address + 1, patch.original[1:])
            elif live == patch.original:
                self.vanished[self._program.names.function_at(patch.address).name] = None
            elif self._is_hooked(patch):
                self.written_over[self._program.names.function_at(patch.address).name] = None
                return
        except TargetError:
            if self._runs_untold():
                patch.in_place = True
                raise
            # Else its file was unloaded.
        if self._taken is None:
            self._forget(patch.index)
        else:
            self._taken.add(patch.index)

    def _is_hooked(self, patch: Patch) -> bool:
        """Whether what stands in a patch's place, neither its bytes nor what they replaced, is
        what inline hooks write: its file may have been unloaded, and another one be there."""
        with contextlib.suppress(TargetError):
            return is_hook(self._target.memory.read(patch.address, HOOK_LENGTH))
        return False

    def _runs_untold(self) -> bool:
        """Whether it was let go on, with patches in its code, and nothing of it can be read now: a
        debugger may call it running that stands, until it has told somebody of the stop."""
        is_running = self._target.state is State.RUNNING
        return is_running and not self._target.memory.is_there(self._tables.base)

    def _forget(self, index: int) -> None:
        """The tables say that a site is not patched, if they are still there."""
        with contextlib.suppress(TargetError):
            self._tables.sites.set(index, patched=0)

    def _bring_back(self, patches: Iterable[Patch]) -> None:
        """Threads in a relay's pad stand in their function again: its frames are known."""
        self._lead({pad: at for p in patches if p.is_relay for at, pad in p.moved.items()})

    def lead_back(self, patch: Patch) -> None:
        """Threads among what was displaced by a patch that is no more, in its pad, go on where
        that has its place."""
        if not patch.in_place:
            with self._target.companions:
                self._lead({pad: at for at, pad in patch.moved.items()})

    def _lead(self, own: Mapping[int, int]) -> None:
        if not own:
            return
        for thread, pc in list(self._program_counters().items()):
            if pc in own:
                self._target.memory.flush()  # the function is there
                self._move(thread, own[pc])

    def _program_counters(self) -> Mapping[int, int]:
        """Of all threads, and of the companions'. To ask for those of 300 takes lldb 12 ms, and
        there may be a hundred patches: they are asked once at a stop."""
        number = self._target.stop_number
        if self._taken is None or number is None:
            return self._all_counters()
        if self._counters is None or self._counters[0] != number:
            self._counters = number, self._all_counters()
        return self._counters[1]

    def _all_counters(self) -> dict[int, int]:
        companions = self._target.companions.program_counters()
        return {**companions, **self._target.threads.program_counters()}

    def _move(self, thread: int, place: int) -> None:
        if thread in self._target.companions.program_counters():
            self._target.companions.lead(thread, place)
        else:
            self._target.threads.write_register(thread, PROGRAM_COUNTER, place)
        if self._counters is not None:
            self._counters[1][thread] = place

    def _move_threads(self, patch: Patch) -> None:
        """A thread behind the first of the displaced instructions goes on with them in the pad."""
        if len(patch.displaced) < 2:
            return  # one instruction is replaced: nobody stands in the middle
        self._move_interrupted(patch)
        for thread, pc in list(self._program_counters().items()):
            if not patch.address < pc < patch.end:
                continue
            if pc in patch.moved:
                self._target.memory.flush()  # the pad is there
                self._move(thread, patch.moved[pc])
            elif pc < patch.address + len(patch.bytes):
                raise TargetError(
                    f"thread {thread} stands in the bytes to patch at {patch.address:#x}: "
                    "let it go on a little, then try again"
                )

    def _move_interrupted(self, patch: Patch) -> None:
        """Handlers of signals that have come between the instructions which are written over come
        back to these in the pad: where a thread, or a fiber that rests, is in one for a while."""
        inside = _middle(patch)
        saved = self._saved_counters()
        for place, pc in [(place, pc) for place, pc in saved.items() if pc in inside]:
            if pc not in patch.moved:
                raise TargetError(
                    f"a signal's handler comes back into the bytes to patch at {patch.address:#x}: "
                    "let the program go on a little, then try again"
                )
            self._target.memory.flush()  # the pad is there
            self._target.memory.write(place, struct.pack("<Q", patch.moved[pc]))
            saved[place] = patch.moved[pc]

    def _saved_counters(self) -> dict[int, int]:
        if self._saved is not None:
            return self._saved
        found = dict(self._interrupted())
        if self._taken is not None:
            self._saved = found
        return found


def _middle(patch: Patch) -> range:
    """The addresses between its bytes."""
    return range(patch.address + 1, patch.address + len(patch.bytes))
