"""Which processor's code it is (see :mod:`darc.code.architecture`)."""

from __future__ import annotations

from darc.code import x86_64
from darc.code.architecture import CodeReader

READER: CodeReader = x86_64

PATCH_LENGTH, SHORT_JUMP = READER.PATCH_LENGTH, READER.SHORT_JUMP
decode = READER.decode
read_function = READER.read_function
read_prologue = READER.read_prologue
jump_target = READER.jump_target
may_move = READER.may_move
