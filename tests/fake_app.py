"""A made-up application: it notes what commands ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from darc.app.finding import Request
from darc.app.parameters import with_text
from darc.model.contexts import Context, measured_tree
from darc.model.errors import NotFoundError
from darc.model.parameters import Parameters
from darc.model.snapshot import Snapshot


class FakeApp:
    colour = False
    width = 80

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.parameters = Parameters()
        self.done: list[object] = []
        self.shown: list[str] = []
        self._snapshot = snapshot

    def start(self, function: str, overrides: dict[str, object]) -> None:
        self.done.append(("start", function, overrides))

    def analyse(self, request: Request) -> None:
        self.done.append(("analyse", request))

    def catch(self, function: str | None, peak: str | None, seconds: float | None) -> None:
        self.done.append(("catch", function, peak, seconds))

    def why(self, seconds: float) -> None:
        self.done.append(("why", seconds))

    def peak(self, spec: str) -> None:
        self.done.append(("peak", spec))

    def descend(self, ids: Sequence[str]) -> None:
        self.done.append(("descend", tuple(ids)))

    def stop(self) -> None:
        self.done.append(("stop",))

    def save(self, file: Path) -> None:
        self.done.append(("save", file))

    def resume(self, file: Path, overrides: dict[str, object]) -> None:
        self.done.append(("resume", file, overrides))

    def snapshot(self) -> Snapshot:
        if self._snapshot is None:
            raise NotFoundError("nothing was started; type 'darc start FUNCTION'")
        return self._snapshot

    def measured(self) -> list[Context]:
        shown = self._snapshot
        if shown is None or shown.ftree is None or shown.profile is None:
            return []
        tree = measured_tree(shown.ftree, shown.profile.hz)
        return [] if tree is None else [tree]

    def set_parameter(self, name: str, text: str) -> None:
        self.parameters = with_text(self.parameters, name, text)

    def emit(self, text: str) -> None:
        self.shown.append(text)

    def complete_function(self, prefix: str) -> list[str]:
        return [name for name in ("handle", "handle_all", "ns::f") if name.startswith(prefix)]
