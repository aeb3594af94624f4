"""A made-up application: it notes what commands ask of it."""

from __future__ import annotations

from darc.app.finding import Request
from darc.app.parameters import with_text
from darc.app.pursuit import Pursuit
from darc.code.lookup import Lookup
from darc.model.contexts import Context
from darc.model.errors import NotFoundError, UsageError
from darc.model.parameters import Parameters
from darc.model.snapshot import Snapshot
from darc.session.session import Session
from darc.views.style import Style

_NOTHING = "nothing is being analysed: type 'darc start FUNCTION'"


class FakeApp:
    session: Session | None = None
    is_busy = False

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.parameters = Parameters()
        self.done: list[object] = []
        self.shown: list[str] = []
        self._snapshot = snapshot

    @property
    def style(self) -> Style:
        return Style(verbose=self.parameters.verbose)

    def analyse(self, request: Request, pursuit: Pursuit | None = None) -> None:
        self.is_busy = True
        self.done.append(("analyse", request))

    def need_session(self) -> Session:
        raise UsageError(_NOTHING)

    def need_stopped(self) -> None:
        pass

    def tell(self) -> None:
        pass

    def stop(self) -> None:
        self.done.append(("stop",))

    def lookup(self) -> Lookup:
        raise NotFoundError("there is no program")

    def snapshot(self, *, lines: bool = True, tree: bool = False) -> Snapshot:
        if self._snapshot is None:
            raise NotFoundError(_NOTHING)
        return self._snapshot

    def table(self) -> Snapshot | None:
        return self._snapshot

    def measured(self) -> list[Context]:
        tree = None if self._snapshot is None else self._snapshot.measured
        return [] if tree is None else [tree]

    def set_parameter(self, name: str, text: str) -> None:
        self.parameters = with_text(self.parameters, name, text)

    def emit(self, text: str) -> None:
        self.shown.append(text)

    def complete_function(self, prefix: str) -> list[str]:
        names = ("handle", "handle_all", "ns::f", "ns::g<int, int>")
        return [name for name in names if name.startswith(prefix) and (prefix or " " not in name)]
