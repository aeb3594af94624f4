"""What inline hooks of x86-64 look like: a jump to elsewhere over a function's first bytes."""

from __future__ import annotations

import re

HOOK_LENGTH = 14
"""Bytes of the longest."""

_HOOK = re.compile(
    rb"(?:\xf3\x0f\x1e\xfa)?"  # endbr64, which some leave where it is
    rb"(?:[\xe9\xeb]"  # jmp, near or short
    rb"|\xff\x25"  # jmp *distance(%rip)
    # movabs $where, %reg; then jmp *%reg, or push %reg and ret
    rb"|[\x48\x49][\xb8-\xbf].{8}\x41?(?:\xff[\xe0-\xe7]|[\x50-\x57]\xc3)"
    rb"|\x68.{4}(?:\xc3|\xc7\x44\x24\x04))",  # push $where; ret, or its upper half behind it
    re.DOTALL,
)


def is_hook(code: bytes) -> bool:
    """Whether ``code``, of :data:`HOOK_LENGTH` bytes, or less at the end of what is there, leads
    away at once, as funchook's, subhook's, Detours' and MinHook's do (their sources)."""
    return _HOOK.match(code) is not None
