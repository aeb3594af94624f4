"""What of darc's is in a process beyond its analyses, and how it leaves."""

from __future__ import annotations

from collections.abc import Callable

from darc.collectors.collector import Remains
from darc.debuggee.debuggee import Debuggee
from darc.model.enumerated import first_few
from darc.target.target import State, Target

_MUCH_MEMORY = 64 << 10
"""Bytes: more than the landings, which always stay, is told."""

_LISTED = 4
"""Ids of processes that a line has."""


class Stay:
    """The memory that one analysis leaves to the next, and the watch over a process, which lets it
    know if the debugger goes."""

    def __init__(self, target: Target, emit: Callable[[str], None]) -> None:
        """``emit`` takes what the user should know."""
        self._target = target
        self._emit = emit
        self.remains: Remains | None = None
        """What the last session has left."""
        self._farewell: Callable[[bool], None] | None = None
        self._told = set[int]()
        """Children of the program's that the user knows of."""

    def watch_over(self, debuggee: Debuggee) -> None:
        """From now on this process is let know if the debugger goes; any other one is not."""
        self._say_farewell(lost=False)
        self._farewell = debuggee.watch_over()

    def keep_watching(self, debuggee: Debuggee) -> None:
        """As :meth:`watch_over`, if no process is watched over yet."""
        if self._farewell is None:
            self._farewell = debuggee.watch_over()

    def keep(self, remains: Remains | None) -> None:
        """That is what a session leaves, or has left."""
        self.remains = remains

    def give_back(self) -> None:
        """Darc's memory in the stopped program, where nothing needs it any more."""
        remains = self.remains
        if remains is None or self._target.state is not State.STOPPED:
            return
        if remains.give_back():
            self.remains = None
            self._target.frames.hide_pads()
            if remains.size:
                self._emit(
                    f"darc: {remains.size >> 10} KiB of its memory stay in the program, which has "
                    "sealed what it has mapped (mseal)"
                )

    def give_back_before_another(self) -> None:
        """That memory, where the debugger turns to another process meanwhile."""
        if self.remains is not None:
            with self._target.leaving_home() as is_left:
                if is_left:
                    self.give_back()

    def tell_of_memory(self) -> None:
        """Of what stays of darc's in a program that lives on, where that is not little."""
        left = self.remains.size if self.remains is not None else 0
        if left > _MUCH_MEMORY:
            self._emit(
                f"darc: up to {-(-left >> 20)} MiB of its tables stay in the program's memory, "
                "where something may lead to them still; the next debugger's 'darc stop' gives "
                "back what is free by then"
            )

    def tell_of_children(self, debuggee: Debuggee) -> None:
        """Of the program's children that have copies of what was in it, once of each."""
        pads = debuggee.pads
        found = () if pads is None else pads.children_with_copies()
        new = [child for child in found if child not in self._told]
        self._told.update(new)
        if new:
            are = "a child of the program's has" if len(new) == 1 else f"{len(new)} children have"
            listed = first_few([str(child) for child in new], _LISTED)
            self._emit(
                f"darc: {are} copies of what darc had put into the program ({listed}), which do "
                "nothing there: 'darc stop' in a debugger that has attached to it takes them out"
            )

    def forget_if_gone(self) -> None:
        """Where another hand has taken out what was left."""
        if self.remains is not None and not self.remains.is_there():
            self._close()

    def end(self, *, lost: bool = False) -> None:
        """The debugger has the process no more; it has ``lost`` it, or has let it go."""
        self._say_farewell(lost=lost)
        self._close()

    def _say_farewell(self, *, lost: bool) -> None:
        leave, self._farewell = self._farewell, None
        if leave is not None:
            leave(lost)

    def _close(self) -> None:
        if self.remains is not None:
            self.remains.close()
            self.remains = None
            self._target.frames.hide_pads()
