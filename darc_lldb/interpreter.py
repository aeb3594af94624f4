"""Commands of lldb's own that darc gives."""

from __future__ import annotations

import lldb

from darc_lldb import ctrlc


def attempt(interpreter: lldb.SBCommandInterpreter, command: str) -> bool:
    """Whether this lldb knows the command, which is carried out then."""
    result = lldb.SBCommandReturnObject()
    interpreter.HandleCommand(command, result)
    return bool(result.Succeeded())


def execute(interpreter: lldb.SBCommandInterpreter, command: str) -> None:
    """Raises KeyboardInterrupt where the user has pressed Ctrl-C: lldb tells of that so, and
    refuses all other commands until the outermost one is over."""
    result = lldb.SBCommandReturnObject()
    interpreter.HandleCommand(command, result)
    if result.Succeeded():
        return
    if ctrlc.has_refused(result):
        raise KeyboardInterrupt
    why = (result.GetError() or "").strip()
    raise RuntimeError(f"lldb refuses '{' '.join(command.split()[:3])} …': {why}")
