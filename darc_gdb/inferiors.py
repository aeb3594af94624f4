"""Which of gdb's inferiors darc is about: after a fork gdb may have several."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import gdb


class Inferiors:
    """The one that is analysed, and its children."""

    def __init__(self) -> None:
        self._home: gdb.Inferior | None = None
        self._children: set[int] = set()
        self.runs = False
        """Whether the program has run since the last prompt or stop for the user."""

    def settle_here(self) -> None:
        """The selected inferior is the one that is analysed from now on."""
        self._home = gdb.selected_inferior()

    def is_home(self, inferior: gdb.Inferior) -> bool:
        """Whether this is the inferior that is analysed, or none is."""
        home = self._home
        if home is None or not home.is_valid() or not home.pid:
            return True
        return bool(inferior.num == home.num)

    @contextlib.contextmanager
    def at_home(self) -> Iterator[None]:
        """Selects the inferior that is analysed, where gdb looks at another one meanwhile: after a
        fork it may have both."""
        now = gdb.selected_inferior()
        if self._home is None or self.is_home(now):
            yield
            return
        before = gdb.selected_thread()
        self._home.threads()[0].switch()
        try:
            yield
        finally:
            if before is not None and before.is_valid():
                before.switch()
            else:
                gdb.execute(f"inferior {now.num}", to_string=True)

    def has_forked(self, child: gdb.Inferior) -> bool:
        """Whether ``child``, which gdb has just added, is one of the program's, with copies of its
        patches."""
        if not self.runs or not self.is_home(gdb.selected_inferior()):
            return False
        self._children.add(int(child.num))
        return True

    @contextlib.contextmanager
    def at_children(self) -> Iterator[Iterator[None]]:
        """Selects one child of :meth:`has_forked` after the other, before they first go on."""
        before = gdb.selected_thread()
        children = [i for i in gdb.inferiors() if i.num in self._children and i.threads()]
        self._children.clear()
        try:
            yield _one_by_one(children)
        finally:
            if children and before is not None and before.is_valid():
                before.switch()


def _one_by_one(children: Sequence[gdb.Inferior]) -> Iterator[None]:
    for child in children:
        child.threads()[0].switch()
        yield
