"""The analysis that the commands are about, and what those before it have found."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from darc.app.finding import Request
from darc.app.pursuit import Pursuit
from darc.model.contexts import Context, folded
from darc.model.errors import DarcError, NotFoundError
from darc.model.ftree import Fnode
from darc.model.snapshot import Snapshot
from darc.session.session import Session
from darc.target.target import Journal

Drawn = Callable[[Fnode], Iterable[Fnode]]
"""The nodes of an ftree that are drawn."""


@dataclass(frozen=True)
class _Kept:
    """What there was before, in case that nothing comes of what takes its place."""

    session: Session | None
    request: Request | None
    pursuit: Pursuit | None
    measured: list[Context]


class Current:
    """One analysis at most, also after its end."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.request: Request | None = None
        """What the session is for."""
        self.pursuit: Pursuit | None = None
        """What comes behind it by itself."""
        self._measured: list[Context] = []
        """What earlier sessions have measured, a tree for each f0."""
        self._table: Snapshot | None = None
        """What had numbered functions last, of an analysis that others have followed."""
        self._displaced: _Kept | None = None
        """What there was before the one that waits."""

    @property
    def journal(self) -> Journal:
        """That of what is analysed, or was last. Any thread."""
        return Journal() if self.session is None else self.session.debuggee.journal

    def shown(
        self, session: Session, *, lines: bool = True, tree: Drawn = lambda _root: ()
    ) -> Snapshot:
        """What is known of ``session`` now, with what the pursuit makes of it. ``lines`` and
        ``tree`` say what source lines are asked for (:meth:`Session.snapshot`)."""
        return self.with_answer(session, session.snapshot(lines=lines, tree=tree))

    def with_answer(self, session: Session, found: Snapshot) -> Snapshot:
        """What ``session`` has found, with what the pursuit makes of it, where it is one's."""
        return found if self.pursuit is None else self.pursuit.with_answer(session, found)

    def table(self) -> Snapshot | None:
        """What has numbered functions last, until another does; ``None``: nothing has yet."""
        session = self.session
        if session is not None and _numbers(shown := self.shown(session, lines=False)):
            return shown
        return self._table

    def measured(self) -> list[Context]:
        """The trees that were measured since the debugger began: of each earlier f0 one, and that
        of the session that is shown."""
        now = None if self.session is None else _measured_by(self.session)
        return self._measured if now is None else [*self._measured, now]

    def take_best(self) -> None:
        """The pursuit is over: the session whose answer is the first one is shown from now on, and
        of the others stays what they have measured."""
        pursuit = self.pursuit
        if pursuit is None:
            return
        self.session = pursuit.best or self.session
        others = (_measured_by(one) for one in pursuit.sessions if one is not self.session)
        self._measured = folded([*self._measured, *(tree for tree in others if tree is not None)])

    def pursue(self, pursuit: Pursuit | None) -> None:
        """That comes behind what begins."""
        self.pursuit = pursuit

    def begun(self, session: Session, request: Request) -> None:
        """A session for what was asked for is the one that the commands are about."""
        self.session, self.request = session, request
        self._displaced = None

    def forget(self) -> _Kept:
        """Another one may take its place. What is returned is for :meth:`take_back`."""
        kept = _Kept(self.session, self.request, self.pursuit, self._measured)
        with contextlib.suppress(DarcError):
            self._table = self.table()
        with contextlib.suppress(DarcError):
            self._measured = folded(self.measured())
        if self.session is not None:
            self._displaced = kept
        self.session = self.request = self.pursuit = None
        return kept

    def take_back(self, kept: _Kept) -> None:
        """None has."""
        self.session, self.request, self.pursuit = kept.session, kept.request, kept.pursuit
        self._measured = kept.measured

    def begin_anew(self) -> None:
        """It is to be in another run of the program, with what comes behind it."""
        pursuit = self.pursuit
        self.forget()
        self.pursuit = pursuit

    def recall(self) -> None:
        """What has waited waits no more: the one before is what the commands are about again."""
        if self.session is None and self._displaced is not None:
            self.take_back(self._displaced)


def _measured_by(session: Session) -> Context | None:
    return session.snapshot(lines=False).measured


def _numbers(shown: Snapshot) -> bool:
    """Whether users may call functions that are shown there by numbers."""
    for part in shown.parts.values():
        with contextlib.suppress(NotFoundError):
            if part.function(1) is not None:
                return True
    return False
