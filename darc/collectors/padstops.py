"""Pads at the user's stops: out, and back, or left in where nobody looks."""

from __future__ import annotations

from darc.collectors.ahead import Ahead
from darc.collectors.doorbell import Doorbell
from darc.collectors.duties import UserStops
from darc.collectors.losses import Losses
from darc.collectors.settling import Settling
from darc.collectors.suspension import Suspension
from darc.pads.backend import PadBackend
from darc.pads.foothold import Foothold
from darc.pads.installer import PadInstaller


class PadStops(UserStops):
    """Of one analysis; ``suspension`` has the calls that stops come in the middle of."""

    def __init__(
        self,
        backend: PadBackend,
        foothold: Foothold,
        installer: PadInstaller,
        *,
        suspension: Suspension,
        settling: Settling,
        ahead: Ahead,
        doorbell: Doorbell,
        losses: Losses,
    ) -> None:
        self._backend = backend
        self._foothold = foothold
        self._installer = installer
        self._suspension = suspension
        self._settling = settling
        self._ahead = ahead
        self._doorbell = doorbell
        self._losses = losses

    def stands(self) -> None:
        self._suspension.stands()
        self._settling.stands(self._suspension.since)

    def pause(self) -> None:
        self._losses.count(self._installer.tables)
        passing = self._suspension.take_passing()
        if not passing and self._suspension.lasts(self._installer):
            return  # the same stop once more
        self._ahead.forget()
        self._suspension.take_out(self._installer, self._foothold)
        self._settling.stands(self._suspension.since)

    def passes(self) -> bool:
        if self.paused or not self._suspension.keeps:
            return False
        self._suspension.leave_in(self._installer, self._foothold)
        self._settling.stands(self._suspension.since)
        return True

    @property
    def passing(self) -> bool:
        return self._suspension.passing

    def resume(self) -> list[str]:
        problems = self._resume()
        if not self.paused:
            self._settling.goes_on(self._installer.tables)
        return problems

    def _resume(self) -> list[str]:
        suspension, tables = self._suspension, self._installer.tables
        passing = suspension.take_passing()
        if not suspension.is_any and not self.paused:
            return []  # nothing was taken out, and no call is known to be under way
        if not suspension.lasts(self._installer):
            tables.begin_epoch()
        self._doorbell.beat()
        problems = []
        if not passing:
            self._backend.change_bell(tables)
            problems = self._installer.resume()
        suspension.undo(self._installer)
        return problems

    @property
    def paused(self) -> bool:
        return self._installer.patcher.paused
