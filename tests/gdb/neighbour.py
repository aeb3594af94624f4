"""What other extensions do at stops, in spirit: to be sourced into gdb, before darc or after it.

``python KIND = "…"`` before that says what it does; ``tell-stops`` says how often it was called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import gdb

KIND: str = sys.modules["__main__"].__dict__.get("KIND", "speaks")


def speaks(_event: object) -> None:
    """The least: any command at all makes gdb run the stop's own commands at once."""
    gdb.execute("echo neighbour\\n")


def looks(_event: object) -> None:
    """A context: registers, code, stack, frames, threads, memory, as gef and pwndbg show it."""
    for command in ("info registers", "x/6i $pc", "x/8gx $sp", "bt 4", "info threads", "info line"):
        gdb.execute(command, to_string=True)
    frame: gdb.Frame | None = gdb.newest_frame()
    while frame is not None:
        frame.read_register("rip")
        frame = frame.older()
    inferior = gdb.selected_inferior()
    inferior.read_memory(int(gdb.parse_and_eval("(unsigned long) $sp")), 256)
    for thread in inferior.threads():
        thread.is_running()
    gdb.execute("context")


def walks(_event: object) -> None:
    """The names of all frames, as gef shows them."""
    names = []
    frame: gdb.Frame | None = gdb.newest_frame()
    while frame is not None:
        names.append(frame.name() or hex(frame.pc()))
        frame = frame.older()
    gdb.write(f"frames: {' '.join(names)}.\n")


def calls(_event: object) -> None:
    """An expression that is evaluated in the program."""
    gdb.execute("maint flush register-cache", to_string=True)
    gdb.parse_and_eval("$_siginfo")
    gdb.execute("set $neighbour = 1")


def fails(_event: object) -> None:
    """One that is broken."""
    gdb.execute("no-such-command")


def goes_on(_event: object) -> None:
    """One that tries to go on, which gdb does not do within a stop."""
    gdb.execute("set $neighbour = $neighbour + 1")
    gdb.execute("stepi 0")


def clears(_event: object) -> None:
    """A screen of its own, as gef shows it: what was there before is gone."""
    gdb.write("\x1b[H\x1b[J")
    gdb.execute("x/16xb handle")


class Context(gdb.Command):
    """A command of the neighbour's own."""

    def __init__(self) -> None:
        super().__init__("context", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        gdb.execute("info registers rip")


class TellStops(gdb.Command):
    """Says how often the program has stopped, as others see it."""

    def __init__(self) -> None:
        super().__init__("tell-stops", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        gdb.write(f"{len(seen)} stops seen\n")


class TellWrites(gdb.Command):
    """Says how many writes to memory others were told of."""

    def __init__(self) -> None:
        super().__init__("tell-writes", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        gdb.write(f"{len(written)} writes told\n")


seen: list[object] = []
written: list[object] = []
KINDS: dict[str, Callable[[object], None]] = {
    kind.__name__: kind for kind in (speaks, looks, walks, calls, fails, goes_on, clears)
}


def at_stop(event: object) -> None:
    """The handler."""
    seen.append(event)
    KINDS[KIND](event)


Context()
TellStops()
TellWrites()
gdb.events.memory_changed.connect(written.append)
gdb.events.stop.connect(at_stop)
