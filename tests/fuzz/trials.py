"""Runs one fuzzer's inputs, and notes what went wrong."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from darc.model.errors import DarcError

Trial = Callable[[random.Random], object]
"""Gives darc one input."""

LONGEST_LINE = 4200
"""Characters of a message at most."""


@dataclass
class Result:
    """What came of one fuzzer's inputs."""

    name: str
    inputs: int = 0
    refused: int = 0
    """How many darc answered with an error of its own."""
    failures: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By kind: the first input that led there, and its traceback."""
    failed: int = 0
    seconds: float = 0.0


def run(name: str, trial: Trial, count: int, *, seed: int, first: int = 0) -> Result:
    """Inputs ``first`` and on of the fuzzer called ``name``."""
    result = Result(name)
    begin = time.monotonic()
    for number in range(first, first + count):
        result.inputs += 1
        try:
            trial(random.Random(f"{seed} {name} {number}"))
        except DarcError as error:
            result.refused += 1
            if (wrong := _not_a_line(str(error))) is not None:
                _note(result, wrong, number, repr(error)[:2000])
        except Exception as error:
            _note(result, _kind(error), number, traceback.format_exc())
    result.seconds = time.monotonic() - begin
    return result


def _note(result: Result, kind: str, number: int, text: str) -> None:
    result.failed += 1
    result.failures.setdefault(kind, (number, text))


def _not_a_line(text: str) -> str | None:
    """What is wrong with the message of an error, as the user is shown it."""
    from darc.views.words import message

    shown = message(f"darc: {text}")
    if not shown.isprintable():
        return "a message that is not printable"
    if len(shown) > LONGEST_LINE:
        return "a message that is too long"
    return None if text.strip() else "an empty message"


def _kind(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "darc" in Path(f.filename).parts] or list(frames)
    return f"{type(error).__name__} at {Path(own[-1].filename).name}:{own[-1].lineno}"
