"""What gdb does for darc where no command of the user's is carried out: behind a stop, and from its
event loop. Whatever ends it there is told in a line, as of gdb's own commands."""

from __future__ import annotations

from collections.abc import Callable

import gdb


def as_a_command(what: Callable[[], object]) -> None:
    """Does that. Ctrl-C ends it alone, and an error of gdb's is shown: of what leaves Python gdb
    would make a traceback."""
    try:
        what()
    except KeyboardInterrupt:
        gdb.write("Quit\n", gdb.STDERR)
    except gdb.error as error:
        gdb.write(f"{error}\n", gdb.STDERR)
