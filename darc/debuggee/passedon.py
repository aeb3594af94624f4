"""What the user is told of the program's own signals that a script does not stop at."""

from __future__ import annotations

from collections.abc import Callable


class PassedOn:
    """Tells of each once, by the name of the signal."""

    def __init__(self, emit: Callable[[str], None], stops_by: str = "") -> None:
        """``stops_by`` is the debugger's command, with ``{}`` for the name, by which it stops all
        the same; "" where it has none."""
        self._emit = emit
        self._stops_by = stops_by
        self._told: set[str] = set()

    def tell(self, name: str) -> None:
        """It has come, and goes on to the program, which has a handler for it."""
        if name in self._told:
            return
        self._told.add(name)
        stops = f" ('{self._stops_by.format(name)}' stops)" if self._stops_by else ""
        self._emit(
            f"darc: {name} is passed on to the program, which has a handler for it: in batch the "
            f"analysis goes on{stops}"
        )
