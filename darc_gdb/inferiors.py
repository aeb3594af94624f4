"""Which of gdb's inferiors darc is about: after a fork gdb may have several."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence

import gdb

from darc_gdb.callbacks import GdbCallbacks
from darc_gdb.printed import unheard
from darc_gdb.threads import selected


class Inferiors:
    """The one that is analysed, and its children."""

    def __init__(self) -> None:
        self.callbacks = GdbCallbacks()
        """Who is told of what becomes of it."""
        self._home: gdb.Inferior | None = None
        self._others: frozenset[int] = frozenset()
        """Those that ran already when that was chosen, and are of no concern."""
        self._away: gdb.InferiorThread | gdb.Inferior | None = None
        """What the user has selected, while darc is :meth:`at_home`."""
        self._children: set[int] = set()
        self.runs = False
        """Whether the program has run since the last prompt or stop for the user."""

    def serve(self, callbacks: GdbCallbacks) -> None:
        """From now on these are told."""
        self.callbacks = callbacks

    def stand_by_itself(self, how: Callable[[], None]) -> None:
        """What gdb believes to stand still is made to by ``how``, as gdb is connected to a machine
        that may go on without it."""
        self.serve(dataclasses.replace(self.callbacks, hold_still=how))

    def went_on(self) -> None:
        """The program goes on."""
        self.runs = True

    def stands(self) -> None:
        """There is a prompt, or a stop for the user."""
        self.runs = False

    def make_home(self) -> None:
        """The inferior that the user has selected is the one that is analysed from now on, or will
        be when it runs."""
        away, self._away = self._away, None
        _select(away)
        self.stay_here()

    def stay_here(self) -> None:
        """The inferior that gdb looks at now is the one that is analysed: gdb may have followed the
        program into another."""
        home = self._home = gdb.selected_inferior()
        self._others = frozenset(i.num for i in gdb.inferiors() if i.pid and i.num != home.num)

    def is_home(self, inferior: gdb.Inferior) -> bool:
        """Whether this is the inferior that is analysed, or that which may be it once it runs."""
        home = self._home
        if home is None or not home.is_valid():
            return True
        if not home.pid:
            return inferior.num not in self._others
        return bool(inferior.num == home.num)

    @contextlib.contextmanager
    def at_home(self) -> Iterator[bool]:
        """Selects the inferior that is analysed, where gdb looks at another one meanwhile: after a
        fork it may have both. Gives whether the user has selected another one."""
        home, now = self._home, gdb.selected_inferior()
        if home is None or self.is_home(now) or not home.is_valid() or not home.pid:
            yield self._away is not None
            return
        self._away = selected() or now
        home.threads()[0].switch()
        try:
            yield True
        finally:
            away, self._away = self._away, None
            _select(away)

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
        before = selected()
        children = [i for i in gdb.inferiors() if i.num in self._children and i.threads()]
        self._children.clear()
        try:
            yield _one_by_one(children)
        finally:
            if children and before is not None and before.is_valid():
                before.switch()


def _select(chosen: gdb.InferiorThread | gdb.Inferior | None) -> None:
    if isinstance(chosen, gdb.InferiorThread) and chosen.is_valid():
        chosen.switch()
    elif isinstance(chosen, gdb.Inferior) and chosen.is_valid():
        unheard(f"inferior {chosen.num}")


def _one_by_one(children: Sequence[gdb.Inferior]) -> Iterator[None]:
    for child in children:
        child.threads()[0].switch()
        yield
