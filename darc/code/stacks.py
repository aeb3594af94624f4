"""Where the threads of a program that stands still are, by their stacks."""

from __future__ import annotations

import contextlib
import functools
import time

from darc.code.processor import FRAME_POINTER, PROGRAM_COUNTER, STACK_POINTER
from darc.code.program import Program
from darc.code.unwind import frames
from darc.model.errors import DarcError
from darc.target.memory import word_at
from darc.target.target import Target

_MOST_STACKS = 64
"""Threads whose stacks are looked at."""


def under_way(program: Program, target: Target, seconds: float = float("inf")) -> list[int]:
    """An address in each function that a call is under way of, in any thread, the innermost ones
    first, as far as the stacks tell; of as many threads as ``seconds`` allow."""
    end = time.monotonic() + seconds
    places: dict[int, None] = {}
    for thread in target.threads.ids()[:_MOST_STACKS]:
        if time.monotonic() > end:
            break
        with contextlib.suppress(DarcError):
            names = (PROGRAM_COUNTER, STACK_POINTER, FRAME_POINTER)
            pc, stack, frame = (target.threads.read_register(thread, name) for name in names)
            word = functools.partial(word_at, target.memory)
            places |= dict.fromkeys(
                one.at for one in frames(program, pc, stack=stack, frame=frame, word=word)
            )
    return list(places)
