"""What lldb does behind a Ctrl-C: until the outermost command is over, its interpreter carries no
other one out (``CommandInterpreter::HandleCommand``), those of hooks neither."""

from __future__ import annotations

import functools
import re

import lldb

REFUSED = (
    "Ctrl-C has come, and lldb carries nothing out for darc before its command is over: type that "
    "again"
)

_INTERRUPTED = re.compile(r"error: (\.\.\. )?interrupted\.?", re.I)
"""By lldb 14, and by lldb 22."""


def has_refused(result: lldb.SBCommandReturnObject) -> bool:
    """Whether a command was not carried out for that."""
    error = (result.GetError() or "").strip()
    return not result.Succeeded() and bool(_INTERRUPTED.fullmatch(error))


@functools.lru_cache(maxsize=1)
def another_debugger() -> lldb.SBDebugger:
    """One that nobody types into, whose interpreter no Ctrl-C comes to."""
    return lldb.SBDebugger.Create(False)
