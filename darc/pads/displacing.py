"""Which instructions of the program's may run in a pad, in place of where they stand."""

from __future__ import annotations

from dataclasses import replace

from darc.code.architecture import FunctionCode, Instruction, Prologue, Site
from darc.code.patchable import SHARED, Patchable
from darc.code.processor import PATCH_LENGTH, is_relative, leaves_frame, read_prologue
from darc.code.program import Program
from darc.model.refusal import Refusal
from darc.pads.patching import Patch
from darc.target.target import Target

_FIRST = 32
"""Bytes at a function's entry that may be run in its pad for the sake of a short call there."""

_AHEAD = 4
"""Instructions at f0's entry that may be executed before the one that is timed first."""

MAY_FAULT = "the program's own handler of faults may know an instruction there by its address"
"""Why what may fault is not displaced."""

MAY_RESTART = "the program's own handler of a signal may set a thread back that it finds there"
"""Why what such a sequence may have in it is not displaced."""

USERS = "a breakpoint stands in its first bytes"


def why_in_place(patchable: Patchable) -> str:
    """Why instructions are not displaced that handlers of signals may know, whichever they are."""
    return MAY_RESTART if patchable.restarts else MAY_FAULT


class Displacing:
    """In one program. What the user's breakpoints and the program's handlers of signals know by its
    address stays in its place."""

    def __init__(self, target: Target, program: Program) -> None:
        self._target = target
        self._program = program

    def entry(
        self, code: FunctionCode, *, is_timed: bool
    ) -> tuple[FunctionCode, Prologue | Refusal]:
        """Where a function is entered that is to jump to its pad, and what that displaces there, or
        why nothing may be. One that ``is_timed`` may have its jump a bit behind its entry, and
        displace more, so that more of its calls can be timed."""
        if not is_timed:
            return code, self.prologue(code, PATCH_LENGTH, is_guard=True)
        code = replace(code, entry=self._behind_faults(code))
        return code, self._with_short_call(code, self.prologue(code, PATCH_LENGTH, is_guard=False))

    def _behind_faults(self, code: FunctionCode) -> int:
        """Where f0's patch can stand: at its entry, or behind instructions there that are to be
        executed in their places and change neither the stack nor flags, which its pad does not
        keep."""
        at = code.entry
        for _ in range(_AHEAD):
            if self.prologue(replace(code, entry=at), PATCH_LENGTH, is_guard=False) != Refusal(
                MAY_FAULT
            ):
                return at
            instruction = code.instructions[at]
            at = int(instruction.next_ip)
            is_led_to = at in code.targets or self._program.is_jumped_into(at - 1, at + 1)
            if not code.complete or is_led_to or not leaves_frame(instruction):
                break
        return code.entry

    def _with_short_call(
        self, code: FunctionCode, prologue: Prologue | Refusal
    ) -> Prologue | Refusal:
        """The prologue up to the end of a short call whose own patch would begin in it, as in a
        function that only passes a virtual call on: both can be timed then."""
        if isinstance(prologue, Refusal):
            return prologue
        end = prologue.entry + prologue.length
        for site in code.sites:
            wanted = site.patch < end if site.displaced else site.problem is not None
            if wanted and end < site.back <= prologue.entry + _FIRST:
                longer = self.prologue(code, site.back - prologue.entry, is_guard=False)
                return prologue if isinstance(longer, Refusal) else longer
        return prologue

    def prologue(self, code: FunctionCode, room: int, *, is_guard: bool) -> Prologue | Refusal:
        """What a jump of ``room`` bytes displaces at the function's entry, or why it may not.
        A guard's function is a runtime's, whose own data nobody polls."""
        if self._program.mapped.is_shared(code.entry):
            return Refusal(SHARED)
        prologue = read_prologue(code, self._program, room)
        if isinstance(prologue, Refusal):
            return prologue
        if self.user_stands_in(prologue.entry, prologue.entry + prologue.length):
            return Refusal(USERS)
        patchable = self._program.patchable
        if not is_guard and any(map(patchable.may_be_restarted, prologue.instructions)):
            return Refusal(MAY_RESTART)  # nor behind it: a sequence may go on there
        if any(
            self._stays(instruction, is_guard=is_guard) for instruction in prologue.instructions
        ):
            return Refusal(MAY_FAULT)
        return prologue

    def _stays(self, instruction: Instruction, *, is_guard: bool) -> bool:
        """Whether an instruction at a function's entry is to be executed in its place. No runtime
        has sequences that programs' handlers know."""
        if is_guard:
            return not is_relative(instruction) and self._program.patchable.may_fault(instruction)
        patchable = self._program.patchable
        return patchable.may_fault(instruction) or patchable.may_be_restarted(instruction)

    def user_stands_in(self, start: int, end: int) -> bool:
        """Whether a breakpoint of the user's would be overwritten or never be reached."""
        return any(start < address < end for address in self._target.user_breaks.addresses())

    def in_place(self, site: Site) -> Site:
        """``site`` without what it would displace, where that is to be executed in its place."""
        patchable = self._program.patchable
        if patchable.may_fault(site.instruction):
            return replace(site, problem=MAY_FAULT, is_short=False)
        why = MAY_FAULT if any(map(patchable.may_fault, site.displaced)) else None
        if why is None and any(map(patchable.may_be_restarted, site.displaced)):
            why = MAY_RESTART
        if why is None:
            return site
        length = site.back - site.address
        return replace(
            site, patch=site.address, length=length, displaced=(), problem=why, is_short=True
        )

    def is_in_the_users_way(self, patch: Patch) -> bool:
        """Whether the user has set a breakpoint in the bytes of a patch, or of its relay."""
        places = [patch] if patch.through is None else [patch, patch.through]
        return patch.active and any(self.user_stands_in(p.address, p.end) for p in places)

    def displaces_faults(self, patch: Patch, *, is_guard: bool) -> bool:
        """Whether a patch displaces what is to be executed in its place from now on."""
        patchable, site = self._program.patchable, patch.site
        relayed = () if patch.through is None else patch.through.displaced
        if relayed and patchable.restarts:
            return True
        if site is not None and patchable.may_fault(site.instruction):
            return True
        moved = (*relayed, *(() if site is None else site.displaced))
        return any(self._stays(i, is_guard=is_guard) for i in patch.displaced) or any(
            self._stays(i, is_guard=False) for i in moved
        )
