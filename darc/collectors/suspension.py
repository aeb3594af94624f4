"""What becomes of the calls of f0 that the user's stops come in the middle of."""

from __future__ import annotations

from darc.collectors.standstill import Standstill, Suspended
from darc.debuggee import clock
from darc.pads.backend import PadBackend
from darc.pads.foothold import Foothold
from darc.pads.installer import PadInstaller
from darc.target.target import Target


class Suspension:
    """Those of one analysis. With ``keeps`` they are measured on where nothing has run since."""

    def __init__(self, target: Target, backend: PadBackend, *, keeps: bool) -> None:
        self._target = target
        self._backend = backend
        self.keeps = keeps
        self._stood: tuple[int | None, int] | None = None
        """The number of the latest stop, and the time-stamp counter when it began."""
        self._suspended: Suspended | None = None
        """What is under way at that stop, while nothing has run since."""
        self.passing = False
        """Whether the probes were left in at that stop."""
        self.cut_short = 0
        """Calls that are not measured."""

    @property
    def is_any(self) -> bool:
        """Whether calls are known to be under way, and may be measured on."""
        return self._suspended is not None

    def stands(self) -> None:
        """The program has just stopped."""
        number = self._target.stop_number
        if self._stood is None or number is None or self._stood[0] != number:
            self._stood = number, self._target.stopped_since or clock.tsc_now()

    @property
    def since(self) -> int | None:
        """The time-stamp counter when the latest stop began."""
        return None if self._stood is None else self._stood[1]

    def lasts(self, installer: PadInstaller) -> bool:
        """Whether :attr:`is_any` is so, and nothing has run or was changed since; else they are
        given up."""
        if self._suspended is None:
            return False
        if not self._suspended.is_over(self._target, installer.tables, installer.patcher.in_use):
            return True
        self.give_up()
        return False

    def give_up(self) -> None:
        """What was under way is measured no more."""
        suspended, self._suspended = self._suspended, None
        if suspended is not None:
            self.cut_short += len(suspended.was.operations)

    def take_out(self, installer: PadInstaller, foothold: Foothold) -> None:
        """The probes come out."""
        tables = installer.tables
        self._suspended = None
        self.stands()
        self._backend.lead_home(foothold)
        was = self._standstill(installer, foothold)
        if was is None:
            self.cut_short += tables.ops.count()
        tables.begin_epoch()
        words = installer.pause()
        if was is not None:
            self._suspended = Suspended.of(was, self._target, words)

    def leave_in(self, installer: PadInstaller, foothold: Foothold) -> None:
        """The probes stay: see :attr:`passing`."""
        self.stands()
        was = self._standstill(installer, foothold, closes=False)
        self.passing = True
        self._suspended = None if was is None else Suspended.of(was, self._target, None)

    def take_passing(self) -> bool:
        """Whether the program was passing (:attr:`passing`): it does not any more."""
        passing, self.passing = self.passing, False
        return passing

    def _standstill(
        self, installer: PadInstaller, foothold: Foothold, *, closes: bool = True
    ) -> Standstill | None:
        if not self.keeps:
            return None
        assert self._stood is not None
        return Standstill.take(
            self._target,
            installer.tables,
            is_inside=foothold.holds,
            in_system_call=self._backend.is_in_system_call,
            patches=installer.patcher.in_use,
            since=self._stood[1],
            closes=closes,
        )

    def undo(self, installer: PadInstaller) -> None:
        """The probes are back, and the program is about to go on: its calls are measured on."""
        suspended, patcher = self._suspended, installer.patcher
        if suspended is None:
            return
        if patcher.paused or patcher.in_use != suspended.was.patches:
            self.give_up()  # some of its calls would not be seen
            return
        self.cut_short += suspended.undo(self._target, installer.tables)
        self._suspended = None
