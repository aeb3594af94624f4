"""The seam between a session and what it is for: counts in, steps and a result out.

An *analysis* reads what a collector counted, tells it what to time next, and says what is known.
The :class:`~darc.session.session.Session` knows no particular one: it lets the program run and
stop, and carries out each :class:`Step`. What a user may ask of one analysis alone (a peak, nodes)
are methods of that one, which return a step as well.

An analysis is told when to look: its methods are called on the debugger's own thread with all
threads of the program stopped, where they do not say "any thread".
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import ClassVar

from darc.analyses.question import Question
from darc.code.program import Program
from darc.collectors.collector import Collector
from darc.debuggee.switchwatch import SwitchWatch
from darc.model.errors import UsageError
from darc.model.ftree import Fnode
from darc.model.parameters import Parameters
from darc.model.profile import Profile
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.saved.storage import Stored


class Step(Enum):
    """What comes after a decision."""

    GO_ON = auto()
    """For what the collector was asked to await; where that was nothing new, it asks again at
    once."""
    ASK = auto()
    """The user is to answer :attr:`Analysis.question`: a command of the analysis' own does, by
    :meth:`~darc.session.session.Session.follow`."""
    FALL_BACK = auto()
    """Time may be in calls that these probes could not time: others are to time them
    (:meth:`FallsBack.fall_back`), or :meth:`FallsBack.stay` ends it. Of a :class:`FallsBack`
    alone."""
    SHOW = auto()
    """The user is to be shown where the program stands."""
    END = auto()
    """It is over: every probe can come out."""


@dataclass(frozen=True)
class AnalysisBrief:
    """What is analysed, and by what: calls of ``root``'s function, which the user knows as
    ``spec``, counted by ``collector``. ``note`` takes what the user should know."""

    program: Program
    collector: Collector
    root: Fnode
    spec: str
    parameters: Parameters
    """What the user has asked for. How much of it can be is for the collector to say, where it is
    used (:meth:`~darc.collectors.collector.Collector.within_limits`)."""
    note: Callable[[str], None]
    switches: SwitchWatch = field(default_factory=SwitchWatch)
    """Begun by an analysis that needs it; the session ends it."""
    threads: int = 1
    """How many the program has as it begins; of a kernel, processors."""


class Analysis(ABC):
    """See the module. What is abstract here every analysis must have; the rest is for those that
    need it."""

    key: ClassVar[str] = ""
    """What session files call it: the command that begins it. For what may be :meth:`stored`."""

    _called: ClassVar[str] = "the analysis"
    """What it is called where that is told."""

    _ended_early: ClassVar[Status] = Status.INCONCLUSIVE
    """The status of an analysis that the user, or a time limit, has ended before its end."""

    is_cut_short = False
    """Whether :meth:`finish_early` came before it knew what it was to find out."""

    def __init__(self, brief: AnalysisBrief) -> None:
        self.parameters = brief.parameters
        self.root = brief.root
        self._spec = brief.spec
        self._program = brief.program
        self._collector = brief.collector
        self._note = brief.note
        self._status = Status.PROFILING

    @property
    def status(self) -> Status:
        """How far it is. Any thread."""
        return self._status

    @property
    def finished(self) -> bool:
        """Whether it has ended. Any thread."""
        return self._status.is_final

    def lacks(self, missed: int, figures: ProgramFigures) -> str:
        """What is told behind it that so many calls were ``missed``, where these would have led it
        further than those of the ``figures``; else nothing."""
        del missed, figures
        return ""

    # -------------------------------------------------------------------- time

    def stands(self) -> None:  # noqa: B027
        """The program has stopped, for a decision or for the user. It had when this was made."""

    def goes_on(self) -> None:  # noqa: B027
        """The program is about to go on, with its probes."""

    @property
    def seconds_left(self) -> float | None:
        """Until it is to decide, whatever was seen, which may be nothing; ``None``: that is not for
        the time to say, and ``start_time`` ends nothing. Any thread."""
        return None

    def look(self) -> float:
        """Takes down how the counts have grown, if it is time for that. It decides nothing and
        orders nothing, but :attr:`urgent` or :attr:`seconds_left` may ask from then on for the stop
        at which :meth:`decide` does. Tells in how many seconds it is to be called again: that is
        half a millisecond later at the earliest, and a tenth of a second at the latest. By the
        monitor, on any thread, from when the program goes on until it stands for the user:
        meanwhile it may stand for a decision. It is called only where memory can be read while the
        program runs: never in a kernel, where what is read at stops is all."""
        return math.inf

    def look_ahead(self, seconds: float) -> bool:
        """While the program runs: prepares for the decision that comes, for so long at most.
        Whether there is more to be done at once. On a thread that may help."""
        del seconds
        return False

    @property
    def urgent(self) -> int | None:
        """The id of a thread, as the program knows it, in which the program is to be stopped at
        once, for a decision; 0: in any. Any thread."""
        return None

    @property
    def ends_at_interrupt(self) -> bool:
        """Whether the user's Ctrl-C ends it with what is known."""
        return False

    # ----------------------------------------------------------------- decisions

    @property
    def question(self) -> Question | None:
        """What the user is to choose, since :attr:`Step.ASK`."""
        return None

    @property
    @abstractmethod
    def needed(self) -> int:
        """After how many calls a decision is due, for who looks on: what counts is what the
        collector awaits, ``profile_calls`` of the parameters at first. Any thread."""

    @abstractmethod
    def decide(self) -> Step:
        """Enough calls were seen: reads what was counted and orders what comes next. The collector
        was told to watch f0, and to ask after ``profile_calls`` of the parameters."""

    @abstractmethod
    def collect(self) -> None:
        """Reads what was counted, and decides nothing: at any stop, and before it is ended from
        outside, when :meth:`decide` is not called any more. What is known then can be shown."""

    def show(self) -> None:  # noqa: B027
        """After :attr:`Step.SHOW`, when the program stands still for the user, as if no probe were
        there: takes what is told of the place into its part."""

    def finish_early(self, why: str) -> None:
        """Ends with what is known; ``why`` is told."""
        self.collect()
        self._note(f"{why}: this is what was known by then")
        self.is_cut_short = True
        self._status = self._ended_early

    def fail(self, why: str) -> None:
        """Ends without an answer: a decision could not be made; ``why`` is told."""
        self._note(f"{self._called} ended early: {why}")
        self._status = Status.INCONCLUSIVE

    def close(self, status: Status, alive: bool) -> None:
        """The session ends. What had not ended takes ``status``; ``alive`` tells whether the
        collector still has what was counted."""
        if not self.finished:
            self._status = status

    # -------------------------------------------------------------------- views

    def _head(self) -> Snapshot:
        """What any analysis says of itself: whose calls it is about, how far it is, by what probes
        and by which parameters. ``dataclasses.replace`` adds what this one knows. Any thread."""
        return Snapshot(
            function=self.root.function.name,
            status=self.status,
            probes=self._collector.kind,
            parameters=self.parameters,
        )

    @abstractmethod
    def snapshot(self, alive: bool) -> Snapshot:
        """All that is known, without what the session knows of stops, notes and time."""

    def live_snapshot(self, alive: bool, readable: bool) -> Snapshot:
        """What a live line shows. Any thread, while the program runs, whose memory may not be
        ``readable`` then."""
        seen = min(self._collector.counting.seen, self.needed) if alive and readable else None
        return dataclasses.replace(
            self._head(),
            profile=self._collector.counting.profile() if alive and readable else None,
            collected=seen,
            needed=self.needed,
        )

    def stored(self, alive: bool) -> Stored:
        """What a later run needs to go on from here; ``alive`` as for :meth:`close`.

        Raises:
            UsageError: nothing of it can be kept.
        """
        raise UsageError(
            "nothing of this analysis can be saved, as it begins anew in each run: "
            "'darc report -o FILE' keeps what was found"
        )


