"""The kinds of dynamic relocations of x86-64 (System V ABI, AMD64 supplement, table 4.9): see
:class:`~darc.code.architecture.Relocations`.
"""

from __future__ import annotations

from darc.code.architecture import Relocations

_64, _GLOB_DAT, _JUMP_SLOT, _RELATIVE, _IRELATIVE = 1, 6, 7, 8, 37

RELOCATIONS = Relocations(
    named=frozenset((_64, _GLOB_DAT, _JUMP_SLOT)), relative=_RELATIVE, resolved=_IRELATIVE
)
