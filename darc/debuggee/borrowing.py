"""A few bytes of the program's code, borrowed for a function that makes a system call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from darc.code.processor import system_call_function
from darc.code.system_calls import SystemCall
from darc.target.memory import Memory
from darc.target.target import Journal, Place


@contextlib.contextmanager
def borrowed(memory: Memory, journal: Journal, place: int, number: SystemCall) -> Iterator[int]:
    """All threads stand still: at ``place`` is a function that makes this system call, for the
    moment. The journal has what stood there before it is written over.

    Raises:
        TargetError: the program cannot be read or written there, or it cannot be noted.
    """
    code = system_call_function(number)
    original = memory.read(place, len(code))
    journal.patches([Place(place, original, code)])
    memory.write(place, code)
    try:
        yield place
    finally:
        memory.write(place, original)
