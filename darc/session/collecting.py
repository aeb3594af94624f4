"""Which collector counts for a session, and which one takes its place: from the first probe that is
put in to the last that is taken out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

from darc.code.architecture import FunctionCode
from darc.collectors.collector import Collector, CollectorBrief, Remains, Way
from darc.collectors.ways import kind_for_the_rest, told_of_other, way_instead, ways_of
from darc.debuggee.switchwatch import SwitchWatch
from darc.model.errors import (
    DarcError,
    EntryImpossibleError,
    ProbesImpossibleError,
    UnsupportedError,
)
from darc.model.parameters import Probes


class Collecting:
    """Makes the collectors of one session for its ``brief``. ``own`` is how to collect, where
    that is a way for its analysis alone: it takes the place of that of its kind. ``switches`` are
    watched for as long as one counts."""

    def __init__(self, brief: CollectorBrief, own: Way | None, switches: SwitchWatch) -> None:
        self._brief = brief
        self._own = own
        self._switches = switches
        self.alive = True
        """Whether probes are in the program, or are to come. Any thread."""
        self.collector: Collector
        """Since :meth:`begin`."""
        self.remains: Remains | None = brief.remains
        """What stays in the debuggee, for the next analysis of it."""
        self.instead: str | None = None
        """Why another way was taken than the one that ``auto`` tries first."""

    # --------------------------------------------------------------------- begin

    def begin(self, code: FunctionCode, begun: Callable[[Collector], None]) -> None:
        """Puts in what ``--probes`` asks for, to f0 with this ``code``. Of ``auto`` the first way;
        the second where the program can take no probe of the first at all and comes to no harm.
        Else, and where only f0 can take none, they are for the user to choose. ``begun`` is given
        the collector that is in.

        Raises:
            DarcError: it cannot be, or ``begun`` has raised it; whatever was changed was undone.
        """
        try:
            self._begin(lambda way: self._put_in(way, code, begun))
        except BaseException:
            self._over()
            raise

    def _begin(self, put_in: Callable[[Way], None]) -> None:
        given = self._brief
        first, *others = ways_of(given.parameters.probes, self._own)
        if given.parameters.probes is not Probes.AUTO:
            put_in(first)
            return
        why = first.collector.risk(given.debuggee)
        if why is None:
            try:
                put_in(first)
                return
            except ProbesImpossibleError as error:
                why = str(error)
        way, self.instead = way_instead(
            first, others, why=why, debuggee=given.debuggee, spec=given.spec
        )
        given.note(self.instead)
        put_in(way)

    def _put_in(self, way: Way, code: FunctionCode, begun: Callable[[Collector], None]) -> None:
        collector = self.collector = self._new(way)
        is_in = False
        try:
            self._install(collector, code)
            begun(collector)
            is_in = True
        finally:
            self.remains = collector.remains
            if not is_in:
                with contextlib.suppress(DarcError):  # the first error is the one to tell
                    collector.remove()

    def _install(self, collector: Collector, code: FunctionCode) -> None:
        """It is for the user to choose another way where only f0 can take no probe."""
        try:
            self._note(collector.install(code, self._brief.parameters.profile_calls))
        except EntryImpossibleError as error:
            raise UnsupportedError(f"{error}{self._told_of_other(collector)}") from error
        self._tell_reach(collector)

    def _tell_reach(self, collector: Collector) -> None:
        """Likewise where it takes some that does not see all of its calls."""
        if collector.out_of_reach is not None:
            self._note([f"{collector.out_of_reach}{self._told_of_other(collector)}"])

    def _told_of_other(self, collector: Collector) -> str:
        """What the user may ask for in its place, as the end of a line. Of many functions there is
        no other kind of probes."""
        if not collector.is_of_one:
            return ""
        return told_of_other(collector.kind, self._brief.debuggee)

    def _new(self, way: Way) -> Collector:
        return way.new(replace(self._brief, remains=self.remains))

    def _note(self, texts: list[str]) -> None:
        for text in texts:
            self._brief.note(text)

    def modules_changed(self) -> None:
        """The program has loaded or unloaded files.

        Raises:
            UnsupportedError: f0 cannot be timed any more.
        """
        self._note(self.collector.modules_changed())
        self._tell_reach(self.collector)

    # ------------------------------------------------------------ another's turn

    def risk_of_fall_back(self) -> str | None:
        """Why none takes the place of the one that has counted."""
        return self._for_the_rest().collector.risk_of_fall_back(self._brief.debuggee)

    def fall_back(self, entry: int) -> None:
        """The next way takes the place of the one that has counted, for f0 at ``entry``.

        Raises:
            DarcError: it cannot.
        """
        before = self.collector
        before.remove()
        self._note(before.losses() + before.warnings())
        self.collector = self._new(self._for_the_rest())
        self._note(self.collector.install(self._brief.program.function(entry), 0))
        self._tell_reach(self.collector)

    def _for_the_rest(self) -> Way:
        """The way that times calls which a collector that has counted could not."""
        kind = kind_for_the_rest(self.collector.kind)
        assert kind is not None
        (way,) = ways_of(kind, self._own)
        return way

    # ----------------------------------------------------------------------- end

    def take_out(self) -> None:
        """Every probe. Raises DarcError: not all of them could be; nobody tries again."""
        try:
            self.collector.remove()
        finally:
            self._over()

    def finish(self) -> None:
        """As :meth:`take_out`; where not all of them could be, somebody tries again."""
        self._switches.end()
        self.collector.remove()
        self._over()

    def gone(self, last_look: Callable[[], None]) -> None:
        """The program is gone, and everything that was in it; ``last_look`` is for what outlives
        that."""
        self._over()
        last_look()
        self.collector.gone()

    def abandon(self) -> None:
        """The debugger has lost the program, which lives on."""
        self._over()
        self.collector.abandon()

    def _over(self) -> None:
        """No probe is in the program any more, and nothing watches it."""
        self.alive = False
        self._switches.end()
