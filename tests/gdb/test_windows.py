"""gdb's windows (TUI), as they stand on the screen."""

from __future__ import annotations

from pathlib import Path

import pyte

from fixtures.build import build
from tests.debugger import Terminal, terminal

COLUMNS, LINES = 100, 40


def shown(gdb: Terminal) -> list[str]:
    """The lines of the screen, the empty ones at its end left out."""
    screen = pyte.Screen(COLUMNS, LINES)
    pyte.Stream(screen).feed(gdb.seen)
    lines = [line.rstrip() for line in screen.display]
    while not lines[-1]:
        lines.pop()
    return lines


def check(lines: list[str], answer: str) -> None:
    """The source stands in its window, and below it what darc has to say, with the prompt."""
    assert lines[0].startswith("+-mixture.c-----"), "\n".join(lines)
    status = next(n for n, line in enumerate(lines) if "In: main" in line)
    assert set(lines[status - 1]) == {"+", "-"}, "\n".join(lines)
    below = lines[status + 1 :]
    assert answer in "\n".join(below), "\n".join(lines)
    assert below[-2].startswith("#0  main ("), "\n".join(lines)
    assert below[-1] == "(gdb)", "\n".join(lines)


def test_windows_stay_in_their_places(tmp_path: Path) -> None:
    """At darc's own stops."""
    with terminal(tmp_path, str(build("mixture")), columns=COLUMNS) as gdb:
        for setting in ("tui border-kind ascii", "filename-display basename", "style enabled off"):
            gdb.command(f"set {setting}")
        gdb.command("layout src")
        gdb.command("darc start handle --start-ops 500")
        gdb.command("run 20000 > program.out")
        check(shown(gdb), "choose a peak ('darc peak N'), then 'continue'")
        gdb.command("darc peak last")
        gdb.command("continue")
        check(shown(gdb), "cause: blocked in clock_nanosleep")