class FallsBack(Analysis):
    """One that other probes may go on with, where those that it has could not time all calls: it
    says so by :attr:`Step.FALL_BACK`, and is asked then."""

    @abstractmethod
    def why_no_fall_back(self) -> str | None:
        """Why other probes would spoil more than they tell; ``None``: they would not."""

    @abstractmethod
    def fall_back(self, collector: Collector) -> Step:
        """Goes on with ``collector``, which watches f0 already; the one before is removed."""

    @abstractmethod
    def stay(self, why: str | None = None) -> Step:
        """Ends with what is known. ``why`` says why there are no other probes."""


class Resumable(Analysis):
    """One that another run goes on with (``darc resume``), as the command says that is called by
    its :attr:`key` (:attr:`darc.app.commands.command.Command.goes_on`). The profile and the status
    that were stored are the first run's: one whose figures are of both runs adds them by itself
    (:meth:`Profile.merged`)."""

    @abstractmethod
    def stored(self, alive: bool) -> Stored: ...

    @classmethod
    @abstractmethod
    def resumed(cls, stored: Stored) -> Callable[[AnalysisBrief], Analysis]:
        """What makes the analysis that goes on with a session.

        Raises:
            DamagedFileError: the session is not as :meth:`stored` makes it.
        """

    def _stored_with(
        self, profile: Profile, part: object = None, before: Stored | None = None
    ) -> Stored:
        """f0 and its ``profile``, with no tree below it, and ``part``, as JSON values, as that of
        :attr:`key`; ``None``: it has none. Other parts are those of the session ``before``, which
        this one goes on with."""
        f0 = self.root.function
        module = self._program.module_at(f0.address)
        return Stored(
            spec=self._spec,
            parameters=self.parameters,
            status=self._status,
            # Of a program that runs the two are not of quite the same moment.
            profile=dataclasses.replace(profile, count=sum(profile.bins.values())),
            root=Fnode(f0),
            modules={} if module is None else {f0.module: module.image.identity},
            parts={
                **(before.parts if before is not None else {}),
                **({} if part is None else {self.key: part}),
            },
        )
