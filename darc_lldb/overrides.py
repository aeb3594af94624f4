"""Something to do before one of lldb's own commands.

``SBCommandInterpreter::SetCommandOverrideCallback`` is part of lldb's public interface, but lldb's
module for Python leaves it out up to version 17.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterable, Sequence

import lldb

_SYMBOL = "_ZN4lldb20SBCommandInterpreter26SetCommandOverrideCallbackEPKcPFbPvPS2_ES3_"
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p))

_kept: list[object] = []
"""What lldb has pointers to."""


def before(
    debugger: lldb.SBDebugger, command: str, action: Callable[[Sequence[str]], None]
) -> bool:
    """Calls ``action`` with the arguments before lldb carries out ``command`` ("process continue"),
    also by an alias or abbreviated; False where this lldb cannot do that."""
    library = ctypes.CDLL(None)  # lldb itself is loaded
    function = getattr(library, _SYMBOL, None)
    if function is None:
        return False
    interpreter = debugger.GetCommandInterpreter()

    def callback(_baton: object, words: Iterable[bytes | None]) -> bool:
        told = [word.decode(errors="replace") for word in itertools.takewhile(bool, words) if word]
        action(told[len(command.split()) :])
        return False  # the command itself is lldb's

    pointer = _CALLBACK(callback)
    _kept.extend((pointer, interpreter))
    function.restype = ctypes.c_bool
    function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _CALLBACK, ctypes.c_void_p]
    return bool(function(int(interpreter.this), command.encode(), pointer, None))
