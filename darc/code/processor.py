"""Which processor's code it is: who answers what :mod:`darc.code.architecture` asks for."""

from __future__ import annotations

from typing import cast

from darc.code import x86_64, x86_64_convention, x86_64_detour, x86_64_frames, x86_64_restarts
from darc.code.architecture import (
    CodeReader,
    Convention,
    DetourWriter,
    FrameRegisters,
    RestartReader,
)

_OWN: CodeReader[x86_64.Instruction] = x86_64
_OWN_RESTARTS: RestartReader[x86_64.Instruction] = x86_64_restarts

READER = cast("CodeReader", _OWN)
"""To others its instructions are any processor's: it gets none back but those that it has made."""
RESTARTS = cast("RestartReader", _OWN_RESTARTS)
CONVENTION: Convention = x86_64_convention
DETOURS: DetourWriter = x86_64_detour
FRAMES: FrameRegisters = x86_64_frames

PATCH_LENGTH, SHORT_JUMP = READER.PATCH_LENGTH, READER.SHORT_JUMP
SHORT_REACH = READER.SHORT_REACH
LONGEST_JUMP = READER.LONGEST_JUMP
LONGEST_INSTRUCTION = READER.LONGEST_INSTRUCTION
PATCH_REACH = READER.PATCH_REACH
PROGRAM_COUNTER = READER.PROGRAM_COUNTER
STACK_POINTER = READER.STACK_POINTER
FRAME_POINTER = READER.FRAME_POINTER
RESULT = READER.RESULT
THREAD_POINTER = READER.THREAD_POINTER
FRAME_AT_ENTRY = READER.FRAME_AT_ENTRY
PROGRAMS, MACHINE, LARGEST = READER.PROGRAMS, READER.MACHINE, READER.LARGEST
LIBUNWIND, RELOCATIONS = READER.LIBUNWIND, READER.RELOCATIONS
slot_of, cfa_of, slot_at_entry = READER.slot_of, READER.cfa_of, READER.slot_at_entry
decode, instructions = READER.decode, READER.instructions
read_function = READER.read_function
read_prologue, epilogues = READER.read_prologue, READER.epilogues
branch_target = READER.branch_target
jump_target = READER.jump_target
frame_slot, indirect_target, is_taken = READER.frame_slot, READER.indirect_target, READER.is_taken
BREAKPOINT, SYSTEM_CALL, RETURN = READER.BREAKPOINT, READER.SYSTEM_CALL, READER.RETURN
SIGNAL_RETURN = READER.SIGNAL_RETURN
CONTEXT_RETURN, LONGEST_CALL = READER.CONTEXT_RETURN, READER.LONGEST_CALL
called_before = READER.called_before
CALL_THROUGH, ends_in_call_through = READER.CALL_THROUGH, READER.ends_in_call_through
led_to, led_through, pointed_to = READER.led_to, READER.led_through, READER.pointed_to
STACK_CHECK, splits_stack = READER.STACK_CHECK, READER.splits_stack
EXCEPTION_RETURN, SANDBOX_CALL = READER.EXCEPTION_RETURN, READER.SANDBOX_CALL
ends_in_call = READER.ends_in_call
PLT_ENTRY, plt_slot = READER.PLT_ENTRY, READER.plt_slot
is_lazy_binding = READER.is_lazy_binding
handed_to_c = READER.handed_to_c
is_return = READER.is_return
is_system_call = READER.is_system_call
is_indirect_call = READER.is_indirect_call
is_relative = READER.is_relative
is_padding = READER.is_padding
falls_through = READER.falls_through
is_mute = READER.is_mute
may_raise, leaves_frame = READER.may_raise, READER.leaves_frame
may_learn_place = READER.may_learn_place
may_be_restarted, sets_place = RESTARTS.may_be_restarted, RESTARTS.sets_place
is_looked_at = READER.is_looked_at

HOOK_LENGTH, is_hook = READER.HOOK_LENGTH, READER.is_hook

SYSTEM_CALL_ARGUMENTS = CONVENTION.SYSTEM_CALL_ARGUMENTS
SCRATCH, KEPT, GENERAL = CONVENTION.SCRATCH, CONVENTION.KEPT, CONVENTION.GENERAL
FLAGS, without_traps = CONVENTION.FLAGS, CONVENTION.without_traps
free_slot, call_by_hand = CONVENTION.free_slot, CONVENTION.call_by_hand
SIGNAL_FRAME, PROGRAMS_END = CONVENTION.SIGNAL_FRAME, CONVENTION.PROGRAMS_END
GUARD, GUARD_TURN = CONVENTION.GUARD, CONVENTION.GUARD_TURN
system_call_function = CONVENTION.system_call_function
