"""What is done in the background while the program runs, from when it goes on until it stands."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

from darc.debuggee.duties import SeenBeside
from darc.debuggee.switchwatch import SwitchWatch
from darc.session.helping import Helping
from darc.session.probing import Probing
from darc.target.ownthread import Turn


class Background:
    """Of one session, by the monitor and a helper. They call the methods that say "any thread";
    all others are for the debugger's own, with the program stopped."""

    def __init__(
        self, session: Probing, debuggee: SeenBeside, switches: SwitchWatch, turn: Turn
    ) -> None:
        self._session = session
        self._debuggee = debuggee
        self._switches = switches
        self._turn = turn
        self._helping = Helping()

    # ------------------------------------------------------ between stop and going on

    def goes_on(self) -> None:
        """The program is let go on."""
        self._session.analysis.goes_on()
        self._switches.goes_on()
        if (ahead := self._session.collector.ahead) is not None:
            ahead.goes_on()
        self._helping.goes_on(is_readable=self._debuggee.is_readable_while_it_runs)

    def stands(self) -> None:
        """It stands still: nobody is at work beside the debugger's own thread."""
        self._helping.stands()
        self._turn.claim()

    @contextlib.contextmanager
    def stands_for_a_moment(self) -> Iterator[None]:
        """As :meth:`stands`, where the debugger lets the program go on by itself."""
        with self._helping.interrupted():
            self._turn.claim()
            yield

    # ---------------------------------------------------------------- while it runs

    def look(self) -> float:
        """Takes down how the profile grows; tells when to do so again. Any thread, while the
        program runs, whose memory can be read."""
        return self._session.analysis.look() if self._session.alive else math.inf

    def look_ahead(self) -> float:
        """While the program runs, whose memory can be read: prepares for the decision that comes,
        for a moment, if it is time for that; tells in how many seconds to go on. On one thread that
        may help."""
        if not self._session.alive:
            return math.inf
        return self._helping.work(self._session.analysis.look_ahead)

    @property
    def urgent(self) -> int | None:
        """See :attr:`~darc.analyses.analysis.Analysis.urgent`. Any thread."""
        return self._session.analysis.urgent if self._session.alive else None

    def hurry(self) -> None:
        """Asks the collector to call at the next call of f0, whatever was seen. Any thread."""
        if self._session.alive:
            self._session.collector.counting.hurry()

    @property
    def rings(self) -> bool:
        """Whether the debugger was asked for and gave no answer yet. Any thread."""
        return self._session.alive and self._session.collector.summons.waits

    @property
    def rings_itself(self) -> bool:
        """Whether it was asked by a signal of the program's own. Any thread."""
        return self.rings and self._session.collector.summons.rings_itself
