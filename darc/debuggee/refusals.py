"""Which programs every debugger refuses, in the same words."""

from __future__ import annotations

from darc.code.processor import PROGRAMS
from darc.model.errors import UnsupportedError


def no_program() -> UnsupportedError:
    """What is raised where the debugger has none."""
    return UnsupportedError("there is no program: 'run' or 'attach' it first")


def core_file(debugger: str) -> UnsupportedError:
    """What is raised where ``debugger`` shows a program that runs no more."""
    return UnsupportedError(f"{debugger} has a core file: darc needs a program that runs")


def check_processor(found: str, known: str) -> None:
    """``found`` is what a debugger calls the program's processor, and ``known`` what it calls the
    one that darc knows. Raises UnsupportedError: it is another."""
    if found != known:
        raise UnsupportedError(f"darc needs a {PROGRAMS} program, this one is {found}")
