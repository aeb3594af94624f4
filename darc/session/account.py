"""What a session tells of itself, as values: what its analysis knows, figures and notes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from darc.code.program import Program
from darc.code.source_lines import SourceLines
from darc.debuggee.duties import SeenBeside
from darc.model.ftree import Fnode
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import EndedBy
from darc.session.figures import RunFigures
from darc.session.probing import Probing
from darc.session.remarks import cut_short, stopped_for_files, users_breakpoints
from darc.target.target import Target

_MANY_GENERATED = 10_000
"""Calls by generated code, with none that is timed: no other may ever come."""


class Account:
    """Of the calls of ``root``, which the user knows as ``spec``."""

    def __init__(
        self,
        session: Probing,
        *,
        target: Target,
        program: Program,
        debuggee: SeenBeside,
        root: Fnode,
        spec: str,
        figures: RunFigures,
        notes: Iterable[str],
    ) -> None:
        """``notes`` are told first."""
        self._session = session
        self._target = target
        self._program = program
        self._debuggee = debuggee
        self._root = root
        self._lines = SourceLines(target, program)
        self._spec = spec
        self._figures = figures
        self.notes = list(notes)
        """What the user should know, in the order in which it came to light. Any thread."""
        self.ended_by: EndedBy | None = None
        """What has ended the analysis before its end."""
        self.unless_called: str | None = None
        """What to say where no call of f0 was seen."""
        self._cut_by_files = 0

    def ends(self, by: EndedBy | None) -> None:
        """What the analysis is ended by before its end, if it is."""
        self.ended_by = by

    def say_unless_called(self, text: str) -> None:
        """What the user is to know where no call of f0 is seen."""
        self.unless_called = text

    def files_changed(self) -> None:
        """The program has loaded or unloaded a file: a call of f0 may be under way."""
        open_calls = self._session.collector.open_calls
        self._cut_by_files += open_calls is not None and bool(open_calls.running())

    def live_snapshot(self) -> Snapshot:
        """What a live line shows. Any thread, while the program runs."""
        session, readable = self._session, self._debuggee.is_readable_while_it_runs
        shown = session.analysis.live_snapshot(session.alive, readable)
        is_asked = session.alive and readable  # else its memory cannot be read meanwhile
        is_none_timed = shown.profile is not None and not shown.profile.count
        many = session.collector.generated if is_asked and is_none_timed else 0
        return dataclasses.replace(
            shown,
            elapsed_seconds=self._figures.seconds,
            generated=many if many >= _MANY_GENERATED else 0,
        )

    def whole(
        self, known: Snapshot, *, lines: bool, tree: Callable[[Fnode], Iterable[Fnode]]
    ) -> Snapshot:
        """With what is ``known`` to the analysis all else that there is to tell: see
        :meth:`~darc.session.session.Session.snapshot`."""
        is_own, known = known.ftree is self._root, known.frozen()
        if lines and is_own and known.ftree is not None:
            self._lines.add(node for path in known.paths for node in path.nodes)
            self._lines.add(tree(known.ftree))
        notes = [*self.notes, *self._session.collector.losses()]
        warnings = self._warnings(known, lines=lines)
        figures = self._figures.added_to(known.program, self._session.collector.hits)
        notes += [*warnings, *self._remarks(known, figures)]
        return dataclasses.replace(
            known,
            program=figures,
            notes=tuple(dict.fromkeys(notes)),
            warnings=tuple(warnings),
            ended_by=self.ended_by,
            elapsed_seconds=self._figures.seconds,
        )

    def _warnings(self, known: Snapshot, *, lines: bool) -> list[str]:
        found = [*known.warnings, *self._session.collector.warnings()]
        if lines:
            found += users_breakpoints(known.paths, self._program, self._target)
        return found

    def _remarks(self, known: Snapshot, figures: ProgramFigures) -> list[str]:
        """What makes the figures less than they could be."""
        session, in_peak = self._session, figures.in_peak_calls or 0
        seen = known.profile is not None and known.profile.count
        not_called = [] if session.alive or seen else [self.unless_called]
        return [
            *(text for text in not_called if text is not None),
            *cut_short(
                session.collector.cut_short, lambda count: session.analysis.lacks(count, figures)
            ),
            *stopped_for_files(self._cut_by_files, in_peak=in_peak, spec=self._spec),
        ]

    @property
    def cost(self) -> ProgramFigures:
        """How often, and for how long, the program has stood still by now."""
        return self._figures.added_to(ProgramFigures(), self._session.collector.hits)
