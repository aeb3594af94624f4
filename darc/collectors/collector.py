"""The seam between what is analysed and how latency is collected.

A *collector* times the calls of f0 and of what it calls, and counts votes (paper section 3). The
:class:`~darc.analyses.analysis.Analysis` tells it what to time and reads what was counted; the
:class:`~darc.session.session.Session` puts it into the program and takes it out. It knows neither
peaks by their names nor decisions: when it has seen as many calls as it was asked for, it asks its
:class:`Listener` what comes next.

What it does beside living in the program are duties, a class each (:mod:`darc.collectors.duties`).
Where a method does not say "any thread", it is called on the debugger's own thread while the
program is stopped. Collectors count in cycles of a clock of :attr:`Counting.hz
<darc.collectors.duties.Counting.hz>` Hz.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from darc.code.architecture import FunctionCode
from darc.code.program import Program
from darc.collectors.callees import Callees
from darc.collectors.duties import (
    Counting,
    KeepsOps,
    LooksAhead,
    SeesOpenCalls,
    Summons,
    Timing,
    UserStops,
)
from darc.debuggee.debuggee import Debuggee
from darc.model.ftree import Fnode
from darc.model.parameters import Parameters, Probes
from darc.target.outcome import Outcome
from darc.target.target import Target


class Listener(Protocol):
    """Whom a collector asks, with all threads of the program stopped."""

    def is_due(self) -> bool:
        """Whether a decision is to be made now, whatever was seen."""

    @property
    def seconds_left(self) -> float | None:
        """Until that is so; ``None``: there is no limit. Any thread."""

    def decide(self) -> Outcome:
        """Enough calls were seen, or time is up."""

    def give_up(self, why: str) -> Outcome:
        """Nothing more can be seen."""

    def damaged(self, why: str) -> Outcome:
        """What is counted with was written over by the program."""

    def vanished(self, why: str) -> Outcome:
        """What the probes were put into is not there any more."""

    def before_resume(self) -> None:
        """The program went on after a stop for the user, and not step by step."""

    def exits(self) -> None:
        """The program is about to end: the last moment to look."""


class Remains(Protocol):
    """What stays of an analysis in what was debugged, for the next one: memory, say. No probe leads
    there any more."""

    @property
    def identity(self) -> int:
        """That of the :class:`~darc.debuggee.debuggee.Debuggee` that it is in."""

    @property
    def size(self) -> int:
        """Bytes that are mapped for it in the program, used or not; 0 where that is no matter. Once
        it was given back: what of that the program does not let go."""

    def is_there(self) -> bool:
        """Whether it has not gone with what it stood in."""

    def give_back(self) -> bool:
        """All threads stand still: takes it away, where nothing can need it. ``False``: not now."""

    def close(self) -> None:
        """What it stood in is gone, or it is not used any more."""


@dataclass(frozen=True)
class CollectorBrief:
    """What a collector is made for: the calls of ``root``'s function, which the user knows as
    ``spec``, in ``program`` of ``debuggee``. ``note`` takes what the user should know; ``remains``
    are what an earlier analysis may have left in the debuggee, by whatever kind of probes."""

    target: Target
    program: Program
    debuggee: Debuggee
    root: Fnode
    spec: str
    parameters: Parameters
    listener: Listener
    note: Callable[[str], None]
    remains: Remains | None = None
    progress: Callable[[str], None] = lambda _: None
    """Is told what is done, where that may take long. The program stands still."""


@dataclass(frozen=True, kw_only=True)
class Restraint:
    """What probes that slow a program down keep to where nobody has asked for them."""

    least_ns: int
    """What a function takes at least whose calls they time, in ns,"""
    in_words: str
    """and what such a time is called."""
    most_calls: int
    """Calls of f0 in a second up to which they do so."""


class Collector(ABC):
    """One way to collect latencies, for one analysis of one program."""

    kind: ClassVar[Probes]
    plural: ClassVar[str]
    """What messages call its probes."""
    restraint: ClassVar[Restraint | None] = None
    """What it keeps to as it times the calls that another one could not."""
    drawback: ClassVar[str | None] = None
    """What its probes do to any program, where another kind's do not."""

    def __init__(self, brief: CollectorBrief) -> None:
        self._target = brief.target
        self._debuggee = brief.debuggee
        self._program = brief.program
        self._root = brief.root
        self._spec = brief.spec
        self._parameters = brief.parameters
        self._listener = brief.listener
        self._note = brief.note
        self._remains = brief.remains

    @property
    def remains(self) -> Remains | None:
        """What is there for the next analysis: of one that leaves nothing, what it has found."""
        return self._remains

    is_of_one: ClassVar[bool] = True
    """Whether it times calls of the one function that the user has named."""

    outlives: ClassVar[bool] = False
    """Whether what was counted can be read when the program is gone."""

    @property
    def auto_lookahead(self) -> int | None:
        """What ``--lookahead auto`` means where that is not for the search to say."""
        return None

    @property
    def most_probes(self) -> int | None:
        """How many call sites can be timed at once at most, where there is a limit."""
        return None

    def within_limits(self, parameters: Parameters) -> Parameters:
        """These as far as it can keep to them, once it is in: what the user has asked for is kept
        elsewhere."""
        lookahead, most = parameters.lookahead, self.most_probes
        return dataclasses.replace(
            parameters,
            lookahead=self.auto_lookahead if lookahead is None else lookahead,
            max_probes=parameters.max_probes if most is None else min(most, parameters.max_probes),
        )

    @staticmethod
    def problem(debuggee: Debuggee) -> str | None:
        """Why there can be none in what is debugged, whatever the function is."""
        del debuggee
        return None

    @staticmethod
    def risk(debuggee: Debuggee) -> str | None:
        """Why ``--probes auto`` puts none into what is debugged: it could come to harm."""
        del debuggee
        return None

    @staticmethod
    def risk_of_fall_back(debuggee: Debuggee) -> str | None:
        """Why none takes the place of one that has collected: it would spoil more than it tells."""
        del debuggee
        return None

    def opening(self, why: str | None) -> str | None:
        """What the user is to know of it before the program goes on. ``why`` says why it is this
        one, where ``--probes auto`` would rather have another."""
        del why
        return None

    ops: KeepsOps | None = None
    """What keeps some ops whole, where it can, since :meth:`install`."""

    open_calls: SeesOpenCalls | None = None
    """What tells which calls are under way, where it can, since :meth:`install`."""

    ahead: LooksAhead | None = None
    """What prepares for the next stop while the program runs, where it can, since
    :meth:`install`."""

    counting: Counting
    """What counts the calls of f0, and when that is enough. This and what follows is there since
    :meth:`install`."""

    timing: Timing
    """What carries out orders, and counts votes."""

    stops: UserStops
    """What becomes of the probes where the program stops for the user."""

    summons: Summons
    """How it calls for the debugger while the program runs."""

    callees: Callees
    """The call sites of every fnode that was looked into."""

    # ------------------------------------------------------------- begin and end

    @abstractmethod
    def install(self, code: FunctionCode, needed: int) -> list[str]:
        """Puts probes to f0, whose code is ``code``, into the program and begins to collect its
        profile; may call functions in it. Returns what the user should know.

        Raises:
            DarcError: it cannot be. :meth:`remove` undoes what was done.
        """

    @abstractmethod
    def remove(self) -> None:
        """Takes everything back. May be called in the middle of :meth:`Listener.decide`."""

    @abstractmethod
    def gone(self) -> None:
        """The program is gone, and everything that was in it."""

    def abandon(self) -> None:
        """The debugger has lost the program, which lives on with the probes: they do nothing any
        more, and what is noted of them stays for the next debugger."""
        self.gone()

    @abstractmethod
    def is_there(self) -> bool:
        """Whether the program that the probes were put into is still the one that runs."""

    def lost(self) -> str | None:
        """At a stop: why what the probes were put into is not what runs there any more."""
        return self._debuggee.lost()

    def damage(self) -> str | None:
        """Why nothing can be made of what was counted, as the program has written over it. Any
        thread."""
        return None

    def make_way(self) -> str | None:
        """The user has set a breakpoint. A string says why f0 cannot be timed any more."""
        return None

    @abstractmethod
    def modules_changed(self) -> list[str]:
        """The program has loaded or unloaded files. Tells what could not be done.

        Raises:
            UnsupportedError: f0 cannot be timed any more.
        """

    @property
    def out_of_reach(self) -> str | None:
        """Since :meth:`install`, and as of the last :meth:`modules_changed`: which calls its probes
        cannot time for where they come from, in words, if any."""
        return None

    def losses(self) -> list[str]:
        """What was not measured so far, and why."""
        return []

    @property
    def sure_from(self) -> float:
        """Seconds: what it finds the causes of shorter calls to be may be its own doing."""
        return 0.0

    @property
    def generated(self) -> int:
        """Calls by code that was generated, which are not timed. Any thread, while the program
        runs, whose memory can be read."""
        return 0

    def warnings(self) -> list[str]:
        """What makes the figures doubtful."""
        return []

    @property
    def overdrawn(self) -> int:
        """Calls of f0 that count as long as the fastest of before the search, as what is taken out
        of them for the probes inside would have left less than half of that."""
        return 0

    @property
    def unsettled_seconds(self) -> float:
        """For how long the program ran so far and calls did not count, as it had only just stood
        still. Any thread."""
        return 0.0

    @property
    def cut_short(self) -> int:
        """Calls of f0 that stops for the user have come in the middle of: they are not measured."""
        return 0

    @property
    def hits(self) -> tuple[int, float]:
        """How often the program was stopped to time a call, and for how many seconds in all; with
        those in which a thread that had asked for a decision waited for it to begin, and for the
        program to go on behind it."""
        return 0, 0.0


@dataclass(frozen=True)
class Way:
    """How one of the class ``collector`` is made: by ``make``, or with the brief alone."""

    collector: type[Collector]
    make: Callable[[CollectorBrief], Collector] | None = None

    def new(self, brief: CollectorBrief) -> Collector:
        """A collector for that."""
        return (self.make or self.collector)(brief)
