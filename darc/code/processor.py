"""Which processor's code it is (see :mod:`darc.code.architecture`)."""

from __future__ import annotations

from darc.code import x86_64
from darc.code.architecture import CodeReader

READER: CodeReader = x86_64

PATCH_LENGTH, SHORT_JUMP = READER.PATCH_LENGTH, READER.SHORT_JUMP
LONGEST_INSTRUCTION = READER.LONGEST_INSTRUCTION
PROGRAM_COUNTER = READER.PROGRAM_COUNTER
STACK_POINTER = READER.STACK_POINTER
FRAME_POINTER = READER.FRAME_POINTER
RESULT = READER.RESULT
THREAD_POINTER = READER.THREAD_POINTER
FRAME_AT_ENTRY = READER.FRAME_AT_ENTRY
PROGRAMS, MACHINE, LARGEST = READER.PROGRAMS, READER.MACHINE, READER.LARGEST
LIBUNWIND = READER.LIBUNWIND
slot_of, cfa_of, slot_at_entry = READER.slot_of, READER.cfa_of, READER.slot_at_entry
decode, instructions = READER.decode, READER.instructions
read_function = READER.read_function
read_prologue = READER.read_prologue
branch_target = READER.branch_target
jump_target = READER.jump_target
BREAKPOINT, SYSTEM_CALL = READER.BREAKPOINT, READER.SYSTEM_CALL
SIGNAL_RETURN = READER.SIGNAL_RETURN
CONTEXT_RETURN, LONGEST_CALL = READER.CONTEXT_RETURN, READER.LONGEST_CALL
called_before = READER.called_before
ends_in_call = READER.ends_in_call
plt_slot = READER.plt_slot
is_lazy_binding = READER.is_lazy_binding
handed_to_c = READER.handed_to_c
is_return = READER.is_return
is_system_call = READER.is_system_call
is_relative = READER.is_relative
goes_on = READER.goes_on
may_move = READER.may_move
