"""What gdb tells only by what its commands print: this is read here."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass

import gdb


def _answer(command: str) -> str:
    """What it prints. Raises gdb.error."""
    return gdb.execute(command, to_string=True)


def unheard(command: str) -> None:
    """Carries out a command whose words nobody wants, as gdb fails behind it where there is the
    name of a file in them that has other characters than the locale. Raises gdb.error."""
    with contextlib.suppress(UnicodeError):
        gdb.execute(command, to_string=True)


@dataclass(frozen=True)
class TargetStack:
    """What gdb has the program from. None of these where there is no program."""

    is_native: bool
    """It runs on this machine, and gdb traces it."""
    is_remote: bool
    is_core: bool
    is_recorded: bool
    """gdb records what it does, beside one of the others."""


def target_stack() -> TargetStack:
    """That of the selected inferior. Not Inferior.connection: gdb 13 asserts at its exit once that
    object was made."""
    names = set(re.findall(r"^ +- ([\w-]+)", _answer("maint print target-stack"), re.M))
    return TargetStack(
        is_native="native" in names,
        is_remote=not names.isdisjoint({"remote", "extended-remote"}),
        is_core="core" in names,
        is_recorded=any(name.startswith("record") for name in names),
    )


def connection() -> str | None:
    """Where gdb is connected to by 'target remote': a socket's path, or a host and its port.
    Not Inferior.connection, see above."""
    found = re.search(r"^\*?\s+\d+\s+remote (\S+)", _answer("info connections"), re.M)
    return None if found is None else found[1]


def waits_by_events() -> bool:
    """Whether gdb waits for what runs as for anything else that may happen; else as for an answer
    to a packet."""
    return "is on" in _answer("maint show target-async")


def stops_all() -> bool:
    """Whether all threads stand still whenever one reports an event. Raises gdb.error."""
    return " off" in _answer("maint show target-non-stop").splitlines()[0]


def worker_threads() -> str | None:
    """The value of gdb's setting, if it is understood. Raises gdb.error: there is none."""
    found = re.search(r" is (unlimited|\d+)", _answer("maint show worker-threads"))
    return None if found is None else found[1]


def hook_lines(command: str) -> list[str]:
    """The user's hook of a command, of which lines of Python keep how they begin."""
    try:
        shown = _answer(f"show user hook-{command}")
    except gdb.error:
        return []
    return [line.rstrip() for line in shown.splitlines()[1:] if line.strip()]


def handling(name: str) -> tuple[bool, bool, bool]:
    """Whether gdb stops for the user at a signal, tells of it, passes it on. Raises gdb.error."""
    listed = _answer(f"info signals {name}").splitlines()[-1].split()
    stops, tells, passes = (word == "Yes" for word in listed[1:4])
    return stops, tells, passes


def has_windows() -> bool:
    """Whether gdb draws windows (TUI): it would not know where the cursor is any more."""
    try:
        return "not active" not in _answer("info win")
    except gdb.error:
        return False


def frame() -> str:
    """What 'frame' shows, to be written as it is. Raises gdb.error: there is none."""
    return _answer("frame")


def has_breakpoints_of_a_step() -> bool:
    """Whether gdb has set any for the command that lets the program go on. Raises gdb.error."""
    return re.search(r"^0 ", _answer("maint info breakpoints"), re.M) is not None


def completions(line: str, prefix: str) -> list[str]:
    """What gdb would complete ``prefix`` to, behind ``line``. Raises gdb.error."""
    lines = _answer(f"complete {line}{prefix}").splitlines()
    return [one.removeprefix(line) for one in lines if one.startswith(line)]
